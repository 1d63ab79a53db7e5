"""How values are kept: affinities that change nothing, literals that give the value back, names of row numbers."""

from __future__ import annotations

import sqlite3

import pytest

from rplctl.errors import TargetError
from rplctl.schema.model import Column
from rplctl.schema.value import Value
from rplctl.target.sqlite.ddl_type import LARGEST_INTEGER, affinity, literal, row_number, stored_value


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (Column(name="c", type="int"), "INT"),
        (Column(name="c", type="bigint"), "BIGINT"),
        (Column(name="c", type="bigint", unsigned=True), ""),
        (Column(name="c", type="bit", length=63), "INT"),
        (Column(name="c", type="bit", length=64), ""),
        (Column(name="c", type="year"), "INT"),
        (Column(name="c", type="float"), "REAL"),
        (Column(name="c", type="decimal", length=10, scale=2), "TEXT"),
        (Column(name="c", type="varbinary", length=3), "BLOB"),
        (Column(name="c", type="point"), "BLOB"),
        (Column(name="c", type="vector", length=3), "BLOB"),
        (Column(name="c", type="json"), "TEXT"),
        (Column(name="c", type="timestamp", length=6), "TEXT"),
    ],
)
def test_the_declared_type(column: Column, expected: str) -> None:
    assert affinity(column) == expected


@pytest.mark.parametrize(
    "value",
    [None, 0, -(2**63), LARGEST_INTEGER, 0.1, 1e300, 5e-324, "it's", "", "a\0b'c", "€", b"", b"\0'\xff", "1.10"],
)
def test_a_literal_gives_the_value_back(value: Value) -> None:
    with sqlite3.connect(":memory:") as connection:
        (found,) = connection.execute(f"SELECT {literal(value)}").fetchone()
    assert (type(found), found) == (type(value), value)


def test_integers_past_the_largest_are_text_where_no_affinity_makes_them_a_float() -> None:
    column = Column(name="c", type="bigint", unsigned=True)
    assert stored_value(column, LARGEST_INTEGER) == LARGEST_INTEGER
    assert stored_value(column, LARGEST_INTEGER + 1) == "9223372036854775808"
    assert stored_value(Column(name="c", type="bigint"), 5) == 5
    assert stored_value(column, None) is None


def test_a_row_number_has_a_name_that_no_column_has() -> None:
    def columns(*names: str) -> list[Column]:
        return [Column(name=name, type="int") for name in names]

    assert row_number(columns("a")) == "rowid"
    assert row_number(columns("RowID")) == "_rowid_"
    assert row_number(columns("rowid", "_ROWID_")) == "oid"
    with pytest.raises(TargetError, match="rowid") as caught:
        row_number(columns("oid", "rowid", "_rowid_"))
    assert caught.value.errno == 1166
