"""Declared types, literals and names: what would be cut, folded or read as something else is refused."""

from __future__ import annotations

import pytest

from rplctl.errors import TargetError
from rplctl.schema.default_value import Value
from rplctl.schema.model import Column, Key, KeyPart, TableModel
from rplctl.target.postgresql.ddl_type import (
    LONGEST_NAME,
    MOST_COLUMNS,
    check_names,
    declared,
    index_of,
    is_odd_date,
    is_zero_date,
    literal,
    short_name,
    table,
)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (Column("c", "tinyint"), "smallint"),
        (Column("c", "tinyint", unsigned=True), "smallint"),
        (Column("c", "smallint", unsigned=True), "integer"),
        (Column("c", "mediumint", unsigned=True), "integer"),
        (Column("c", "int"), "integer"),
        (Column("c", "int", unsigned=True), "bigint"),
        (Column("c", "bigint"), "bigint"),
        (Column("c", "bigint", unsigned=True), "numeric(20,0)"),
        (Column("c", "bit"), "bit(1)"),
        (Column("c", "bit", 64), "bit(64)"),
        (Column("c", "decimal", 65, 30), "numeric(65,30)"),
        (Column("c", "decimal"), "numeric(10,0)"),
        (Column("c", "time", 3), "interval(3)"),
        (Column("c", "timestamp"), "timestamptz(0)"),
        (Column("c", "char", 5), "varchar(5)"),
        (Column("c", "char", 0), "text"),
        (Column("c", "longtext"), "text"),
        (Column("c", "set"), "text"),
        (Column("c", "vector", 4), "bytea"),
        (Column("c", "polygon"), "bytea"),
        (Column("c", "varbinary", 4), "bytea"),
    ],
)
def test_a_type_holds_every_value_of_the_sources(column: Column, expected: str) -> None:
    assert declared(column) == expected


@pytest.mark.parametrize(
    ("value", "column", "expected"),
    [
        (None, Column("c", "int"), "NULL"),
        (b"\x00'", Column("c", "blob"), "'\\x0027'::bytea"),
        ("it's \\", Column("c", "text"), "'it''s \\'"),
        ("0000-00-00 00:00:00.000", Column("c", "datetime", 3), "'-infinity'"),
        ("0000-00-00", Column("c", "varchar", 10), "'0000-00-00'"),
        (5, Column("c", "bit", 4), "B'0101'"),
        (1, Column("c", "bit"), "B'1'"),
        (5, Column("c", "int"), "5"),
        (0.1, Column("c", "double"), "0.1"),
    ],
)
def test_a_literal_is_the_value(value: Value, column: Column, expected: str) -> None:
    assert literal(value, column) == expected


def test_text_with_nul_is_refused() -> None:
    with pytest.raises(TargetError, match="NUL") as caught:
        literal("a\0", Column("c", "text"))
    assert caught.value.errno == 1366


def test_zero_dates_and_dates_in_no_calendar() -> None:
    assert is_zero_date("0000-00-00") and is_zero_date("0000-00-00 00:00:00.000000")
    assert not is_zero_date("0000-00-00 00:00:01") and not is_zero_date("0000-00-01") and not is_zero_date("0000-00")
    day = Column("c", "date")
    assert is_odd_date("2024-00-07", day) and is_odd_date("2023-02-29", day) and is_odd_date("0000-01-01", day)
    assert not is_odd_date("2024-02-29", day) and not is_odd_date("0000-00-00", day) and not is_odd_date(None, day)
    assert not is_odd_date("2024-00-07", Column("c", "varchar", 20))


def test_names_that_are_cut_stay_apart() -> None:
    fits = "é" * (LONGEST_NAME // 2) + "x"
    assert short_name(fits) == fits
    one, other = short_name("é" * 40 + "a"), short_name("é" * 40 + "b")
    assert one != other and one[:25] == other[:25] == "é" * 25
    assert len(one.encode()) <= LONGEST_NAME
    model = TableModel('d"', "t", (Column("id", "int"),))
    assert table(model) == '"d"""."t"'
    assert index_of(model, Key("k", "index", (KeyPart("id"),))) == 'd"__t::k'
    assert index_of(model, Key("k", "index", (KeyPart("id"),), stored_as="kept")) == "kept"


@pytest.mark.parametrize(
    ("model", "errno"),
    [
        (TableModel("d", "t" * (LONGEST_NAME + 1), ()), 1059),
        (TableModel("d" * (LONGEST_NAME + 1), "t", ()), 1059),
        (TableModel("d", "t", (Column("é" * 32, "int"),)), 1059),
        (TableModel("d", "t", (Column("xmin", "int"),)), 1166),
        (TableModel("d", "t", tuple(Column(f"c{n}", "int") for n in range(MOST_COLUMNS + 1))), 1117),
    ],
)
def test_names_that_postgresql_cannot_have_are_refused(model: TableModel, errno: int) -> None:
    with pytest.raises(TargetError) as caught:
        check_names(model)
    assert caught.value.errno == errno


def test_the_longest_names_and_the_most_columns_are_taken() -> None:
    columns = tuple(Column(f"c{n}", "int") for n in range(MOST_COLUMNS))
    check_names(TableModel("d" * LONGEST_NAME, "t" * LONGEST_NAME, columns))
