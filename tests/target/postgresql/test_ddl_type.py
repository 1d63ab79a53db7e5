"""Declared types, literals and names: what would be cut, folded or read as something else is refused."""

from __future__ import annotations

import pytest

from rplctl.errors import TargetError
from rplctl.schema.model import Column, Key, KeyPart, TableModel
from rplctl.schema.value import Value
from rplctl.target.ddl_parts import is_zero_date
from rplctl.target.postgresql.ddl_type import (
    LONGEST_NAME,
    MOST_COLUMNS,
    check_names,
    declared,
    index_of,
    is_odd_date,
    literal,
    short_name,
    table,
)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (Column(name="c", type="tinyint"), "smallint"),
        (Column(name="c", type="tinyint", unsigned=True), "smallint"),
        (Column(name="c", type="smallint", unsigned=True), "integer"),
        (Column(name="c", type="mediumint", unsigned=True), "integer"),
        (Column(name="c", type="int"), "integer"),
        (Column(name="c", type="int", unsigned=True), "bigint"),
        (Column(name="c", type="bigint"), "bigint"),
        (Column(name="c", type="bigint", unsigned=True), "numeric(20,0)"),
        (Column(name="c", type="bit"), "bit(1)"),
        (Column(name="c", type="bit", length=64), "bit(64)"),
        (Column(name="c", type="decimal", length=65, scale=30), "numeric(65,30)"),
        (Column(name="c", type="decimal"), "numeric(10,0)"),
        (Column(name="c", type="time", length=3), "interval(3)"),
        (Column(name="c", type="timestamp"), "timestamptz(0)"),
        (Column(name="c", type="char", length=5), "varchar(5)"),
        (Column(name="c", type="char", length=0), "text"),
        (Column(name="c", type="longtext"), "text"),
        (Column(name="c", type="set"), "text"),
        (Column(name="c", type="vector", length=4), "bytea"),
        (Column(name="c", type="polygon"), "bytea"),
        (Column(name="c", type="varbinary", length=4), "bytea"),
    ],
)
def test_a_type_holds_every_value_of_the_sources(column: Column, expected: str) -> None:
    assert declared(column) == expected


@pytest.mark.parametrize(
    ("value", "column", "expected"),
    [
        (None, Column(name="c", type="int"), "NULL"),
        (b"\x00'", Column(name="c", type="blob"), "'\\x0027'::bytea"),
        ("it's \\", Column(name="c", type="text"), "'it''s \\'"),
        ("0000-00-00 00:00:00.000", Column(name="c", type="datetime", length=3), "'-infinity'"),
        ("0000-00-00", Column(name="c", type="varchar", length=10), "'0000-00-00'"),
        (5, Column(name="c", type="bit", length=4), "B'0101'"),
        (1, Column(name="c", type="bit"), "B'1'"),
        (5, Column(name="c", type="int"), "5"),
        (0.1, Column(name="c", type="double"), "0.1"),
    ],
)
def test_a_literal_is_the_value(value: Value, column: Column, expected: str) -> None:
    assert literal(value, column) == expected


def test_text_with_nul_is_refused() -> None:
    with pytest.raises(TargetError, match="NUL") as caught:
        literal("a\0", Column(name="c", type="text"))
    assert caught.value.errno == 1366


def test_zero_dates_and_dates_in_no_calendar() -> None:
    assert is_zero_date("0000-00-00") and is_zero_date("0000-00-00 00:00:00.000000")
    assert not is_zero_date("0000-00-00 00:00:01") and not is_zero_date("0000-00-01") and not is_zero_date("0000-00")
    day = Column(name="c", type="date")
    assert is_odd_date("2024-00-07", day) and is_odd_date("2023-02-29", day) and is_odd_date("0000-01-01", day)
    assert not is_odd_date("2024-02-29", day) and not is_odd_date("0000-00-00", day) and not is_odd_date(None, day)
    assert not is_odd_date("2024-00-07", Column(name="c", type="varchar", length=20))


def test_names_that_are_cut_stay_apart() -> None:
    fits = "é" * (LONGEST_NAME // 2) + "x"
    assert short_name(fits) == fits
    one, other = short_name("é" * 40 + "a"), short_name("é" * 40 + "b")
    assert one != other and one[:25] == other[:25] == "é" * 25
    assert len(one.encode()) <= LONGEST_NAME
    model = TableModel(database='d"', name="t", columns=(Column(name="id", type="int"),))
    assert table(model) == '"d"""."t"'
    assert index_of(model, Key(name="k", kind="index", parts=(KeyPart("id"),))) == 'd"__t::k'
    assert index_of(model, Key(name="k", kind="index", parts=(KeyPart("id"),), stored_as="kept")) == "kept"


@pytest.mark.parametrize(
    ("model", "errno"),
    [
        (TableModel(database="d", name="t" * (LONGEST_NAME + 1), columns=()), 1059),
        (TableModel(database="d" * (LONGEST_NAME + 1), name="t", columns=()), 1059),
        (TableModel(database="d", name="t", columns=(Column(name="é" * 32, type="int"),)), 1059),
        (TableModel(database="d", name="t", columns=(Column(name="xmin", type="int"),)), 1166),
        (
            TableModel(
                database="d", name="t", columns=tuple(Column(name=f"c{n}", type="int") for n in range(MOST_COLUMNS + 1))
            ),
            1117,
        ),
    ],
)
def test_names_that_postgresql_cannot_have_are_refused(model: TableModel, errno: int) -> None:
    with pytest.raises(TargetError) as caught:
        check_names(model)
    assert caught.value.errno == errno


def test_the_longest_names_and_the_most_columns_are_taken() -> None:
    columns = tuple(Column(name=f"c{n}", type="int") for n in range(MOST_COLUMNS))
    check_names(TableModel(database="d" * LONGEST_NAME, name="t" * LONGEST_NAME, columns=columns))
