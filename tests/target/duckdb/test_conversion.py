"""ALTER TABLE as real servers carried it out against ours in a DuckDB file: values, their types, names of columns.

The same recorded cases as SQLite's (`test_conversion`). What DuckDB cannot hold (dates that are in no calendar, a
DECIMAL of 65 digits as a number) is told apart: there the channel stops, and nothing else differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import duckdb
import pytest

from rplctl.errors import RplError
from rplctl.schema.context import PAD_CHAR_TO_FULL_LENGTH, DdlContext
from rplctl.schema.model import Column
from rplctl.schema.plan import Catalog, plan_ddl
from rplctl.sql_text import proven_statement as as_sql
from rplctl.target import open_target
from rplctl.target.base import RowSet, TableChunk
from rplctl.target.conversion import RULES
from rplctl.target.duckdb.connection import driver_of
from rplctl.target.duckdb.conversion import DuckdbModify, convert
from rplctl.target.duckdb.ddl_type import table
from rplctl.target.duckdb.rows import decoded
from rplctl.target.duckdb.target import DuckdbTarget
from tests.target.sqlite.test_conversion import CASES, PADDED, PADDED_ROWS, UNPADDED_ROWS, each_case, walk
from tests.target.test_conversion import NUMBERS, OTHERS


class DuckdbTables:
    """The target in miniature that `walk` wants; one file for all cases, which takes each one's database away."""

    def __init__(self, target: DuckdbTarget) -> None:
        self.target = target
        self.context = DdlContext()
        self.catalog = Catalog()

    def run(self, sql: str, database: str = "sd") -> None:
        plan = plan_ddl(sql, database, self.context, self.catalog)
        self.target.begin(foreign_keys=False)
        try:
            self.target.execute_ddl(plan, self.catalog)
        except RplError:
            self.target.rollback()
            raise
        self.target.commit()
        self.catalog = self.catalog.after(plan)

    def insert(self, name: str, rows: Iterable[Sequence[Any]]) -> None:
        model = self.catalog.tables["sd", name]
        bits = [column.type == "bit" for column in model.columns]  # recorded as SQLite keeps BIT(64)
        given = [tuple(int(v) if bit and v else v for v, bit in zip(r, bits, strict=True)) for r in rows]
        chunk = TableChunk(
            database="sd",
            table=name,
            absent=[],
            deletes=[],
            updates=[],
            inserts=[RowSet(tuple(range(len(bits))), given)],
            ordered=[],
            change_count=1,
            foreign_keys_off=False,
        )
        self.target.begin(foreign_keys=False)
        self.target.apply_chunks([chunk], {("sd", name): model})
        self.target.commit()

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        model = self.catalog.tables["sd", name]
        chosen = ", ".join(map(decoded, model.columns))
        return driver_of(self.target.connection).execute(as_sql(f"SELECT {chosen} FROM {table(model)}")).fetchall()


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckdbTarget]:
    found = open_target(f"duckdb:///{tmp_path_factory.mktemp('duckdb') / 't.duckdb'}")
    assert isinstance(found, DuckdbTarget)
    yield found
    found.close()


@pytest.fixture
def replica(target: DuckdbTarget) -> Iterator[DuckdbTables]:
    yield DuckdbTables(target)
    driver_of(target.connection).execute(
        as_sql("DROP SCHEMA IF EXISTS sd CASCADE; DROP SCHEMA IF EXISTS rplctl CASCADE")
    )


def plain(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """As the recording has them: great numbers as text there."""
    return sorted(
        (tuple(int(v) if isinstance(v, str) and v.isdecimal() and int(v) >= 2**63 else v for v in r) for r in rows),
        key=repr,
    )


def test_it_has_every_rule() -> None:
    assert [name for name in RULES.values() if not callable(getattr(DuckdbModify, name, None))] == []


@pytest.mark.torture
@each_case
def test_altered_rows_are_what_the_source_has(replica: DuckdbTables, case: dict[str, Any], context: DdlContext) -> None:
    replica.context = context
    walk(replica, case, lambda name, rows: _same(replica.rows(name), rows))


def _same(found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> None:
    assert plain(found) == plain(expected)


def test_some_of_them(replica: DuckdbTables) -> None:
    for case, context in CASES[::40]:
        replica.context = context
        walk(replica, case, lambda name, rows: _same(replica.rows(name), rows))
        replica.run("DROP DATABASE sd")


def test_under_pad_char_to_full_length_a_char_takes_its_blanks_into_another_type(replica: DuckdbTables) -> None:
    replica.context = DdlContext(sql_mode=PAD_CHAR_TO_FULL_LENGTH)
    replica.run("CREATE DATABASE sd CHARACTER SET utf8mb4")
    replica.run("CREATE TABLE t (a CHAR(4), b CHAR(4), c CHAR(4), e CHAR(4), f CHAR(4)) CHARACTER SET utf8mb4")
    replica.insert("t", UNPADDED_ROWS)
    replica.run(PADDED)
    assert plain(replica.rows("t")) == plain(PADDED_ROWS)


def test_text_is_told_as_a_number_where_it_is_one() -> None:
    more = {"1e10": 1e10, "1234567890123.4567": 1234567890123.4567, "-1.5E-3": -0.0015}
    number, bad = DuckdbModify(
        old=Column(name="v", type="varchar"),
        new=Column(name="v", type="double"),
        value=as_sql("v"),
        context=DdlContext(),
    ).number_of_text()
    for text, expected in (NUMBERS | more).items():
        sql = f"SELECT {number}, {bad} FROM (SELECT $1::VARCHAR AS v)"
        assert duckdb.execute(sql, [text]).fetchone() == (expected, False), text
    for text in OTHERS:
        assert duckdb.execute(f"SELECT {bad} FROM (SELECT $1::VARCHAR AS v)", [text]).fetchone() == (True,), text


def test_a_pair_without_a_rule_converts_nulls_only() -> None:
    conversion = convert(Column(name="v", type="json"), Column(name="v", type="geometry"), as_sql('"v"'), DdlContext())
    assert (conversion.expression, conversion.impossible) == ("CAST(NULL AS BLOB)", '"v" IS NOT NULL')
