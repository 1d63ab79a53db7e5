"""A column that becomes AUTO_INCREMENT over stored rows: equal to a real server's, or the applier stops."""

from __future__ import annotations

import itertools

import pytest

from rplctl.errors import RplError
from rplctl.schema.context import NO_AUTO_VALUE_ON_ZERO, STRICT_TRANS_TABLES, DdlContext
from tests.kit.servers import MariadbServer, MysqlServer
from tests.target.sqlite.replica_tables import ReplicaTables

ROWS = ("(NULL,1),(5,2),(NULL,3)", "(0,1),(5,2)", "(5,1),(NULL,2)", "(7,1),(5,2)")
ALTERS = (
    "MODIFY v INT AUTO_INCREMENT, ADD UNIQUE (v)",
    "MODIFY v INT NOT NULL AUTO_INCREMENT PRIMARY KEY",
    "MODIFY v INT AUTO_INCREMENT NULL, ADD UNIQUE (v)",
    "CHANGE v w BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY",
)
MODES = {"STRICT_TRANS_TABLES": STRICT_TRANS_TABLES, "": 0, "NO_AUTO_VALUE_ON_ZERO": NO_AUTO_VALUE_ON_ZERO}


@pytest.mark.long("MariaDB stays; the rule of MySQL is beside it.", keeps="mariadb")
@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
def test_rows_are_the_sources_or_the_applier_stops(request: pytest.FixtureRequest, vendor: str) -> None:
    server: MariadbServer | MysqlServer = request.getfixturevalue(vendor)
    server.sql("DROP DATABASE IF EXISTS old; CREATE DATABASE old")
    create, stops, same = "CREATE TABLE t (v INT, k INT)", 0, 0
    for rows, alter, mode in itertools.product(ROWS, ALTERS, MODES):
        replica = ReplicaTables()
        replica.run(create)
        replica.connection.execute(f"INSERT INTO sd__t VALUES {rows}")
        before = f"SET sql_mode='{mode}'; DROP TABLE IF EXISTS t; {create}; INSERT INTO t VALUES {rows}"
        try:
            server.sql(f"{before}; ALTER TABLE t {alter}", "old")
        except server.errors:
            continue  # a statement that failed is not in the log
        try:
            replica.run(
                f"ALTER TABLE t {alter}", context=DdlContext(sql_mode=MODES[mode], server_version=server.version)
            )
        except RplError as error:
            assert "only the source knows" in error.message, (rows, alter, mode)
            stops += 1
            continue
        assert sorted(replica.rows("t"), key=repr) == sorted(server.rows("old", "t"), key=repr), (rows, alter, mode)
        same += 1
    assert same >= 16 and stops >= 16, (same, stops)
