"""Failover by GTID to another source, whose binary logs have other names, numbers and offsets (design D7).

Two real servers replicate each other; rplctl changes from one to the other and back while they write. What must hold:
every transaction once, in the target what the new source has.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from rplctl.command.show_status import show_status
from rplctl.config import load_config
from rplctl.repository.file import FileRepository
from rplctl.repository.record import RELAY_LOG_INFO
from tests.kit.replica import Replica, assert_same_tables, purge_logs, wait_until
from tests.kit.servers import MariadbServer, MysqlServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

Pair = tuple[MariadbServer, MariadbServer]


@pytest.fixture(scope="module")
def mariadb_pair(mariadb_factory: Callable[..., MariadbServer]) -> Pair:
    """Each a replica of the other by GTID; the first one's log numbers are far ahead of the second's."""
    one, two = mariadb_factory(), mariadb_factory()
    for server in (one, two):
        server.sql("RESET MASTER; SET GLOBAL gtid_slave_pos=''")
    one.follow(two)
    two.follow(one)
    one.sql("FLUSH BINARY LOGS; " * 7)
    return one, two


@pytest.fixture(scope="module")
def mysql_pair(mysql_factory: Callable[..., MysqlServer]) -> Pair:
    one, two = mysql_factory(), mysql_factory()
    for server in (one, two):
        server.sql("RESET BINARY LOGS AND GTIDS")
    one.follow(two)
    two.follow(one)
    one.sql("FLUSH BINARY LOGS; " * 7)
    return one, two


def gtids_of(server: MariadbServer) -> str:
    variable = "gtid_executed" if server.kind == "mysql" else "gtid_binlog_pos"
    return str(server.sql(f"SELECT @@GLOBAL.{variable}")[0][0]).replace("\n", "")


def wait_for_gtids(replica: Replica, server: MariadbServer) -> None:
    config = load_config(replica.datadir)
    try:
        wait_until(lambda: show_status(config, "").Executed_Gtid_Set == gtids_of(server))
    except AssertionError:
        raise AssertionError(f"{replica.status()} is not at {gtids_of(server)}{replica.logs()}") from None


def write(server: MariadbServer, database: str, count: int) -> None:
    """Transactions that show it when one is missing, or comes twice: the counter counts, the audit has no key."""
    for _ in range(count):
        server.sql(
            f"BEGIN; UPDATE {database}.counter SET n=n+1; "
            f"INSERT INTO {database}.audit SELECT n, REPEAT('ä', n % 50) FROM {database}.counter; COMMIT"
        )


def make_tables(server: MariadbServer, database: str) -> None:
    server.sql(
        f"CREATE DATABASE {database}; CREATE TABLE {database}.counter (id INT PRIMARY KEY, n BIGINT); "
        f"CREATE TABLE {database}.audit (n BIGINT, note VARCHAR(60)); INSERT INTO {database}.counter VALUES (1, 0)"
    )


def fail_over(replica: Replica, pair: Pair, database: str, by_gtid: Sequence[str]) -> None:
    """There with the applier running, back with everything stopped, kill -9 in between; writes go on meanwhile."""
    one, two = pair
    make_tables(one, database)
    write(one, database, 5)
    replica.change_master(one, *by_gtid)
    replica.run("start")
    wait_for_gtids(replica, one)
    old = replica.status()

    write(one, database, 5)
    replica.run("stop", "--receiver")
    write(one, database, 5)
    wait_until(lambda: gtids_of(two) == gtids_of(one))
    replica.change_master(two)
    replica.run("start", "--receiver")
    write(two, database, 5)
    two.sql(f"ALTER TABLE {database}.audit ADD COLUMN late INT DEFAULT 7")
    write_after_alter(two, database)
    wait_for_gtids(replica, two)
    status = replica.status()
    assert status["Master_Port"] == two.port
    assert (status["Relay_Master_Log_File"], status["Exec_Master_Log_Pos"]) == two.master_status()
    assert status["Relay_Master_Log_File"] != old["Relay_Master_Log_File"]
    assert_same_tables(two, replica, database)

    replica.kill("receiver")
    replica.kill("applier")
    replica.run("start")
    write_after_alter(two, database)
    replica.run("stop")
    wait_until(lambda: gtids_of(two) == gtids_of(one))
    replica.change_master(one)
    write_after_alter(one, database)
    replica.run("start")
    wait_for_gtids(replica, one)
    status = replica.status()
    assert (status["Relay_Master_Log_File"], status["Exec_Master_Log_Pos"]) == one.master_status()
    assert_same_tables(one, replica, database)
    assert "repository" not in replica.run("check", expect=None).stdout.lower()
    replica.run("stop")


def write_after_alter(server: MariadbServer, database: str) -> None:
    server.sql(
        f"BEGIN; UPDATE {database}.counter SET n=n+1; "
        f"INSERT INTO {database}.audit (n, note) SELECT n, 'after' FROM {database}.counter; COMMIT"
    )


def positions_of_two_sources(replica: Replica, pair: Pair, database: str, by_gtid: Sequence[str]) -> None:
    """`wait` and `--until-synced` right after a failover to lower positions, and to higher ones without news."""
    one, two = pair
    make_tables(one, database)
    replica.change_master(one, *by_gtid)
    replica.run("start")
    wait_for_gtids(replica, one)
    replica.run("stop", "--receiver")
    wait_until(lambda: gtids_of(two) == gtids_of(one))
    write(two, database, 5)
    end = ":".join(map(str, two.master_status()))
    replica.change_master(two)
    replica.run("stop", "--applier")
    assert replica.status()["Relay_Master_Log_File"] > end, "lower"
    not_running = replica.run("wait", "--pos", end, "--timeout", "240", expect=3)
    assert "1199" in not_running.stderr
    replica.run("start", "--receiver")
    wait_until(lambda: replica.status()["Read_Master_Log_Pos"] == two.master_status()[1])
    replica.run("wait", "--pos", end, "--timeout", "240", expect=3)
    replica.run("start", "--until-synced", "--max-time", "280")
    assert_same_tables(two, replica, database)
    replica.run("wait", "--pos", end, "--timeout", "240")

    wait_until(lambda: gtids_of(two) == gtids_of(one))
    replica.run("start", "--applier")
    replica.run("stop", "--receiver")
    replica.change_master(one)
    replica.run("start", "--receiver")
    end = ":".join(map(str, one.master_status()))
    assert replica.status()["Relay_Master_Log_File"] < end, "and nothing of it is applied"
    replica.run("wait", "--pos", end, "--timeout", "240")
    replica.run("wait", "--state", "synced", "--timeout", "240")
    write(one, database, 5)
    replica.run("wait", "--pos", ":".join(map(str, one.master_status())), "--timeout", "240")
    assert_same_tables(one, replica, database)
    replica.run("stop")


@pytest.mark.long(
    "Lower positions are rare; test_mariadb_sources_change_places_and_no_transaction_is_lost_or_comes_twice"
    " changes sources."
)
def test_positions_of_two_mariadb_sources_are_not_compared(replica: Replica, mariadb_pair: Pair) -> None:
    """Nor where the source's GTIDs do not say what is to be applied: a server is left out."""
    replica.run("init")
    by_gtid = ["--master-use-gtid", "slave_pos", "--ignore-server-ids", "77"]
    positions_of_two_sources(replica, mariadb_pair, "lower", by_gtid)


@pytest.mark.torture
def test_positions_of_two_mysql_sources_are_not_compared(replica: Replica, mysql_pair: Pair) -> None:
    replica.run("init", "--relay-log-info-repository", "table")
    positions_of_two_sources(replica, mysql_pair, "lower", ["--master-auto-position", "1", "--master-ssl", "1"])


@pytest.mark.parametrize("repository", ["file", pytest.param("table", marks=pytest.mark.torture)])
def test_mariadb_sources_change_places_and_no_transaction_is_lost_or_comes_twice(
    replica: Replica, mariadb_pair: Pair, repository: str
) -> None:
    replica.run("init", "--master-info-repository", repository, "--relay-log-info-repository", repository)
    fail_over(replica, mariadb_pair, f"shop_{repository}", ["--master-use-gtid", "slave_pos"])


def test_a_delayed_applier_that_keeps_running_follows_the_new_source(replica: Replica, mariadb_pair: Pair) -> None:
    """The delay makes the applier look up its position again after CHANGE MASTER."""
    one, two = mariadb_pair
    replica.run("init", "--replicate-do-db", "slow")
    make_tables(one, "slow")
    replica.change_master(one, "--master-use-gtid", "slave_pos", "--master-delay", "1")
    replica.run("start")
    write(one, "slow", 5)
    wait_for_gtids(replica, one)
    replica.run("stop", "--receiver")
    wait_until(lambda: gtids_of(two) == gtids_of(one))
    replica.change_master(two)
    replica.run("start", "--receiver")
    write(two, "slow", 5)
    wait_for_gtids(replica, two)
    assert_same_tables(two, replica, "slow")
    replica.run("stop")


@pytest.mark.long("test_mariadb_sources_change_places_and_no_transaction_is_lost_or_comes_twice holds it for MariaDB.")
@pytest.mark.parametrize("repository", ["table", pytest.param("file", marks=pytest.mark.torture)])
def test_mysql_sources_change_places_and_no_transaction_is_lost_or_comes_twice(
    replica: Replica, mysql_pair: Pair, repository: str
) -> None:
    replica.run("init", "--master-info-repository", repository, "--relay-log-info-repository", repository)
    fail_over(replica, mysql_pair, f"shop_{repository}", ["--master-auto-position", "1"])


def restored_from_before_the_failover(replica: Replica, pair: Pair, database: str, by_gtid: Sequence[str]) -> None:
    """The target's rows are of the first source's time: refused with both, and both ways of the hint end equal."""
    one, two = pair
    target, backup = replica.datadir / "target.db", replica.datadir.parent / "backup.db"
    make_tables(one, database)
    write(one, database, 2)
    replica.change_master(one, *by_gtid)
    replica.run("start", "--until-synced")
    copy_database(target, backup)
    write(one, database, 2)
    replica.run("start", "--until-synced")
    wait_until(lambda: gtids_of(two) == gtids_of(one))
    replica.change_master(two)
    write_with_column(two, database)
    replica.run("start", "--until-synced")
    for way in ("continue by the GTIDs in the target: ", "To copy all tables again, run: "):
        copy_database(backup, target)
        refused = replica.run("start", "--until-synced", expect=7)
        assert f":{one.port} (" in refused.stderr and f":{two.port} (" in refused.stderr
        assert "target_of_another" in replica.run("check", expect=2).stdout
        commands = next(line for line in replica.status()["Last_SQL_Hint"].splitlines() if way in line).partition(way)[
            2
        ]
        for command in commands.split(" && "):
            replica.run(*command.split()[1:])
        wait_for_gtids(replica, two)
        wait_until(lambda: {row["State"] for row in json.loads(replica.run("show-clone", "--json").stdout)} <= {"done"})
        replica.run("verify", "--databases", database)
        replica.run("stop")
        assert_same_tables(two, replica, database)


def write_with_column(server: MariadbServer, database: str) -> None:
    server.sql(f"ALTER TABLE {database}.audit ADD COLUMN late INT DEFAULT 7")
    write_after_alter(server, database)


def copy_database(file: Path, copy: Path) -> None:
    """With what is in its write-ahead log, too."""
    with closing(sqlite3.connect(file)) as one, closing(sqlite3.connect(copy)) as other:
        one.backup(other)


def test_a_mariadb_target_of_before_the_failover_is_refused_and_led_back(replica: Replica, mariadb_pair: Pair) -> None:
    replica.run("init", "--replicate-do-db", "earlier")
    restored_from_before_the_failover(replica, mariadb_pair, "earlier", ["--master-use-gtid", "slave_pos"])


@pytest.mark.long("test_a_mariadb_target_of_before_the_failover_is_refused_and_led_back holds it for MariaDB.")
def test_a_mysql_target_of_before_the_failover_is_refused_and_led_back(replica: Replica, mysql_pair: Pair) -> None:
    replica.run("init", "--replicate-do-db", "earlier", "--relay-log-info-repository", "table")
    restored_from_before_the_failover(replica, mysql_pair, "earlier", ["--master-auto-position", "1"])


@pytest.mark.long("tests/stories/test_back_to_equal.py meets 1236 after a purge.")
def test_what_the_source_says_about_gtids_it_lacks_or_purged_is_told_in_its_words_and_ends_the_receiver(
    replica: Replica, mariadb_factory: Callable[..., MariadbServer], mysql_factory: Callable[..., MysqlServer]
) -> None:
    """Extra transactions (ours, unknown to the source) and purged ones, of both vendors: 1236, final."""
    mariadb, mysql = mariadb_factory(), mysql_factory()
    replica.run("init")
    mariadb.sql("RESET MASTER; CREATE DATABASE one; FLUSH BINARY LOGS; CREATE DATABASE two; FLUSH BINARY LOGS")
    last = mariadb.master_status()[0]
    purge_logs(mariadb, last)
    replica.change_master(mariadb, "--master-use-gtid", "slave_pos")
    assert "Could not find GTID state requested by slave in any binlog files" in receiver_error(replica)
    extra = f"0-{mariadb.server_id}-99"
    set_executed(replica, extra)
    assert f"requested to start from GTID {extra}, which is not in the master's binlog" in receiver_error(replica)

    set_executed(replica, "")
    mysql.sql("CREATE DATABASE one; FLUSH BINARY LOGS; CREATE DATABASE two; FLUSH BINARY LOGS")
    mysql.sql(f"PURGE BINARY LOGS TO '{mysql.master_status()[0]}'")
    replica.change_master(mysql, "--master-use-gtid", "no", "--master-auto-position", "1", "--master-ssl", "1")
    assert "Cannot replicate because the source purged required binary logs" in receiver_error(replica)
    uuid = mysql.sql("SELECT @@server_uuid")[0][0]
    set_executed(replica, f"{uuid}:1-99")
    said = receiver_error(replica)
    assert "Replica has more GTIDs than the source has, using the source's SERVER_UUID" in said


def receiver_error(replica: Replica) -> str:
    replica.run("start", "--receiver", expect=None)
    wait_until(lambda: replica.pid("receiver") is None)
    status = replica.status()
    assert (status["Last_IO_Errno"], status["Slave_IO_Running"]) == (1236, "No")
    assert replica.run("check", expect=None).returncode != 0
    return str(status["Last_IO_Error"])


def set_executed(replica: Replica, gtids: str) -> None:
    """As if these had been applied: with the channel stopped the file is the operator's."""
    repository = FileRepository(RELAY_LOG_INFO, replica.channel, 1)
    repository.flush(replace(repository.read(), gtid_executed=gtids), force=True)
