"""Divides the keys of a table into chunks, which are ranges of keys: (−∞, b1], (b1, b2] … (bn, ∞).

A bound b is a key of the table, as one SQL literal for each key column. The source finds the bounds (`ORDER BY key
LIMIT 1 OFFSET n`, from the index alone).

Invariant: at a bound b, the earlier chunk requires key ≤ b, and the later chunk requires the exact negation. So each
possible key is in exactly one chunk, under any collation, and rplctl itself compares no keys. Bounds come from the
source and are stored in files. So a bound is used in SQL only after a check that it is a value of its column's type.
The session must have `sql_mode=''` and `time_zone='+00:00'` (`result_set.columns.SESSION`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rplctl.schema.model import BINARY_TYPES, INTEGER_BITS, Column, TableModel
from rplctl.schema.source_catalog import quote
from rplctl.sql_text import NOTHING, Grammar, Sql, hex_literal, joined, matched, not_executed, word, written

Query = Callable[[Sql], Sequence[tuple[Any, ...]]]
Bound = tuple[str, ...]
_ROW_BYTES: Final = 16 << 10  # the assumed size of a row in a table without statistics
_NUMBERED: Final = frozenset({"bit", "enum", "set"})
_TEXTS: Final = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})


@dataclass(frozen=True, slots=True)
class Chunk:
    """A range of the table's keys: those after `after`, up to and including `upto`.

    If `after` is None, the chunk begins at the first key. If `upto` is None, the chunk ends at the last key.
    """

    after: Bound | None
    upto: Bound | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyColumn:
    name: Sql
    read: Sql  # an expression that returns the column's value as text
    grammar: Grammar  # the grammar of the text from `read`
    before: Sql = NOTHING  # the SQL before the text, for example x', which makes the text a literal
    behind: Sql = NOTHING  # the SQL after the text

    def bound(self, text: str) -> str:
        """Return the SQL literal for a text that the source returned for the expression `read`.

        Raises RplError if the column cannot have this value.
        """
        return written("{}{}{}", self.before, matched(self.grammar, text), self.behind)

    def literal(self, bound: str) -> Sql:
        """Check a bound that was read from a file, and return the bound as SQL.

        Raises RplError if the method `bound` cannot have returned this text.
        """
        inner = bound[len(self.before) : len(bound) - len(self.behind)]
        found = written("{}{}{}", self.before, matched(self.grammar, inner), self.behind)
        if found != bound:
            raise not_executed(bound, f"a bound of the key's column {self.name}")
        return found


def key_of(model: TableModel) -> tuple[Column, ...]:
    """Return the columns of the primary key, or else of the first UNIQUE key without nullable columns.

    Return () if the table has no such key.
    """
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
    """Return the key columns by which the table is divided into chunks, or () if the whole table is one chunk."""
    return tuple(map(_key_column, key_of(model)))


def _key_column(column: Column) -> KeyColumn:
    name, kind = quote(column.name), column.type
    grammar = grammar_of(column)
    if kind in _NUMBERED or kind == "year":
        return KeyColumn(name=name, read=written("CAST({} AS UNSIGNED)", name), grammar=grammar)
    if kind in INTEGER_BITS or kind == "decimal":
        return KeyColumn(name=name, read=written("CAST({} AS CHAR)", name), grammar=grammar)
    if kind in ("float", "double"):
        read = written("CAST({} + 0e0 AS CHAR)", name)
        return KeyColumn(name=name, read=read, grammar=grammar, before=written("(0e0 + "), behind=written(")"))
    quote_sign = written("'")
    if kind in BINARY_TYPES:
        return KeyColumn(
            name=name, read=written("HEX({})", name), grammar=grammar, before=written("x'"), behind=quote_sign
        )
    if kind in _TEXTS:
        before = written("_{} x'", word(column.charset or "utf8mb4"))
        return KeyColumn(name=name, read=written("HEX({})", name), grammar=grammar, before=before, behind=quote_sign)
    return KeyColumn(
        name=name, read=written("CAST({} AS CHAR)", name), grammar=grammar, before=quote_sign, behind=quote_sign
    )


def grammar_of(column: Column) -> Grammar:
    """Return the grammar of the column's values as servers print them.

    For text and binary columns, this is the grammar of the hexadecimal digits that HEX() returns.
    """
    kind = column.type
    if kind in _NUMBERED or kind == "year" or kind in INTEGER_BITS:
        return Grammar.INTEGER
    if kind in BINARY_TYPES or kind in _TEXTS:
        return Grammar.HEX
    known = {"decimal": Grammar.DECIMAL, "float": Grammar.DOUBLE, "double": Grammar.DOUBLE, "uuid": Grammar.UUID}
    if kind in ("inet4", "inet6"):
        return Grammar.ADDRESS
    return known.get(kind, Grammar.MOMENT)


def chunks(query: Query, model: TableModel, rows: int, after: Bound | None = None) -> Iterator[Chunk]:
    """Yield the chunks of a table in the order of its key, with `rows` rows (at least 1) in each.

    The first chunk begins after the key `after`, or at the first key if `after` is None. The last chunk has fewer rows,
    or none. The source is queried for the end of a chunk only when the caller requests the chunk. Raises the errors of
    `query`.
    """
    while (chunk := next_chunk(query, model, rows, after)).upto is not None:
        yield chunk
        after = chunk.upto
    yield chunk


def next_chunk(query: Query, model: TableModel, rows: int, after: Bound | None) -> Chunk:
    """Return the chunk of `rows` rows that begins after the key `after`, or at the first key if `after` is None."""
    key = chunk_key(model)
    return Chunk(after, next_bound(query, model, key, after, rows) if key else None)


def row_bytes(query: Query, model: TableModel) -> tuple[int, int]:
    """Return the source's estimates of the size of one row (at least 1) and of the whole table, in bytes."""
    found = query(
        written(
            "SELECT avg_row_length, data_length FROM information_schema.tables"
            " WHERE (table_schema, table_name) = ({}, {})",
            hex_literal(model.database.encode()),
            hex_literal(model.name.encode()),
        )
    )
    row, size = found[0] if found else (_ROW_BYTES, 0)
    return int(row or 1), int(size or 0)


def next_bound(
    query: Query, model: TableModel, key: Sequence[KeyColumn], after: Bound | None, rows: int
) -> Bound | None:
    """Return the last key of the `rows` rows that follow the key `after`, or None if fewer rows follow.

    `after`: None for the beginning of the table.
    """
    names = joined(", ", [column.name for column in key])
    read = joined(", ", [column.read for column in key])
    where = condition(key, Chunk(after, None))
    table = quote(model.database, model.name)
    found = query(
        written("SELECT {} FROM {}{} ORDER BY {} LIMIT 1 OFFSET {}", read, table, where, names, max(1, rows) - 1)
    )
    if not found:
        return None
    return tuple(column.bound(str(text)) for column, text in zip(key, found[0], strict=True))


def condition(key: Sequence[KeyColumn], chunk: Chunk) -> Sql:
    """Return ` WHERE …` for the rows of the chunk, or '' if the chunk has all rows.

    The condition also compares the first column alone, so that servers use the index. Raises RplError for a bound that
    does not match the key.
    """
    terms: list[Sql] = []
    if chunk.after is not None:
        bound = _literals(key, chunk.after)
        terms += [written("{} >= {}", key[0].name, bound[0]), _compared(key, bound, written(">"), written(">"))]
    if chunk.upto is not None:
        bound = _literals(key, chunk.upto)
        terms += [written("{} <= {}", key[0].name, bound[0]), _compared(key, bound, written("<"), written("<="))]
    return written(" WHERE {}", joined(" AND ", terms)) if terms else NOTHING


def _literals(key: Sequence[KeyColumn], bound: Bound) -> list[Sql]:
    if len(key) != len(bound):
        raise not_executed(", ".join(bound), f"a bound of a key of {len(key)} columns")
    return [column.literal(text) for column, text in zip(key, bound, strict=True)]


def _compared(key: Sequence[KeyColumn], bound: Sequence[Sql], sign: Sql, last_sign: Sql) -> Sql:
    """Return SQL that compares a key of several columns with a bound: (a > x OR (a = x AND b > y)).

    For this form, servers use an index range, but not for (a, b) > (x, y). `sign`: the operator, > or <. `last_sign`:
    the operator for the last column, which may also be <=.
    """
    text = NOTHING
    for column, literal in zip(reversed(key), reversed(bound), strict=True):
        more = written(" OR ({} = {} AND {})", column.name, literal, text) if text else text
        text = written("({} {} {}{})", column.name, sign if text else last_sign, literal, more)
    return text
