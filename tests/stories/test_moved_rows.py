"""DDL that moves or removes rows without logging one of them: the targets have the source's rows afterwards, or stop.

Each case is a database of its own in one log of a live source, applied with `on_unsupported_ddl=skip`: what changes
rows is never passed over (design D10, D12).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rplctl.errors import RplError
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.kit.neutral_state import differences as sqlite_differences, state_of
from tests.kit.postgresql_state import connect, differences as postgresql_differences, new_database
from tests.kit.servers import MariadbServer, MysqlServer, PostgresqlServer

pytestmark = pytest.mark.slow

RANGES = (
    "CREATE TABLE p (id INT PRIMARY KEY, v VARCHAR(9), UNIQUE (v, id)) PARTITION BY RANGE (id)"
    " (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20), PARTITION p2 VALUES LESS THAN (30));"
    "INSERT INTO p VALUES (1, 'a'), (2, 'b'), (11, 'c'), (12, 'd'), (29, 'e');"
)
OTHER = "CREATE TABLE e (id INT PRIMARY KEY, v VARCHAR(9), UNIQUE (v, id)); INSERT INTO e VALUES {};"
DATES = (
    "CREATE TABLE p (at DATETIME(3)) PARTITION BY RANGE (TO_DAYS(at))"
    " (PARTITION p0 VALUES LESS THAN (TO_DAYS('2024-01-01')), PARTITION p1 VALUES LESS THAN MAXVALUE);"
    "INSERT INTO p VALUES ('2023-12-31 23:59:59.999'), ('2024-01-01 00:00:00'), (NULL);"
)
BOTH = {
    "exchanged": RANGES + OTHER.format("(1, 'x'), (6, 'y')") + "ALTER TABLE p EXCHANGE PARTITION p0 WITH TABLE e;"
    "UPDATE e SET v='was in p' WHERE id=1; UPDATE p SET v='was in e' WHERE id=1; ALTER TABLE p DROP PARTITION p0",
    "emptied": DATES + "CREATE TABLE e (at DATETIME(3)); ALTER TABLE p EXCHANGE PARTITION p0 WITH TABLE e",
    "filled": RANGES + OTHER.format("(25, 'x')") + "ALTER TABLE p TRUNCATE PARTITION p2;"
    "ALTER TABLE p EXCHANGE PARTITION p2 WITH TABLE e; DROP TABLE e; INSERT INTO p VALUES (26, 'new')",
}
MARIADB = {
    "detached": RANGES + "ALTER TABLE p CONVERT PARTITION p0 TO TABLE own; INSERT INTO own VALUES (99, 'z');"
    "DROP TABLE own; ALTER TABLE p CONVERT PARTITION p1 TO TABLE own; UPDATE own SET v='own'",
    "attached": RANGES + OTHER.format("(35, 'x'), (36, NULL)")
    + "ALTER TABLE p CONVERT TABLE e TO PARTITION p3 VALUES LESS THAN (40); UPDATE p SET v='in p' WHERE id > 30;"
    "CREATE TABLE e (id INT)",
    "replaced": "CREATE TABLE t (id INT, KEY k (id)); CREATE OR REPLACE INDEX k ON t (id DESC);"
    "INSERT INTO t VALUES (1); CREATE OR REPLACE TABLE t SELECT 2 AS n",
}  # fmt: skip
ALL: dict[str, dict[str, str]] = {"mysql": BOTH, "mariadb": BOTH | MARIADB}
# what cannot be done exactly → words of the error; nothing of it may be passed over
STOPS = {
    "ALTER TABLE p EXCHANGE PARTITION p0 WITH TABLE e WITHOUT VALIDATION": (1846, "do not belong to the partition"),
    "ALTER TABLE h TRUNCATE PARTITION p1": (1064, "on partition p1 of stopped.h: rplctl cannot determine which rows"),
    "ALTER TABLE e DISCARD TABLESPACE": (1064, "removes or adds rows"),
}


class Played:
    """One binary log of a source, applied to a new SQLite and a new PostgreSQL target."""

    def __init__(self, source: MariadbServer, postgresql: PostgresqlServer) -> None:
        self.source, self.postgresql = source, postgresql

    def begin(self, *databases: str) -> None:
        for database in databases:
            self.source.sql(f"DROP DATABASE IF EXISTS {database}")
        self.source.sql("FLUSH BINARY LOGS")
        for database in databases:
            self.source.sql(f"CREATE DATABASE {database}")

    def differing(self, folder: Path, target: str, *databases: str) -> list[str]:
        """Databases' tables that differ on a new target. Raises what stops the channel."""
        url = new_database(self.postgresql) if target == "postgresql" else ""
        options: dict[str, Any] = {"target": url} if url else {}
        log = groups_of(self.source.binlog_files[-1])
        instance = Instance(folder, log, on_unsupported_ddl="skip", **options)
        try:
            instance.apply(log)
        finally:
            instance.target.close()
        state = "".join(state_of(self.source, list(databases)))
        if url:
            with connect(url) as there:
                return postgresql_differences(there, state)
        with closing(sqlite3.connect(folder / "target.db")) as file:
            return sqlite_differences(file, state)


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def played(request: pytest.FixtureRequest, postgresql: PostgresqlServer) -> Iterator[Played]:
    source: MariadbServer | MysqlServer = request.getfixturevalue(request.param)
    yield Played(source, postgresql)


@pytest.mark.long("One pair of each vendor stays in make test.", keeps=r"mysql-postgresql|mariadb-sqlite")
@pytest.mark.parametrize("target", ["sqlite", "postgresql"])
def test_rows_that_move_between_partitions_and_tables_move_on_the_target(
    played: Played, target: str, tmp_path: Path
) -> None:
    cases = ALL[played.source.kind]
    played.begin(*cases)
    for database, statements in cases.items():
        played.source.sql(statements, database)
    assert played.differing(tmp_path, target, *cases) == []


@pytest.mark.long("The cases of the other kinds hold the promise; those of MySQL repeat it.")
@pytest.mark.parametrize("target", ["sqlite", "postgresql"])
@pytest.mark.parametrize("statement", STOPS)
def test_what_cannot_be_told_from_the_log_stops_also_where_unsupported_ddl_is_skipped(
    mysql: MysqlServer, postgresql: PostgresqlServer, target: str, statement: str, tmp_path: Path
) -> None:
    played = Played(mysql, postgresql)
    played.begin("stopped")
    setup = "CREATE TABLE h (id INT) PARTITION BY HASH (id) PARTITIONS 2; INSERT INTO h VALUES (1), (2)"
    played.source.sql(RANGES + OTHER.format("(1, 'x'), (77, 'not of p0')") + setup, "stopped")
    played.source.sql(statement, "stopped")
    errno, words = STOPS[statement]
    with pytest.raises(RplError, match=words) as caught:
        played.differing(tmp_path, target, "stopped")
    assert caught.value.errno == errno and "rplctl skip" in caught.value.hint and caught.value.position
