"""Makes SQL conditions for the rows of a partition, because the source drops a partition without logging its rows.

Supported are RANGE and LIST over an integer, date or datetime column, or over YEAR, TO_DAYS, TO_SECONDS or
UNIX_TIMESTAMP of a column. Jobs that delete old rows use these. HASH, KEY, several columns, text and other expressions
stop the channel. A NULL is in the lowest RANGE partition, or in the LIST partition with NULL in its list. MariaDB's
DEFAULT partition of a LIST contains the values that are in no other list.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from rplctl import mysql_errors as er
from rplctl.errors import BY_HAND, RplError
from rplctl.schema.context import DdlContext
from rplctl.schema.default_value import from_text
from rplctl.schema.model import INTEGER_BITS, Column, Partition, Partitioning, TableModel
from rplctl.schema.token_stream import TokenStream
from rplctl.schema.value import NotComputable, Value
from rplctl.sql_text import NOTHING, NULL, Grammar, Sql, joined, matched, written
from rplctl.target.ddl_parts import quote

_DAYS = ("date", "datetime")
_TYPES = {"YEAR": _DAYS, "TO_DAYS": _DAYS, "TO_SECONDS": ("datetime",), "UNIX_TIMESTAMP": ("timestamp",)}


def partition_condition(
    model: TableModel,
    names: tuple[str, ...],
    context: DdlContext,
    functions: Mapping[str, Callable[[Sql], Sql]],
    to_sql: Callable[[Value, Column], Sql],
) -> Sql:
    """Return the SQL condition for the rows in the partitions `names`. If `names` is empty, return '' for all rows.

    `functions`: the target's SQL for MySQL's partition functions. `to_sql`: returns a value as a literal. Raises
    RplError if the table is partitioned in a way that is not supported.
    """
    if not names:
        return NOTHING
    partitioning = model.partitioning
    wanted = {name.casefold() for name in names}
    if partitioning is not None and partitioning.method.split()[0] in ("RANGE", "LIST"):
        function, name = _column_name(partitioning)
        column = model.find(name)
        by_columns = partitioning.method.endswith("COLUMNS")
        value = _value_sql(function, column, functions, by_columns=by_columns) if column is not None else None
        if value is not None and wanted <= {p.name.casefold() for p in partitioning.partitions}:
            reader = _ValueReader(column if not function else None, context, to_sql)
            conditions = [
                _one(partitioning, index, value, reader)
                for index, partition in enumerate(partitioning.partitions)
                if partition.name.casefold() in wanted
            ]
            known = [condition for condition in conditions if condition is not None]
            if len(known) == len(conditions):
                return joined(" OR ", (written("({})", condition) for condition in known))
    raise RplError(
        f"cannot execute a statement on partition {', '.join(names)} of {model.qualified_name}: rplctl cannot "
        "determine which rows the partition contains, because the table is not partitioned by RANGE or LIST over "
        "one column",
        errno=er.PARSE_ERROR,
        hint=BY_HAND,
    )


def _value_sql(
    function: str, column: Column, functions: Mapping[str, Callable[[Sql], Sql]], *, by_columns: bool
) -> Sql | None:
    """Return SQL that computes the value by which a row belongs to a partition. Return None if the function or the
    column's type is not supported. `by_columns`: True for RANGE COLUMNS and LIST COLUMNS.
    """
    name, kind = quote(column.name), column.type
    if function:
        return functions[function](name) if kind in _TYPES.get(function, ()) else None
    is_plain = kind in INTEGER_BITS and not column.is_unsigned_64
    return name if is_plain or (kind in _DAYS and by_columns) else None


def _column_name(partitioning: Partitioning) -> tuple[str, str]:
    """Return the function and the column by which the table is partitioned.

    The expression `TO_DAYS(created)` gives ('TO_DAYS', 'created'), and `id` gives ('', 'id'). An expression of another
    form gives ('', '').
    """
    match = re.fullmatch(r"\s*(?:(\w+)\s*\(\s*)?(`(?:[^`]|``)+`|[\w$]+)\s*(\))?\s*", partitioning.expression)
    if match is None or (match[1] is None) != (match[3] is None):
        return NOTHING, NOTHING
    name = match[2]
    return (match[1] or "").upper(), name[1:-1].replace("``", "`") if name[0] == "`" else name


class _ValueReader:
    """A parser of the VALUES clause of a partition. It returns the values as SQL literals of the column's type."""

    def __init__(self, column: Column | None, context: DdlContext, to_sql: Callable[[Value, Column], Sql]) -> None:
        self.column = column  # None: the values are numbers
        self.context = context
        self.to_sql = to_sql

    def read(self, partition: Partition) -> list[Sql] | None:
        """Return the values of the partition as SQL: `LESS THAN (10)` gives ['10']. Return None if one of the values is
        an expression.
        """
        tokens = TokenStream(partition.values, self.context)
        _ = tokens.accept("LESS THAN") or tokens.accept("IN")
        tokens.expect_symbol("(")
        found = []
        while True:
            value = self._one(tokens)
            if value is None:
                return None
            found.append(value)
            if not tokens.accept_symbol(","):
                return found if tokens.accept_symbol(")") and tokens.at_end else None

    def _one(self, tokens: TokenStream) -> Sql | None:
        if word := tokens.accept_any("MAXVALUE", "NULL"):
            return written("MAXVALUE") if word == "MAXVALUE" else NULL
        sign = "-" if tokens.accept_symbol("-") else ""
        if tokens.token.kind == "number" and tokens.token.value.isdecimal():
            return matched(Grammar.INTEGER, sign + tokens.next().value)
        if tokens.token.kind == "string" and self.column is not None:
            try:
                return self.to_sql(from_text(self.column, tokens.string(), self.context), self.column)
            except NotComputable:
                return None
        return None


def _rest(partitioning: Partitioning, value: Sql, reader: _ValueReader) -> Sql | None:
    """Return the condition for the rows in MariaDB's DEFAULT partition: rows with a value that is in no other list.
    Return None if a value in another partition's list is an expression.
    """
    others = [reader.read(partition) for partition in partitioning.partitions if partition.values]
    listed = [item for own in others if own is not None for item in own]
    if None in others:
        return None
    known = joined(", ", (item for item in listed if item != "NULL"))
    if "NULL" in listed:
        return written("{} NOT IN ({})", value, known) if known else written("{} IS NOT NULL", value)
    return written("{} NOT IN ({}) OR {} IS NULL", value, known, value) if known else written("1 = 1")


def _one(partitioning: Partitioning, index: int, value: Sql, reader: _ValueReader) -> Sql | None:
    if partitioning.method.startswith("LIST") and not partitioning.partitions[index].values:
        return _rest(partitioning, value, reader)
    own = reader.read(partitioning.partitions[index])
    if own is None:
        return None
    if partitioning.method.startswith("LIST"):
        known = joined(", ", (item for item in own if item != "NULL"))
        conditions = [written("{} IN ({})", value, known)] if known else []
        return joined(" OR ", [*conditions, written("{} IS NULL", value)] if "NULL" in own else conditions)
    below = reader.read(partitioning.partitions[index - 1]) if index else []
    if below is None or len(own) != 1:
        return None
    low = written("{} >= {}", value, below[0]) if below else NOTHING
    high = written("{} < {}", value, own[0]) if own[0] != "MAXVALUE" else NOTHING
    if not low:
        return written("{} IS NULL OR {}", value, high) if high else written("1 = 1")
    return joined(" AND ", (part for part in (low, high) if part))
