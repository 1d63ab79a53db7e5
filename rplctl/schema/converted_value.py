"""Converts a stored value as a server does when ALTER TABLE changes the type of the column.

A target's SQL converts the rows of a table, except values for which the target has no exact rule. For those values,
this module has the rules of MariaDB 10.11 and MySQL 9.7. They apply to one value at a time, and all targets share them.
The tests compare each rule with real servers, over all pairs of types and edge values.

In strict mode, a source refuses a statement that would cut a value. So the rules are those without strict mode. A
number is clipped to the range of its type, and a text is cut to its length.
"""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from functools import cache

from rplctl.errors import BinlogFormatError
from rplctl.event.charset import decode_text, is_single_byte, is_utf8
from rplctl.schema import converted_number as numbers, converted_time as times
from rplctl.schema.context import DdlContext
from rplctl.schema.model import BINARY_TYPES, BLOB_BYTES, INTEGER_BITS, TEMPORAL_TYPES, TEXT_BYTES, Column
from rplctl.schema.value import NotComputable, Value

_TEXT = frozenset({"char", "varchar", *TEXT_BYTES})
_NUMBERS = frozenset({*INTEGER_BITS, "bit", "year", "decimal", "float", "double"})
CONVERTIBLE = _NUMBERS | _TEXT | BINARY_TYPES | TEMPORAL_TYPES | {"enum", "set", "json"}
_CODECS = {"ucs2": "utf-16-be", "gbk": "gbk", "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be"}
# characters of today's character sets that the servers' older tables lack
_LACKED = {"cp1256": frozenset("\u0679\u0688\u0691\u06a9\u06ba\u06be\u06c1\u06d2"), "greek": frozenset("\u037a€\u20af")}
_MAY_BE_INDEX = re.compile(r"\s*[+-]?\d+\s*")
_UNKNOWN = "?"  # replaces a character that the character set lacks


def converted_value(old: Column, new: Column, value: Value, context: DdlContext) -> Value:
    """Return the value that the server stored in the column `new` for a value of the column `old`.

    `value`: in the form of `event/values.py`; a TIMESTAMP is in UTC. Raises NotComputable if there is no tested rule.
    """
    if value is None:
        return None
    if not context.server_version:
        raise NotComputable("the source's version is unknown")
    if old.type not in CONVERTIBLE:
        raise NotComputable(f"{old.type} to {new.type}")
    if old.type == "char" and context.pads_char and new.type not in _TEXT | BINARY_TYPES:
        raise NotComputable("a padded CHAR")
    if old.type == "timestamp":
        value = _in_zone(str(value), old, context, to_utc=False)
    found = _by_type(old, new, value, context)
    return _in_zone(str(found), new, context, to_utc=True) if new.type == "timestamp" else found


def _by_type(old: Column, new: Column, value: Value, context: DdlContext) -> Value:
    """Return the value for the column `new`. A TIMESTAMP is in the session's time zone, both in `value` and in the
    result.
    """
    match new.type:
        case kind if kind in INTEGER_BITS:
            return numbers.clipped_integer(new, _integer(old, value, context))
        case "bit":
            return _bit(old, new, value, context)
        case "year":
            return _year(old, new, value, context)
        case "decimal":
            return numbers.clipped_decimal(new, _decimal(old, value))
        case "float" | "double":
            return _fit_float(old, new, value)
        case kind if kind in _TEXT:
            return _fit_text(old, new, value, context)
        case kind if kind in BINARY_TYPES:
            return _fit_bytes(old, new, value, context)
        case "enum":
            return _enum(old, new, value, context)
        case "set":
            return _set(old, new, value, context)
        case kind if kind in TEMPORAL_TYPES:
            return _temporal(old, new, value, context)
    raise NotComputable(f"{old.type} to {new.type}")


def _in_zone(text: str, column: Column, context: DdlContext, *, to_utc: bool) -> str:
    if text.startswith("0000"):
        return text
    offset = context.utc_offset()
    if offset is None:
        raise NotComputable(f"a TIMESTAMP depends on time zone {context.zone_text}")
    try:
        moved = times.moment_of(text) + (-offset if to_utc else offset)
    except OverflowError:
        raise NotComputable(f"'{text}' is after the year 9999") from None
    whole = str(moved.replace(microsecond=0))
    first, last = context.timestamp_range
    if to_utc and (first[:17] in whole or last[:17] in whole):
        raise NotComputable(f"'{text}' is at the end of the range of TIMESTAMP")
    if to_utc and not first <= whole <= last:
        if moved.microsecond:
            raise NotComputable(f"'{text}' is out of the range of TIMESTAMP")
        return times.zero_of(column)
    digits = column.fraction_digits
    return whole + (f".{moved.microsecond:06}"[: digits + 1] if digits else "")


# numbers


def _integer(old: Column, value: Value, context: DdlContext) -> int:
    kind = old.type
    if kind in INTEGER_BITS or kind in ("bit", "year"):
        return int(value or 0)
    if kind in ("enum", "set"):
        return _index(old, str(value))
    if kind in ("float", "double"):
        if abs(float(value or 0)) >= 2**63:
            raise NotComputable(f"{value!r} is not a BIGINT")
        return round(float(value or 0))
    if kind == "decimal":
        whole = int(numbers.rounded(Decimal(str(value))))
        if whole >= 2**63:
            raise NotComputable(f"{value!r} is not a signed BIGINT")
        return whole
    if kind in TEMPORAL_TYPES:
        return int(_whole_time(old, str(value), context))
    text = _digits(old, value)
    if not context.is_mariadb and abs(numbers.leading_number(text)) >= 10**30:
        raise NotComputable("a very long number")
    return numbers.leading_integer(text) if context.is_mariadb else int(numbers.rounded(numbers.leading_number(text)))


def _bit(old: Column, new: Column, value: Value, context: DdlContext) -> int:
    """Return the value for a BIT column. A number out of the column's range sets all bits."""
    number = _integer(old, value, context)
    if old.type not in INTEGER_BITS | {"bit": 1, "year": 1}:
        is_text = old.type in _TEXT | BINARY_TYPES | {"json"}
        same = numbers.leading_integer(_digits(old, value)) == number if is_text else number < 1 << (new.length or 1)
        if not same or number < 0 or number >= 2**63:
            raise NotComputable(f"{value!r} as bits")
    if number < 0 and new.length == 64:
        raise NotComputable(f"{value!r} as bits")
    return numbers.clipped_integer(new, number)


def _index(column: Column, value: str) -> int:
    """Return the number of the label in an ENUM, from 1, or the bits of the labels in a SET."""
    chosen = value.split(",") if value and column.type == "set" else [value] if value else []
    if not set(chosen) <= set(column.labels):  # a '?' in the stored label, for a character that the charset lacks
        raise NotComputable(f"'{value}' as a number")
    if column.type == "enum":
        return column.labels.index(value) + 1 if value in column.labels else 0
    return sum(1 << column.labels.index(label) for label in chosen)


def _whole_time(old: Column, text: str, context: DdlContext) -> Decimal:
    """Return a date or time as a number without a fraction. MariaDB cuts the fraction and MySQL rounds it, in any
    sql_mode.
    """
    if not context.is_mariadb and "." in text and text.rpartition(".")[2].strip("0"):
        rounding = replace(context, sql_mode=0)  # TIME_TRUNCATE_FRACTIONAL does not apply to numbers
        if old.type == "time":
            text = times.time_text(times.microseconds_of(text), 0, rounding)
        else:
            whole = Column(name="", type="datetime", length=0)
            text = times.moment_text(times.moment_of(text), whole, rounding)
    return times.number_of(text.partition(".")[0], old.type)


def _digits(old: Column, value: Value) -> str:
    """Return a text or binary value as text, from which the caller reads the number at its beginning."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return str(value)


def _year(old: Column, new: Column, value: Value, context: DdlContext) -> int:
    if old.type in _TEXT | BINARY_TYPES | {"json"}:
        text = _digits(old, value)
        if old.charset in _CODECS and old.charset != "gbk":
            raise NotComputable("a wide character set as a year")
        number = int(numbers.rounded(numbers.leading_number(text)))
        if not number and text[:1].isdigit():
            if len(text) == 4 or not text.startswith("0"):
                raise NotComputable(f"'{text}' as a year")
            return 2000
        return numbers.year_of(new, number)
    if old.type in ("float", "double"):
        number = int(float(value or 0)) if context.is_mariadb else round(float(value or 0))
        return numbers.year_of(new, number)
    if old.type in ("date", "datetime", "timestamp") and context.is_mariadb:
        return numbers.year_of(new, int(str(value)[:4]))
    return numbers.year_of(new, _integer(old, value, context))


def _decimal(old: Column, value: Value) -> Decimal:
    kind = old.type
    if kind in INTEGER_BITS or kind in ("bit", "year", "decimal"):
        return Decimal(str(value))
    if kind in ("float", "double"):
        return Decimal(repr(float(value or 0)))
    if kind in ("enum", "set"):
        return Decimal(_index(old, str(value)))
    if kind in TEMPORAL_TYPES:
        return times.number_of(str(value), kind)
    return numbers.leading_number(_digits(old, value))


def _float(old: Column, value: Value) -> float:
    if old.type == "bit" and int(value or 0) >= 2**63:
        raise NotComputable("a BIT(64) as a floating-point number")
    return float(value or 0) if old.type in ("float", "double") else float(_decimal(old, value))


def _fit_float(old: Column, new: Column, value: Value) -> float:
    number = numbers.clipped_float(new, _float(old, value))
    if old.type == new.type and number != value and new.scale is not None:
        raise NotComputable(f"{value!r} to (M,D)")  # MyISAM changes only the definition, but InnoDB converts the rows
    return number


# texts


def printed(old: Column, value: Value) -> str:
    """Return the value of the column `old` as text, as the source prints it."""
    kind = old.type
    if kind in ("float", "double"):
        if old.zerofill:
            raise NotComputable("a floating-point number with ZEROFILL")
        return numbers.float_text(old, float(value or 0))
    if kind == "year":
        return f"{int(value or 0):04}"
    if kind in INTEGER_BITS and old.zerofill:
        return str(value).rjust(old.length or 0, "0")
    if kind == "decimal" and old.zerofill:
        return str(value).rjust((old.length or 10) + bool(old.scale), "0")
    return str(value)


def _fit_text(old: Column, new: Column, value: Value, context: DdlContext) -> str:
    charset = new.charset or ""
    if old.type == "bit" and new.type in TEXT_BYTES:
        raise NotComputable("bits as text")
    if isinstance(value, bytes):
        try:
            text = decode_text(value, charset)
        except BinlogFormatError:
            raise NotComputable(f"bytes that are not {charset} text") from None
        if charset in ("utf8mb3", "ascii") and not is_in(text, charset):
            raise NotComputable(f"bytes that are not {charset} text")
    else:
        text = printed(old, value)
        if old.type == "char" and context.pads_char:
            text = text.ljust(old.length or 1)
        text = "".join(c if _has(charset, c) else _UNKNOWN for c in text)
    if new.type in TEXT_BYTES:
        limit = TEXT_BYTES[new.type]
        if len(text) * 4 > limit and len(encoded(text, charset)) > limit:
            raise NotComputable(f"text of more than {limit} bytes")
        return text
    text = text[: new.length or 1]
    return text.rstrip(" ") if new.type == "char" else text


def is_in(text: str, charset: str) -> bool:
    """True if the character set has all characters of the text. Raises NotComputable if this is not known."""
    return all(_has(charset, character) for character in text)


def _has(charset: str, character: str) -> bool:
    """True if the character set has the character. Raises NotComputable if this is not known."""
    if charset == "utf8mb4" or (character.isascii() and charset != "swe7"):
        return True
    if charset in ("utf8mb3", "ucs2"):
        return ord(character) < 0x10000
    if charset == "ascii":
        return False
    if is_single_byte(charset):
        return character in _characters(charset) - _LACKED.get(charset, frozenset())
    try:
        encoded(character, charset)
    except NotComputable:
        if charset in _CODECS:  # tests compare these codecs with real servers
            return False
        raise
    return True


def stored_labels(column: Column) -> Column:
    """Return the ENUM or SET column with its labels as MariaDB 10.11 and MySQL 9.7 store them: `?` replaces each
    character that the column's character set lacks. If rplctl does not know its characters, the labels are unchanged.
    """
    charset = column.charset
    if charset is None or charset == "binary" or all(label.isascii() for label in column.labels):
        return column
    try:
        labels = tuple("".join(c if _has(charset, c) else _UNKNOWN for c in label) for label in column.labels)
    except NotComputable:
        return column
    return replace(column, labels=labels)


@cache
def _characters(charset: str) -> frozenset[str]:
    """Return all characters of a character set that has one byte per character."""
    found = set()
    for code in range(256):
        try:
            found.add(decode_text(bytes((code,)), charset))
        except BinlogFormatError:
            continue
    return frozenset(found)


def encoded(text: str, charset: str) -> bytes:
    """Return the bytes of the text in this character set. Raises NotComputable if rplctl cannot determine them."""
    if is_utf8(charset) or charset == "binary":
        return text.encode()
    if charset not in _CODECS and is_single_byte(charset):
        by_character = {decode_text(bytes((c,)), charset): c for c in reversed(range(256)) if _is_code(c, charset)}
        if any(c not in by_character for c in text):
            raise NotComputable(f"text that is not {charset}")
        return bytes(by_character[c] for c in text)
    try:
        raw = text.encode(_CODECS[charset])
        if decode_text(raw, charset) == text:
            return raw
    except (KeyError, UnicodeEncodeError, BinlogFormatError):
        pass
    raise NotComputable(f"text in character set {charset}")


def _is_code(code: int, charset: str) -> bool:
    try:
        decode_text(bytes((code,)), charset)
    except BinlogFormatError:
        return False
    return True


def _bytes(old: Column, value: Value, context: DdlContext) -> bytes:
    if isinstance(value, bytes):
        return value
    text = printed(old, value)
    if old.type in _TEXT or old.type in ("enum", "set"):
        if old.type == "char" and context.pads_char:
            text = text.ljust(old.length or 1)
        return encoded(text, old.charset or "")
    return text.encode()


def _fit_bytes(old: Column, new: Column, value: Value, context: DdlContext) -> bytes:
    if old.type == "bit" and new.type in BLOB_BYTES:
        return int(value or 0).to_bytes(((old.length or 1) + 7) // 8, "big")
    raw = _bytes(old, value, context)
    limit = new.length or 1 if new.type in ("binary", "varbinary") else BLOB_BYTES[new.type]
    if new.type in BLOB_BYTES and len(raw) > limit:
        raise NotComputable(f"more than {limit} bytes")
    return raw[:limit].ljust(limit if new.type == "binary" else 0, b"\0")


# labels


def _label(new: Column, text: str) -> str | None:
    """Return the label of the ENUM or SET that equals the text in the column's collation, or None if there is no such
    label.

    Raises NotComputable if this cannot be decided because of characters outside ASCII.
    """
    text = text.rstrip(" ")
    if text in new.labels:
        return text
    collation = new.collation or ""
    if not text.isascii() or not all(label.isascii() for label in new.labels):
        raise NotComputable(f"'{text}' as a label")
    if collation.endswith(("_bin", "_cs")) or new.charset == "binary":
        return None
    return next((label for label in new.labels if label.casefold() == text.casefold()), None)


def _enum(old: Column, new: Column, value: Value, context: DdlContext) -> str:
    if old.type in _NUMBERS:
        number = _number_of_labels(old, value, context)
        return new.labels[number - 1] if 1 <= number <= len(new.labels) else ""
    if isinstance(value, bytes):
        raise NotComputable("bytes as a label")
    text = printed(old, value)
    if text == "" and "" not in new.labels:
        return ""
    if old.charset in _CODECS and old.charset != "gbk":
        raise NotComputable("a wide character set as a label")
    if (label := _label(new, text)) is not None:
        return label
    if old.type in TEMPORAL_TYPES:
        return ""
    if text.isdecimal() and text.isascii():
        number = int(text)
        return new.labels[number - 1] if 1 <= number <= len(new.labels) else ""
    if _MAY_BE_INDEX.fullmatch(text):
        raise NotComputable(f"'{text}' as a label")
    return ""


def _number_of_labels(old: Column, value: Value, context: DdlContext) -> int:
    if not context.is_mariadb and (old.type not in (*INTEGER_BITS, "bit", "year") or old.zerofill):
        raise NotComputable(f"{old.type} as labels")
    return _integer(old, value, context)


def _set(old: Column, new: Column, value: Value, context: DdlContext) -> str:
    most = (1 << len(new.labels)) - 1
    if old.type in _NUMBERS:
        bits = _number_of_labels(old, value, context)
        if "" in new.labels or (old.type == "bit" and bits > most):
            raise NotComputable(f"{value!r} as labels")
        if bits < 0 or bits > most:
            bits = bits & most if context.is_mariadb else 0
        return _chosen(new, bits)
    if isinstance(value, bytes):
        raise NotComputable("bytes as labels")
    text = printed(old, value)
    if text == "":
        return ""
    if old.charset in _CODECS and old.charset != "gbk":
        raise NotComputable("a wide character set as labels")
    found = {_label(new, part) for part in text.split(",")}
    if found == {None} and _MAY_BE_INDEX.fullmatch(text):
        raise NotComputable(f"'{text}' as labels")
    return ",".join(label for label in new.labels if label in found)


def _chosen(new: Column, bits: int) -> str:
    return ",".join(label for i, label in enumerate(new.labels) if bits >> i & 1)


# dates and times


def _temporal(old: Column, new: Column, value: Value, context: DdlContext) -> str:
    if old.type in TEMPORAL_TYPES:
        return _of_time(old, new, str(value), context)
    if old.type in _NUMBERS and old.type not in ("bit", "year", "float", "double") and not old.zerofill:
        number = _decimal(old, value)
        if not number:
            return times.zero_of(new)
        if new.type == "time":
            return times.time_text(times.microseconds_of_number(number), new.fraction_digits, context)
        return times.moment_text(times.moment_of_number(number), new, context)
    if old.type in _TEXT:
        text = str(value)
        if not any(c.isdigit() for c in text):
            return times.zero_of(new)
        if new.type == "time":
            return times.time_text(times.microseconds_of(text), new.fraction_digits, context)
        return times.moment_text(times.moment_of(text), new, context)
    raise NotComputable(f"{old.type} to {new.type}")


def _of_time(old: Column, new: Column, text: str, context: DdlContext) -> str:
    digits = new.fraction_digits
    if new.type == "date" and context.is_mariadb and times.rounds(context) and text.rpartition(".")[2].strip("0"):
        raise NotComputable("a fraction of a second that is rounded")
    if old.type == "time":
        microseconds = times.microseconds_of(text)
        if new.type == "time":
            return times.time_text(microseconds, digits, context)
        return times.moment_text(times.time_on(times.today(context), microseconds), new, context)
    if new.type == "time":
        if old.type == "date":
            return times.zero_of(new)
        clock = times.microseconds_of(text[11:])
        return times.time_text(clock, digits, context)
    if text.startswith("0000-00-00"):
        return times.zero_of(new)
    return times.moment_text(times.moment_of(text), new, context)
