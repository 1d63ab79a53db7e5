"""ALTER TABLE as real servers carried it out against ours: values, types of values, names of columns.

`tests/data/alter_*.json`: rows before and after, recorded from MariaDB 10.11 and MySQL 9.7, as `event/values.py` gives
them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rplctl.errors import RplError
from rplctl.schema.context import PAD_CHAR_TO_FULL_LENGTH, STRICT_TRANS_TABLES, DdlContext
from rplctl.schema.model import Column
from rplctl.sql_text import proven_statement as as_sql
from rplctl.target.sqlite.conversion import convert
from tests.target.sqlite.replica_tables import ReplicaTables

DATA = Path(__file__).parents[2] / "data"


def load(name: str) -> list[tuple[dict[str, Any], DdlContext]]:
    recorded = json.loads((DATA / name).read_text())
    return [
        (
            case,
            DdlContext(
                sql_mode=STRICT_TRANS_TABLES if case["strict"] else 0,
                server_version=recorded["version"],
                timestamp=recorded["timestamp"],
            ),
        )
        for case in recorded["cases"]
    ]


def computed_since(step: dict[str, Any]) -> Callable[[dict[str, Any]], Any] | None:
    """The value of the new column in a row, for what was refused when the cases were recorded."""
    if "refused" in step and "DEFAULT (1+2)" in step["sql"]:
        return lambda _: 3
    if "refused" in step and "AS (CONCAT(v,'z'))" in step["sql"]:
        return lambda row: None if row["v"] is None else row["v"] + "z"
    return None


def named_rows(replica: Any, table: str) -> list[dict[str, Any]]:
    names = [column.name for column in replica.catalog.tables["sd", table].columns]
    return [dict(zip(names, row, strict=True)) for row in replica.rows(table)]


CASES = load("alter_mariadb.json") + load("alter_mysql.json")


def decoded(rows: list[list[Any]]) -> list[tuple[Any, ...]]:
    return [tuple(bytes.fromhex(v["hex"]) if isinstance(v, dict) else v for v in row) for row in rows]


each_case = pytest.mark.parametrize(
    ("case", "context"),
    CASES,
    ids=lambda value: value["alters"][0]["sql"] if isinstance(value, dict) else value.server_version[:2],
)


def walk(replica: Any, case: dict[str, Any], check: Callable[[str, list[tuple[Any, ...]]], None]) -> None:
    """Each step of the case; `check` compares a table's rows with those that the source had after it."""
    replica.run("CREATE DATABASE sd CHARACTER SET utf8mb4")
    replica.run(case["create"])
    replica.insert("t", decoded(case["rows"]))
    for step in case["alters"]:
        if (value := computed_since(step)) is not None:
            replica.run(step["sql"])
            rows = named_rows(replica, "t")
            assert rows and all(row["n"] == value(row) for row in rows)
            return
        if "refused" in step:
            with pytest.raises(RplError):
                replica.run(step["sql"])
            continue
        replica.run(step["sql"])
        for table, found in step["tables"].items():
            model = replica.catalog.tables["sd", table]
            assert [column.name for column in model.columns] == found["columns"]
            check(table, decoded(found["rows"]))


@each_case
def test_altered_rows_are_what_the_source_has(case: dict[str, Any], context: DdlContext) -> None:
    replica = ReplicaTables(context)

    def check(table: str, rows: list[tuple[Any, ...]]) -> None:
        expected = sorted(rows, key=repr)
        assert replica.rows(table) == expected
        assert [list(map(type, row)) for row in replica.rows(table)] == [list(map(type, row)) for row in expected]

    walk(replica, case, check)


@pytest.mark.parametrize(
    ("zone", "kind", "value", "expected"),
    [
        ("+05:30", "timestamp", "2024-01-02 20:04:05", "2024-01-03 01:34:05"),
        ("-03:00", "timestamp", "2024-03-01 01:00:00", "2024-02-29 22:00:00"),
        ("+05:30", "datetime", "2024-01-03 01:34:05", "2024-01-02 20:04:05"),
        ("+05:30", "timestamp", "0000-00-00 00:00:00", "0000-00-00 00:00:00"),
    ],
)
def test_timestamp_and_datetime_differ_by_the_session_time_zone(
    zone: str, kind: str, value: str, expected: str
) -> None:
    other = "datetime" if kind == "timestamp" else "timestamp"
    replica = ReplicaTables(DdlContext(time_zone=zone))
    replica.run(f"CREATE TABLE t (v {kind} NULL)")
    replica.insert("t", [(value,)])
    replica.run(f"ALTER TABLE t MODIFY v {other} NULL")
    assert replica.rows("t") == [(expected,)]


PADDED = "ALTER TABLE t MODIFY a VARCHAR(9), MODIFY b TEXT, MODIFY c VARBINARY(9), MODIFY e CHAR(6), MODIFY f INT"
UNPADDED_ROWS = [("é", "x", "x", "x", "7"), ("full", "full", "full", "", "0"), (None,) * 5]
PADDED_ROWS = [("é   ", "x   ", b"x   ", "x", 7), ("full", "full", b"full", "", 0), (None,) * 5]


def test_under_pad_char_to_full_length_a_char_takes_its_blanks_into_another_type() -> None:
    """As MariaDB 10.11 and MySQL 5.7, 8.4 and 9 did it."""
    replica = ReplicaTables(DdlContext(sql_mode=PAD_CHAR_TO_FULL_LENGTH))
    replica.run("CREATE TABLE t (a CHAR(4), b CHAR(4), c CHAR(4), e CHAR(4), f CHAR(4)) CHARACTER SET utf8mb4")
    replica.insert("t", UNPADDED_ROWS)
    replica.run(PADDED)
    assert replica.rows("t") == sorted(PADDED_ROWS, key=repr)
    replica.run("CREATE TABLE n (a CHAR(4))")
    replica.insert("n", [("a\0",)])
    with pytest.raises(RplError, match="char → text of column 'a' would change a value"):
        replica.run("ALTER TABLE n MODIFY a TEXT")


def test_an_unknown_time_zone_stops_unless_the_table_is_empty() -> None:
    replica = ReplicaTables(DdlContext(time_zone="SYSTEM"))
    replica.run("CREATE TABLE t (v TIMESTAMP NULL)")
    replica.run("ALTER TABLE t MODIFY v DATETIME")
    replica.run("ALTER TABLE t MODIFY v TIMESTAMP NULL")
    replica.insert("t", [("2024-01-02 20:04:05",)])
    with pytest.raises(RplError, match="timestamp → datetime of column 'v' cannot be converted exactly"):
        replica.run("ALTER TABLE t MODIFY v DATETIME")


def test_a_pair_without_a_rule_converts_nulls_only() -> None:
    conversion = convert(Column(name="v", type="json"), Column(name="v", type="geometry"), as_sql('"v"'), DdlContext())
    assert (conversion.expression, conversion.impossible) == ("NULL", '"v" IS NOT NULL')


def test_a_non_strict_source_made_nulls_the_implicit_default() -> None:
    conversion = convert(
        Column(name="v", type="int"),
        Column(name="v", type="int", nullable=False),
        as_sql('"v"'),
        DdlContext(sql_mode=0),
    )
    assert conversion.expression == 'coalesce("v", 0)'


def test_the_character_nul_ends_no_text() -> None:
    """SQLite's substr() ends there: a table that was made anew lost what stood behind it."""
    replica = ReplicaTables(DdlContext(sql_mode=STRICT_TRANS_TABLES))
    replica.run("CREATE TABLE t (c CHAR(9), v VARCHAR(9), b BINARY(4)) CHARACTER SET utf8mb4")
    replica.insert("t", [("n\0l", "\0v", b"b\0\0\0")])
    replica.run("ALTER TABLE t ADD x INT FIRST, MODIFY v CHAR(10), MODIFY b VARCHAR(4)")
    assert replica.rows("t") == [(None, "n\0l", "\0v", "b\0\0\0")]
    with pytest.raises(RplError, match="char → varchar of column 'c' would change a value"):
        replica.run("ALTER TABLE t MODIFY c VARCHAR(8)")


@pytest.mark.parametrize("value", ["1969-12-31 23:59:59", "2038-01-19 03:14:08", "2024-00-07 00:00:00"])
@pytest.mark.parametrize("zone", ["+00:00", "+01:00"])
def test_a_time_that_no_timestamp_holds_stops(value: str, zone: str) -> None:
    """A source without strict mode made it the zero date."""
    replica = ReplicaTables(DdlContext(time_zone=zone))
    replica.run("CREATE TABLE t (v DATETIME)")
    replica.insert("t", [("0000-00-00 00:00:00",), ("2024-01-01 12:00:00",), (None,)])
    replica.run("ALTER TABLE t MODIFY v TIMESTAMP NULL")
    replica.run("ALTER TABLE t MODIFY v DATETIME")
    assert ("2024-01-01 12:00:00",) in replica.rows("t") and ("0000-00-00 00:00:00",) in replica.rows("t")
    replica.insert("t", [(value if zone == "+00:00" else value.replace("03:14", "04:14"),)])
    with pytest.raises(RplError, match="datetime → timestamp of column 'v' would change a value"):
        replica.run("ALTER TABLE t MODIFY v TIMESTAMP NULL")


def test_a_negative_number_stops_where_the_column_becomes_unsigned() -> None:
    """A source without strict mode made it 0."""
    replica = ReplicaTables(DdlContext())
    replica.run("CREATE TABLE t (d DOUBLE, f FLOAT)")
    replica.insert("t", [(1.5, 0.5), (None, -1.0)])
    replica.run("ALTER TABLE t MODIFY d DOUBLE UNSIGNED")
    with pytest.raises(RplError, match="float → float of column 'f' would change a value"):
        replica.run("ALTER TABLE t MODIFY f FLOAT UNSIGNED")


@pytest.mark.parametrize(
    ("number", "fits"), [(0, True), (1, False), (1900, False), (1901, True), (2155, True), (2156, False)]
)
def test_a_number_that_is_no_year_stops(number: int, fits: bool) -> None:
    """YEAR holds 0 and 1901 to 2155; a source without strict mode made 0 of the others."""
    replica = ReplicaTables(DdlContext())
    replica.run("CREATE TABLE t (v INT)")
    replica.insert("t", [(number,), (None,)])
    if fits:
        replica.run("ALTER TABLE t MODIFY v YEAR")
        assert set(replica.rows("t")) == {(number,), (None,)}
    else:
        with pytest.raises(RplError, match="int → year of column 'v' would change a value"):
            replica.run("ALTER TABLE t MODIFY v YEAR")
