"""CHANGE MASTER to an earlier position, beside a native replica that is sent back to the same place."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer, MysqlServer

pytestmark = pytest.mark.slow
TABLES = "CREATE DATABASE w; CREATE TABLE w.bag (n INT); CREATE TABLE w.keyed (n INT PRIMARY KEY)"
ROWS = "INSERT INTO w.bag VALUES (1), (1); INSERT INTO w.keyed VALUES (1), (2)"


def rows(replica: Replica) -> list[tuple[int, ...]]:
    return replica.query('SELECT (SELECT COUNT(*) FROM "w__bag"), (SELECT COUNT(*) FROM "w__keyed")')


@pytest.mark.long("tests/applier/feed/test_skip.py passes over executed GTIDs; here a native replica does it, too.")
def test_executed_gtids_of_mysql_are_passed_over_as_by_mysql(
    replica: Replica, mysql_factory: Callable[..., MysqlServer]
) -> None:
    source, native = mysql_factory(), mysql_factory()
    source.sql("RESET BINARY LOGS AND GTIDS")
    native.sql("RESET BINARY LOGS AND GTIDS")
    name, begin = source.master_status()
    source.sql(f"{TABLES}; {ROWS}")
    to = (
        f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='{source.host}', SOURCE_PORT={source.port}, SOURCE_USER='rpl',"
        f" SOURCE_PASSWORD='rpl', GET_SOURCE_PUBLIC_KEY=1, SOURCE_LOG_FILE='{name}', SOURCE_LOG_POS={begin}"
    )
    replica.set_up(source, change=("--master-log-file", name, "--master-log-pos", str(begin)))
    replica.run("start", "--until-synced")
    assert rows(replica) == [(2, 2)]
    executed = replica.status()["Executed_Gtid_Set"]
    replica.run("change-master", "--master-log-file", name, "--master-log-pos", str(begin))
    source.sql("INSERT INTO w.bag VALUES (3)")
    replica.run("start", "--until-synced")
    native.sql(f"{to}; START REPLICA")
    wait_until(lambda: native.sql("SELECT @@GLOBAL.gtid_executed") == source.sql("SELECT @@GLOBAL.gtid_executed"))
    native.sql(f"STOP REPLICA; {to}; START REPLICA; DO SOURCE_POS_WAIT('{name}', {source.master_status()[1]})")
    assert rows(replica) == [(3, 2)]
    assert native.sql("SELECT (SELECT COUNT(*) FROM w.bag), (SELECT COUNT(*) FROM w.keyed)") == [(3, 2)]
    assert replica.status()["Executed_Gtid_Set"] == native.sql("SELECT @@GLOBAL.gtid_executed")[0][0] != executed
    assert "skipped 5 transactions whose GTIDs are executed" in replica.run("history").stdout
    replica.run("change-master", "--relay-log-file", "relay-bin.000001", "--relay-log-pos", "4")
    replica.run("start", "--until-synced")
    assert rows(replica) == [(3, 2)]
    replica.run("reset", "--yes")  # MySQL keeps them; a channel without GTIDs begins from nothing
    assert replica.status()["Executed_Gtid_Set"] == ""


def test_an_earlier_position_without_gtids_of_mysql_is_confirmed(replica: Replica, mariadb: MariadbServer) -> None:
    mariadb.sql("DROP DATABASE IF EXISTS w; FLUSH BINARY LOGS")
    first = mariadb.master_status()[0]  # the logs before it are of other tests
    mariadb.sql(f"{TABLES}; FLUSH BINARY LOGS")
    name, begin = mariadb.master_status()
    mariadb.sql(ROWS)
    replica.set_up(mariadb, change=("--master-log-file", first, "--master-log-pos", "4"))
    replica.run("start", "--until-synced")
    to = ("change-master", "--master-log-file", name, "--master-log-pos", str(begin))
    before = replica.status()
    refused = replica.run(*to, expect=2).stderr
    assert "is before the executed position" in refused and "--yes" in refused
    assert replica.status() == before
    assert "is before the executed position" in replica.run(*to, "--dry-run").stderr
    replica.run("change-master", "--relay-log-pos", "4", expect=2)
    at = ("--master-log-file", before["Relay_Master_Log_File"], "--master-log-pos", str(before["Exec_Master_Log_Pos"]))
    replica.run("change-master", *at)
    replica.run(*to, "--yes")
    assert replica.status()["Exec_Master_Log_Pos"] == begin
