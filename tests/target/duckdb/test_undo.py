"""A value of any type, written as SQL text and run, is the same value of the same type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rplctl.errors import TargetError
from rplctl.schema.model import Column, TableModel
from rplctl.sql_text import proven_statement as as_sql
from rplctl.target import open_target
from rplctl.target.duckdb.connection import driver_of
from rplctl.target.duckdb.ddl import create_table
from rplctl.target.duckdb.target import DuckdbTarget
from rplctl.target.duckdb.undo import UNDO

VALUES: list[tuple[Column, Any]] = [  # as a key's plain value has them
    (Column(name="v", type="bigint", unsigned=True), 2**64 - 1),
    (Column(name="v", type="bit", length=64), 2**63),
    (Column(name="v", type="tinyint"), -128),
    (Column(name="v", type="double"), 5e-324),
    (Column(name="v", type="double"), -1.7976931348623157e308),
    (Column(name="v", type="float"), 0.1),
    (Column(name="v", type="decimal", length=38, scale=10), "-1234567890123456789012345678.0000000001"),
    (Column(name="v", type="decimal", length=65, scale=2), "-" + "9" * 63 + ".99"),
    (Column(name="v", type="date"), "0000-00-00"),
    (Column(name="v", type="date"), "9999-12-31"),
    (Column(name="v", type="datetime", length=6), "0001-01-01 00:00:00.000001"),
    (Column(name="v", type="timestamp"), "2038-01-19 03:14:07"),
    (Column(name="v", type="timestamp"), "0000-00-00 00:00:00"),
    (Column(name="v", type="time"), "-838:59:59"),
    (Column(name="v", type="varchar", length=9), "it's\t"),
    (Column(name="v", type="varchar", length=9), "é\U0001f600"),
    (Column(name="v", type="longtext"), "a\0b"),
    (Column(name="v", type="longtext"), ""),
    (Column(name="v", type="blob"), b"\0\xff'"),
    (Column(name="v", type="blob"), b""),
    (Column(name="v", type="json"), '{"a": "é"}'),
    (Column(name="v", type="year"), 2024),
    (Column(name="v", type="uuid"), "123e4567-e89b-12d3-a456-426655440000"),
    (Column(name="v", type="varchar", length=9), None),
]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckdbTarget]:
    found = open_target(f"duckdb:///{tmp_path_factory.mktemp('duckdb') / 't.duckdb'}")
    assert isinstance(found, DuckdbTarget)
    yield found
    found.close()


@pytest.mark.parametrize(("column", "value"), VALUES, ids=repr)
def test_literals_are_lossless(target: DuckdbTarget, column: Column, value: Any) -> None:
    model = TableModel(database="d", name="t", columns=(column,))
    driver = driver_of(target.connection)
    driver.execute(as_sql("DROP SCHEMA IF EXISTS d CASCADE"))
    for sql in create_table(model):
        driver.execute(sql)
    driver.execute(as_sql(f"INSERT INTO d.t VALUES ({UNDO.literal(value, column)})"))
    literals = UNDO.literals(target, model)
    assert [*literals] == ['"v"']
    ((text,),) = UNDO.rows(target, as_sql(f"SELECT {', '.join(literals.values())} FROM {UNDO.table(model)}"))
    assert (text == "NULL") == (value is None)
    driver.execute(as_sql(f"INSERT INTO d.t VALUES ({text})"))
    found = driver.execute(as_sql(f"SELECT count(*), count(DISTINCT v), count(v) FROM {UNDO.table(model)}")).fetchone()
    assert found == ((2, 0, 0) if value is None else (2, 1, 2))


def test_what_the_driver_refuses_is_an_error_of_the_target(target: DuckdbTarget) -> None:
    with pytest.raises(TargetError, match="absent") as caught:
        UNDO.rows(target, as_sql("SELECT 1 FROM d.absent"))
    assert caught.value.errno == 1146
