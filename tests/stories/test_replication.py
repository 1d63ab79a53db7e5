"""End to end: a real source, the command line, receiver → relay log → applier, SQLite; a real Spark where marked."""

from __future__ import annotations

import random
import sqlite3
import threading
import time
from contextlib import closing

import pytest

from tests.kit.beside import Beside
from tests.kit.replica import Replica, assert_same_tables, slowness, wait_until
from tests.kit.servers import MariadbServer, MysqlServer

pytestmark = pytest.mark.slow
LONG = [pytest.mark.spark, pytest.mark.torture]

SCHEMA = """
DROP DATABASE IF EXISTS shop;
CREATE DATABASE shop CHARACTER SET utf8mb4;
USE shop;
CREATE TABLE customers (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(80) NOT NULL, joined DATE, credit BIGINT
UNSIGNED); CREATE TABLE orders (id BIGINT PRIMARY KEY, customer_id INT, placed DATETIME(3), total DECIMAL(10,2), KEY
(customer_id)); CREATE TABLE audit (what VARCHAR(40), at TIMESTAMP NULL);
"""


class Load(threading.Thread):
    """Random small transactions on the source until told to stop."""

    def __init__(self, source: MariadbServer, seed: int) -> None:
        super().__init__()
        self._source = source
        self._random = random.Random(seed)
        self._stop_wanted = threading.Event()
        self.transactions = 0

    def run(self) -> None:
        connection = self._source.connect("shop")
        number = 0
        with connection, connection.cursor() as cursor:
            while not self._stop_wanted.is_set():
                number += 1
                cursor.execute("BEGIN")
                name = self._random.choice(["Zoë", "Ödön", "李雷", "plain"]) + str(number)
                cursor.execute(
                    "INSERT INTO customers (name, joined, credit) VALUES (%s, '2024-02-29', %s)", (name, 2**64 - number)
                )
                key = number * 10
                cursor.execute("INSERT INTO orders VALUES (%s, %s, NOW(3), %s)", (key, number, number / 7))
                cursor.execute("UPDATE orders SET total = total + 1 WHERE id <= %s ORDER BY id DESC LIMIT 3", (key,))
                cursor.execute("INSERT INTO audit VALUES (%s, NOW())", (name[:40],))
                if number % 5 == 0:
                    cursor.execute("DELETE FROM orders WHERE id = %s", (self._random.randrange(number) * 10,))
                cursor.execute("ROLLBACK" if number % 13 == 0 else "COMMIT")
                self.transactions += 1
                time.sleep(0.002)

    def finish(self) -> None:
        self._stop_wanted.set()
        self.join()


@pytest.mark.long("tests/stories/test_rows_by_spark.py follows a MariaDB with Spark.")
@pytest.mark.spark
@pytest.mark.parametrize("repository", [pytest.param("file", marks=pytest.mark.torture), "table"])
def test_rows_arrive_within_a_second_and_survive_stop_and_start(
    replica: Replica, source: MariadbServer, repository: str
) -> None:
    replica.set_up(source, "--master-info-repository", repository, "--relay-log-info-repository", repository)
    replica.run("start")
    replica.wait_synced(source)
    took: list[float] = []  # in seconds of a quiet machine
    while min(took, default=9) >= 1.5 and len(took) < 40:  # it may be busy just then
        source.sql("INSERT INTO shop.customers (name) VALUES ('next')")
        began = time.monotonic()
        wait_until(lambda: replica.query("SELECT COUNT(*) FROM shop__customers") == [(len(took) + 1,)])
        took.append((time.monotonic() - began) / slowness())
    assert min(took) < 1.5, took
    replica.run("stop")
    load = Load(source, 1)
    load.start()
    time.sleep(1)
    replica.run("start")
    time.sleep(1)
    load.finish()
    replica.wait_synced(source)
    assert_same_tables(source, replica, "shop")
    status = replica.status()
    assert (status["Relay_Master_Log_File"], status["Exec_Master_Log_Pos"]) == source.master_status()
    assert (status["Slave_IO_Running"], status["Slave_SQL_Running"]) == ("Yes", "Yes")


@pytest.mark.long(
    "tests/command/test_crash_test.py::test_points_on_a_sqlite_file kills at each named point in make test.",
)
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("repository", "gtid", "kills"),
    [
        pytest.param("file", "no", 4, marks=LONG),
        pytest.param("table", "slave_pos", 4, marks=pytest.mark.spark),
        pytest.param("file", "no", 25, marks=LONG),
        pytest.param("table", "slave_pos", 25, marks=LONG),
    ],
)
def test_kill_9_of_receiver_and_applier_at_random_moments_loses_and_repeats_nothing(
    replica: Replica, source: MariadbServer, repository: str, gtid: str, kills: int
) -> None:
    kinds = ["--master-info-repository", repository, "--relay-log-info-repository", repository]
    replica.set_up(source, *kinds, change=["--master-use-gtid", gtid])
    replica.run("start")
    chance = random.Random(20)
    load = Load(source, 2)
    load.start()
    try:
        for _ in range(kills):
            time.sleep(chance.random() * 1.5)
            replica.kill(chance.choice(["receiver", "applier"]))
            replica.run("start")
    finally:
        load.finish()
    replica.wait_synced(source)
    assert_same_tables(source, replica, "shop")
    status = replica.status()
    assert (status["Relay_Master_Log_File"], status["Exec_Master_Log_Pos"]) == source.master_status()


def test_until_synced_applies_what_was_there_and_ends(replica: Replica, source: MariadbServer) -> None:
    load = Load(source, 3)
    load.start()
    time.sleep(1)
    load.finish()
    source.sql("ALTER TABLE shop.orders ADD COLUMN note VARCHAR(20) NOT NULL DEFAULT 'none' AFTER customer_id")
    source.sql("UPDATE shop.orders SET note = 'seen' WHERE id < 100")
    replica.set_up(source)
    replica.run("start", "--until-synced")
    assert_same_tables(source, replica, "shop")
    assert replica.pid("applier") is None
    assert replica.pid("receiver") is None


@pytest.fixture
def mysql_source(mysql: MysqlServer) -> MysqlServer:
    mysql.sql("RESET BINARY LOGS AND GTIDS")
    mysql.sql(SCHEMA)
    return mysql


@pytest.mark.long(
    "tests/command/test_clone_ladder.py::test_a_mysql_source_is_copied_by_gtid follows a MySQL without kills."
)
@pytest.mark.timeout(900)
@pytest.mark.parametrize("start_by", [pytest.param("position", marks=pytest.mark.torture), "gtid"])
def test_mysql_9_is_replicated_through_kills_and_restarts(
    replica: Replica, mysql_source: MysqlServer, start_by: str
) -> None:
    replica.set_up(mysql_source, change=["--master-auto-position", "1"] if start_by == "gtid" else [])
    replica.run("start")
    chance = random.Random(9)
    load = Load(mysql_source, 4)
    load.start()
    try:
        for _ in range(4):
            time.sleep(chance.random() * 2)
            replica.kill(chance.choice(["receiver", "applier"]))
            replica.run("start")
    finally:
        load.finish()
    replica.wait_synced(mysql_source)
    assert_same_tables(mysql_source, replica, "shop")
    status = replica.status()
    assert (status["Relay_Master_Log_File"], status["Exec_Master_Log_Pos"]) == mysql_source.master_status()
    assert status["Master_UUID"]
    assert status["Executed_Gtid_Set"] == str(mysql_source.sql("SELECT @@gtid_executed")[0][0])


@pytest.mark.long("tests/stories/test_initial_copy.py learns tables in make test.")
def test_a_channel_that_starts_in_mid_log_learns_the_tables_it_finds(replica: Replica, source: MariadbServer) -> None:
    Beside.clean(source)  # load-schema learns every table, also what an earlier test has left
    source.sql(SCHEMA)
    source.sql("INSERT INTO shop.customers (name) VALUES ('before')")
    replica.run("init")
    with closing(sqlite3.connect(replica.datadir / "target.db")) as target, target:
        target.execute(
            'CREATE TABLE "shop__customers" ("id" INTEGER PRIMARY KEY, "name" TEXT, "joined" TEXT, "credit")'
        )
        target.execute("INSERT INTO \"shop__customers\" VALUES (1, 'before', NULL, NULL)")
    name, position = source.master_status()
    replica.change_master(source, "--master-log-file", name, "--master-log-pos", str(position))
    source.sql("UPDATE shop.customers SET name = 'after' WHERE id = 1")
    replica.run("start", "--until-synced")
    assert replica.query("SELECT id, name FROM shop__customers") == [(1, "after")]
    source.sql("INSERT INTO shop.audit VALUES ('x', NULL)")
    failed = replica.run("start", "--until-synced", expect=7)
    assert "1146" in failed.stderr
    assert "load-schema" in failed.stderr
    replica.run("load-schema", "--from-source")
    replica.run("start", "--until-synced")
    assert replica.query("SELECT what FROM shop__audit") == [("x",)]
