"""End to end into PostgreSQL: a live MariaDB source, the command line, a real server; a real Spark where marked.

The tables are compared value by value with what the source prints of them (`neutral_state.state_of`).
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command.test_clone import wait_cloned
from tests.kit.neutral_state import state_of
from tests.kit.postgresql_state import connect, differences, new_database
from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer, PostgresqlServer
from tests.stories.test_replication import (
    SCHEMA as SCHEMA,  # read by the fixture `source`
    Load,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def set_up(replica: Replica, source: MariadbServer, server: PostgresqlServer, repository: str, *init: str) -> str:
    """init with the target's URL on the command line and its password in a file; the URL with the password."""
    url = new_database(server)
    password = replica.datadir.parent / "target-password"
    password.write_text("rpl\n")
    password.chmod(0o600)
    shown = url.replace("rpl:rpl@", "rpl@").replace("+psycopg", "")
    kinds = ["--master-info-repository", repository, "--relay-log-info-repository", repository]
    replica.set_up(source, "--target", shown, "--target-password-file", str(password), *kinds, *init)
    return url


def assert_same(source: MariadbServer, url: str, replica: Replica) -> None:
    """Every value, and the position."""
    replica.wait_synced(source)
    with connect(url) as target:
        assert differences(target, "".join(state_of(source, ["shop"]))) == []
        there = target.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'shop' ORDER BY 1").fetchall()
    assert [row[0] for row in there] == source.tables("shop")
    status = replica.status()
    assert (status["Relay_Master_Log_File"], status["Exec_Master_Log_Pos"]) == source.master_status()
    assert status["Slave_SQL_Running"] == "Yes"
    wait_until(lambda: replica.status()["Slave_IO_Running"] == "Yes")  # all may have been in the relay logs already


@pytest.mark.long("tests/stories/test_replication.py kills receiver and applier at random moments in make test.")
@pytest.mark.parametrize(
    ("repository", "kills"),
    [
        ("table", 3),  # a killed applier with its Spark: test_replication
        pytest.param("file", 3, marks=pytest.mark.torture),
        *(pytest.param(kind, 20, marks=[pytest.mark.spark, pytest.mark.torture]) for kind in ("table", "file")),
    ],
)
def test_kill_9_of_the_applier_at_random_moments_loses_and_repeats_nothing(
    replica: Replica, source: MariadbServer, postgresql: PostgresqlServer, repository: str, kills: int
) -> None:
    url = set_up(replica, source, postgresql, repository)
    source.sql("CREATE TABLE shop.growing (id INT PRIMARY KEY, v INT); INSERT INTO shop.growing VALUES (1, 1)")
    replica.run("start")
    chance = random.Random(f"postgresql {repository}")
    load = Load(source, 5)
    load.start()
    try:
        for number in range(kills):
            time.sleep(chance.random() * 2.5)
            assert replica.kill("applier"), replica.logs()
            if number % 3 == 0:
                source.sql(f"ALTER TABLE shop.growing ADD COLUMN n{number} INT NOT NULL DEFAULT {number} AFTER id")
            replica.run("start")
    finally:
        load.finish()
    assert_same(source, url, replica)
    mode = {"table": "transaction", "file": "marker"}[repository]
    assert replica.status()["Commit_Mode"].lower() == mode
    checked = replica.run("check", expect=None)
    assert checked.returncode in (0, 1)  # 1: where the receiver has read to may not be on disk yet
    assert "target_" not in checked.stdout + checked.stderr
    assert "table_" not in checked.stdout + checked.stderr
    told = replica.run("doctor", "--json", expect=1).stdout  # this server's fsync is off
    findings = {row["Check"]: row["Result"] for row in json.loads(told)}
    assert findings["target"] == findings["target foreign keys"] == "OK" and findings["power cut"] == "WARN"


@pytest.mark.long("`crash-test` kills an applier of PostgreSQL; here the target crashes under load.")
def test_stop_and_start_under_load_and_a_target_that_crashes(
    replica: Replica, source: MariadbServer, postgresql_factory: Callable[..., PostgresqlServer]
) -> None:
    server = postgresql_factory()
    url = set_up(replica, source, server, "table", "--slave-transaction-retries", "300")  # a second each
    replica.run("start")
    load = Load(source, 6)
    load.start()
    try:
        time.sleep(0.5)
        replica.run("stop")
        replica.run("start")
        database = url.rpartition("/")[2]
        made = "SELECT 1 FROM pg_tables WHERE tablename = 'audit'"
        wait_until(lambda: server.sql(made, database), timeout_s=240)  # Spark starts
        server.kill()
        server.start()
        time.sleep(0.5)
    finally:
        load.finish()
    assert_same(source, url, replica)
    assert replica.status()["Last_SQL_Errno"] == 0


@pytest.mark.long("tests/stories/test_replication.py has a channel that starts in mid-log in make test.")
def test_a_channel_that_starts_in_mid_log_makes_its_tables_from_the_source(
    replica: Replica, source: MariadbServer, postgresql: PostgresqlServer
) -> None:
    url = set_up(replica, source, postgresql, "table")
    name, position = source.master_status()
    replica.change_master(source, "--master-log-file", name, "--master-log-pos", str(position))
    source.sql("INSERT INTO shop.customers (name, credit) VALUES ('Zoë', 18446744073709551615)")
    failed = replica.run("start", "--until-synced", expect=7)
    assert "1146" in failed.stderr
    assert "load-schema" in failed.stderr
    replica.run("load-schema", "--from-source")
    replica.run("start")
    assert_same(source, url, replica)


def test_a_statement_event_stops_with_its_way_out(
    replica: Replica, source: MariadbServer, postgresql: PostgresqlServer
) -> None:
    set_up(replica, source, postgresql, "table")
    source.sql("SET SESSION binlog_format='STATEMENT'; INSERT INTO shop.audit VALUES ('s', NULL)")
    failed = replica.run("start", "--until-synced", expect=1)
    assert "binlog_format=ROW" in failed.stderr
    assert "INSERT INTO shop.audit" in failed.stderr


@pytest.mark.long("NUL in text is rare, and the stop with its hint is tested for other values.")
def test_nul_in_text_is_replaced_when_the_hint_is_followed(
    mariadb: MariadbServer, postgresql: PostgresqlServer, tmp_path: Path
) -> None:
    """One by one, in bulk, in keys, in a copy and in rows without a key; a compared copy is equal then."""
    url = new_database(postgresql)
    shown = url.replace("rpl:rpl@", "rpl@").replace("+psycopg", "")
    password = tmp_path / "password"
    password.write_text("rpl\n")
    password.chmod(0o600)
    replica = Replica(tmp_path, spark=False)
    mariadb.sql(
        "DROP DATABASE IF EXISTS nuls; CREATE DATABASE nuls; USE nuls;"
        "CREATE TABLE t (k VARCHAR(20) COLLATE utf8mb4_bin"
        " PRIMARY KEY, v LONGTEXT, n INT) CHARSET utf8mb4; CREATE TABLE u (v VARCHAR(20) COLLATE utf8mb4_bin, n INT);"
        "INSERT INTO t VALUES ('a\\0', 'b\\0c\\0\\0', 1), ('c', '\\\\0 \\\\', 2)"
    )
    try:
        options = ("--target", shown, "--target-password-file", str(password), "--replicate-do-db", "nuls")
        replica.run("init", *options)
        replica.change_master(mariadb)
        replica.run("clone")
        wait_until(lambda: replica.status()["Last_SQL_Errno"] == 1366)
        assert "rplctl init --nul-in-text replace; rplctl start" in replica.run("check", expect=None).stdout
        replica.run("init", "--nul-in-text", "replace")
        replica.run("start")
        wait_cloned(replica)
        mariadb.sql(
            "USE nuls; UPDATE t SET n=n+1; INSERT INTO u SELECT CONCAT('x', CHAR(0), seq), seq FROM seq_1_to_500;"
            "UPDATE u SET n=n+1; DELETE FROM u WHERE n=7; INSERT INTO t SELECT CONCAT('k', seq, CHAR(0)), CHAR(0), 3"
            " FROM seq_1_to_500; UPDATE t SET v=CONCAT(v, '\\\\', CHAR(0)) WHERE n=3; DELETE FROM t WHERE k='k9\\0';"
            "INSERT INTO t VALUES ('z', CONCAT(REPEAT('y', 2000000), CHAR(0)), 4)"
        )
        replica.wait_synced(mariadb, 120)
        report = replica.run("verify")
        assert "nuls\tt\t502\t502" in report.stdout
        with connect(url) as connection:
            found = connection.execute("SELECT v FROM nuls.t WHERE k IN ('a\ufffd', 'c') ORDER BY k").fetchall()
        assert found == [("b\ufffdc\ufffd\ufffd",), ("\\0 \\\\\ufffd",)]
    finally:
        replica.close()
