"""Rows given to a statement, few or many, have the column's types and are the same values both ways."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from rplctl import mysql_errors as er
from rplctl.errors import TargetError
from rplctl.schema.model import Column, TableModel
from rplctl.target.base import COPIES, EncodedRows
from rplctl.target.duckdb.relation import relation
from rplctl.target.duckdb.rows import decoded
from tests.target.encoded import encoded

MODEL = TableModel(
    database="shop",
    name="t",
    columns=(
        Column(name="a", type="bigint", unsigned=True),
        Column(name="b", type="bit", length=64),
        Column(name="c", type="tinyint"),
        Column(name="d", type="year"),
        Column(name="e", type="double"),
        Column(name="f", type="decimal", length=30, scale=4),
        Column(name="g", type="date"),
        Column(name="h", type="datetime", length=6),
        Column(name="i", type="timestamp"),
        Column(name="j", type="time"),
        Column(name="k", type="varchar", length=9),
        Column(name="l", type="blob"),
        Column(name="m", type="json"),
        Column(name="n", type="uuid"),
    ),
)
ROW: tuple[Any, ...] = (
    2**64 - 1,
    2**64 - 1,
    -128,
    2155,
    -1.7e308,
    "-12345678901234567890123456.0001",
    "0001-01-01",
    "9999-12-31 23:59:59.999999",
    "2038-01-19 03:14:07",
    "-838:59:59",
    "a\0é\U0001f600",
    b"\0\xff",
    '{"a": 1}',
    "123e4567-e89b-12d3-a456-426655440000",
)
ZERO = (
    0,
    0,
    0,
    0,
    -0.0,
    "0.0000",
    "0000-00-00",
    "0000-00-00 00:00:00.000000",
    "0000-00-00 00:00:00",
    "00:00:00",
    "",
    b"",
    "[]",
    "00000000-0000-0000-0000-000000000000",
)
TYPES = ["UBIGINT", "UBIGINT", "TINYINT", "SMALLINT", "DOUBLE", "DECIMAL(30,4)", "DATE", "TIMESTAMP",
         "TIMESTAMP WITH TIME ZONE", "INTERVAL", "VARCHAR", "BLOB", "JSON", "UUID"]  # fmt: skip


@pytest.fixture
def driver() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def length_prefixed(columns: tuple[int, ...], rows: list[tuple[Any, ...]]) -> EncodedRows:
    return encoded(columns, rows, MODEL, "duckdb", length_prefixed=True)


HOW = pytest.mark.parametrize(("copies", "is_framed"), [(1, False), (20, False), (20, True)])


@HOW
def test_few_many_and_framed_are_the_same_values_of_the_same_types(
    driver: duckdb.DuckDBPyConnection, copies: int, *, is_framed: bool
) -> None:
    rows = [ROW, ZERO, (None,) * len(ROW)] * copies
    columns = tuple(range(len(ROW)))
    with relation(driver, MODEL, columns, length_prefixed(columns, rows) if is_framed else rows) as given:
        named = ", ".join(f'c{i} AS "{column.name}"' for i, column in enumerate(MODEL.columns))
        shown = ", ".join(map(decoded, MODEL.columns))
        found = driver.execute(f"SELECT {shown} FROM (SELECT {named} FROM {given.sql})", given.values).fetchall()
        kinds = driver.execute(f"DESCRIBE SELECT * FROM {given.sql}", given.values).fetchall()
    assert sorted(found, key=repr) == sorted(rows, key=repr)
    assert [kind for _, kind, *_ in kinds] == TYPES
    assert driver.execute("SELECT count(*) FROM duckdb_views() WHERE NOT internal").fetchone() == (0,)


@HOW
def test_a_zero_date_with_a_time_is_not_the_zero_date(
    driver: duckdb.DuckDBPyConnection, copies: int, *, is_framed: bool
) -> None:
    rows: list[tuple[Any, ...]] = [("0000-00-00 10:20:30.500000",), ("0000-00-00 00:00:00.000000",)] * copies
    given_rows = length_prefixed((7,), rows) if is_framed else rows
    with relation(driver, MODEL, (7,), given_rows, frozenset({MODEL.columns[7].name})) as given:
        found = driver.execute(f"SELECT * FROM {given.sql}", given.values).fetchall()
    assert sorted(found) == sorted([("0000-00-00 10:20:30.500000",), ("-infinity",)] * copies)
    with pytest.raises((TargetError, duckdb.Error)), relation(driver, MODEL, (7,), given_rows) as given:
        driver.execute(f"SELECT * FROM {given.sql}", given.values).fetchall()


@HOW
def test_what_an_operator_made_text_stays_as_it_comes_and_copies_are_numbers(
    driver: duckdb.DuckDBPyConnection, copies: int, *, is_framed: bool
) -> None:
    rows: list[tuple[Any, ...]] = [("2024-00-07", 3)] * copies
    given_rows = length_prefixed((6, COPIES), rows) if is_framed else rows
    with relation(driver, MODEL, (6, COPIES), given_rows, frozenset({"g"})) as given:
        assert driver.execute(f"SELECT * FROM {given.sql}", given.values).fetchall() == rows


@HOW
def test_half_a_surrogate_pair_is_an_error_that_names_the_column(
    driver: duckdb.DuckDBPyConnection, copies: int, *, is_framed: bool
) -> None:
    rows: list[tuple[Any, ...]] = [("x",)] * copies + [("a\ud800",)]
    given_rows = length_prefixed((10,), rows) if is_framed else rows
    with pytest.raises(TargetError, match="column 'k'") as caught, relation(driver, MODEL, (10,), given_rows):
        pass
    assert caught.value.errno == er.TRUNCATED_WRONG_VALUE_FOR_FIELD and "rplctl clone" in caught.value.hint


def test_rows_that_come_as_values_load_no_pandas() -> None:
    code = (
        "import sys, duckdb; from tests.target.duckdb.test_relation import MODEL, ROW, relation\n"
        "with duckdb.connect() as driver, relation(driver, MODEL, range(len(ROW)), [ROW] * 20) as given:\n"
        "    count = driver.execute(f'SELECT count(*) FROM {given.sql}').fetchone()\n"
        "print(count, 'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout == "(20,) False\n"
