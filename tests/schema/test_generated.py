"""Which generated columns a target may compute by itself."""

from __future__ import annotations

import pytest

from rplctl.errors import RplError
from rplctl.schema.context import DdlContext
from rplctl.schema.generated import integer_expressions
from rplctl.schema.model import TableModel
from rplctl.schema.plan import DatabaseModel, load_table
from tests.target.sqlite.replica_tables import ReplicaTables


def table(expression: str, column_type: str = "INT") -> TableModel:
    sql = (
        f"CREATE TABLE t (a INT, `b c` SMALLINT UNSIGNED, u BIGINT UNSIGNED, s TEXT, v {column_type} AS ({expression}))"
    )
    return load_table(sql, DatabaseModel(name="db", charset="utf8mb4"), DdlContext(server_version="10.11.19-MariaDB"))


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


def altered(alter: str, rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Rows of a table with whole numbers and texts behind an ALTER TABLE, on SQLite."""
    replica = ReplicaTables(DdlContext(server_version="10.11.19-MariaDB"))
    replica.run("CREATE TABLE t (id INT PRIMARY KEY, a INT, s VARCHAR(5), g INT AS (a * 2) STORED) CHARSET latin1")
    replica.insert("t", rows)
    replica.run(f"ALTER TABLE t {alter}")
    return replica.rows("t")


@pytest.mark.parametrize(
    ("alter", "after"),
    [
        ("ADD x INT AS ((a+1) * -3) STORED", [(1, 5, "q", 10, -18), (2, None, None, None, None)]),
        ("ADD x VARCHAR(20) AS (CONCAT(s, '''', id))", [(1, 5, "q", 10, "q'1"), (2, None, None, None, None)]),
        ("ADD x VARCHAR(20) AS (CONCAT_WS(',', a, s))", [(1, 5, "q", 10, "5,q"), (2, None, None, None, "")]),
        ("ADD x TEXT AS (IFNULL(UPPER(s), 'none'))", [(1, 5, "q", 10, "Q"), (2, None, None, None, "none")]),
        ("ADD x INT DEFAULT (3 + 4)", [(1, 5, "q", 10, 7), (2, None, None, None, 7)]),
        ("ADD x VARCHAR(9) AS (CONCAT(n)), CHANGE id n INT", [(1, 5, "q", 10, "1"), (2, None, None, None, "2")]),
        ("MODIFY g INT AS (a * 3) STORED", [(1, 5, "q", 15), (2, None, None, None)]),
        ("MODIFY g BIGINT GENERATED ALWAYS AS (`a`*2) STORED", [(1, 5, "q", 10), (2, None, None, None)]),
        ("MODIFY g INT", [(1, 5, "q", 10), (2, None, None, None)]),
        ("MODIFY a BIGINT", [(1, 5, "q", 10), (2, None, None, None)]),
        ("MODIFY s VARCHAR(9) AS (CONCAT(a)) STORED", [(1, 5, "5", 10), (2, None, None, None)]),
        ("CONVERT TO CHARACTER SET utf8mb4", [(1, 5, "q", 10), (2, None, None, None)]),
    ],
)  # fmt: skip
def test_rows_that_are_there_get_what_can_be_computed_exactly(alter: str, after: list[tuple[object, ...]]) -> None:
    assert altered(alter, [(1, 5, "q", 10), (2, None, None, None)]) == sorted(after, key=repr)


@pytest.mark.parametrize(
    "alter",
    [
        "ADD x INT AS (a / 2) STORED",
        "ADD x VARCHAR(40) AS (MD5(s)) STORED",
        "ADD x VARCHAR(40) AS (LOWER(CONCAT(s))) STORED",
        "ADD x VARCHAR(3) AS (CONCAT(s, s, s, s)) STORED",
        "ADD x TINYINT AS (a * 100) STORED",
        "ADD x INT AS (9000000000000000000 + 1) STORED",
        "ADD x DOUBLE DEFAULT (RAND())",
        "MODIFY g INT AS (a % 3) STORED",
        "MODIFY s VARCHAR(5) AS (CONCAT('é', a)) STORED",
        "MODIFY a VARCHAR(20)",  # g is made of it
        "MODIFY g CHAR(3) AS (a * 2) STORED",
    ],
)
def test_values_that_only_the_source_knows_stop_with_a_way_out_and_an_empty_table_does_not(alter: str) -> None:
    with pytest.raises(RplError, match="column '[xgs]'|only the source knows") as caught:
        altered(alter, [(1, 5, "q", 10)])
    assert "rplctl load-schema" in caught.value.hint and "rplctl skip" in caught.value.hint
    assert altered(alter, []) == []


@pytest.mark.parametrize(("function", "bytes_of_text"), [("LENGTH", 2), ("HEX", None)])
def test_a_generated_column_over_a_new_charset_is_computed_or_stops(function: str, bytes_of_text: int | None) -> None:
    replica = ReplicaTables(DdlContext(server_version="9.7.0"))
    replica.run(f"CREATE TABLE t (s VARCHAR(5), g INT AS ({function}(s)) STORED) CHARSET latin1")
    replica.insert("t", [("é", 1)])
    if bytes_of_text is None:
        with pytest.raises(RplError, match="column 'g' is generated"):
            replica.run("ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4")
    else:
        replica.run("ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4")
    replica.run("ALTER TABLE t ADD x INT DEFAULT 1")
    assert replica.rows("t") == [("é", bytes_of_text or 1, 1)]
