"""ALTER TABLE as real servers carried it out against ours on PostgreSQL: values, their types, names of columns.

The same recorded cases as SQLite's (`test_conversion`). What PostgreSQL cannot hold (partial dates, NUL in text) is
told apart: there the channel stops, and nothing else differs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rplctl.schema.context import PAD_CHAR_TO_FULL_LENGTH, DdlContext
from tests.kit.servers import PostgresqlServer
from tests.target.postgresql.replica_tables import PostgresqlTables
from tests.target.sqlite.test_conversion import (
    PADDED,
    PADDED_ROWS,
    UNPADDED_ROWS,
    each_case,
    walk,
)


@pytest.fixture(scope="module")
def tables(postgresql: PostgresqlServer) -> Iterator[PostgresqlTables]:
    made = PostgresqlTables(postgresql)
    yield made
    made.close()


@pytest.fixture
def replica(tables: PostgresqlTables) -> Iterator[PostgresqlTables]:
    yield tables
    tables.connection.rollback()
    tables.connection.execute("SET timezone='UTC'")
    tables.catalog = type(tables.catalog)()


def plain(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(
        (tuple(int(v) if isinstance(v, str) and v.isdecimal() and int(v) >= 2**63 else v for v in r) for r in rows),
        key=repr,
    )


@pytest.mark.long(
    "The cases of MySQL stay; tests/target/sqlite/test_conversion.py has those of both vendors.",
    keeps=r"-9\.",
)
@each_case
def test_altered_rows_are_what_the_source_has(
    replica: PostgresqlTables, case: dict[str, Any], context: DdlContext
) -> None:
    replica.context = context
    walk(replica, case, lambda name, rows: _same(replica.rows(name), rows))


def _same(found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> None:
    assert plain(found) == plain(expected)


def test_under_pad_char_to_full_length_a_char_takes_its_blanks_into_another_type(replica: PostgresqlTables) -> None:
    replica.context = DdlContext(sql_mode=PAD_CHAR_TO_FULL_LENGTH)
    replica.run("CREATE DATABASE sd CHARACTER SET utf8mb4")
    replica.run("CREATE TABLE t (a CHAR(4), b CHAR(4), c CHAR(4), e CHAR(4), f CHAR(4)) CHARACTER SET utf8mb4")
    replica.insert("t", UNPADDED_ROWS)
    replica.run(PADDED)
    assert plain(replica.rows("t")) == plain(PADDED_ROWS)
