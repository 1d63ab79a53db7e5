"""Writes values as SQL literals. MySQL and MariaDB store them byte for byte in a session with `settings.ROWS`.

| column | value | literal |
|---|---|---|
| integers, YEAR, BIT, ENUM, SET | int | decimal digits (ENUM, SET: the number, not the label) |
| FLOAT, DOUBLE | float | shortest digits with an exponent, so that the literal is not a DECIMAL |
| DECIMAL | str | its digits |
| DATE … TIMESTAMP (UTC), UUID, INET | str | quoted |
| CHAR, VARCHAR, TEXT | bytes | hex in the column's character set; with an introducer in comparisons |
| CHAR, VARCHAR, TEXT, JSON | str | quoted, utf8mb4 |
| BINARY, BLOB, VECTOR, GEOMETRY (SRID + WKB, the server's format) | bytes | hex |
"""

from __future__ import annotations

from dataclasses import dataclass

from rplctl import mysql_errors as er
from rplctl.event.large_text import LargeText
from rplctl.schema.model import CHARACTER_TYPES, GEOMETRY_TYPES, TEMPORAL_TYPES, Column
from rplctl.sql_text import (
    NULL,
    Grammar,
    SqlBytes,
    as_bytes,
    backticked_bytes,
    double_bytes,
    hex_bytes,
    integer_bytes,
    matched,
    quoted_bytes,
    upper_hex_bytes,
    word,
    written_bytes,
)
from rplctl.target.base import Value

# errors about a value: out of range, truncated, incorrect, too long
VALUE_ERRORS = frozenset({
    er.WARN_DATA_OUT_OF_RANGE, er.WARN_DATA_TRUNCATED, er.TRUNCATED_WRONG_VALUE, er.TRUNCATED_WRONG_VALUE_FOR_FIELD,
    er.DATA_TOO_LONG,
})  # fmt: skip
LONGEST_HEX = 64 << 10  # bytes; longer values are escaped, because hex doubles the size (max_allowed_packet)

_NUMERIC = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "float", "double", "decimal", "bit", "year"})
_FLOATING = frozenset({"float", "double"})  # MySQL 9 does not regard a FLOAT(10,5) of 100000 as equal to 100000
_NUMBERED = frozenset({"enum", "set"})
_TWO_DIGITS = 2  # MariaDB's YEAR(2) distinguishes '0000' and '2000', and reads the number 0 as 2000
_MAY_BE_LARGE = GEOMETRY_TYPES | {"mediumtext", "longtext", "mediumblob", "longblob"}
_NULL = as_bytes(NULL)
_BINARY = written_bytes(b"_binary")
_PRINTED = TEMPORAL_TYPES | {"inet4", "inet6", "uuid"}


@dataclass(frozen=True, slots=True)
class StagedCell:
    """A reference to a large value in the temporary table `table`. The table has one row, with the value in the
    LONGBLOB column `v` (see `large`).
    """

    table: SqlBytes


def literal(value: Value | StagedCell, column: Column) -> SqlBytes:
    """Return the SQL literal (or subquery) with which a statement writes the value into the column."""
    match value:
        case StagedCell():
            return written_bytes(b"(SELECT v FROM %s)", value.table)
        case None:
            return _NULL
        case int() if column.type == "year" and column.length == _TWO_DIGITS:
            return written_bytes(b"'%04d'", value)
        case int():
            return integer_bytes(value)
        case float():
            return double_bytes(value)
        case bytes() | memoryview() if column.type == "json":  # MariaDB logs no charset by default
            return quoted_bytes(bytes(value))
        case bytes() | memoryview():
            raw = bytes(value)
            return hex_bytes(raw) if len(raw) <= LONGEST_HEX else quoted_bytes(raw, _BINARY)
        case str():
            return (
                as_bytes(matched(Grammar.DECIMAL, value)) if column.type == "decimal" else quoted_bytes(value.encode())
            )
        case LargeText():
            return quoted_bytes(str(value).encode())


def comparand(value: Value, column: Column) -> SqlBytes:
    """Return the value as SQL for a comparison with a column of a key. A text literal has the column's character set,
    so that the server can use an index.
    """
    if isinstance(value, bytes) and column.type in CHARACTER_TYPES and column.charset not in (None, "binary"):
        return written_bytes(b"_%s %s", as_bytes(word(str(column.charset))), hex_bytes(value))
    if column.type == "set" and isinstance(value, int) and value >> 63:
        return integer_bytes(value - (1 << 64))  # the servers compare a SET as a signed number
    return literal(value, column)


def is_equal(value: Value | StagedCell, column: Column) -> SqlBytes:
    """Return an SQL condition that is true if the column has exactly this value. It compares texts as bytes, and treats
    NULL as equal to NULL.
    """
    name = quote(column.name)
    if isinstance(value, StagedCell):  # if one operand is binary, servers compare both as bytes
        return written_bytes(b"%s=%s", name, literal(value, column))
    if value is None:
        return written_bytes(b"%s IS NULL", name)
    if column.type in _NUMBERED:
        # In MySQL, s+0 of a SET is a DOUBLE, which is the same number for different members
        return written_bytes(b"CAST(%s AS UNSIGNED)=%s", name, literal(value, column))
    if column.type in _FLOATING:
        return written_bytes(b"%s+0=%s", name, literal(value, column))
    if column.type in _NUMERIC:
        return written_bytes(b"%s=%s", name, literal(value, column))
    text = literal(value, column)
    if column.type == "json":  # MySQL prints a document with its own blanks, MariaDB as it was written
        printed = written_bytes(b"CAST(CONVERT(JSON_EXTRACT(%s,'$') USING utf8mb4) AS BINARY)", text)
        return written_bytes(b"%s IN (CAST(%s AS BINARY),%s)", _as_utf8(name), text, printed)
    if isinstance(value, str | LargeText) and column.type in CHARACTER_TYPES:
        return written_bytes(b"%s=CAST(%s AS BINARY)", _as_utf8(name), text)
    if column.type in _PRINTED or isinstance(value, str | LargeText):
        return written_bytes(b"CAST(%s AS CHAR)=%s", name, literal(value, column))
    if column.type in GEOMETRY_TYPES or column.type == "vector":
        same = written_bytes(b"HEX(%s)='%s'", name, _upper_hex(value))
    else:
        same = written_bytes(b"CAST(%s AS BINARY)=%s", name, literal(value, column))
    if column.type in _MAY_BE_LARGE and isinstance(value, bytes | memoryview):
        # CAST fails for values above max_allowed_packet
        return written_bytes(b"LENGTH(%s)=%d AND %s", name, len(value), same)
    return same


def _as_utf8(name: SqlBytes) -> SqlBytes:
    return written_bytes(b"CAST(CONVERT(%s USING utf8mb4) AS BINARY)", name)


def is_empty_enum(value: Value, column: Column) -> bool:
    """True if the value is the error value '' (number 0) of an ENUM column. Strict mode refuses this value."""
    return column.type == "enum" and value == 0


quote = backticked_bytes


def _upper_hex(value: Value) -> SqlBytes:
    assert isinstance(value, bytes | memoryview)
    return upper_hex_bytes(value)
