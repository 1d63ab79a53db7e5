"""Which generated columns a target may compute by itself."""

from __future__ import annotations

import pytest

from rplctl.schema.context import DdlContext
from rplctl.schema.generated import integer_expressions
from rplctl.schema.model import TableModel
from rplctl.schema.plan import DatabaseModel, load_table


def table(expression: str, column_type: str = "INT") -> TableModel:
    sql = (
        f"CREATE TABLE t (a INT, `b c` SMALLINT UNSIGNED, u BIGINT UNSIGNED, s TEXT, v {column_type} AS ({expression}))"
    )
    return load_table(sql, DatabaseModel("db", "utf8mb4"), DdlContext(server_version="10.11.19-MariaDB"))


@pytest.mark.parametrize(
    ("expression", "parts"),
    [("a*2", (0, "*", "2")), ("`a` - (`b c` + 1)", (0, "-", "(", 1, "+", "1", ")")), ("-A", ("-", 0))],
)
def test_sums_and_products_of_integers_are_computed(expression: str, parts: tuple[str | int, ...]) -> None:
    assert integer_expressions(table(expression)) == {4: parts}


@pytest.mark.parametrize(
    "expression", ["a/2", "a+u", "s+1", "a+1.5", "abs(a)", "a % 2", "concat(s,'x')", "a > 1", "a+'1'"]
)
def test_all_else_is_left_to_the_source(expression: str) -> None:
    assert integer_expressions(table(expression)) == {}


def test_a_text_made_of_a_sum_is_left_to_the_source() -> None:
    assert integer_expressions(table("a+1", "VARCHAR(9)")) == {}
