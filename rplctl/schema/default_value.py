"""Computes default values, for existing rows at ADD COLUMN, and for columns that a MINIMAL row image omits.

Values have the types of `event/values.py`: int, float, str (DECIMAL, temporals, text, ENUM, SET), bytes, None. Only
constants and CURRENT_TIMESTAMP are computed. Any other expression raises `NotComputable`, and the caller decides.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from contextlib import suppress
from datetime import date as date_of, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from ipaddress import IPv6Address
from uuid import UUID

from rplctl.schema.context import TIME_ROUND_FRACTIONAL, TIME_TRUNCATE_FRACTIONAL, DdlContext
from rplctl.schema.model import BINARY_TYPES, INTEGER_BITS, TEMPORAL_TYPES, TEXT_BYTES, Column
from rplctl.schema.token_stream import TokenStream

Value = int | float | str | bytes | None

_NOW = ("CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP", "CURRENT_DATE", "CURDATE", "CURRENT_TIME", "CURTIME")
_NOW_IN = {name: {kind} for kind in ("date", "time") for name in (f"CURRENT_{kind.upper()}", f"CUR{kind.upper()}")}
_MOMENT = {
    "DATE": re.compile(r"\d{4}-\d\d-\d\d", re.ASCII),
    "TIME": re.compile(r"\d\d:\d\d:\d\d", re.ASCII),
    "TIMESTAMP": re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", re.ASCII),
}
_WIDE = Context(prec=200)  # DECIMAL has up to 65 digits, but Python's default context has only 28
_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})|(\d{4})(\d\d)(\d\d)", re.ASCII)
_DATETIME = re.compile(
    r"(?:(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6}))?)?)?"
    r"|(\d{4})(\d\d)(\d\d)(?:(\d\d)(\d\d)(\d\d))?)",
    re.ASCII,
)
_TIME = re.compile(r"(-?)(?:(\d{1,3}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6}))?)?|(\d\d)(\d\d)(\d\d))", re.ASCII)
_ZERO_DATE = "0000-00-00"
_MOST_AS_DIGITS = 10**14  # smaller floating-point numbers are printed without an exponent
_LAST_SECOND = (838 * 60 + 59) * 60 + 59  # the largest TIME, in seconds
_UUID = re.compile(r"[0-9a-f]{8}(-?)[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{12}", re.IGNORECASE)
_OF_NUMBERS = (*INTEGER_BITS, "decimal", "float", "double")
_OF_STRINGS = (*_OF_NUMBERS, "char", "varchar", "enum", *TEXT_BYTES)
_NOT_ASCII = frozenset({"ucs2", "utf16", "utf16le", "utf32", "swe7"})  # charsets that are not compatible with ASCII
_BYTES_OF_A_NUMBER = 8
_PLAIN_JSON = ("[]", "{}")  # MySQL reformats other documents
ASCII_INTRODUCERS = frozenset({"_UTF8", "_UTF8MB3", "_UTF8MB4", "_LATIN1", "_ASCII"})


class NotComputable(Exception):
    """The error for a value that only the source knows. The text gives the reason."""


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
    return _constant(column, tokens, context)


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
            return from_text(column, value, context)
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
        return _from_number(column, Decimal(int(token.value == "TRUE")), context)
    elif token.kind == "word" and token.value in _NOW:
        tokens.next()
        argument = tokens.skip_group().strip() if tokens.is_symbol("(") else ""
        if tokens.at_end and not negative and (not argument or argument.isdecimal()):
            return _now(column, token.value, int(argument) if argument else None, context)
    raise NotComputable(f"DEFAULT {column.default} is an expression")


def _from_moment(column: Column, kind: str, text: str, context: DdlContext) -> Value:
    """Return the column's value for a literal DATE'…', TIME'…' or TIMESTAMP'…' (`kind`).

    Raises NotComputable if the text has a fraction or another format than that of the servers.
    """
    is_plain = _MOMENT[kind].fullmatch(text) is not None
    if is_plain and column.type in ("decimal", "double", *INTEGER_BITS):
        return _from_number(column, Decimal(re.sub(r"\D", "", text)), context)
    if is_plain and column.type == "date" and kind == "TIMESTAMP":
        text = text[:10]
    if not is_plain or (kind == "TIME" and column.type in ("date", "datetime", "timestamp")):
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
        is_number = not _is_mariadb(context, f"DEFAULT {text}")
    if is_number and len(raw) <= _BYTES_OF_A_NUMBER:
        return _from_number(column, Decimal(number), context)
    is_string = not is_number and column.type in _OF_STRINGS and column.charset not in _NOT_ASCII
    if not is_string or not raw.isascii():
        raise NotComputable(f"DEFAULT {text} for type {column.type}")
    return from_text(column, raw.decode(), context)


def _is_mariadb(context: DdlContext, what: str) -> bool:
    """True if the server of the context is MariaDB, False if it is MySQL.

    Raises NotComputable if the server is unknown. `what`: the words for an expression that MariaDB and MySQL compute
    differently, for the error's text.
    """
    if not context.server_version:
        raise NotComputable(f"{what} has another value in MariaDB than in MySQL")
    return context.is_mariadb


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
        if number != (year := int(number)):
            raise NotComputable(f"DEFAULT {column.default} of a year is rounded or truncated")
        if year in range(1, 100):
            year += 1900 if year >= 70 else 2000
        return year % 100 if column.length == 2 else year
    if kind in ("enum", "set"):
        raise NotComputable(f"DEFAULT {number} of a {kind} column is an index")
    if kind in TEMPORAL_TYPES and not number:
        return implicit_default(column)
    is_float = "e" in (column.default or "").casefold()
    if kind in TEMPORAL_TYPES and not is_float:
        return _temporal(column, f"{number:f}", context)
    if is_float:
        if kind in TEMPORAL_TYPES or number != number.to_integral_value() or abs(number) >= _MOST_AS_DIGITS:
            raise NotComputable(f"DEFAULT {column.default} of a {kind} column is a floating-point number")
        return from_text(column, f"{int(number)}", context)
    return from_text(column, f"{number:f}", context)


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
    if column.scale is not None and number != _rounded(number, column.scale):
        raise NotComputable(f"DEFAULT {column.default} has more digits than {column.type.upper()} keeps")
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
        return _temporal(column, text, context)
    if kind == "year" and text == "0":
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
    if kind == "inet4" or (kind == "json" and text in _PLAIN_JSON):
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
    for label in column.labels:
        if label == text:
            return label
    for label in column.labels:
        if label.casefold() == text.casefold():
            return label
    raise NotComputable(f"DEFAULT '{text}' is not a label of '{column.name}'")


def _temporal(column: Column, text: str, context: DdlContext) -> str:
    """Return the date or time in this text in the format of the column. The text is parsed as the servers do.

    A month or an hour may have one digit, and the digits may have no separators. Raises NotComputable for other texts.
    """
    if column.type == "date" and (match := _DATE.fullmatch(text)):
        return _date(column, text, [part for part in match.groups() if part is not None])
    if column.type == "time" and (match := _TIME.fullmatch(text)):
        return _time(column, text, match, context)
    if column.type in ("datetime", "timestamp") and (match := _DATETIME.fullmatch(text)):
        year, month, day, *clock = match.groups()[:6] if match[1] else match.groups()[7:]
        date, wanted = _date(column, text, [year, month, day]), column.fraction_digits
        hour, minute, second = (int(part or 0) for part in clock)
        shown = f"{date} {hour:02}:{minute:02}:{second:02}"
        try:
            moment = datetime.fromisoformat(shown)
        except ValueError:  # the zero date, or a date that only sql_mode allows
            is_refused = column.type == "timestamp" and shown != f"{_ZERO_DATE} 00:00:00"
            if is_refused or int(match[7] or 0) or hour > 23 or minute > 59 or second > 59:
                raise NotComputable(f"DEFAULT '{text}' for type {column.type}") from None
            return shown + _digits(0, wanted)
        offset = context.utc_offset() if column.type == "timestamp" else timedelta()
        if offset is None:
            raise NotComputable(f"DEFAULT '{text}' depends on time zone {context.zone_text}")
        try:
            moment += timedelta(microseconds=_microseconds(column, match[7], context)) - offset
        except OverflowError:
            raise NotComputable(f"DEFAULT '{text}' is later than the latest {column.type.upper()}") from None
        return f"{moment.replace(microsecond=0)}{_digits(moment.microsecond, wanted)}"
    raise NotComputable(f"DEFAULT '{text}' for type {column.type}")


def _date(column: Column, text: str, parts: Sequence[str]) -> str:
    year, month, day = map(int, parts)
    date = f"{year:04}-{month:02}-{day:02}"
    if text != date and not text.startswith((f"{date} ", f"{date}T")):  # a complete date is kept, even an invalid one
        with suppress(ValueError):
            return str(date_of(year, month, day))
        raise NotComputable(f"DEFAULT '{text}' of a {column.type} column is not a date")
    return date


def _time(column: Column, text: str, match: re.Match[str], context: DdlContext) -> str:
    hour, minute, second = (int(part or 0) for part in (match.groups()[1:4] if match[2] else match.groups()[5:8]))
    more, microseconds = divmod(_microseconds(column, match[5], context), 1_000_000)
    seconds = (hour * 60 + minute) * 60 + second + more
    if minute > 59 or second > 59 or seconds > _LAST_SECOND:
        raise NotComputable(f"DEFAULT '{text}' is not a time")
    sign = match[1] if seconds or microseconds else ""
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{sign}{clock}{_digits(microseconds, column.fraction_digits)}"


def _microseconds(column: Column, digits: str | None, context: DdlContext) -> int:
    """Return the fraction of a second in microseconds, as the column stores it. `digits`: the digits of the fraction.

    Surplus digits are truncated or rounded half up, depending on the server and its sql_mode.
    """
    written, wanted = digits or "", column.fraction_digits
    kept = int(written[:wanted].ljust(wanted, "0") or "0")
    if written[wanted:].strip("0"):
        is_mariadb = _is_mariadb(context, f"the fraction of DEFAULT '{column.default}'")
        rounds = (
            context.sql_mode & TIME_ROUND_FRACTIONAL
            if is_mariadb
            else (not context.sql_mode & TIME_TRUNCATE_FRACTIONAL)
        )
        kept += bool(rounds and written[wanted] >= "5")
    return int(kept * 10 ** (6 - wanted))


def _digits(microseconds: int, wanted: int) -> str:
    return f".{microseconds:06}"[: wanted + 1] if wanted else ""


def _now(column: Column, function: str, digits: int | None, context: DdlContext) -> str:
    """Return the time of the statement as the value of a column, for a function such as NOW(6).

    `digits`: the fraction digits that the function names, or None. In the case of None, MariaDB fills all fraction
    digits of the column, and MySQL fills none. Raises NotComputable if the time zone is unknown or if the value must be
    rounded.
    """
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
