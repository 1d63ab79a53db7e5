"""Keys under MySQL's collations of UCA 9.0, which pad nothing: every target changes the row that the source changed.

Keys that are equal to the source (case, accents, ß and ss) are different bytes; targets compare these, or collations.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from rplctl.relay_log.reader import RelayGroups
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.kit.postgresql_state import new_database
from tests.kit.servers import Mariadb118Server, MysqlServer, PostgresqlServer

pytestmark = pytest.mark.slow

TABLES = """
CREATE TABLE {0}_t (k VARCHAR(20) PRIMARY KEY, v INT) COLLATE utf8mb4_0900_{0};
CREATE TABLE {0}_c (k VARCHAR(20), n INT, v INT, PRIMARY KEY (k, n)) COLLATE utf8mb4_0900_{0};
CREATE TABLE {0}_u (id INT PRIMARY KEY, k VARCHAR(20), v INT, UNIQUE KEY (k)) COLLATE utf8mb4_0900_{0};
CREATE TABLE {0}_n (k VARCHAR(20), v INT) COLLATE utf8mb4_0900_{0};
"""
# one transaction each, then all of them as one
EQUAL = """
INSERT INTO {0} ({1}) VALUES {2};
UPDATE {0} SET k='ZOE' WHERE k='zoe'; UPDATE {0} SET v=v+10 WHERE k='zOë'; UPDATE {0} SET k='zoé', v=v+1 WHERE k='Zoe';
UPDATE {0} SET k='B', v=22 WHERE k='b';
DELETE FROM {0} WHERE k='STRASSE';
DELETE FROM {0} WHERE k='x'; INSERT INTO {0} ({1}) VALUES ({3}'X', 44);
UPDATE {0} SET k='X   ' WHERE k='x '; UPDATE {0} SET v=66 WHERE k='x   ';
UPDATE {0} SET k='é' WHERE k='E'; DELETE FROM {0} WHERE k='e'; INSERT INTO {0} ({1}) VALUES ({3}'E', 8);
UPDATE {0} SET v=99 WHERE k='🍣'; UPDATE {0} SET k='FINE' WHERE k='ﬁne'
"""
DISTINCT = """
INSERT INTO {0} ({1}) VALUES {2};
UPDATE {0} SET v=11 WHERE k='a'; UPDATE {0} SET v=12 WHERE k='A'; DELETE FROM {0} WHERE k='á';
UPDATE {0} SET v=13 WHERE k='a ';
UPDATE {0} SET k='~' WHERE k='a'; UPDATE {0} SET k='a' WHERE k='A'; UPDATE {0} SET k='A' WHERE k='~';
UPDATE {0} SET k='A  ' WHERE k='a '; DELETE FROM {0} WHERE k='ss'; UPDATE {0} SET k='ss', v=77 WHERE k='ß';
INSERT INTO {0} ({1}) VALUES ({3}'á', 8), ({3}'Á', 9); UPDATE {0} SET v=5 WHERE k='Á'
"""
KEYS = {
    "ai_ci": ("Zoë", "b", "Straße", "x", "x ", "e", "🍣", "🍺", "ﬁne"),
    "as_cs": ("a", "A", "á", "a ", "ss", "ß", "ä", "🍣"),
}
NAMES = [f"{collation}_{table}" for collation in KEYS for table in "tcun"]


def statements(table: str, first: int) -> str:
    """Of one table: rows numbered from `first`, and what happens to them."""
    collation, kind = table[:5], table[6]
    columns = {"c": "n, k, v", "u": "id, k, v"}.get(kind, "k, v")
    number = {"c": "5, ", "u": "{}, "}.get(kind, "")
    rows = ", ".join(f"({number.format(first + i)}'{key}', {i})" for i, key in enumerate(KEYS[collation], 1))
    changes = (EQUAL if collation == "ai_ci" else DISTINCT).format(table, columns, rows, "\1")
    parts = changes.split("\1")
    return parts[0] + "".join(number.format(first + 50 + i) + part for i, part in enumerate(parts[1:]))


@pytest.fixture(scope="module")
def log(mysql: MysqlServer) -> RelayGroups:
    """All of it thrice: in transactions of their own, with MINIMAL images, as one transaction."""
    mysql.sql("DROP DATABASE IF EXISTS folded; FLUSH BINARY LOGS; CREATE DATABASE folded")
    mysql.sql("".join(TABLES.format(collation) for collation in KEYS), "folded")
    for first, setting in ((100, ""), (300, "SET binlog_row_image=MINIMAL;"), (500, "BEGIN;")):
        changes = (f"UPDATE {table} SET k=CONCAT('{first} ', k); {statements(table, first)}" for table in NAMES)
        mysql.sql(f"{setting} {';'.join(changes)}; COMMIT", "folded")
    return groups_of(mysql.binlog_files[-1])


@pytest.fixture(params=["sqlite", "postgresql", "mariadb", "mysql"])
def fresh_target(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """The URL of an empty one."""
    if request.param == "sqlite":
        return lambda: f"sqlite:///{tmp_path / uuid.uuid4().hex}"
    if request.param == "postgresql":
        postgresql: PostgresqlServer = request.getfixturevalue("postgresql")
        return lambda: new_database(postgresql)
    kind = "mariadb_118_factory" if request.param == "mariadb" else "mysql_factory"
    server: Mariadb118Server | MysqlServer = request.getfixturevalue(kind)()

    def emptied() -> str:
        server.sql("DROP DATABASE IF EXISTS folded; DROP DATABASE IF EXISTS rplctl")
        return server.url()

    return emptied


@pytest.mark.long("The cases of the other kinds hold the promise; those of MySQL repeat it.")
def test_rows_are_told_apart_as_on_the_source(
    mysql: MysqlServer, log: RelayGroups, fresh_target: Callable[[], str], tmp_path: Path
) -> None:
    for bulk_rows in (0, 1):  # few rows are sent one by one, many are loaded and joined
        instance = Instance(tmp_path / f"replica{bulk_rows}", log, target=fresh_target())
        instance.target.bulk_rows = bulk_rows
        instance.applier = instance.reopen()
        instance.apply(log)
        name = "folded__{}" if instance.target.kind == "sqlite" else "folded.{}"
        for table in NAMES:
            columns = {"c": "n, k, v", "u": "id, k, v"}.get(table[6], "k, v")
            expected = [tuple(row) for row in mysql.sql(f"SELECT {columns} FROM folded.{table}")]
            assert sorted(instance.query(f"SELECT {columns} FROM {name.format(table)}")) == sorted(expected), table
            assert len(expected) > 12
        instance.target.close()
