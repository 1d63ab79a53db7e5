"""A VIRTUAL column over a TIMESTAMP has another value in each session: its rows are found, and verify is content."""

from __future__ import annotations

import json

import pytest

from tests.kit.postgresql_state import new_database
from tests.kit.replica import Replica
from tests.kit.servers import MariadbServer, PostgresqlServer
from tests.stories.test_ddl_over_rows import KINDS, VENDORS, source

__all__ = ["source"]  # a fixture

pytestmark = pytest.mark.slow
DAY = "day DATE AS (DATE(created)) VIRTUAL"
SCHEMA = f"""DROP DATABASE IF EXISTS zones; CREATE DATABASE zones; USE zones; SET time_zone = '+09:00';
CREATE TABLE keyed (id INT PRIMARY KEY, created TIMESTAMP NULL, {DAY});
CREATE TABLE keyless (id INT, created TIMESTAMP NULL, {DAY});
CREATE TABLE plain (id INT PRIMARY KEY, created TIMESTAMP NULL, day VARCHAR(30));
INSERT INTO keyed (id, created) VALUES (1, '2024-05-05 03:00:00'), (2, '2024-05-05 03:00:00'), (3, NULL);
INSERT INTO keyless (id, created) SELECT id, created FROM keyed UNION ALL SELECT 4, '2024-05-05 05:00:00';
INSERT INTO keyless (id, created) SELECT id + 10, created FROM keyless;
INSERT INTO plain SELECT * FROM keyed"""
IN_UTC = """SET time_zone = '+00:00'; UPDATE keyed SET id = 5 WHERE id = 1; DELETE FROM keyed WHERE id = 2;
UPDATE keyless SET id = 5 WHERE id = 1; DELETE FROM keyless WHERE id = 2; DELETE FROM keyless WHERE id > 10"""


@pytest.fixture
def target(request: pytest.FixtureRequest, kind: str, replica: Replica) -> tuple[str, ...]:
    """The options of `init` for the target."""
    if kind == "postgresql":
        server: PostgresqlServer = request.getfixturevalue(kind)
        password = replica.datadir.parent / "password"
        password.write_text("rpl\n")
        password.chmod(0o600)
        url = new_database(server).replace(":rpl@", "@")
        return "--target", url, "--target-password-file", str(password)
    folder = replica.datadir.parent / "own"
    folder.mkdir()
    return ("--target", f"duckdb:///{folder}/target.duckdb") if kind == "duckdb" else ()


@pytest.mark.long("The rows reach every target without these values, by the same code.", keeps=r"^sqlite-")
@VENDORS
@KINDS
def test_rows_are_found_and_verified_in_whichever_time_zone_they_change(
    replica: Replica, source: MariadbServer, target: tuple[str, ...]
) -> None:
    source.reset_binary_log()
    source.sql(SCHEMA)
    replica.set_up(source, *target)
    replica.run("change-filter", "--replicate-do-db", "zones")
    replica.run("start", "--until-synced")
    source.sql(IN_UTC, "zones")
    replica.run("start", "--until-synced")

    found = {table["Table_name"]: table for table in json.loads(replica.run("verify", "--json").stdout)}
    assert {name: (table["Equal"], table["Columns_Not_Compared"]) for name, table in found.items()} == {
        "keyed": (2, ["day"]),
        "keyless": (3, ["day"]),
        "plain": (3, []),
    }
    assert "zones.keyed: column day is not compared" in replica.run("verify").stderr

    source.sql("UPDATE keyless SET created = NULL WHERE id = 5; UPDATE keyed SET created = NULL", "zones")
    replica.run("start", "--until-synced")
    assert [table["Different"] for table in json.loads(replica.run("verify", "--json").stdout)] == [0, 0, 0]


@pytest.mark.long(
    "The target has no unique index over such a column, by the same rule for each target.", keeps="^sqlite-mysql"
)
@VENDORS
@KINDS
def test_rows_that_are_unique_in_another_time_zone_are_copied_and_found(
    replica: Replica, source: MariadbServer, target: tuple[str, ...]
) -> None:
    source.reset_binary_log()
    source.sql(
        "DROP DATABASE IF EXISTS zones; CREATE DATABASE zones; USE zones; SET time_zone = '+09:00';"
        f"CREATE TABLE daily (id INT NOT NULL, created TIMESTAMP NOT NULL, {DAY}, UNIQUE (id, day));"
        "INSERT INTO daily (id, created) VALUES (1, '2024-05-05 03:00:00'), (1, '2024-05-04 10:00:00')"
    )
    replica.set_up(source, *target)
    replica.run("change-filter", "--replicate-do-db", "zones")
    replica.run("clone", "--tables", "zones.daily", "--replace", "--yes")
    replica.run("start")
    replica.run("wait", "--state", "synced")
    replica.run("stop")
    source.sql("SET time_zone = '+00:00'; DELETE FROM daily WHERE created < '2024-05-04 12:00:00'", "zones")
    replica.run("start", "--until-synced")
    (table,) = json.loads(replica.run("verify", "--json").stdout)
    assert (table["Equal"], table["Columns_Not_Compared"]) == (1, ["day"])
