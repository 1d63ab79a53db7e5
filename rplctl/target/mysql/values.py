"""Values as MySQL and MariaDB literals that are stored byte for byte (session of rows: see `settings.ROWS`).

| column | value | literal |
|---|---|---|
| integers, YEAR, BIT, ENUM, SET | int | decimal digits (ENUM, SET: the number, which needs no label) |
| FLOAT, DOUBLE | float | shortest digits with an exponent: a double literal, never a DECIMAL one |
| DECIMAL | str | its digits |
| DATE … TIMESTAMP (UTC), UUID, INET | str | quoted |
| CHAR, VARCHAR, TEXT | bytes | hex of the column's own charset; with an introducer where it is compared |
| CHAR, VARCHAR, TEXT, JSON | str | quoted, utf8mb4 |
| BINARY, BLOB, VECTOR, GEOMETRY (SRID + WKB, the server's own form) | bytes | hex |
"""

from __future__ import annotations

from dataclasses import dataclass

from rplctl import mysql_errors as er
from rplctl.event.large_text import LargeText
from rplctl.schema.model import CHARACTER_TYPES, GEOMETRY_TYPES, TEMPORAL_TYPES, Column
from rplctl.sql_text import Grammar, matched, word
from rplctl.target.base import Value

# out of range, truncated, incorrect, too long
VALUE_ERRORS = frozenset({
    er.WARN_DATA_OUT_OF_RANGE, er.WARN_DATA_TRUNCATED, er.TRUNCATED_WRONG_VALUE, er.TRUNCATED_WRONG_VALUE_FOR_FIELD,
    er.DATA_TOO_LONG,
})  # fmt: skip
LONGEST_HEX = 64 << 10  # bytes of a value; longer ones are escaped: hex doubles them, and max_allowed_packet counts

_NUMERIC = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "float", "double", "decimal", "bit", "year"})
_FLOATING = frozenset({"float", "double"})  # MySQL 9 takes no FLOAT(10,5) for equal to the 100000 that it holds
_NUMBERED = frozenset({"enum", "set"})
_TWO_DIGITS = 2  # MariaDB's YEAR(2) keeps '0000' and '2000' apart, and takes the number 0 for 2000
_MAY_BE_LARGE = GEOMETRY_TYPES | {"mediumtext", "longtext", "mediumblob", "longblob"}
_PRINTED = TEMPORAL_TYPES | {"inet4", "inet6", "uuid", "json"}


@dataclass(frozen=True, slots=True)
class StagedCell:
    """A large value in a statement: what a table with a row and a LONGBLOB `v` holds (`large`)."""

    table: bytes


def literal(value: Value | StagedCell, column: Column) -> bytes:
    """What is written into the column."""
    match value:
        case StagedCell():
            return b"(SELECT v FROM %s)" % value.table
        case None:
            return b"NULL"
        case int() if column.type == "year" and column.length == _TWO_DIGITS:
            return b"'%04d'" % value
        case int():
            return b"%d" % value
        case float():
            return double_literal(value).encode("ascii")
        case bytes() | memoryview():
            raw = bytes(value)
            return b"X'%s'" % raw.hex().encode("ascii") if len(raw) <= LONGEST_HEX else _quoted(raw, b"_binary")
        case str():
            return matched(Grammar.DECIMAL, value).encode() if column.type == "decimal" else _text_literal(value)
        case LargeText():
            return _text_literal(str(value))


def double_literal(value: float) -> str:
    text = repr(value)
    return text if "e" in text else text + "e0"


def comparand(value: Value, column: Column) -> bytes:
    """What the column is compared with in a key: text in the column's charset, so that its index is used."""
    if isinstance(value, bytes) and column.type in CHARACTER_TYPES and column.charset not in (None, "binary"):
        return b"_%s %s" % (word(str(column.charset)).encode(), b"X'%s'" % value.hex().encode("ascii"))
    if column.type == "set" and isinstance(value, int) and value >> 63:
        return b"%d" % (value - (1 << 64))  # the servers compare a SET as a signed number
    return literal(value, column)


def is_equal(value: Value | StagedCell, column: Column) -> bytes:
    """A condition that holds for exactly this value: bytes are compared, not collations; NULL equals NULL."""
    name = quote(column.name)
    if isinstance(value, StagedCell):  # where one of two columns is binary, both are compared as bytes
        return b"%s=%s" % (name, literal(value, column))
    if value is None:
        return name + b" IS NULL"
    if column.type in _NUMBERED:
        return b"%s+0=%s" % (name, comparand(value, column))
    if column.type in _FLOATING:
        return b"%s+0=%s" % (name, literal(value, column))
    if column.type in _NUMERIC:
        return b"%s=%s" % (name, literal(value, column))
    if column.type in _PRINTED or isinstance(value, str | LargeText):
        return b"CAST(%s AS CHAR)=%s" % (name, literal(value, column))
    if column.type in GEOMETRY_TYPES or column.type == "vector":
        same = b"HEX(%s)='%s'" % (name, _raw(value).hex().upper().encode("ascii"))
    else:
        same = b"CAST(%s AS BINARY)=%s" % (name, literal(value, column))
    if column.type in _MAY_BE_LARGE and isinstance(value, bytes | memoryview):
        return b"LENGTH(%s)=%d AND %s" % (name, len(value), same)  # no CAST of what is above max_allowed_packet
    return same


def is_empty_enum(value: Value, column: Column) -> bool:
    """ENUM's error value '' (number 0), which strict mode would refuse."""
    return column.type == "enum" and value == 0


def quote(name: str) -> bytes:
    return b"`" + name.replace("`", "``").encode() + b"`"


def _raw(value: Value) -> bytes:
    assert isinstance(value, bytes | memoryview)
    return bytes(value)


def _text_literal(text: str) -> bytes:
    return _quoted(text.encode())


def _quoted(raw: bytes, introducer: bytes = b"") -> bytes:
    """Within a utf8mb4 statement without NO_BACKSLASH_ESCAPES: a byte above 0x7f never hides the quote behind it, and a
    zero byte is one like others (manual: mysql_real_escape_string).
    """
    return b"".join((introducer, b"'", raw.replace(b"\\", b"\\\\").replace(b"'", b"\\'"), b"'"))
