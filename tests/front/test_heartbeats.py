"""The heartbeats that a receiver has got are counted and shown as a native replica does it."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from rplctl.command.user import add_user
from rplctl.config import load_config
from tests.conftest import Factory
from tests.front.test_front import PASSWORD, connect, served
from tests.kit.fork_server import children_forked
from tests.kit.replica import Replica, variables_set, wait_until
from tests.kit.servers import MariadbServer

SCHEMA = "DROP DATABASE IF EXISTS beats; CREATE DATABASE beats"


@pytest.mark.long("A channel that runs; tests/receiver/test_reporter.py holds the count.")
def test_heartbeats_are_counted_until_the_connection_is_changed(
    source: MariadbServer, mariadb_factory: Factory[MariadbServer], replica: Replica
) -> None:
    native = mariadb_factory()
    replica.set_up(source, change=("--master-use-gtid", "slave_pos", "--master-heartbeat-period", "0.1"))
    add_user(load_config(replica.datadir, ""), "dba", "admin", PASSWORD)
    native.sql(
        f"CHANGE MASTER TO MASTER_HOST='{source.host}', MASTER_PORT={source.port}, MASTER_USER='rpl',"
        " MASTER_PASSWORD='rpl', MASTER_USE_GTID=slave_pos, MASTER_HEARTBEAT_PERIOD=0.1, MASTER_CONNECT_RETRY=1"
    )
    with (
        variables_set(replica.variables),
        children_forked(),
        served(replica.datadir, flavor="mariadb") as server,
        closing(connect(server, "dba", autocommit=True)) as ours,
        closing(native.connect()) as theirs,
    ):
        for connection in (theirs, ours):
            run(connection, "START SLAVE")
            wait_until(lambda: count(connection) > 3)  # noqa: B023 - called before the next one
            run(connection, "STOP SLAVE")
            stopped = count(connection)
            assert asked(connection, "SHOW GLOBAL STATUS LIKE 'Slave_received_heartbeats'")[0][1] == str(stopped)
            assert asked(connection, "SHOW STATUS LIKE 'Slave_heartbeat_period'")[0][1] == "0.100"
            run(connection, "START SLAVE")
            wait_until(lambda: count(connection) > stopped + 3)  # noqa: B023
            run(connection, "STOP SLAVE")
            run(connection, f"CHANGE MASTER TO MASTER_PORT = {source.port}, MASTER_HEARTBEAT_PERIOD = 0.1")
            assert count(connection) == 0
            run(connection, "START SLAVE")
            wait_until(lambda: count(connection) > 3)  # noqa: B023
            run(connection, "STOP SLAVE")
        sql = "SELECT COUNT_RECEIVED_HEARTBEATS, LAST_HEARTBEAT_TIMESTAMP FROM"
        received, last = asked(ours, f"{sql} performance_schema.replication_connection_status")[0]
        assert received == count(ours)
        assert last > "2020"


def count(connection: Any) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SHOW ALL SLAVES STATUS")
        names = [column[0] for column in cursor.description]
        return int(cursor.fetchall()[0][names.index("Slave_received_heartbeats")])


def asked(connection: Any, sql: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


def run(connection: Any, sql: str) -> None:
    asked(connection, sql)
