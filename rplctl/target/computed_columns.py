"""Computes values for existing rows when ALTER TABLE adds a generated column or a column with an expression as default.

The expression is SQL of the source. The target computes only expressions that have the same value on all servers:
+ - * of integers, IS NULL, and the functions in `computed_text`. Invariant: if the source recalculated a generated
column (because its expression or one of its columns changed), the target never keeps the old values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from rplctl.errors import RplError
from rplctl.schema.context import DdlContext
from rplctl.schema.generated import columns_by_time_zone, integer_terms, names_in, with_renamed
from rplctl.schema.model import BLOB_BYTES, INTEGER_BITS, TEXT_BYTES, Column
from rplctl.schema.plan import AlterStep
from rplctl.schema.token_stream import TokenStream
from rplctl.sql_text import NOTHING, Grammar, Sql, joined, matched, written
from rplctl.target.computed_text import Expression, NotKnown, Operands, TextFunctions
from rplctl.target.conversion import integer_range, type_class
from rplctl.target.ddl_parts import quote

_IS_NULL = re.compile(r"\(*\s*(?:`([^`]+)`|(\w+))\s+IS\s+(NOT\s+)?NULL\s*\)*", re.IGNORECASE)
_MOST_DIGITS = 18  # a number with 18 digits is always below 2^63
_WITHOUT_DEFAULT = ("json", "geometry", "vector")


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """The SQL with which a kind of target computes integers: a wrapper for each operand, and a condition for results
    that are not exact.
    """

    operand: Callable[[Sql], Sql]
    inexact: Callable[[Sql], Sql]  # SQL before the condition for a result out of range


@dataclass(frozen=True, slots=True)
class Computed:
    """SQL that computes a value, and a condition for the rows in which the source may have computed another value."""

    expression: Sql
    impossible: Sql


def calculated_anew(step: AlterStep, context: DdlContext) -> set[str]:
    """Return the case-folded names of the generated columns that the ALTER TABLE statement made the source recalculate.

    These columns have a new expression or a new type, or they read a column that changes, which may be another one of
    them. A VIRTUAL column may read an added column with the name of a dropped one. (Then MariaDB 10.11 keeps the values
    of a STORED column, and MySQL 9.7 refuses the statement.) If a STORED column reads a TIMESTAMP, a statement that
    copies the table computes it again, in the time zone of its session.
    """
    pairs = list(_pairs(step))
    names = {old.name.casefold(): new.name for new, old in pairs if old.name != new.name}
    changed, found = _read_otherwise(step, context), set[str]()
    added = {new.name.casefold() for new, origin in zip(step.new.columns, step.origins, strict=True) if origin is None}
    moments = {new.name.casefold() for new, _ in pairs if new.type == "timestamp"} if _copies(step) else set()
    while True:
        more = {
            new.name.casefold()
            for new, old in pairs
            if new.generated is not None
            and (
                old.generated is None
                or _normal(with_renamed(old.generated, names, context)) != _normal(new.generated)
                or _changes(old, new, context)
                or any(name in new.generated.casefold() for name in changed | found)
                or names_in(new.generated) & (moments if new.stored else added)
            )
        }
        if more == found:
            return found
        found = more


def _copies(step: AlterStep) -> bool:
    """True if the statement changes a type, a character set, the engine or the kind of partitions.

    MariaDB 10.11 and MySQL 9.7 copy the table for such changes. For most others, they change the table in place.
    """
    old, new = step.old, step.new
    ways = [(p.method, p.expression) if (p := model.partitioning) is not None else None for model in (old, new)]
    types_change = any((one.type, one.charset) != (other.type, other.charset) for one, other in _pairs(step))
    return types_change or old.engine != new.engine or ways[0] != ways[1]


def computed(  # noqa: PLR0913 - the context of an expression, by keyword
    column: Column,
    text: str,
    step: AlterStep,
    context: DdlContext,
    *,
    original_names: bool,
    arithmetic: Arithmetic,
    functions: TextFunctions,
) -> Computed | None:
    """Return SQL that computes the expression `text` for each row of the old table, or None if only the source can
    compute the expression. `original_names`: True if the SQL runs before columns are renamed.
    """
    known: dict[str, tuple[Column, Sql]] = {}
    for name, (new, old) in operands(step, context).items():
        known[name] = (new, quote(old.name if original_names else new.name))
    is_integer = column.type in INTEGER_BITS and not column.is_unsigned_64
    if is_integer and (found := _sum(column, text, known, arithmetic)) is not None:
        return found
    if column.type in INTEGER_BITS and (found := _is_null(text, known)) is not None:
        return found
    if is_integer or column.type == "varchar" or column.type in TEXT_BYTES:
        return _expression(column, text, known, context, functions)
    return None


def operands(step: AlterStep, context: DdlContext, *, converts: bool = False) -> dict[str, tuple[Column, Column]]:
    """Return the columns that an expression may read: case-folded new name → (new column, old column).

    The statement keeps the values of these columns. With `converts`, plain columns are included whose values it
    converts.
    """
    anew, found = calculated_anew(step, context), {}
    unstable = {step.old.columns[number].name for number in columns_by_time_zone(step.old)}
    for new, old in _pairs(step):
        name = new.name.casefold()
        if (old.generated is None) != (new.generated is None) or name in anew or old.name in unstable:
            continue
        if converts or replace(old, name=new.name) == new or not _changes(old, new, context):
            found[name] = (new, old)
    return found


def _pairs(step: AlterStep) -> Iterator[tuple[Column, Column]]:
    """Yield each column of the new table that the old table has, as (new column, old column)."""
    for new, origin in zip(step.new.columns, step.origins, strict=True):
        old = step.old.find(origin) if origin is not None else None
        if old is not None:
            yield new, old


def _sum(column: Column, text: str, operands: Operands, arithmetic: Arithmetic) -> Computed | None:
    names = list(operands)
    terms = integer_terms(text, {name: number for number, name in enumerate(names)})
    if not terms:
        return None
    parts = []
    for term in terms:
        if isinstance(term, int):
            operand, sql = operands[names[term]]
            if operand.type not in INTEGER_BITS or operand.is_unsigned_64:
                return None
            parts.append(arithmetic.operand(sql))
        elif len(term) > _MOST_DIGITS:
            return None
        else:
            parts.append(matched(Grammar.TERM, term))
    expression = written("({})", joined(" ", parts))
    low, high = integer_range(column)
    outside = written("{}{} NOT BETWEEN {} AND {}", arithmetic.inexact(expression), expression, low, high)
    return Computed(expression, outside)


def _is_null(text: str, known: Operands) -> Computed | None:
    """Return SQL for the expression `column IS [NOT] NULL`, for every type. Return None for another expression."""
    match = _IS_NULL.fullmatch(text.strip())
    operand = known.get((match[1] or match[2]).casefold()) if match is not None else None
    if match is None or operand is None:
        return None
    sql = written("CASE WHEN {} IS NULL THEN {} ELSE {} END", operand[1], *((0, 1) if match[3] else (1, 0)))
    return Computed(written("({})", sql), NOTHING)


def _expression(
    column: Column, text: str, operands: Operands, context: DdlContext, how: TextFunctions
) -> Computed | None:
    reader = Expression(column, TokenStream(text, context), operands, context, how)
    try:
        value = reader.whole()
    except (NotKnown, RplError):
        return None
    if column.type in INTEGER_BITS:
        low, high = integer_range(column)
        reader.doubts.append(written("{} NOT BETWEEN {} AND {}", value, low, high))
    return Computed(value, joined(" OR ", reader.doubts))


def _read_otherwise(step: AlterStep, context: DdlContext) -> set[str]:
    """Return the case-folded old and new names of columns whose values, bytes or sort order the statement changes.

    An expression over such a column may have a new value.
    """
    found = set()
    for new, old in _pairs(step):
        if _changes(old, new, context) or (old.charset, old.collation) != (new.charset, new.collation):
            found |= {old.name.casefold(), new.name.casefold()}
    return found


def _changes(old: Column, new: Column, context: DdlContext) -> bool:
    """True if values of `old` may change in `new`, or print differently. CHAR returns True, because it loses blanks."""
    if (
        type_class(old) != type_class(new)
        or new.labels[: len(old.labels)] != old.labels
        or old.zerofill != new.zerofill
    ):
        return True
    kind = type_class(new)
    if old.nullable and not new.nullable and not context.is_strict and kind not in _WITHOUT_DEFAULT:
        return True  # NULL became the implicit default
    if not context.is_strict and not _fits(old, new):
        return True
    match kind:
        case "char":
            return True
        case "text":
            return new.type == "varchar" and not (old.type == "varchar" and (old.length or 0) <= (new.length or 0))
        case "binary":
            return new.type == "binary" and (old.type, old.length) != (new.type, new.length)
        case "decimal":
            return (old.scale or 0) != (new.scale or 0)
        case "year" | "bit":  # a function of texts reads all bytes of a BIT
            return old.length != new.length
        case "vector":
            return old.length != new.length and new.nullable
    return old.fraction_digits != new.fraction_digits


def _fits(old: Column, new: Column) -> bool:
    """True if the column `new` can store each value of `old`, which is of the same kind.

    Without strict mode, the source clips or cuts other values.
    """
    if old.charset != new.charset and old.charset != "ascii" and new.charset != "utf8mb4":
        return False  # the new character set may lack letters
    match type_class(new):
        case "integer":
            (low, high), (lowest, highest) = integer_range(old), integer_range(new)
            return lowest <= low and high <= highest
        case "decimal":
            digits = [(column.length or 10) - (column.scale or 0) for column in (old, new)]
            return digits[0] <= digits[1] and (old.unsigned or not new.unsigned)
        case "float" | "double":
            same_digits = new.scale is None or (old.length, old.scale) == (new.length, new.scale)
            return same_digits and (old.unsigned or not new.unsigned)
        case "text" | "binary":
            return _most_bytes(old) <= _most_bytes(new) or old.type == new.type == "varchar"
    return True


def _most_bytes(column: Column) -> int:
    """Return the largest number of bytes of a text or a binary value of the column."""
    if (size := (TEXT_BYTES | BLOB_BYTES).get(column.type)) is not None:
        return size
    return (column.length or 1) * (4 if column.charset not in (None, "binary") else 1)


def _normal(text: str) -> str:
    """Return an expression without backticks, blanks, upper case and outer parentheses, so that equal expressions
    compare equal. An expression with a string literal stays unchanged, because blanks and case count in a literal.
    """
    if "'" in text or '"' in text:
        return text
    text = "".join(text.replace("`", "").split()).casefold()
    return text[1:-1] if text.startswith("(") and text.endswith(")") and ")" not in text[1:-1] else text
