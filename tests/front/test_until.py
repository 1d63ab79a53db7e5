"""START SLAVE UNTIL master_gtid_pos ends where a native replica of MariaDB ends."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any

import pymysql
import pytest

from rplctl.command.user import add_user
from rplctl.config import load_config
from tests.conftest import Factory
from tests.front.test_front import PASSWORD, connect, served
from tests.kit.fork_server import children_forked
from tests.kit.replica import Replica, variables_set, wait_until
from tests.kit.servers import MariadbServer

SCHEMA = "DROP DATABASE IF EXISTS until_gtid; CREATE DATABASE until_gtid; CREATE TABLE until_gtid.t (a INT PRIMARY KEY)"
COLUMNS = ("Until_Condition", "Until_Log_File", "Until_Log_Pos", "Using_Gtid", "Gtid_Slave_Pos")


@pytest.mark.long("A channel that runs; tests/applier/feed/test_until.py holds the promise for a recorded log.")
def test_until_a_gtid_ends_where_a_native_replica_ends(
    source: MariadbServer, mariadb_factory: Factory[MariadbServer], replica: Replica
) -> None:
    reached = [inserted(source, number) for number in range(1, 6)]
    native = mariadb_factory()
    replica.set_up(source, change=("--master-use-gtid", "slave_pos"))
    add_user(load_config(replica.datadir, ""), "dba", "admin", PASSWORD)
    native.sql(
        f"CHANGE MASTER TO MASTER_HOST='{source.host}', MASTER_PORT={source.port}, MASTER_USER='rpl',"
        " MASTER_PASSWORD='rpl', MASTER_USE_GTID=slave_pos"
    )
    with (
        variables_set(replica.variables),
        children_forked(),
        served(replica.datadir, flavor="mariadb") as server,
        closing(connect(server, "dba")) as ours,
        closing(native.connect()) as theirs,
    ):
        for end, expected in ((reached[2], [1, 2, 3]), (reached[3], [1, 2, 3, 4]), ("", [1, 2, 3, 4, 5])):
            statement = f"START SLAVE UNTIL master_gtid_pos = '{end}'" if end else "START SLAVE"
            for connection, rows in ((theirs, rows_of(native)), (ours, rows_of(replica))):
                run(connection, statement)
                wait_until(partial(has, rows, expected))
                if end:
                    wait_until(partial(is_stopped, connection))
            if end:
                assert status(ours) == status(theirs)
                assert rows_of(replica)() == expected
            run(ours, "STOP SLAVE")
            run(theirs, "STOP SLAVE")


def inserted(source: MariadbServer, number: int) -> str:
    """The GTID of the row with this number."""
    source.sql(f"INSERT INTO until_gtid.t VALUES ({number})")
    return str(source.sql("SELECT @@gtid_binlog_pos")[0][0])


def rows_of(place: MariadbServer | Replica) -> Callable[[], list[int]]:
    def rows() -> list[int]:
        if isinstance(place, MariadbServer):
            tables = place.sql("SELECT 1 FROM information_schema.tables WHERE table_schema = 'until_gtid'")
            return [row[0] for row in place.sql("SELECT a FROM until_gtid.t ORDER BY a")] if tables else []
        if not (place.datadir / "target.db").exists():
            return []
        names = place.query("SELECT 1 FROM sqlite_master WHERE name = 'until_gtid__t'")
        return [row[0] for row in place.query("SELECT a FROM until_gtid__t ORDER BY a")] if names else []

    return rows


def has(rows: Callable[[], list[int]], expected: list[int]) -> bool:
    return rows() == expected


def run(connection: pymysql.connections.Connection[Any], statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def all_columns(connection: pymysql.connections.Connection[Any]) -> dict[str, Any]:
    with connection.cursor() as cursor:
        cursor.execute("SHOW ALL SLAVES STATUS")
        (row,) = cursor.fetchall()
        return dict(zip((column[0] for column in cursor.description), row, strict=True))


def is_stopped(connection: pymysql.connections.Connection[Any]) -> bool:
    return bool(all_columns(connection)["Slave_SQL_Running"] == "No")


def status(connection: pymysql.connections.Connection[Any]) -> dict[str, Any]:
    found = all_columns(connection)
    return {name: found[name] for name in COLUMNS}
