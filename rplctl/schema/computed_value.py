"""Computes the value of a generated column from the old values of one row, as a server does.

A target's SQL computes the common expressions for all rows. For other expressions, this module has the rules of MariaDB
10.11 and MySQL 9.7, which apply to one row at a time. The rules are about arithmetic of every kind of number, and about
functions of texts, bytes and dates. The tests compare each function with real servers, over the types of its operands.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from rplctl.errors import RplError
from rplctl.schema.context import DdlContext
from rplctl.schema.converted_value import CONVERTIBLE, converted_value, encoded, printed
from rplctl.schema.model import BINARY_TYPES, INTEGER_BITS, TEXT_BYTES, Column
from rplctl.schema.token_stream import TokenStream
from rplctl.schema.value import ASCII_INTRODUCERS, NotComputable, Value

_TEXTS = frozenset({"char", "varchar", *TEXT_BYTES, "enum", "set", "json"})
_WHOLE = Column(name="", type="bigint")
_BROKEN = Column(name="", type="double")
_LONG = Column(name="", type="longtext", charset="utf8mb4")
_RAW = Column(name="", type="longblob")
_BIGINT = range(-(2**63), 2**63)
_MOST_DECIMALS = 30


@dataclass(frozen=True, slots=True)
class Operand:
    """A value of an expression, with the type that the server gives to this value."""

    column: Column
    value: Value


Row = Mapping[str, Operand]  # the value of each column by its lower-case name


def computed_value(column: Column, text: str, row: Row, context: DdlContext) -> Value:
    """Return the value of the generated column `column` for one row.

    `text`: the expression of the column. `row`: the values of the other columns by their lower-case names. A VIRTUAL
    column is computed in UTC, as clone reads it. Raises NotComputable if there is no tested rule for the expression.
    """
    if not column.stored:  # each reader computes a TIMESTAMP in its own time zone
        context = replace(context, time_zone="+00:00")
    try:
        reader = _Reader(TokenStream(text, context), row, context)
        found = reader.sum()
        if not reader.tokens.at_end:
            raise NotComputable(f"expression {text}")
    except RplError as error:
        raise NotComputable(f"expression {text}: {error}") from None
    kind = found.column.type
    if found.value is None:
        if not column.nullable:
            raise NotComputable("NULL in a column that is NOT NULL")
        return None
    is_number = column.type in INTEGER_BITS
    is_text = column.type in ("char", "varchar", *TEXT_BYTES)
    if kind in _TEXTS | BINARY_TYPES | {"bit"} and (not is_text or kind == "bit"):
        raise NotComputable(f"{kind} as {column.type}")
    if is_text or (is_number and kind not in ("date", "datetime")) or column.type == kind == "date":
        return converted_value(found.column, column, found.value, context)
    raise NotComputable(f"{kind} as {column.type}")


def constant(text: str, context: DdlContext) -> int | str:
    """Return the value of an expression without columns: an integer, or a text in ASCII.

    Raises NotComputable if there is no tested rule for the expression.
    """
    try:
        reader = _Reader(TokenStream(text, context), {}, context)
        found = reader.sum()
    except RplError as error:
        raise NotComputable(f"expression {text}: {error}") from None
    is_known = found.column.type in ("bigint", *_TEXTS) and reader.tokens.at_end
    if isinstance(found.value, int | str) and is_known and str(found.value).isascii():
        return found.value
    raise NotComputable(f"DEFAULT ({text}) is an expression")


class _Reader:
    """A reader that parses an expression and computes its value at the same time."""

    def __init__(self, tokens: TokenStream, row: Row, context: DdlContext) -> None:
        self.tokens, self.row, self.context = tokens, row, context

    def sum(self) -> Operand:
        found = self._product()
        while self.tokens.is_symbol("+") or self.tokens.is_symbol("-"):
            found = self._combined(self.tokens.next().value, found, self._product())
        return found

    def _product(self) -> Operand:
        found = self._term()
        while self.tokens.accept_symbol("*"):
            found = self._combined("*", found, self._term())
        return found

    def _combined(self, sign: str, one: Operand, other: Operand) -> Operand:
        kinds = {one.column.type, other.column.type}
        if not kinds <= {*INTEGER_BITS, "decimal", "float", "double"}:
            raise NotComputable("arithmetic of other types than numbers")
        if one.value is None or other.value is None:
            return Operand(_WHOLE, None)
        if kinds & {"float", "double"}:
            a, b = float(one.value), float(other.value)
            return Operand(_BROKEN, a + b if sign == "+" else a - b if sign == "-" else a * b)
        c, d = Decimal(str(one.value)), Decimal(str(other.value))
        result = c + d if sign == "+" else c - d if sign == "-" else c * d
        if kinds <= set(INTEGER_BITS):
            is_negative = result < 0 and (one.column.unsigned or other.column.unsigned)
            if int(result) not in _BIGINT or is_negative:
                raise NotComputable(f"{result} is not a BIGINT")
            return Operand(_WHOLE, int(result))
        digits = len(result.as_tuple().digits)
        if digits > 27 or sum(_scale(each) for each in (one, other)) > _MOST_DECIMALS:
            raise NotComputable("a long DECIMAL")
        return Operand(
            Column(name="", type="decimal", length=65, scale=max(0, -int(result.as_tuple().exponent))), f"{result:f}"
        )

    def _term(self) -> Operand:
        tokens = self.tokens
        if tokens.accept_symbol("("):
            found = self.sum()
            self._close()
        elif tokens.token.kind == "string" or tokens.ahead().kind == "string":
            found = self._literal()
        elif tokens.token.kind == "number":
            text = tokens.next().value
            if not text.isdecimal() or len(text) > 18:
                raise NotComputable(f"the number {text}")
            found = Operand(_WHOLE, int(text))
        elif tokens.ahead().kind == "symbol" and tokens.ahead().value == "(" and tokens.token.kind == "word":
            found = self._function(tokens.next().value)
        else:
            found = self._operand()
        if tokens.accept("IS NULL"):
            return Operand(_WHOLE, int(found.value is None))
        if tokens.accept("IS NOT NULL"):
            return Operand(_WHOLE, int(found.value is not None))
        return found

    def _literal(self) -> Operand:
        token = self.tokens.token
        if token.kind == "word" and token.value not in ASCII_INTRODUCERS:
            raise NotComputable("a literal in another character set")
        text = self.tokens.string()
        if not text.isascii():
            raise NotComputable("a literal that is not ASCII")
        return Operand(_LONG, text)

    def _operand(self) -> Operand:
        found = self.row.get(self.tokens.identifier().casefold())
        if found is None or found.column.type not in CONVERTIBLE:
            raise NotComputable("an operand of this type")
        if found.column.type == "timestamp":
            moment = replace(found.column, type="datetime")
            return Operand(moment, converted_value(found.column, moment, found.value, self.context))
        if found.column.type == "char" and self.context.pads_char:
            raise NotComputable("a padded CHAR")
        return found

    def _close(self) -> None:
        if not self.tokens.accept_symbol(")"):
            raise NotComputable("an expression of another form")

    def _arguments(self) -> list[Operand]:
        found = [self.sum()]
        while self.tokens.accept_symbol(","):
            found.append(self.sum())
        return found

    def _function(self, name: str) -> Operand:
        self.tokens.accept_symbol("(")
        arguments = self._arguments()
        self._close()
        match name, arguments:
            case ("CONCAT", _):
                return _joined("", arguments)
            case ("CONCAT_WS", [Operand(value=str() as separator), *rest]) if rest:
                return _joined(separator, [one for one in rest if one.value is not None], rest)
            case ("COALESCE" | "IFNULL", _):
                return _first(arguments)
        first = arguments[0]
        if name in ("YEAR", "DATE") and first.column.type in ("date", "datetime") and len(arguments) == 1:
            if first.value is None:
                return Operand(_WHOLE, None)
            text = str(first.value)[:10]
            return Operand(_WHOLE, int(text[:4])) if name == "YEAR" else Operand(Column(name="", type="date"), text)
        numbers = [int(one.value) for one in arguments[1:] if isinstance(one.value, int)]
        if len(numbers) != len(arguments) - 1:
            raise NotComputable(f"the arguments of {name}")
        return _of_text(name, first, numbers)


def _scale(operand: Operand) -> int:
    return operand.column.scale or 0


def _is_bytes(operand: Operand) -> bool:
    return operand.column.type in (*BINARY_TYPES, "bit") or operand.column.charset == "binary"


def _text(operand: Operand) -> str | bytes:
    """Return the operand as text, or as bytes if it is binary or in a column with the charset binary."""
    if isinstance(operand.value, bytes):
        return operand.value
    if operand.column.type == "bit":
        return int(operand.value or 0).to_bytes(((operand.column.length or 1) + 7) // 8, "big")
    text = printed(operand.column, operand.value)
    return text.encode() if _is_bytes(operand) else text


def _joined(separator: str, arguments: list[Operand], among: list[Operand] | None = None) -> Operand:
    if among is None and any(one.value is None for one in arguments):
        return Operand(_LONG, None)
    texts = [_text(one) for one in arguments]
    if any(map(_is_bytes, among or arguments)):
        raw = [one if isinstance(one, bytes) else _ascii(one) for one in texts]
        return Operand(_RAW, separator.encode().join(raw))
    return Operand(_LONG, separator.join(map(str, texts)))


def _ascii(text: str) -> bytes:
    if not text.isascii():
        raise NotComputable("text that is joined with bytes")
    return text.encode()


def _first(arguments: list[Operand]) -> Operand:
    """Return the first argument that is not NULL, for COALESCE. It gets the type that all arguments have in common.

    Raises NotComputable if there is no tested rule for these types.
    """
    kinds = {one.column.type for one in arguments}
    found = next((one for one in arguments if one.value is not None), arguments[-1])
    if kinds <= set(INTEGER_BITS):
        if any(one.column.unsigned for one in arguments):
            return Operand(replace(_WHOLE, unsigned=True), found.value)
        return Operand(_WHOLE, found.value)
    if kinds <= {*INTEGER_BITS, "decimal"}:
        return (
            found
            if found.value is None
            else Operand(Column(name="", type="decimal", length=65, scale=30), str(found.value))
        )
    if kinds <= {*INTEGER_BITS, "decimal", "float", "double"}:
        return Operand(_BROKEN, None if found.value is None else float(found.value))
    if found.value is not None and kinds <= _TEXTS | BINARY_TYPES | {*INTEGER_BITS, "year", "decimal", "double"}:
        if any(map(_is_bytes, arguments)):
            text = _text(found)
            return Operand(_RAW, text if isinstance(text, bytes) else _ascii(text))
        return Operand(_LONG, str(_text(found)))
    raise NotComputable("values of several types")


def _of_text(name: str, operand: Operand, numbers: list[int]) -> Operand:
    if operand.value is None:
        return Operand(_LONG, None)
    text, kind = _text(operand), operand.column.type
    raw = text if isinstance(text, bytes) else None
    match name, numbers:
        case ("MD5", []):
            if raw is None:
                raw = encoded(str(text), operand.column.charset or "utf8mb4") if kind in _TEXTS else _ascii(str(text))
            return Operand(_LONG, hashlib.md5(raw, usedforsecurity=False).hexdigest())
        case ("LENGTH" | "OCTET_LENGTH", []):
            if raw is None:
                raw = encoded(str(text), operand.column.charset or "utf8mb4") if kind in _TEXTS else _ascii(str(text))
            return Operand(_WHOLE, len(raw))
        case ("CHAR_LENGTH" | "CHARACTER_LENGTH", []):
            return Operand(_WHOLE, len(text))
        case ("UPPER" | "UCASE" | "LOWER" | "LCASE", []):
            return _in_one_case(operand, text, name[0] == "U")
        case ("TRIM", []):
            return _like(text.strip(b" ") if isinstance(text, bytes) else text.strip(" "))
        case ("LEFT", [count]):
            return _like(text[:count])
        case ("SUBSTRING" | "SUBSTR" | "MID", [first, *rest]) if first > 0:
            return _like(text[first - 1 :][: rest[0] if rest else None])
    raise NotComputable(f"function {name}")


def _like(text: str | bytes) -> Operand:
    return Operand(_RAW if isinstance(text, bytes) else _LONG, text)


def _in_one_case(operand: Operand, text: str | bytes, is_upper: bool) -> Operand:
    """Return the operand for UPPER or LOWER of `text`. Bytes are unchanged, because they have no case.

    Raises NotComputable for letters outside ASCII.
    """
    if isinstance(text, bytes):
        return Operand(_RAW, text)
    collation = operand.column.collation or ""
    if not text.isascii() or "turkish" in collation or "_tr_" in collation:
        raise NotComputable("letters that are not ASCII")
    return Operand(_LONG, text.upper() if is_upper else text.lower())
