"""Values of existing rows when ALTER TABLE adds a generated column or one with an expression as its default.

The expression is the source's SQL, so only what gives the same value everywhere is computed: + - * of whole numbers,
CONCAT of texts, whole numbers and literals. Invariant: a generated column that the source calculated again (its
expression changed, or a column that it names) never keeps its old values here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rplctl.errors import RplError
from rplctl.schema.context import DdlContext
from rplctl.schema.generated import integer_terms
from rplctl.schema.model import INTEGER_BITS, Column
from rplctl.schema.plan import AlterStep
from rplctl.schema.token_stream import TokenStream
from rplctl.sql_text import NOTHING, Grammar, Sql, joined, matched, written
from rplctl.target.conversion import integer_range, type_class
from rplctl.target.ddl_parts import quote, text_literal

_MOST_DIGITS = 18  # of a literal: below 2^63
_WITHOUT_DEFAULT = ("json", "geometry", "vector")


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """How a target calculates: SQL around an operand, and the condition of a result that is not exact."""

    operand: Callable[[Sql], Sql]
    inexact: Callable[[Sql], Sql]  # before the condition of one out of range


@dataclass(frozen=True, slots=True)
class Computed:
    """SQL of the value, and the condition of rows for which it is not the source's."""

    expression: Sql
    impossible: Sql


Operands = Mapping[str, tuple[Column, Sql]]  # folded name → (column, its name in SQL)


def is_calculated_anew(column: Column, old: Column, step: AlterStep, context: DdlContext) -> bool:
    """True if the source gave new values to a generated column that was there (`old`, perhaps as a plain column)."""
    if column.generated is None:
        return False
    same = old.generated is not None and _normal(old.generated) == _normal(column.generated)
    if not same or _changes(old, column, context):
        return True
    text = column.generated.casefold()
    return any(name.casefold() in text for name in _read_otherwise(step, context))


def computed(  # noqa: PLR0913 - what surrounds an expression, by keyword
    column: Column, text: str, step: AlterStep, context: DdlContext, *, original_names: bool, arithmetic: Arithmetic
) -> Computed | None:
    """The value of `text` for each row of the old table; None when only the source knows it."""
    operands: dict[str, tuple[Column, Sql]] = {}
    for new, origin in zip(step.new.columns, step.origins, strict=True):
        old = step.old.find(origin) if origin is not None else None
        if old is not None and old.generated is None and new.generated is None and not _changes(old, new, context):
            operands[new.name.casefold()] = (new, quote(old.name if original_names else new.name))
    if column.type in INTEGER_BITS and not column.is_unsigned_64:
        return _sum(column, text, operands, arithmetic)
    return _joined(column, text, operands, context) if column.type == "varchar" else None


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


def _joined(column: Column, text: str, operands: Operands, context: DdlContext) -> Computed | None:
    """CONCAT; NULL when a part is."""
    tokens = TokenStream(text, context)
    brackets = 0
    while tokens.accept_symbol("("):
        brackets += 1
    if not tokens.accept("CONCAT") or not tokens.accept_symbol("("):
        return None
    parts: list[Sql] = []
    while True:
        try:
            part = _part(column, tokens, operands)
        except RplError:
            return None
        if part is None:
            return None
        parts.append(part)
        if not tokens.accept_symbol(","):
            break
    if not all(tokens.accept_symbol(")") for _ in range(brackets + 1)) or not tokens.at_end:
        return None
    expression = written("({})", joined(" || ", parts))
    return Computed(expression, written("length({}) > {}", expression, column.length or 0))


def _part(column: Column, tokens: TokenStream, operands: Operands) -> Sql | None:
    if tokens.token.kind == "string" or tokens.ahead().kind == "string":
        literal = tokens.string()
        return text_literal(literal) if literal.isascii() and "\0" not in literal else None
    operand, sql = operands.get(tokens.identifier().casefold(), (None, NOTHING))
    if operand is None or operand.zerofill or operand.is_unsigned_64:
        return None
    if type_class(operand) == "text" and (operand.charset in (column.charset, "ascii") or column.charset == "utf8mb4"):
        return sql
    return written("CAST({} AS TEXT)", sql) if operand.type in INTEGER_BITS else None


def _read_otherwise(step: AlterStep, context: DdlContext) -> set[str]:
    """Names, old and new, of columns in which an expression may find another value, other bytes or another order."""
    found = set()
    for new, origin in zip(step.new.columns, step.origins, strict=True):
        old = step.old.find(origin) if origin is not None else None
        if old is None:
            continue
        if _changes(old, new, context) or (old.charset, old.collation) != (new.charset, new.collation):
            found |= {old.name, new.name}
    return found


def _changes(old: Column, new: Column, context: DdlContext) -> bool:
    """True if values of `old` may differ in `new`, or be printed differently. A CHAR is always trimmed again."""
    if (
        type_class(old) != type_class(new)
        or new.labels[: len(old.labels)] != old.labels
        or old.zerofill != new.zerofill
    ):
        return True
    kind = type_class(new)
    if old.nullable and not new.nullable and not context.is_strict and kind not in _WITHOUT_DEFAULT:
        return True  # NULL became the implicit default
    match kind:
        case "char":
            return True
        case "text":
            return new.type == "varchar" and not (old.type == "varchar" and (old.length or 0) <= (new.length or 0))
        case "binary":
            return new.type == "binary" and (old.type, old.length) != (new.type, new.length)
        case "decimal":
            return (old.scale or 0) != (new.scale or 0)
        case "year":
            return old.length != new.length
        case "vector":
            return old.length != new.length and new.nullable
    return old.fraction_digits != new.fraction_digits


def _normal(text: str) -> str:
    """Names as users and as servers write them; a text with literals only as it is."""
    if "'" in text or '"' in text:
        return text
    text = "".join(text.replace("`", "").split()).casefold()
    return text[1:-1] if text.startswith("(") and text.endswith(")") and ")" not in text[1:-1] else text
