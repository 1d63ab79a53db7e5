"""Computes the values for which a target's SQL has no exact rule, one by one, before ALTER TABLE is executed.

ALTER TABLE on a target fills columns by SQL. For some values, SQL does not give the source's result. Examples are a
number that the source clipped, and a text that the source read as a date. Before the statement, `known_rows` reads
these old values. It computes the new values by the source's rules (`schema.converted_value`, `schema.computed_value`).
The statement then contains a constant for each old value. Invariant: a value without a constant still stops the
channel, because the column's guard (a query that must find no row) finds its row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rplctl.errors import TargetError
from rplctl.schema.computed_value import Operand, computed_value
from rplctl.schema.context import DdlContext
from rplctl.schema.converted_value import CONVERTIBLE, converted_value
from rplctl.schema.default_value import default_value
from rplctl.schema.generated import names_in
from rplctl.schema.model import BINARY_TYPES, INTEGER_BITS, TEXT_BYTES, Column
from rplctl.schema.plan import AlterStep, KnownRows
from rplctl.schema.value import NotComputable, Value
from rplctl.sql_text import NULL, Sql, joined, written
from rplctl.target.ddl_parts import FilledColumn, quote

MOST_VALUES = 1000  # different old values of one column: each of them becomes a branch of a CASE
_LONGEST = 250  # bytes or characters: longer values are not read
_HAS_LENGTH = frozenset({"char", "varchar", "json", *TEXT_BYTES, *BINARY_TYPES})

Execute = Callable[[Sql], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueSql:
    """The SQL with which a kind of target reads, compares and writes single values of a column."""

    key: Callable[[Column, Sql], Sql]  # SQL of a text or number (the key) that identifies a value
    literal: Callable[[Any], Sql]  # a key that a query returned, as a literal
    read: Callable[[Column, Any], Value]  # the value of a key, in the form of `event/values.py`
    typed: Callable[[Column, Sql], Sql]  # SQL that converts a value to the column's type on the target
    size: Callable[[Column, Sql], Sql]  # SQL of the length of a text or a binary value


def known_rows(  # noqa: PLR0913 - one column of a statement
    form: ValueSql,
    step: AlterStep,
    filled: FilledColumn,
    operands: Mapping[str, tuple[Column, Column]],
    table: Sql,
    context: DdlContext,
    execute: Execute,
) -> KnownRows | None:
    """Read the old values for which the target's SQL cannot compute the column `filled`, and return each of them with
    its new value. Old values without an exact rule are omitted. Return None if no new value is known.

    `operands`: for a generated column, the columns that its expression may read, as case-folded new name → (new column,
    old column).
    """
    new = filled.column
    if new.generated is None:
        old = step.old.find(filled.origin or "")
        read = {"": (new, old)} if old is not None else {}
    else:
        names = names_in(new.generated)
        read = {name: pair for name, pair in operands.items() if name in names}
    olds = [old for _, old in read.values()]
    if not olds or new.auto_increment or any(column.type not in CONVERTIBLE for column in olds):
        return None
    found = []
    for row in _rows(form, olds, filled, table, execute):
        old_values = [None if one is None else form.read(column, one) for column, one in zip(olds, row, strict=True)]
        try:
            if new.generated is None:
                found.append((row, converted_value(olds[0], new, old_values[0], context)))
                continue
            pairs = zip(read.items(), old_values, strict=True)
            known = {name: Operand(to, _after(old, to, value, context)) for (name, (to, old)), value in pairs}
            found.append((row, computed_value(new, new.generated, known, context)))
        except (NotComputable, ArithmeticError, ValueError):  # such as a date after the year 9999
            continue
    return KnownRows(tuple(column.name for column in olds), tuple(found)) if found else None


def _after(old: Column, new: Column, value: Value, context: DdlContext) -> Value:
    """Return the value that a column has after the statement, in which an expression reads the column.

    Raises NotComputable if there is no tested rule.
    """
    if replace(old, name=new.name) == new:
        return value
    if value is None and not new.nullable:
        raise NotComputable("NULL in a column that becomes NOT NULL")
    return converted_value(old, new, value, context)


def value_of_added(column: Column, step: AlterStep, context: DdlContext) -> Value:
    """Return the value of a generated column that only reads columns which the same statement adds.

    Their default values are the same in all rows. Raises NotComputable if the column also reads other columns, or if
    there is no tested rule.
    """
    names, row = names_in(column.generated or ""), dict[str, Operand]()
    for new, origin in zip(step.new.columns, step.origins, strict=True):
        if (name := new.name.casefold()) in names:
            if origin is not None:
                raise NotComputable(f"column '{new.name}' has a value in each row")
            row[name] = Operand(new, default_value(new, context))
    return computed_value(column, column.generated or "", row, context)


def _rows(
    form: ValueSql, olds: Sequence[Column], filled: FilledColumn, table: Sql, execute: Execute
) -> list[tuple[Any, ...]]:
    """Return the different old values for which the column has no exact SQL, or [] if there are more than MOST_VALUES.
    A row has one value for each column in `olds`.
    """
    keys = joined(", ", (form.key(column, quote(column.name)) for column in olds))
    conditions = [written("({})", filled.impossible)]
    if filled.column.generated is None:
        conditions.append(written("{} IS NOT NULL", quote(olds[0].name)))
    for column in olds:
        if column.type in _HAS_LENGTH:
            size = form.size(column, quote(column.name))
            conditions.append(written("coalesce({}, 0) <= {}", size, _LONGEST))
    query = written("SELECT DISTINCT {} FROM {} WHERE {}", keys, table, joined(" AND ", conditions))
    found = [tuple(row) for row in execute(written("{} LIMIT {}", query, MOST_VALUES + 1)).fetchall()]
    return found if len(found) <= MOST_VALUES else []


def with_known_rows(  # noqa: PLR0913 - one column of a statement
    form: ValueSql,
    filled: FilledColumn,
    known: KnownRows,
    olds: Sequence[Column],
    names: Sequence[Sql],
    constant: Callable[[Column, Value], FilledColumn],
) -> FilledColumn:
    """Return the column with a CASE that has a constant for each known value. A value that the target cannot store
    still stops the channel.

    `olds`: the old columns of `known`. `names`: the SQL names of these columns.
    """
    keys = [form.key(column, name) for column, name in zip(olds, names, strict=True)]
    values, none = [], []
    for row, result in known.values:
        try:
            literal = constant(filled.column, result) if result is not None else None
            condition = joined(" AND ", (_is(form, key, one) for key, one in zip(keys, row, strict=True)))
        except TargetError:  # such as a NUL in PostgreSQL's text
            continue
        if literal is not None and literal.impossible:
            continue
        sql = literal.expression if literal is not None else NULL
        values.append(written("WHEN {} THEN {}", condition, form.typed(filled.column, sql)))
        none.append(written("WHEN {} THEN FALSE", condition))
    if not values:
        return filled
    rest = form.typed(filled.column, filled.expression)
    expression = written("CASE {} ELSE {} END", joined(" ", values), rest)
    impossible = written("CASE {} ELSE ({}) END", joined(" ", none), filled.impossible)
    return replace(filled, expression=expression, impossible=impossible, constant=None, is_unchanged=False)


def _is(form: ValueSql, key: Sql, value: Any) -> Sql:
    return written("{} IS NULL", key) if value is None else written("{} = {}", key, form.literal(value))


def value_of_text(column: Column, text: str) -> Value:
    """Return the value that the SQL of `ValueSql.key` has printed as `text`, in which bytes are hexadecimal digits."""
    if column.type in INTEGER_BITS or column.type in ("bit", "year"):
        return int(text)
    if column.type in ("float", "double"):
        return float(text)
    return bytes.fromhex(text) if column.type in BINARY_TYPES else text
