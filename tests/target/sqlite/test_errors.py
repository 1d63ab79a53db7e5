"""What SQLite says of a row, a lock or a disk, as MySQL's numbers; only what passes by itself is tried again."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from rplctl.schema.model import Column, Key, KeyPart, TableModel
from rplctl.target.base import ChangeKind, RowChange, RowSet
from rplctl.target.sqlite.errors import integrity_error, target_error

MODEL = TableModel(
    database="d",
    name="t",
    columns=(Column(name="a", type="int"), Column(name="b", type="int"), Column(name="c", type="int")),
    keys=(
        Key(name="PRIMARY", kind="primary", parts=(KeyPart("a"),)),
        Key(name="pair", kind="unique", parts=(KeyPart("c"), KeyPart("b"))),
    ),
)
SAME_ROW = RowChange(kind=ChangeKind.INSERT, before=None, after=RowSet((2, 0, 1), [(3, 1, 2)]))


@pytest.fixture
def driver() -> Iterator[sqlite3.Connection]:
    with sqlite3.connect(":memory:", isolation_level=None) as connection:
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("CREATE TABLE d__t (a INT PRIMARY KEY, b INT, c INT NOT NULL CHECK (c < 9))")
        connection.execute("CREATE UNIQUE INDEX pair ON d__t (c, b)")
        connection.execute("CREATE TABLE d__c (a INT REFERENCES d__t (a))")
        connection.execute("INSERT INTO d__t VALUES (1, 2, 3)")
        yield connection


@pytest.mark.parametrize(
    ("sql", "errno", "message"),
    [
        ("INSERT INTO d__t VALUES (1, 5, 6)", 1062, "Duplicate entry '1' for key 'PRIMARY'"),
        ("INSERT INTO d__t VALUES (7, 2, 3)", 1062, "Duplicate entry '3-2' for key 'pair'"),
        ("INSERT INTO d__t VALUES (7, 2, NULL)", 1048, "Column 'c' cannot be null"),
        ("INSERT INTO d__c VALUES (7)", 1452, "a foreign key constraint fails"),
        ("INSERT INTO d__t VALUES (7, 2, 9)", 4025, "CHECK"),
    ],
)
def test_a_row_that_does_not_fit(driver: sqlite3.Connection, sql: str, errno: int, message: str) -> None:
    with pytest.raises(sqlite3.IntegrityError) as caught:
        driver.execute(sql)
    found = integrity_error(caught.value, SAME_ROW, MODEL)
    assert (found.errno, found.transient) == (errno, False)
    assert message in found.message


def said(text: str, code: int) -> sqlite3.Error:
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("text", "code", "errno", "transient"),
    [
        ("database is locked", sqlite3.SQLITE_BUSY, 1205, True),
        ("database is locked", sqlite3.SQLITE_BUSY_SNAPSHOT, 1205, True),
        ("database or disk is full", sqlite3.SQLITE_FULL, 1021, True),
        ("disk I/O error", sqlite3.SQLITE_IOERR_SHMSIZE, 1021, True),
        ("disk I/O error", sqlite3.SQLITE_IOERR_WRITE, 1030, True),
        ("attempt to write a readonly database", sqlite3.SQLITE_READONLY, 1290, False),
        ("attempt to write a readonly database", sqlite3.SQLITE_READONLY_DBMOVED, 1017, True),
        ("unable to open database file", sqlite3.SQLITE_CANTOPEN, 1017, True),
        ("database disk image is malformed", sqlite3.SQLITE_CORRUPT, 1194, False),
        ("file is not a database", sqlite3.SQLITE_NOTADB, 1194, False),
        ("string or blob too big", sqlite3.SQLITE_TOOBIG, 1406, False),
        ("no such table: d__t", sqlite3.SQLITE_ERROR, 1146, False),
        ("table d__t already exists", sqlite3.SQLITE_ERROR, 1050, False),
        ("too many columns on d__t", sqlite3.SQLITE_ERROR, 1117, False),
        ("no query solution", sqlite3.SQLITE_ERROR, 1105, False),
    ],
)
def test_mysqls_number_and_whether_to_try_again(text: str, code: int, errno: int, transient: bool) -> None:
    found = target_error(said(text, code))
    assert (found.errno, found.transient) == (errno, transient)
    assert text in found.message


@pytest.mark.parametrize(
    ("sql", "errno"),
    [
        ("ALTER TABLE t ADD a INT", 1060),
        ("ALTER TABLE t RENAME COLUMN a TO b", 1060),
        ("ALTER TABLE t RENAME COLUMN z TO c", 1054),
        ("ALTER TABLE t DROP COLUMN z", 1054),
        ("INSERT INTO t (z) VALUES (1)", 1054),
        ("ALTER TABLE t RENAME TO u", 1050),
        ("CREATE TABLE u (a)", 1050),
        ("CREATE TABLE i (a)", 1050),
        ("CREATE INDEX i ON u (a)", 1061),
        ("DROP INDEX z", 1091),
        ("DROP TABLE z", 1146),
    ],
)
def test_a_statement_that_finds_other_objects_has_mysqls_number(sql: str, errno: int) -> None:
    """So that `replica_skip_errors = ddl_exist_errors` means the same on SQLite."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript("CREATE TABLE t (a, b); CREATE TABLE u (a); CREATE INDEX i ON t (a)")
        with pytest.raises(sqlite3.Error) as caught:
            connection.execute(sql)
    assert target_error(caught.value).errno == errno
