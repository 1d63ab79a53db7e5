"""A table's keys cut into chunks: (−∞, b1], (b1, b2] … (bn, ∞).

A bound is a literal of the source for each column of the key, found by the source itself (`ORDER BY key LIMIT 1 OFFSET
n`, from the index alone where the key is one). Invariant: of two chunks that meet at a bound one says exactly what the
other denies, so that each key there can be lies in one chunk, by whatever collation; our code compares no keys.

The session must have `sql_mode=''` and `time_zone='+00:00'` (`result_set.columns.SESSION`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rplctl.schema.model import BINARY_TYPES, INTEGER_BITS, Column, TableModel
from rplctl.schema.source_catalog import quote

Query = Callable[[str], Sequence[tuple[Any, ...]]]
Bound = tuple[str, ...]
_ROW_BYTES: Final = 16 << 10  # of a table of which nothing is known
_NUMBERED: Final = frozenset({"bit", "enum", "set"})
_TEXTS: Final = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})


@dataclass(frozen=True, slots=True)
class Chunk:
    """Keys behind `after` (None: from the first) up to and with `upto` (None: to the last)."""

    after: Bound | None
    upto: Bound | None


@dataclass(frozen=True, slots=True)
class KeyColumn:
    name: str  # quoted
    read: str  # SQL that gives the text of a literal
    before: str = ""  # what stands around that text
    behind: str = ""


def key_of(model: TableModel) -> tuple[Column, ...]:
    """Of the primary key, else of the first UNIQUE key without NULLs, else ()."""
    for kind in ("primary", "unique"):
        for key in model.keys:
            columns = [model.find(part.column) for part in key.parts if part.column]
            if key.kind != kind or key.has_expression or not all(columns):
                continue
            found = [column for column in columns if column is not None]
            if kind == "primary" or not any(column.nullable for column in found):
                return tuple(found)
    return ()


def chunk_key(model: TableModel) -> tuple[KeyColumn, ...]:
    """(): then a table is one chunk."""
    return tuple(map(_key_column, key_of(model)))


def _key_column(column: Column) -> KeyColumn:
    name, kind = quote(column.name), column.type
    if kind in _NUMBERED or kind == "year":
        return KeyColumn(name, f"CAST({name} + 0 AS UNSIGNED)")
    if kind in INTEGER_BITS or kind == "decimal":
        return KeyColumn(name, f"CAST({name} AS CHAR)")
    if kind in ("float", "double"):
        return KeyColumn(name, f"CAST({name} + 0e0 AS CHAR)", "(0e0 + ", ")")
    if kind in BINARY_TYPES:
        return KeyColumn(name, f"HEX({name})", "x'", "'")
    if kind in _TEXTS:
        return KeyColumn(name, f"HEX({name})", f"_{column.charset or 'utf8mb4'} x'", "'")
    return KeyColumn(name, f"CAST({name} AS CHAR)", "'", "'")  # dates, times, addresses


def chunks(query: Query, model: TableModel, rows: int, after: Bound | None = None) -> Iterator[Chunk]:
    """Chunks of `rows` rows (at least 1) behind `after` as the table is when each is asked for; the last has fewer, or
    none. Errors of `query` pass through.
    """
    while (chunk := next_chunk(query, model, rows, after)).upto is not None:
        yield chunk
        after = chunk.upto
    yield chunk


def next_chunk(query: Query, model: TableModel, rows: int, after: Bound | None) -> Chunk:
    """One of `chunks`."""
    key = chunk_key(model)
    return Chunk(after, next_bound(query, model, key, after, rows) if key else None)


def row_bytes(query: Query, model: TableModel) -> tuple[int, int]:
    """Bytes of a row, at least 1, and of all rows, as the source believes."""
    names = ", ".join(f"x'{name.encode().hex()}'" for name in (model.database, model.name))
    found = query(
        "SELECT avg_row_length, data_length FROM information_schema.tables"
        f" WHERE (table_schema, table_name) = ({names})"
    )
    row, size = found[0] if found else (_ROW_BYTES, 0)
    return int(row or 1), int(size or 0)


def next_bound(
    query: Query, model: TableModel, key: Sequence[KeyColumn], after: Bound | None, rows: int
) -> Bound | None:
    """The key of the last of so many rows behind `after`; None when there are fewer."""
    names = ", ".join(column.name for column in key)
    read = ", ".join(column.read for column in key)
    where = condition(key, Chunk(after, None))
    table = f"{quote(model.database)}.{quote(model.name)}"
    found = query(f"SELECT {read} FROM {table}{where} ORDER BY {names} LIMIT 1 OFFSET {max(1, rows) - 1}")
    if not found:
        return None
    return tuple(f"{c.before}{text}{c.behind}" for c, text in zip(key, found[0], strict=True))


def condition(key: Sequence[KeyColumn], chunk: Chunk) -> str:
    """` WHERE …` of the chunk's rows, or nothing. The first column is also compared by itself: that opens the index."""
    terms = []
    if chunk.after is not None:
        terms += [f"{key[0].name} >= {chunk.after[0]}", _compared(key, chunk.after, ">", ">")]
    if chunk.upto is not None:
        terms += [f"{key[0].name} <= {chunk.upto[0]}", _compared(key, chunk.upto, "<", "<=")]
    return f" WHERE {' AND '.join(terms)}" if terms else ""


def _compared(key: Sequence[KeyColumn], bound: Bound, sign: str, last_sign: str) -> str:
    """(a > x OR (a = x AND b > y)), or the same with < and <=: ranges of an index, which (a, b) > (x, y) is not."""
    text = ""
    for column, literal in zip(reversed(key), reversed(bound), strict=True):
        more = f" OR ({column.name} = {literal} AND {text})" if text else ""
        text = f"({column.name} {sign if text else last_sign} {literal}{more})"
    return text
