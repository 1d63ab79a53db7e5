"""So many copies of a row go as were asked for, of rows that are equal in every column, or none."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from rplctl.schema.model import Column, Key, KeyPart, TableModel
from rplctl.target.base import CountMismatch
from rplctl.target.sqlite.multiset import is_all_there_is, remove_copies

PLAIN = TableModel(database="d", name="t", columns=(Column(name="a", type="int"), Column(name="b", type="text")))
INDEXED = TableModel(
    database="d", name="t", columns=PLAIN.columns, keys=(Key(name="k", kind="index", parts=(KeyPart("b"),)),)
)
ROWS = [(1, "x"), (1, "x"), (1, "x"), (None, "x"), (1, None), (None, None), (2, "X")]


@pytest.fixture
def driver() -> Iterator[sqlite3.Connection]:
    with sqlite3.connect(":memory:") as connection:
        connection.execute('CREATE TABLE "d__t" (a INT, b TEXT)')
        connection.executemany('INSERT INTO "d__t" VALUES (?, ?)', ROWS)
        yield connection


def rows(driver: sqlite3.Connection) -> list[tuple[object, ...]]:
    return sorted(driver.execute('SELECT * FROM "d__t"').fetchall(), key=repr)


@pytest.mark.parametrize("model", [PLAIN, INDEXED])
def test_as_many_copies_go_as_are_asked_for(driver: sqlite3.Connection, model: TableModel) -> None:
    remove_copies(driver, model, [(1, "x", 2), (None, None, 1), (1, None, 1)])
    assert rows(driver) == sorted([(1, "x"), (None, "x"), (2, "X")], key=repr)
    assert driver.execute("SELECT count(*) FROM sqlite_temp_master").fetchone() == (0,)


@pytest.mark.parametrize("asked", [(1, "x", 4), (2, "x", 1), (None, "X", 1)])
def test_too_few_copies_are_told(driver: sqlite3.Connection, asked: tuple[object, ...]) -> None:
    with pytest.raises(CountMismatch):
        remove_copies(driver, PLAIN, [asked])  # type: ignore[list-item]


def test_more_columns_than_sqlite_chains_terms() -> None:
    names = [f"c{n}" for n in range(1100)]
    model = TableModel(database="d", name="t", columns=tuple(Column(name=name, type="int") for name in names))
    with sqlite3.connect(":memory:") as driver:
        driver.execute(f'CREATE TABLE "d__t" ({", ".join(names)})')
        driver.execute(f'INSERT INTO "d__t" VALUES ({", ".join("1" * 1100)})')
        remove_copies(driver, model, [(*[1] * 1100, 1)])
        assert rows(driver) == []


def test_a_column_or_a_trigger_of_the_targets_own(driver: sqlite3.Connection) -> None:
    assert is_all_there_is(driver, "d__t", 2)
    assert not is_all_there_is(driver, "d__t", 3)
    driver.execute('CREATE TRIGGER own AFTER DELETE ON "d__t" BEGIN SELECT 1; END')
    assert not is_all_there_is(driver, "d__t", 2)
