"""The value a column takes by itself: for existing rows at ADD COLUMN, and for columns a MINIMAL row image leaves out.

Values are those `event/values.py` decodes: int, float, str (DECIMAL, temporals, text, ENUM, SET), bytes, None.
Only constants and CURRENT_TIMESTAMP are computed; any other expression raises `NotComputable` and the caller decides.
"""

from __future__ import annotations

import re
import struct
from datetime import datetime
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

from rplctl.schema.context import DdlContext
from rplctl.schema.model import BINARY_TYPES, INTEGER_BITS, TEMPORAL_TYPES, TEXT_BYTES, Column
from rplctl.schema.token_stream import TokenStream

Value = int | float | str | bytes | None

_NOW = ("CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP", "CURRENT_DATE", "CURDATE", "CURRENT_TIME", "CURTIME")
_NOW_IN = {name: {kind} for kind in ("date", "time") for name in (f"CURRENT_{kind.upper()}", f"CUR{kind.upper()}")}
_WIDE = Context(prec=200)  # DECIMAL has up to 65 digits, Python's own context 28
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_DATETIME = re.compile(r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?)?")
_TIME = re.compile(r"(-?\d{2,3}:\d\d:\d\d)(?:\.(\d{1,6}))?")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ASCII_INTRODUCERS = frozenset({"_UTF8", "_UTF8MB3", "_UTF8MB4", "_LATIN1", "_ASCII"})


class NotComputable(Exception):
    """The value is known to the source only; the text says why."""


def default_value(column: Column, context: DdlContext) -> Value:
    """Return the value of a row that names no value for the column. Raises NotComputable."""
    if column.generated is not None:
        raise NotComputable(f"column '{column.name}' is generated from others")
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
    return _constant(column, tokens, context)


def implicit_default(column: Column) -> Value:
    """MySQL's value for a NOT NULL column without a default: zero, '' or the first label."""
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
        if has_charset and not (value.isascii() and token.value in _ASCII_INTRODUCERS):
            raise NotComputable(f"DEFAULT {column.default} has a character set of its own")
        if tokens.at_end and not negative:
            return from_text(column, value, context)
    elif token.kind == "number":
        tokens.next()
        if tokens.at_end:
            number = Decimal(token.value)
            return _from_number(column, number.copy_negate() if negative else number, context)
    elif token.kind == "bits":
        tokens.next()
        if tokens.at_end:
            if context.is_mariadb and token.value[:2] in ("X'", "x'") and column.type not in BINARY_TYPES:
                raise NotComputable(f"DEFAULT {column.default} is a string to MariaDB")
            return _from_bits(column, token.value)
    elif token.kind == "word" and token.value in ("TRUE", "FALSE"):
        return _from_number(column, Decimal(int(token.value == "TRUE")), context)
    elif token.kind == "word" and token.value in _NOW:
        tokens.next()
        argument = tokens.skip_group().strip() if tokens.is_symbol("(") else ""
        if tokens.at_end and not negative and (not argument or argument.isdecimal()):
            return _now(column, token.value, int(argument) if argument else None, context)
    raise NotComputable(f"DEFAULT {column.default} is an expression")


def _from_bits(column: Column, text: str) -> Value:
    digits = text[2:].rstrip("'")
    base = 16 if text[0] in "xX" or text.startswith("0x") else 2
    number = int(digits or "0", base)
    if column.type in INTEGER_BITS or column.type == "bit":
        return number
    length = (len(digits) + 1) // 2 if base == 16 else (len(digits) + 7) // 8
    raw = number.to_bytes(length, "big")
    if column.type in BINARY_TYPES:
        return raw.ljust(column.length or 0, b"\0") if column.type == "binary" else raw
    raise NotComputable(f"DEFAULT {text} for type {column.type}")


def _from_number(column: Column, number: Decimal, context: DdlContext) -> Value:
    kind = column.type
    if kind in INTEGER_BITS or kind == "bit":
        return int(_rounded(number, 0))
    if kind == "decimal":
        rounded = _rounded(number, column.scale or 0)
        return f"{rounded:f}" if rounded else f"{rounded.copy_abs():f}"
    if kind in ("float", "double"):
        return _float(column, number)
    if kind == "year":
        year = int(number)
        if year in range(1, 100):
            year += 1900 if year >= 70 else 2000
        return year % 100 if column.length == 2 else year
    if kind in ("enum", "set"):
        raise NotComputable(f"DEFAULT {number} of a {kind} column is an index")
    if kind in TEMPORAL_TYPES and number != 0:
        raise NotComputable(f"DEFAULT {number} of a {kind} column")
    if kind not in TEMPORAL_TYPES and "e" in (column.default or "").casefold():
        raise NotComputable(f"DEFAULT {column.default} of a {kind} column is a floating-point number")
    return implicit_default(column) if kind in TEMPORAL_TYPES else from_text(column, f"{number:f}", context)


def _float(column: Column, number: Decimal) -> float:
    if column.scale is not None and number != _rounded(number, column.scale):
        raise NotComputable(f"DEFAULT {column.default} has more digits than {column.type.upper()} keeps")
    value = float(number)
    if column.type == "double":
        return value
    try:
        narrow: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        raise NotComputable(f"DEFAULT {column.default} is no FLOAT") from None
    return narrow


def _rounded(number: Decimal, scale: int) -> Decimal:
    return number.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _WIDE)


def from_text(column: Column, text: str, context: DdlContext) -> Value:
    """The value that assigning this string gives, for spellings that leave no doubt. Raises NotComputable."""
    kind = column.type
    if kind in ("char", "varchar", *TEXT_BYTES):
        return text.rstrip(" ") if kind == "char" else text
    if kind in BINARY_TYPES:
        if not text.isascii():
            raise NotComputable(f"DEFAULT '{text}' of a {kind} column depends on the client's charset")
        raw = text.encode()
        return raw.ljust(column.length or 0, b"\0") if kind == "binary" else raw
    if kind == "enum":
        return _label(column, text)
    if kind == "set":
        chosen = {_label(column, label) for label in text.split(",")} if text else set()
        return ",".join(label for label in column.labels if label in chosen)
    if kind in TEMPORAL_TYPES:
        return _temporal(column, text, context)
    if kind == "year" and text == "0":
        return 0 if column.length == 2 else 2000
    if kind in INTEGER_BITS or kind in ("decimal", "float", "double", "year"):
        try:
            return _from_number(column, Decimal(text.strip()), context)
        except InvalidOperation:
            raise NotComputable(f"DEFAULT '{text}' is not a number") from None
    if kind == "inet4" or (kind == "uuid" and _UUID.fullmatch(text)):
        return text
    raise NotComputable(f"DEFAULT '{text}' for type {kind}")


def _label(column: Column, text: str) -> str:
    for label in column.labels:
        if label == text:
            return label
    for label in column.labels:
        if label.casefold() == text.casefold():
            return label
    raise NotComputable(f"DEFAULT '{text}' is no label of '{column.name}'")


def _fraction(column: Column, digits: str | None) -> str:
    written, wanted = digits or "", column.fraction_digits
    if written[wanted:].strip("0"):
        raise NotComputable(f"the fraction of DEFAULT has more than {wanted} digits")
    return "." + written[:wanted].ljust(wanted, "0") if wanted else ""


def _temporal(column: Column, text: str, context: DdlContext) -> str:
    if column.type == "date" and _DATE.fullmatch(text):
        return text
    if column.type == "time" and (match := _TIME.fullmatch(text)):
        return match[1] + _fraction(column, match[2])
    if column.type in ("datetime", "timestamp") and (match := _DATETIME.fullmatch(text)):
        day, clock = match[1], match[2] or "00:00:00"
        if column.type == "timestamp" and day != "0000-00-00":
            offset = context.utc_offset()
            if offset is None:
                raise NotComputable(f"DEFAULT '{text}' depends on time zone {context.zone_text}")
            moment = datetime.fromisoformat(f"{day} {clock}") - offset
            day, clock = moment.strftime("%Y-%m-%d %H:%M:%S").split()
        return f"{day} {clock}{_fraction(column, match[3])}"
    raise NotComputable(f"DEFAULT '{text}' for type {column.type}")


def _now(column: Column, function: str, digits: int | None, context: DdlContext) -> str:
    """`digits` after the second were asked for. None: MariaDB fills a column that NOW() goes into, MySQL has none."""
    moment = context.now(in_utc=column.type == "timestamp")
    if moment is None:
        raise NotComputable(f"CURRENT_TIMESTAMP depends on time zone {context.zone_text}")
    wanted, is_instant = column.fraction_digits, column.type in ("datetime", "timestamp")
    if digits is None:
        digits = wanted if context.is_mariadb and is_instant else 0
    rounds = digits > wanted and not (context.is_mariadb and is_instant)
    if column.type not in _NOW_IN.get(function, TEMPORAL_TYPES) or rounds:
        raise NotComputable(f"DEFAULT {column.default} for type {column.type}")
    forms = {"date": "%Y-%m-%d", "time": "%H:%M:%S"}
    shown = moment.strftime(forms.get(column.type, "%Y-%m-%d %H:%M:%S"))
    return shown + (f".{f'{moment.microsecond:06d}'[:digits]:0<{wanted}}"[: wanted + 1] if wanted else "")
