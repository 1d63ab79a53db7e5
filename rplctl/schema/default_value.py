"""Computes default values, for existing rows at ADD COLUMN, and for columns that a MINIMAL row image omits.

Values have the types of `event/values.py`: int, float, str (DECIMAL, temporals, text, ENUM, SET), bytes, None. Only
constants, expressions of constants and CURRENT_TIMESTAMP are computed. Any other expression raises `NotComputable`, and
the caller decides. The tests compare every literal in every type with MariaDB 10.11 and MySQL 9.7.
"""

from __future__ import annotations

import re
import struct
from contextlib import suppress
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from ipaddress import IPv6Address
from uuid import UUID

from rplctl.schema.computed_value import constant
from rplctl.schema.context import DdlContext
from rplctl.schema.converted_value import is_in
from rplctl.schema.default_time import NOW, temporal_value, time_of_statement
from rplctl.schema.model import BINARY_TYPES, INTEGER_BITS, TEMPORAL_TYPES, TEXT_BYTES, Column
from rplctl.schema.token_stream import TokenStream
from rplctl.schema.value import ASCII_INTRODUCERS, NotComputable, Value, is_mariadb

_MOMENT = {
    "DATE": re.compile(r"\d{4}-\d\d-\d\d", re.ASCII),
    "TIME": re.compile(r"(?:[01]\d|2[0-3]):\d\d:\d\d", re.ASCII),
    "TIMESTAMP": re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", re.ASCII),
}
_WIDE = Context(prec=200)  # DECIMAL has up to 65 digits, but Python's default context has only 28
_MOST_AS_DIGITS = 10**14  # smaller floating-point numbers are printed without an exponent
_UUID = re.compile(r"[0-9a-f]{8}(-?)[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{12}", re.IGNORECASE)
_OF_NUMBERS = (*INTEGER_BITS, "decimal", "float", "double", "year")
_OF_STRINGS = (*_OF_NUMBERS, "char", "varchar", "enum", "set", "time", *TEXT_BYTES)
_OF_LETTERS = (*_OF_NUMBERS, *TEMPORAL_TYPES, "enum", "set")  # types for which MySQL reads letters as zero
_NOT_ASCII = frozenset({"ucs2", "utf16", "utf16le", "utf32", "swe7"})  # charsets that are not compatible with ASCII
_BYTES_OF_A_NUMBER = 8
_FIRST_YEAR, _LAST_YEAR, _DIGITS_OF_YEAR = 1901, 2155, 4
_FLOAT = re.compile(r"[(\s]*[-+]?(?:\d+\.?\d*|\.\d+)e[-+]?\d+[)\s]*", re.ASCII | re.IGNORECASE)
_LETTERS = re.compile("[A-Za-z]*")
_NUMBER_OF_JSON = r"(?:0|-?[1-9]\d{0,8})"
_PLAIN_JSON = re.compile(
    rf"\[\]|\{{\}}|null|{_NUMBER_OF_JSON}|\[{_NUMBER_OF_JSON}\]", re.ASCII
)  # MySQL reformats others


def default_value(column: Column, context: DdlContext) -> Value:
    """Return the default value that a row without a value for this column gets.

    `context`: the settings of the statement, for example its time. Raises NotComputable if only the source can compute
    the value.
    """
    if column.generated is not None:
        raise NotComputable(f"column '{column.name}' is generated from other columns")
    if column.auto_increment:
        raise NotComputable(f"column '{column.name}' is numbered by the source")
    if column.default is None:
        return None if column.nullable else implicit_default(column)
    text = column.default
    while text.startswith("(") and text.endswith(")") and TokenStream(text, context).skip_group() == text[1:-1].strip():
        text = text[1:-1].strip()
    tokens = TokenStream(text, context)
    if tokens.accept("NULL") and tokens.at_end:
        return None if column.nullable else implicit_default(column)
    try:
        return _constant(column, tokens, context)
    except _NotConstant as error:
        try:
            found = constant(text, context) if _is_expression(column) else None
        except NotComputable:
            found = None
        if found is None:
            raise error from None
    if isinstance(found, str):
        return _from_string(column, found, context)
    return _from_number(column, Decimal(found), context)


class _NotConstant(NotComputable):
    """The error for a default that is not a single literal."""


def _is_expression(column: Column) -> bool:
    return column.default is not None and column.default.startswith("(")


def implicit_default(column: Column) -> Value:
    """Return the value that MySQL stores in a NOT NULL column without a default, for example 0, '' or the first label.

    Raises NotComputable for a type without such a value.
    """
    kind = column.type
    if kind in INTEGER_BITS or kind in ("bit", "year"):
        return 0
    if kind in ("float", "double"):
        return 0.0
    if kind == "decimal":
        return "0" + ("." + "0" * column.scale if column.scale else "")
    if kind == "enum":
        return column.labels[0]
    if kind in ("char", "varchar", "set", *TEXT_BYTES):
        return ""
    if kind in BINARY_TYPES:
        return b"\0" * (column.length or 0) if kind == "binary" else b""
    fraction = "." + "0" * column.fraction_digits if column.fraction_digits else ""
    zero = {
        "date": "0000-00-00", "time": "00:00:00" + fraction, "datetime": "0000-00-00 00:00:00" + fraction,
        "timestamp": "0000-00-00 00:00:00" + fraction, "inet4": "0.0.0.0", "inet6": "::",
        "uuid": "00000000-0000-0000-0000-000000000000",
    }  # fmt: skip
    if kind == "json":
        return "null"
    if kind in zero:
        return zero[kind]
    raise NotComputable(f"type {kind} has no implicit default")


def _constant(column: Column, tokens: TokenStream, context: DdlContext) -> Value:
    negative = tokens.accept_symbol("-")
    tokens.accept_symbol("+")
    token = tokens.token
    if token.kind == "string" or (token.kind == "word" and token.value.startswith("_")):
        has_charset = token.kind == "word"
        value = tokens.string()
        if has_charset and not (value.isascii() and token.value in ASCII_INTRODUCERS):
            raise NotComputable(f"DEFAULT {column.default} has a character set of its own")
        if tokens.at_end and not negative:
            return _from_string(column, value, context)
    elif token.kind == "word" and token.value in _MOMENT and tokens.ahead().kind == "string":
        tokens.next()
        value = tokens.string()
        if tokens.at_end and not negative:
            return _from_moment(column, token.value, value, context)
    elif token.kind == "number":
        tokens.next()
        if tokens.at_end:
            number = Decimal(token.value)
            return _from_number(column, number.copy_negate() if negative else number, context)
    elif token.kind == "bits":
        tokens.next()
        if tokens.at_end and not negative:
            return _from_bits(column, token.value, context)
    elif token.kind == "word" and token.value in ("TRUE", "FALSE"):
        if column.type == "json":
            raise NotComputable(f"DEFAULT {column.default} of a JSON column")
        tokens.next()
        if tokens.at_end and not negative:
            return _from_number(column, Decimal(int(token.value == "TRUE")), context)
    elif token.kind == "word" and token.value in NOW:
        tokens.next()
        argument = tokens.skip_group().strip() if tokens.is_symbol("(") else ""
        if tokens.at_end and not negative and (not argument or argument.isdecimal()):
            return time_of_statement(column, token.value, int(argument) if argument else None, context)
    raise _NotConstant(f"DEFAULT {column.default} is an expression")


def _from_string(column: Column, text: str, context: DdlContext) -> Value:
    """Return the column's value for a string literal or an expression that is a string.

    Without strict mode, MySQL also accepts letters for a number, a time or a label, and stores zero or ''.
    """
    kind, is_expression = column.type, _is_expression(column)
    is_loose = bool(context.server_version) and not context.is_mariadb and not context.is_strict
    if is_loose and kind in (_OF_LETTERS if is_expression else ("decimal",)) and _LETTERS.fullmatch(text):
        if kind not in ("enum", "set"):
            return implicit_default(column)
        if all(label.isascii() and label.casefold().strip() != text.casefold() for label in column.labels):
            return ""
    is_text = kind in ("char", "varchar", *TEXT_BYTES)
    if is_expression and is_text and not is_in(text, column.charset or "utf8mb4"):
        raise _too_large(column)
    return from_text(column, text, context)


def _from_moment(column: Column, kind: str, text: str, context: DdlContext) -> Value:
    """Return the column's value for a literal DATE'…', TIME'…' or TIMESTAMP'…' (`kind`).

    Raises NotComputable if the text has a fraction or another format than that of the servers.
    """
    is_plain = _MOMENT[kind].fullmatch(text) is not None
    if is_plain and column.type in ("decimal", "double", "float", *INTEGER_BITS):
        return _from_number(column, Decimal(re.sub(r"\D", "", text)), context)
    if is_plain and column.type == "date" and kind == "TIMESTAMP":
        text = text[:10]
    if is_plain and kind == "TIME" and column.type in ("date", "datetime", "timestamp"):
        if (now := context.now(in_utc=False)) is None:
            raise NotComputable(f"DEFAULT {column.default} depends on time zone {context.zone_text}")
        text = f"{now.date()} {text}"
    if not is_plain or column.type == "bit":
        raise NotComputable(f"DEFAULT {column.default} of a {column.type} column")
    return from_text(column, text, context)


def _from_bits(column: Column, text: str, context: DdlContext) -> Value:
    """Return the column's value for a bit or hexadecimal literal.

    The literal is a number in a numeric column, and a string in other columns. MariaDB always treats X'…' as a string.
    """
    digits = text[2:].rstrip("'")
    base = 16 if text[0] in "xX" or text.startswith("0x") else 2
    number = int(digits or "0", base)
    raw = number.to_bytes((len(digits) + 1) // 2 if base == 16 else (len(digits) + 7) // 8, "big")
    if column.type in BINARY_TYPES:
        return _binary(column, raw)
    if column.type == "bit":
        return _integer(column, number)
    is_number = column.type in _OF_NUMBERS
    if is_number and text[:2] in ("X'", "x'"):
        is_number = not is_mariadb(context, f"DEFAULT {text}")
    if is_number and len(raw) <= _BYTES_OF_A_NUMBER:
        return _from_number(column, Decimal(number), context)
    is_string = not is_number and column.type in _OF_STRINGS and column.charset not in _NOT_ASCII
    if not is_string or not raw.isascii():
        raise NotComputable(f"DEFAULT {text} for type {column.type}")
    return from_text(column, raw.decode(), context)


def _from_number(column: Column, number: Decimal, context: DdlContext) -> Value:
    kind = column.type
    if kind in INTEGER_BITS or kind == "bit":
        return _integer(column, int(_rounded(number, 0)))
    if kind == "decimal":
        rounded = _rounded(number, column.scale or 0)
        most = Decimal(10) ** ((column.length or 10) - (column.scale or 0))
        if abs(rounded) >= most or (column.unsigned and rounded < 0):
            raise _too_large(column)
        return f"{rounded:f}" if rounded else f"{rounded.copy_abs():f}"
    if kind in ("float", "double"):
        return _float(column, number)
    if kind == "year":
        return _year(column, number)
    if kind in ("enum", "set"):
        return _numbered_label(column, number, context)
    if kind in TEMPORAL_TYPES and not number:
        return implicit_default(column)
    is_float = _FLOAT.fullmatch(column.default or "") is not None
    is_whole = number == number.to_integral_value() and abs(number) < _MOST_AS_DIGITS
    if kind in ("date", "datetime", "timestamp") and not is_float and _is_refused_date(number, context):
        return implicit_default(column)
    if kind == "time" or (kind in TEMPORAL_TYPES and not is_float):
        return temporal_value(column, f"{number:f}", context)
    if is_float and (kind in TEMPORAL_TYPES or not is_whole):
        raise NotComputable(f"DEFAULT {column.default} of a {kind} column is a floating-point number")
    return from_text(column, f"{int(number)}" if is_float else f"{number:f}", context)


def _is_refused_date(number: Decimal, context: DdlContext) -> bool:
    """True if the number cannot be a date, and MySQL stored the zero date for it, because it was not strict."""
    is_loose = bool(context.server_version) and not context.is_mariadb and not context.is_strict
    return is_loose and number == number.to_integral_value() and 1 <= number <= 100


def _year(column: Column, number: Decimal) -> int:
    year = int(_rounded(number, 0))
    if year in range(1, 100):
        year += 1900 if year >= 70 else 2000
    if number and not _FIRST_YEAR <= year <= _LAST_YEAR:
        raise _too_large(column)
    return year % 100 if column.length == 2 else year


def _numbered_label(column: Column, number: Decimal, context: DdlContext) -> str:
    """Return the labels of an ENUM or SET column for a number.

    The number is an index or bits. But MySQL reads a literal without parentheses as a string.
    """
    index = int(number)
    if not _is_expression(column) and not is_mariadb(context, f"DEFAULT {column.default}"):
        if not (column.default or "").isdecimal():
            raise NotComputable(f"DEFAULT {column.default} of a {column.type} column")
        return str(from_text(column, str(index), context))
    most = len(column.labels) if column.type == "enum" else (1 << len(column.labels)) - 1
    if number != index or not 1 <= index <= most or "" in column.labels:
        raise NotComputable(f"DEFAULT {column.default} of a {column.type} column is an index")
    if column.type == "enum":
        return column.labels[index - 1]
    return ",".join(label for bit, label in enumerate(column.labels) if index >> bit & 1)


def _integer(column: Column, number: int) -> int:
    """Return the number unchanged. Raises NotComputable if it is out of the column's range."""
    bits = INTEGER_BITS.get(column.type) or column.length or 1
    is_signed = column.type != "bit" and not column.unsigned
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)
    if not low <= number <= high:
        raise _too_large(column)
    return number


def _binary(column: Column, raw: bytes) -> bytes:
    if column.type in ("binary", "varbinary") and len(raw) > (column.length or 1):
        raise _too_large(column)
    return raw.ljust(column.length or 0, b"\0") if column.type == "binary" else raw


def _too_large(column: Column) -> NotComputable:
    """Return the error for a default value that does not fit into the column.

    The servers reject such a default. But without strict mode, MySQL accepts an expression and truncates its value.
    """
    return NotComputable(f"DEFAULT {column.default} does not fit into column '{column.name}'")


def _float(column: Column, number: Decimal) -> float:
    if column.unsigned and number < 0:
        raise _too_large(column)
    if column.scale is not None:
        if number != _rounded(number, column.scale):
            raise NotComputable(f"DEFAULT {column.default} has more digits than {column.type.upper()} keeps")
        if abs(number) >= Decimal(10) ** ((column.length or 0) - column.scale):
            raise _too_large(column)
    value = float(number)
    if column.type == "double":
        return value
    try:
        narrow: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        raise NotComputable(f"DEFAULT {column.default} is not a FLOAT") from None
    return narrow


def _rounded(number: Decimal, scale: int) -> Decimal:
    return number.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _WIDE)


def from_text(column: Column, text: str, context: DdlContext) -> Value:
    """Return the value that the column has after this string is assigned to it.

    Raises NotComputable if the servers may read the string in several ways, or if it does not fit.
    """
    kind = column.type
    if kind in ("char", "varchar", *TEXT_BYTES):
        text = text.rstrip(" ") if kind == "char" else text
        if len(text.encode()) > TEXT_BYTES[kind] if kind in TEXT_BYTES else len(text) > (column.length or 1):
            raise _too_large(column)
        return text
    if kind in BINARY_TYPES:
        if not text.isascii():
            raise NotComputable(f"DEFAULT '{text}' of a {kind} column depends on the client's charset")
        return _binary(column, text.encode())
    if kind == "enum":
        return _label(column, text)
    if kind == "set":
        chosen = {_label(column, label) for label in text.split(",")} if text else set()
        return ",".join(label for label in column.labels if label in chosen)
    if kind in TEMPORAL_TYPES:
        return temporal_value(column, text, context)
    if kind == "year" and text and not text.strip("0") and len(text) != _DIGITS_OF_YEAR:
        return 0 if column.length == 2 else 2000
    if kind in INTEGER_BITS or kind in ("decimal", "float", "double", "year"):
        try:
            return _from_number(column, Decimal(text.strip()), context)
        except InvalidOperation:
            raise NotComputable(f"DEFAULT '{text}' is not a number") from None
    if kind == "uuid" and _UUID.fullmatch(text):
        return str(UUID(text))
    if kind == "inet6":
        return _ipv6(text)
    if kind == "bit" and text.isascii():
        return _integer(column, int.from_bytes(text.encode(), "big"))
    if kind == "inet4" or (kind == "json" and _PLAIN_JSON.fullmatch(text)):
        return text
    raise NotComputable(f"DEFAULT '{text}' for type {kind}")


def _ipv6(text: str) -> str:
    with suppress(ValueError):
        address = IPv6Address(text)
        shown = str(address)  # MariaDB also shortens a single zero; other addresses may end with an IPv4 address
        if address.packed[:10] != bytes(10) and ("::" in shown or "0" not in shown.split(":")):
            return shown
    raise NotComputable(f"DEFAULT '{text}' for type inet6")


def _label(column: Column, text: str) -> str:
    """Return the label that equals the text in the column's collation. Raises NotComputable if there is none, or if
    this is not known because of letters outside ASCII.
    """
    is_binary = column.charset == "binary"
    if column.type == "enum" and not is_binary and text not in column.labels:
        text = text.rstrip(" ")
    if text in column.labels:
        return text
    folds = not is_binary and not (column.collation or "").endswith(("_bin", "_cs"))
    if folds and text.isascii() and all(label.isascii() for label in column.labels):
        for label in column.labels:
            if label.casefold() == text.casefold():
                return label
    raise NotComputable(f"DEFAULT '{text}' is not a label of '{column.name}'")
