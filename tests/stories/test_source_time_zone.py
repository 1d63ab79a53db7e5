"""DDL of a source whose time zone is SYSTEM gives the source's values on targets in another zone, or stops (1846)."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from rplctl import mysql_errors as er
from rplctl.errors import RplError
from rplctl.relay_log.reader import RelayGroups
from rplctl.system_zone import SystemZone, read_zone, zone_named
from rplctl.target.duckdb.connection import driver_of
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.kit.duckdb_state import differences as duckdb_differences
from tests.kit.neutral_state import differences as sqlite_differences, state_of
from tests.kit.postgresql_state import connect, differences as postgresql_differences, new_database
from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer, MysqlServer

pytestmark = [pytest.mark.slow, pytest.mark.mariadb]
LONG = pytest.mark.long("The cases of MariaDB hold the promise.", keeps="(mariadb|sqlite)-Asia/Tokyo-mariadb")

SCHEMA = (
    "CREATE TABLE zoned.t (id INT PRIMARY KEY, ts TIMESTAMP NULL, dt DATETIME)",
    "INSERT INTO zoned.t VALUES (1, '2026-01-15 01:02:03', '2026-07-15 01:02:03')",
)
AT_THE_MOMENT = "ALTER TABLE zoned.t ADD created_at DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP"
BY_THE_ZONE = (
    "ALTER TABLE zoned.t ADD c TIMESTAMP NOT NULL DEFAULT '2026-01-15 12:00:00'",
    "ALTER TABLE zoned.t MODIFY ts DATETIME",
    "ALTER TABLE zoned.t MODIFY dt TIMESTAMP NULL",
)
Sources = dict[tuple[str, str], MariadbServer]


@pytest.fixture(scope="module")
def sources() -> Iterator[Sources]:
    """The servers by vendor and zone, started when a test asks for them."""
    found: Sources = {}
    yield found
    for server in found.values():
        server.close()


@pytest.fixture
def zoned(sources: Sources, vendor: str, zone: str) -> MariadbServer:
    if (vendor, zone) not in sources:
        server = sources[vendor, zone] = MysqlServer() if vendor == "mysql" else MariadbServer()
        server.variables = {"TZ": zone}
        server.start()
    sources[vendor, zone].sql("DROP DATABASE IF EXISTS zoned; FLUSH BINARY LOGS; CREATE DATABASE zoned")
    return sources[vendor, zone]


def execute(source: MariadbServer, *statements: str) -> None:
    for statement in statements:
        source.sql(f"SET time_zone = 'SYSTEM'; {statement}")


def logged(source: MariadbServer, zone: SystemZone | None) -> RelayGroups:
    """The source's last log, as if a receiver had noted the zone."""
    log = groups_of(source.binlog_files[-1])
    assert log.format_description is not None
    return replace(log, format_description=replace(log.format_description, system_zone=zone))


def outcome(folder: Path, source: MariadbServer, zone: SystemZone | None, target: str) -> str:
    """Return 'equal', 'stopped' or what differs, of a new target and the source's last log."""
    log = logged(source, zone)
    instance = Instance(folder, log, **({"target": target} if target else {}))
    try:
        instance.apply(log)
        return difference(instance, source)
    except RplError as error:
        assert error.errno == er.ALTER_OPERATION_NOT_SUPPORTED_REASON, error
        return "stopped"
    finally:
        instance.target.close()


def difference(instance: Instance, source: MariadbServer) -> str:
    state, kind = "".join(state_of(source, ["zoned"])), instance.target.kind
    if kind == "mysql":
        rows = "SELECT * FROM zoned.t"
        with instance.target.engine.connect() as connection:
            connection.exec_driver_sql("SET time_zone = '+00:00'")
            there = [tuple(map(str, row)) for row in connection.exec_driver_sql(rows)]
        here = [tuple(map(str, row)) for row in source.sql(rows)]
        return "equal" if there == here else f"{here} and {there}"
    if kind == "postgresql":
        with connect(instance.config.target) as there_too:
            return str(postgresql_differences(there_too, state) or "equal")
    if kind == "duckdb":
        driver = driver_of(instance.target.connection)
        return str(duckdb_differences(driver, instance.applier.catalog.tables, state) or "equal")
    with closing(sqlite3.connect(instance.config.datadir / "target.db")) as file:
        return str(sqlite_differences(file, state) or "equal")


def new_target(kind: str, folder: Path, request: pytest.FixtureRequest) -> str:
    match kind:
        case "sqlite":
            return ""
        case "duckdb":
            return f"duckdb:///{folder}/target.duckdb"
        case "postgresql":
            return new_database(request.getfixturevalue("postgresql"))
    server: MariadbServer = request.getfixturevalue(kind)
    server.sql("DROP DATABASE IF EXISTS rplctl; DROP DATABASE IF EXISTS zoned; CREATE DATABASE rplctl")
    return server.url()


@pytest.mark.long("test_server_stops_before_ddl_of_a_zone_that_is_not_known stays in make test.")
@LONG
@pytest.mark.parametrize("kind", ["mariadb", "mysql", "sqlite", "postgresql", "duckdb"])
@pytest.mark.parametrize("zone", ["Asia/Tokyo", "Europe/Berlin"])
@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
def test_times_of_ddl_are_those_of_the_sources_system_zone(
    zoned: MariadbServer, zone: str, kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A zone with summer time needs its name on a server, and stops the others where it converts stored times."""
    asked = read_zone(zoned.sql)
    assert asked == zone_named(zone)
    found = {}
    for number, statement in enumerate([AT_THE_MOMENT, *BY_THE_ZONE]):
        zoned.sql("DROP DATABASE IF EXISTS zoned; FLUSH BINARY LOGS; CREATE DATABASE zoned")
        execute(zoned, *SCHEMA, statement)
        folder = tmp_path / str(number)
        folder.mkdir()
        found[statement] = outcome(folder, zoned, asked, new_target(kind, folder, request))
    of_zone = "equal" if zone == "Asia/Tokyo" else "stopped"
    assert found == {AT_THE_MOMENT: "equal", **dict.fromkeys(BY_THE_ZONE, of_zone)}


@pytest.mark.parametrize(("vendor", "zone"), [("mariadb", "Asia/Tokyo")])
def test_server_stops_before_ddl_of_a_zone_that_is_not_known(
    zoned: MariadbServer, mariadb: MariadbServer, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Nearly every ALTER TABLE is logged with its time zone: those that do not depend on it are executed."""
    execute(zoned, *SCHEMA, "ALTER TABLE zoned.t ADD n INT DEFAULT 7, ENGINE = InnoDB")
    assert outcome(tmp_path / "plain", zoned, None, new_target("mariadb", tmp_path, request)) == "equal"
    execute(zoned, AT_THE_MOMENT)
    assert outcome(tmp_path / "time", zoned, None, new_target("mariadb", tmp_path, request)) == "stopped"
    assert mariadb.sql("SHOW COLUMNS FROM zoned.t LIKE 'created_at'") == []


@pytest.mark.long("A target with time zones is loaded; a zone without summer time needs none.")
@pytest.mark.parametrize(("vendor", "zone"), [("mariadb", "Europe/Berlin")])
def test_zone_with_summer_time_is_known_by_name_to_a_target_with_time_zones(
    zoned: MariadbServer, tmp_path: Path
) -> None:
    execute(zoned, *SCHEMA, AT_THE_MOMENT, *BY_THE_ZONE)
    zones = subprocess.run(["mariadb-tzinfo-to-sql", "/usr/share/zoneinfo"], capture_output=True).stdout
    with MariadbServer() as target:
        target.sql("CREATE DATABASE rplctl")
        client = ["mariadb", f"--socket={target.socket}", "--user=rpl", "--password=rpl", "mysql"]
        subprocess.run(client, input=zones, check=True)
        assert outcome(tmp_path, zoned, zone_named("Europe/Berlin"), target.url()) == "equal"


@pytest.mark.long("test_server_stops_before_ddl_of_a_zone_that_is_not_known stays in make test.")
@pytest.mark.parametrize(("vendor", "zone"), [("mariadb", "Asia/Tokyo")])
def test_applier_knows_the_zone_that_the_receiver_asked_for_after_a_restart(
    zoned: MariadbServer, replica: Replica
) -> None:
    zoned.sql("RESET MASTER; CREATE OR REPLACE DATABASE zoned")
    replica.set_up(zoned)
    replica.run("start")
    execute(zoned, *SCHEMA)
    replica.wait_synced(zoned)
    replica.run("stop", "--applier")
    execute(zoned, AT_THE_MOMENT)
    end = zoned.master_status()[1]
    wait_until(lambda: replica.status()["Read_Master_Log_Pos"] == end)
    replica.run("stop")
    replica.run("start", "--applier")
    replica.wait_synced(zoned)
    with closing(sqlite3.connect(replica.datadir / "target.db")) as file:
        assert sqlite_differences(file, "".join(state_of(zoned, ["zoned"]))) == []
