"""The rows of a DuckDB target as `neutral_state` compares them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import duckdb

from rplctl.schema.model import Column, TableModel
from rplctl.schema.structure import END_OF_TIME, ROW_END
from rplctl.target.ddl_parts import quote
from rplctl.target.duckdb.ddl_type import ZERO_DATE, declared
from rplctl.target.duckdb.rows import decoded
from tests.kit.neutral_state import Rows, TableState, parse_state, shown

Models = Mapping[tuple[str, str], TableModel]


def duckdb_rows(target: duckdb.DuckDBPyConnection, state: TableState, model: TableModel) -> tuple[Rows, set[int]]:
    """The target's rows, and which columns are dates that an operator made text."""
    name = f"{quote(state.database)}.{quote(state.table)}"
    types = {column: kind for column, kind, *_ in target.execute(f"DESCRIBE {name}").fetchall()}
    where = ""
    if ROW_END in types and ROW_END not in dict(state.columns):
        where = f" WHERE {quote(ROW_END)} = '{END_OF_TIME}+00'"
    chosen = ", ".join(_told(model.find(column), types[column], kind) for column, kind in state.columns)
    found = target.execute(f"SELECT {chosen} FROM {name}{where}").fetchall()
    kinds = [kind for _, kind in state.columns]
    rows = Counter(tuple(shown(v, kind) for v, kind in zip(row, kinds, strict=True)) for row in found)
    return rows, {i for i, (c, kind) in enumerate(state.columns) if kind == "tmp" and types[c] == "VARCHAR"}


def _told(column: Column | None, there: str, kind: str) -> str:
    assert column is not None
    if there == "VARCHAR" != declared(column):
        return quote(column.name)  # an operator made it so
    if kind == "float":
        return f"CAST({quote(column.name)} AS DOUBLE)"
    return decoded(column)


def differences(target: Any, models: Models, state: str, without: frozenset[str] = frozenset()) -> list[str]:
    """Tables whose rows differ, each with up to two rows that only one side has."""
    found, compared = [], 0
    for expected in parse_state(state):
        if expected.name in without or expected.table in without:
            continue
        compared += 1
        rows, as_text = duckdb_rows(target, expected, models[expected.database, expected.table])
        wanted = Counter(
            tuple(ZERO_DATE if i in as_text and v.startswith("0000-00-00") else v for i, v in enumerate(row))
            for row in expected.rows.elements()
        )
        if rows != wanted:
            missing, surplus = list(wanted - rows)[:2], list(rows - wanted)[:2]
            found.append(f"{expected.name}: the source has {missing}, the target {surplus}"[:2000])
    assert compared
    return found
