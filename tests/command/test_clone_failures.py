"""What stops the reading end of a copy is told, and it goes on by itself when that is over, also elsewhere."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rplctl.config import load_config
from rplctl.target import open_engine
from tests.command.test_clone import Compare, compare, only, wait_cloned
from tests.command.test_clone_again import on
from tests.kit.replica import Replica, assert_same_tables, purge_logs, wait_until
from tests.kit.servers import MariadbServer
from tests.stories.test_gtid_failover import Pair, gtids_of, mariadb_pair, wait_for_gtids

__all__ = ["compare", "mariadb_pair"]
pytestmark = [
    pytest.mark.long("tests/clone/test_cloner.py and tests/relay_log/test_received.py hold each answer to a fault."),
    pytest.mark.slow,
    pytest.mark.mariadb,
]


@pytest.fixture
def replica(tmp_path: Path) -> Iterator[Replica]:
    made = Replica(tmp_path, spark=False)
    yield made
    made.close()


def fill(source: MariadbServer) -> None:
    source.sql("CREATE DATABASE away; CREATE USER taken@'%' IDENTIFIED BY 'rpl'; GRANT SELECT ON *.* TO taken@'%'")
    source.sql("GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO taken@'%'")
    for number in range(4):
        source.sql(f"CREATE TABLE away.t{number} (id INT PRIMARY KEY, v VARCHAR(200))")
        source.sql(f"USE away; INSERT INTO away.t{number} SELECT seq, REPEAT('x', 150) FROM seq_1_to_20000")


def write(source: MariadbServer) -> None:
    for number in range(4):
        source.sql(f"UPDATE away.t{number} SET v = CONCAT(id, {number}) WHERE id % 20 = {number}")


def end_sessions(source: MariadbServer) -> None:
    """Of the reading end, not of the receiver."""
    for (number,) in source.sql(
        "SELECT id FROM information_schema.processlist WHERE user = 'taken' AND command <> 'Binlog Dump'"
    ):
        source.sql(f"KILL {number}")


def test_it_goes_on_after_a_wrong_password_a_source_that_was_away_and_a_failover(
    mariadb_pair: Pair, replica: Replica
) -> None:
    one, two = mariadb_pair
    fill(one)
    replica.run("init")
    replica.change_master(one, "--master-use-gtid", "slave_pos")
    replica.run("change-master", "--master-user", "taken")
    only(replica, "away")
    wish = "GRANT BINLOG ADMIN ON *.* TO 'taken'@'%';"
    assert wish in replica.run("clone", "--dry-run").stderr  # or DDL would wait for the copy
    one.sql("GRANT BINLOG ADMIN ON *.* TO 'taken'@'%'")
    assert wish not in replica.run("clone", "--dry-run").stderr
    options = replica.datadir / "rplctl.toml"
    options.write_text(f"relay_log_space_limit = 50000\n{options.read_text()}")

    def is_reading() -> bool:
        folder = replica.channel.clone_folder
        return any(folder.glob("*/*.rows")) and not any(folder.glob("*/complete.json"))

    def reads_again(is_over: Callable[[], bool]) -> None:
        wait_until(is_over, 60)
        wait_until(is_reading, 60)

    replica.run("clone", "--max-rate", "1")
    wait_until(is_reading, 60)
    write(one)
    one.sql("SET PASSWORD FOR taken@'%' = PASSWORD('other')")
    end_sessions(one)
    wait_until(lambda: replica.status()["Clone_Last_Errno"] == 1045, 60)
    assert "Access denied for user 'taken'" in replica.run("show-clone").stderr
    assert replica.status()["Slave_IO_Running"] == "Yes"
    one.sql("SET PASSWORD FOR taken@'%' = PASSWORD('rpl')")
    reads_again(lambda: replica.status()["Clone_Last_Errno"] == 0)
    one.kill()
    wait_until(lambda: replica.status()["Clone_Last_Errno"] in (2002, 2003, 2006, 2013), 60)
    assert "clone_reader_error" in replica.run("check", expect=None).stdout
    one.start()
    one.sql("START SLAVE")
    reads_again(lambda: replica.status()["Clone_Last_Errno"] == 0)
    write(one)
    wait_until(lambda: gtids_of(two) == gtids_of(one))
    replica.run("stop", "--receiver")
    replica.change_master(two)
    replica.run("start", "--receiver")
    write(two)
    two.sql("FLUSH BINARY LOGS")
    purge_logs(two, two.master_status()[0])
    assert replica.run("clone", "--max-rate", "0").returncode == 0
    wait_cloned(replica)
    write(two)
    wait_for_gtids(replica, two)
    assert_same_tables(two, replica, "away")
    assert replica.status()["Passed_Over_Errors"] == 0
    again = replica.run("clone", "--databases", "away", "--replace", "--yes", "--json").stdout
    assert json.loads(again)[0]["Tables"] == 4
    wait_cloned(replica)
    wait_for_gtids(replica, two)
    assert_same_tables(two, replica, "away")


@pytest.mark.postgresql
@pytest.mark.parametrize("compare", ["postgresql"], indirect=True)
def test_a_value_that_the_target_cannot_store_is_told_with_its_row_and_nothing_is_loaded(
    mariadb: MariadbServer, replica: Replica, compare: Compare
) -> None:
    mariadb.sql("DROP DATABASE IF EXISTS odd; CREATE DATABASE odd; SET sql_mode=''; USE odd;"
                "CREATE TABLE d (id INT PRIMARY KEY, day DATE); INSERT INTO d SELECT seq, NOW() FROM seq_1_to_900;"
                "UPDATE d SET day = '2024-00-07' WHERE id = 823;"
                "CREATE TABLE s (id INT PRIMARY KEY, t TEXT); INSERT INTO s VALUES (1, 'x'), (2, CHAR(0))")  # fmt: skip
    replica.change_master(mariadb)
    only(replica, "odd")
    replica.run("clone")
    told = stopped(replica)
    assert "odd.d is not copied: Incorrect date value: '2024-00-07' for column 'day'" in told
    assert "(row id=823)" in told and "ALTER COLUMN" in told and "rplctl start" in told
    assert [*replica.channel.clone_folder.glob("*/*.rows")]
    rows = {row["Table_name"]: row for row in json.loads(replica.run("show-clone", "--json").stdout)}
    assert rows["d"]["Row_count"] == 0
    column = told.partition("on the target: ")[2].partition("\n")[0]
    sql_on_target(replica, column)
    replica.run("start")
    told = stopped(replica)
    assert "odd.s is not copied: " in told and "for column 't'" in told and "(row id=2)" in told
    assert "rplctl init --nul-in-text replace; rplctl start" in told
    assert "rplctl stop; rplctl clone --cancel --yes; rplctl clone" in told
    assert "--replicate-ignore-table odd.s" in told and "skip" not in told
    mariadb.sql("UPDATE odd.s SET t = 'y' WHERE id = 2; UPDATE odd.d SET day = '2024-01-07' WHERE id = 823")
    replica.run("stop")
    replica.run("clone", "--cancel", "--yes")
    replica.run("clone")
    wait_cloned(replica)
    replica.wait_synced(mariadb, 60)
    replica.run("verify")


def test_a_chunk_is_as_large_as_its_rows_are_not_as_the_source_believes(
    mariadb: MariadbServer, replica: Replica
) -> None:
    mariadb.sql("DROP DATABASE IF EXISTS believed; CREATE DATABASE believed; USE believed;"
                "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(1000)) STATS_PERSISTENT=1 STATS_AUTO_RECALC=0;"
                "ANALYZE TABLE t; INSERT INTO t SELECT seq, REPEAT('x', 900) FROM seq_1_to_60000")  # fmt: skip
    replica.run("init")
    replica.change_master(mariadb)
    only(replica, "believed")
    replica.run("clone")
    (row,) = wait_cloned(replica)
    assert row["Chunks"] == 5 and row["Row_count"] == 60_000, row  # 1,000 rows, 10,000, and thrice 16 MB


@on(suite="postgresql")
def test_rows_of_another_writer_stop_it_and_a_table_that_is_dropped_is_copied_again(
    mariadb: MariadbServer, replica: Replica, compare: Compare, request: pytest.FixtureRequest
) -> None:
    mariadb.sql("DROP DATABASE IF EXISTS alien; CREATE DATABASE alien; USE alien;"
                "CREATE TABLE t (id INT PRIMARY KEY, u INT UNIQUE, v VARCHAR(200));"
                "INSERT INTO t SELECT seq, seq, REPEAT('x', 150) FROM seq_1_to_400000")  # fmt: skip
    table = "alien__t" if request.node.callspec.params["compare"] == "sqlite" else "alien.t"
    replica.change_master(mariadb)
    only(replica, "alien")
    for number, column in ((400_000, "id"), (-1, "u")):
        again = ["--databases", "alien", "--replace", "--yes"] if number < 0 else []
        replica.run("clone", "--max-rate", "2", *again)
        wait_until(lambda: 0 < json.loads(replica.run("show-clone", "--json").stdout)[0]["Row_count"] < 400_000, 60)
        sql_on_target(replica, f"INSERT INTO {table} VALUES ({number}, 400000, 'alien')")
        replica.run("clone", "--max-rate", "0")
        told = stopped(replica)
        assert "alien.t" in told and "another program writes to the table" in told, column
        assert "stopped the other program and dropped the target's table, run: rplctl start" in told
        sql_on_target(replica, f"DROP TABLE {table}")
        replica.run("start")
        wait_cloned(replica)
    replica.wait_synced(mariadb, 60)
    compare(mariadb, "alien")


def stopped(replica: Replica) -> str:
    """The error that ended the applier, and its hint."""
    wait_until(lambda: replica.status()["Last_SQL_Errno"] and not replica.pid("applier"), 120)
    status = replica.status()
    return f"{status['Last_SQL_Error']}\n{status['Last_SQL_Hint']}"


def sql_on_target(replica: Replica, sql: str) -> None:
    engine = open_engine(load_config(replica.datadir, "").target_url)
    with engine.begin() as connection:
        connection.exec_driver_sql(sql)
    engine.dispose()


@on(suite="sqlite")
def test_a_chunk_that_is_cut_while_the_applier_is_frozen_is_read_anew(
    mariadb_factory: Callable[..., MariadbServer], compare: Compare, replica: Replica
) -> None:
    """It may be the one that is decoded before its turn: its error belongs to its turn."""
    source = mariadb_factory("--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0")
    source.sql("CREATE DATABASE cut; CREATE TABLE cut.t (id INT PRIMARY KEY, v VARCHAR(1000)) CHARSET latin1")
    source.sql("USE cut; INSERT INTO t SELECT seq, REPEAT('x', 1000) FROM seq_1_to_60000")
    replica.change_master(source)
    only(replica, "cut")
    replica.run("clone", "--max-rate", "10")

    def chunks() -> list[Path]:
        return sorted(replica.channel.clone_folder.glob("*/0.*.rows"), key=lambda path: int(path.name.split(".")[1]))

    wait_until(chunks, 60)
    applier = replica.pid("applier")
    assert applier
    os.kill(applier, signal.SIGSTOP)
    try:
        wait_until(lambda: len(chunks()) >= 2, 60)
        os.truncate(chunks()[1], chunks()[1].stat().st_size // 2)
    finally:
        os.kill(applier, signal.SIGCONT)
    wait_until(lambda: "is read again" in replica.logs(), 60)
    assert replica.pid("applier") == applier
    replica.run("clone", "--max-rate", "0")
    wait_cloned(replica)
    replica.wait_synced(source, 60)
    compare(source, "cut")
