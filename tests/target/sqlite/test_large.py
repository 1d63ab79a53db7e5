"""Large bytes and texts are written behind their row, unless something is computed from them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from rplctl.event.large_text import LargeText, large_text
from rplctl.schema.model import Check, Column, Key, KeyPart, TableModel
from rplctl.sql_text import proven_statement as as_sql
from rplctl.target.base import Row
from rplctl.target.sqlite import large as sqlite_large
from rplctl.target.sqlite.large import BoundColumns, execute_rows

pytestmark = pytest.mark.slow

COLUMNS = (
    Column(name="id", type="int"),
    Column(name="a", type="longblob"),
    Column(name="n", type="int"),
    Column(name="b", type="longblob"),
)
MODEL = TableModel(
    database="d", name="t", columns=COLUMNS, keys=(Key(name="PRIMARY", kind="primary", parts=(KeyPart("id"),)),)
)
INSERT = 'INSERT INTO "d__t" ("id", "a", "n", "b") VALUES (?1, ?2, ?3, ?4)'
UPDATE = 'UPDATE "d__t" SET "b"=?1, "n"=?2 WHERE "id"=?'
A, B = bytes(range(256)) * 9000, b"\0b" * 900_000


@pytest.mark.long(
    "An index over the value stays; the others take the same way.",
    keeps=r"^CREATE INDEX i ON d__t \(B\)-1$|-2$",
)
@pytest.mark.parametrize(
    ("more", "in_pieces"),
    [
        ("", 2),
        ("CREATE INDEX i ON d__t (n)", 2),
        ("CREATE INDEX i ON d__t (B)", 1),
        ("CREATE INDEX i ON d__t (length(b))", 0),
        ("CREATE INDEX i ON d__t (n) WHERE b > x'00'", 0),
        ("CREATE TRIGGER r AFTER INSERT ON d__t BEGIN INSERT INTO seen VALUES (hex(substr(NEW.b, 1, 2))); END", 0),
        ("ALTER TABLE d__t ADD g AS (length(b))", 0),
        ("check", 0),
    ],
)
def test_large_values_arrive_whole(more: str, in_pieces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_large, "MOST_BOUND", 1 << 20)
    model = replace(MODEL, checks=(Check("c", "n > 0"),)) if more == "check" else MODEL
    with closing(sqlite3.connect(":memory:")) as driver:
        driver.execute("CREATE TABLE d__t (id INTEGER PRIMARY KEY, a BLOB, n INT, b BLOB)")
        driver.execute("CREATE TABLE seen (x)")
        driver.execute(more if more != "check" else "")
        statements: list[str] = []
        driver.set_trace_callback(statements.append)
        rows: list[Row] = [(7, memoryview(A), 1, memoryview(B)), (8, b"small", 2, None)]
        assert execute_rows(driver, as_sql(INSERT), rows, BoundColumns(model=model, columns=(0, 1, 2, 3))) == 2
        assert sum(sql.count("zeroblob") for sql in statements) == in_pieces
        bound = BoundColumns(model=model, columns=(3, 2), key=(0,))
        assert execute_rows(driver, as_sql(UPDATE), [(memoryview(A), 5, 8)], bound) == 1
        assert execute_rows(driver, as_sql(UPDATE), [(memoryview(A), 5, 9)], bound) == 0
        assert driver.execute("SELECT id, a, n, b FROM d__t").fetchall() == [(7, A, 1, B), (8, b"small", 5, A)]
        if "TRIGGER" in more:
            assert driver.execute("SELECT x FROM seen").fetchall() == [("0062",), ("",)]


@pytest.mark.long("One encoding stays in make test.", keeps=r"^PRAGMA|-2$")
@pytest.mark.parametrize(
    ("more", "in_pieces"),
    [
        ("", 2),
        ("CREATE INDEX i ON d__t (n)", 2),
        ("CREATE UNIQUE INDEX i ON d__t (b)", 0),
        ("CREATE TRIGGER r AFTER INSERT ON d__t BEGIN INSERT INTO seen VALUES (substr(NEW.b, 1, 1)); END", 0),
        ("ALTER TABLE d__t ADD g AS (length(b))", 0),
        ("PRAGMA encoding = 'UTF-16'", 0),
    ],
)
def test_large_texts_arrive_as_text(more: str, in_pieces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_large, "MOST_BOUND", 1 << 20)
    text, other = "ä🦄\0b" * 200_000, "\0ö\u3042" * 300_000
    model = replace(MODEL, columns=(*COLUMNS[:3], Column(name="b", type="longtext", charset="utf8mb4")))
    with closing(sqlite3.connect(":memory:")) as driver:
        first, second = (more, "") if "PRAGMA" in more else ("", more)
        driver.execute(first)
        driver.execute("CREATE TABLE d__t (id INTEGER PRIMARY KEY, a BLOB, n INT, b TEXT)")
        driver.execute("CREATE TABLE seen (x)")
        driver.execute(second)
        statements: list[str] = []
        driver.set_trace_callback(statements.append)
        rows: list[Row] = [
            (7, None, 1, large(text, "utf16")),
            (8, None, 2, "small"),
            (9, b"", 3, large("x" * (2 << 20))),
        ]
        assert execute_rows(driver, as_sql(INSERT), rows, BoundColumns(model=model, columns=(0, 1, 2, 3))) == 3
        assert sum("AS TEXT" in sql for sql in statements) == in_pieces
        bound = BoundColumns(model=model, columns=(3, 2), key=(0,))
        assert execute_rows(driver, as_sql(UPDATE), [(large(other), 5, 8)], bound) == 1
        found = driver.execute("SELECT id, typeof(b), b, hex(b) FROM d__t ORDER BY id").fetchall()
        texts = {7: text, 8: other, 9: "x" * (2 << 20)}
        encoding = "utf-16-le" if "PRAGMA" in more else "utf-8"
        assert found == [(i, "text", b, b.encode(encoding).hex().upper()) for i, b in texts.items()]
        if "TRIGGER" in more:
            assert driver.execute("SELECT x FROM seen").fetchall() == [("ä",), ("s",), ("x",)]


def large(text: str, charset: str = "utf8mb4") -> LargeText:
    found = large_text(memoryview(text.encode("utf-16-be" if charset == "utf16" else "utf-8")), charset)
    assert isinstance(found, LargeText)
    return found


def test_columns_that_are_named_as_the_number_of_a_row_do_not_lead_to_another_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sqlite_large, "MOST_BOUND", 1 << 20)
    columns = (Column(name="k", type="varchar"), Column(name="rowid", type="int"), Column(name="b", type="longblob"))
    model = TableModel(
        database="d", name="t", columns=columns, keys=(Key(name="PRIMARY", kind="primary", parts=(KeyPart("k"),)),)
    )
    with closing(sqlite3.connect(":memory:")) as driver:
        driver.execute("CREATE TABLE d__t (k TEXT PRIMARY KEY, rowid INT, b BLOB)")
        driver.executemany("INSERT INTO d__t VALUES (?, ?, zeroblob(?))", [("x", 2, len(B)), ("y", 1, 0)])
        update = 'UPDATE "d__t" SET "b"=?1 WHERE "k"=?'
        assert (
            execute_rows(
                driver, as_sql(update), [(memoryview(B), "y")], BoundColumns(model=model, columns=(2,), key=(0,))
            )
            == 1
        )
        assert driver.execute("SELECT k, b = zeroblob(length(b)) FROM d__t").fetchall() == [("x", 1), ("y", 0)]
