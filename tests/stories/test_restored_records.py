"""Both records in the target's tables (REQ-6: TABLE, TABLE), and the target put back from a backup: the records go back
with it, the relay logs on disk do not. What was fetched for other records is never applied behind a gap.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.kit.replica import Replica, assert_same_tables, wait_until
from tests.kit.servers import MariadbServer

pytestmark = [pytest.mark.slow, pytest.mark.mariadb, pytest.mark.timeout(900)]
DATABASE = "putback"
TABLES = ("--master-info-repository", "TABLE", "--relay-log-info-repository", "TABLE")


Pair = tuple[MariadbServer, MariadbServer]
WAYS = {"mariadb": ("--master-use-gtid", "slave_pos"), "mysql": ("--master-auto-position", "1")}


@pytest.fixture(
    params=[
        "mariadb",
        pytest.param(
            "mysql",
            marks=[
                pytest.mark.mysql,
                pytest.mark.long("tests/relay_log/test_origin.py holds what is the same for both vendors."),
            ],
        ),
    ]
)
def servers(request: pytest.FixtureRequest) -> Pair:
    """The second one is a replica of the first by GTID, and writes its own binary log."""
    factory: Callable[..., MariadbServer] = request.getfixturevalue(f"{request.param}_factory")
    one, two = factory(), factory()
    is_mysql = one.kind == "mysql"
    for server in (one, two):
        server.sql("RESET BINARY LOGS AND GTIDS" if is_mysql else "RESET MASTER; SET GLOBAL gtid_slave_pos=''")
    two.follow(one)
    return one, two


@pytest.fixture
def alone(mariadb_factory: Callable[..., MariadbServer]) -> MariadbServer:
    """A server whose log begins with these tests: by GTID a channel reads it from its first transaction on."""
    server = mariadb_factory()
    server.sql("RESET MASTER")
    return server


def begin(replica: Replica, source: MariadbServer, *by: str) -> None:
    source.sql(f"DROP DATABASE IF EXISTS {DATABASE}; FLUSH BINARY LOGS")
    if not by:
        name, position = source.master_status()
        by = ("--master-log-file", name, "--master-log-pos", str(position))
    replica.set_up(source, *TABLES, change=by)
    source.sql(f"CREATE DATABASE {DATABASE}; CREATE TABLE {DATABASE}.t (a INT PRIMARY KEY, b INT)")


def write(source: MariadbServer, first: int, last: int) -> None:
    for n in range(first, last):
        source.sql(f"INSERT INTO {DATABASE}.t VALUES ({n}, 1); UPDATE {DATABASE}.t SET b = b + 1")


def backed_up(replica: Replica) -> Path:
    backup = replica.datadir.parent / "backup.db"
    with closing(sqlite3.connect(replica.datadir / "target.db")) as target, closing(sqlite3.connect(backup)) as copy:
        target.backup(copy)
    return backup


def put_back(replica: Replica, backup: Path) -> None:
    for path in replica.datadir.glob("target.db*"):
        path.unlink()
    shutil.copy(backup, replica.datadir / "target.db")


def has_all(source: MariadbServer, replica: MariadbServer) -> Callable[[], bool]:
    asked = "SELECT @@gtid_executed" if source.kind == "mysql" else "SELECT @@gtid_binlog_pos"
    return lambda: source.sql(asked) == replica.sql(asked)


def test_what_was_fetched_from_the_source_after_a_failover_is_not_applied_for_the_source_before_it(
    servers: Pair, replica: Replica
) -> None:
    """By GTID from 1 to 2, and back to the time of 1: it goes on from 1 without a gap, and again from 2 after that."""
    one, two = servers
    begin(replica, one, *WAYS[one.kind])
    write(one, 1, 5)
    replica.run("start", "--until-synced")
    backup = backed_up(replica)
    write(one, 5, 8)
    replica.run("start", "--until-synced")
    wait_until(has_all(one, two))
    replica.change_master(two)
    write(one, 8, 10)
    wait_until(has_all(one, two))
    replica.run("start", "--receiver")
    wait_until(lambda: replica.status()["Master_Log_File"] == two.master_status()[0])
    wait_until(lambda: replica.status()["Read_Master_Log_Pos"] == two.master_status()[1])
    replica.run("stop")

    put_back(replica, backup)
    started = replica.run("start", "--until-synced")
    assert f"the relay logs were fetched from {two.host}:{two.port}" in started.stderr
    assert_same_tables(one, replica, DATABASE)
    replica.change_master(two)
    write(one, 10, 12)
    wait_until(has_all(one, two))
    replica.run("start", "--until-synced")
    assert_same_tables(two, replica, DATABASE)


@pytest.mark.parametrize("by_gtid", [True, False], ids=["gtid", "position"])
def test_relay_logs_that_a_receiver_fetched_on_behind_the_backup_leave_no_gap(
    alone: MariadbServer, replica: Replica, by_gtid: bool
) -> None:
    """The receiver never stops, and what the backup lacks was purged from the relay logs: it is not passed by."""
    begin(replica, alone, *(("--master-use-gtid", "slave_pos") if by_gtid else ()))
    replica.run("init", "--replica-net-timeout", "5")  # so long the applier waits for relay logs to be fetched again
    replica.run("start")
    write(alone, 1, 5)
    replica.wait_synced(alone)
    replica.run("stop", "--applier")
    backup = backed_up(replica)
    replica.run("start", "--applier")
    for first in (5, 8):
        write(alone, first, first + 3)
        alone.sql("FLUSH BINARY LOGS")
        replica.wait_synced(alone)
        replica.run("flush-relay-logs")
    write(alone, 11, 13)
    replica.wait_synced(alone)
    assert not (replica.datadir / "relay-bin.000001").exists()
    replica.run("stop", "--applier")

    put_back(replica, backup)
    replica.run("start", "--applier")
    write(alone, 13, 15)
    wait_until(lambda: replica.status()["Last_SQL_Error"], 120)
    status = replica.status()
    assert status["Last_SQL_Errno"] == 1594, status
    assert "rplctl stop; rplctl start" in status["Last_SQL_Hint"]
    for command in ("stop", "start"):
        replica.run(command)
    replica.wait_synced(alone)
    replica.run("stop")
    assert_same_tables(alone, replica, DATABASE)


@pytest.mark.parametrize("repeats", [0, 2])
def test_relay_logs_whose_numbers_began_anew_since_the_backup_leave_no_gap(
    alone: MariadbServer, replica: Replica, repeats: int
) -> None:
    """CHANGE MASTER to the same source begins relay-bin.000001 again, a file that the old record names, too."""
    begin(replica, alone, "--master-use-gtid", "slave_pos")
    write(alone, 1, 5)
    if repeats:
        replica.run("start", "--until-synced")
    backup = backed_up(replica)
    for first in range(5, 5 + 3 * (repeats + 1), 3):
        write(alone, first, first + 3)
        replica.run("start", "--until-synced")
        replica.change_master(alone)
    write(alone, 20, 23)
    replica.run("start", "--receiver")
    wait_until(lambda: replica.status()["Read_Master_Log_Pos"] == alone.master_status()[1])
    replica.run("stop")

    put_back(replica, backup)
    replica.run("start", "--until-synced")
    assert_same_tables(alone, replica, DATABASE)


def test_the_owners_row_names_the_source_also_while_the_first_start_runs(
    alone: MariadbServer, replica: Replica
) -> None:
    """The applier claims the row before the receiver knows who the source is, and completes it with the first rows."""
    begin(replica, alone)
    replica.run("start", "--applier")
    wait_until(lambda: replica.status()["Slave_SQL_Running"] == "Yes")
    replica.run("start", "--receiver")
    write(alone, 1, 2)
    replica.wait_synced(alone)
    with closing(sqlite3.connect(replica.datadir / "target.db")) as target:
        row = target.execute("SELECT Source_server_id, Source_place FROM rplctl_channel_owner").fetchall()
    assert row == [(alone.sql("SELECT @@server_id")[0][0], f"{alone.host}:{alone.port}")]
