"""Defines how SQLite stores the source's values: declared types and literals.

| MySQL | declared | stored as |
|---|---|---|
| TINYINT … BIGINT, YEAR, BIT(1..63) | the integer word (never exactly INTEGER: no alias of the rowid) | integer |
| BIGINT UNSIGNED, BIT(64) | none: no affinity | integer up to 2^63-1, greater values as exact text |
| DECIMAL | TEXT | its digits, exactly |
| FLOAT, DOUBLE | REAL | 8-byte float (SQLite stores no negative zero) |
| DATE, TIME, DATETIME, TIMESTAMP (UTC), CHAR, VARCHAR, TEXT, ENUM, SET, JSON, UUID, INET | TEXT | as printed |
| BINARY, VARBINARY, BLOB, geometries, VECTOR | BLOB | bytes |

SQLite compares text byte by byte, whatever the source's collation is. So if values are unique on the source, they are
unique here, too.
"""

from __future__ import annotations

from collections.abc import Iterable

from rplctl import mysql_errors as er
from rplctl.errors import OLD_NAME, OR_EXCLUDE, TargetError
from rplctl.schema.model import BINARY_TYPES, GEOMETRY_TYPES, INTEGER_BITS, Column
from rplctl.schema.value import Value
from rplctl.sql_text import NOTHING, NULL, Sql, hex_literal, number, word, written
from rplctl.target import ddl_parts

LARGEST_INTEGER = 2**63 - 1


def affinity(column: Column) -> Sql:
    """Return the type that the column is declared with in SQLite. '' means a column without a type affinity."""
    kind = column.type
    if column.is_unsigned_64:
        return NOTHING
    if kind in INTEGER_BITS:
        return word(kind.upper())
    if kind in ("bit", "year"):
        return written("INT")
    if kind in ("float", "double"):
        return written("REAL")
    if kind in BINARY_TYPES or kind in GEOMETRY_TYPES or kind == "vector":
        return written("BLOB")
    return written("TEXT")


def stored_value(column: Column, value: Value) -> Value:
    """Return a decoded value in the form that SQLite stores. Integers above 2^63-1 become decimal text."""
    if column.is_unsigned_64 and isinstance(value, int) and value > LARGEST_INTEGER:
        return str(value)
    return value


def row_number(columns: Iterable[Column]) -> Sql:
    """Return a name for the number of a row (rowid) that no column of the table has.

    Raises TargetError 1166 if columns have all three names that SQLite permits.
    """
    taken = {column.name.lower() for column in columns}
    for name in (written("rowid"), written("_rowid_"), written("oid")):
        if name not in taken:
            return name
    raise TargetError(
        "Incorrect column name 'rowid': a SQLite table cannot have columns with all the names rowid, _rowid_ and oid",
        errno=er.WRONG_COLUMN_NAME,
        hint="to copy the table again after you have renamed one of the three columns on the source, "
        f"{OLD_NAME}{OR_EXCLUDE}",
    )


def text_literal(text: str) -> Sql:
    """Return the text as an SQL string literal. Text with a NUL character is written as hexadecimal digits."""
    if "\0" in text:
        return written("CAST({} AS TEXT)", literal(text.encode()))
    return ddl_parts.text_literal(text)


def literal(value: Value) -> Sql:
    match value:
        case None:
            return NULL
        case bytes():
            return hex_literal(value)
        case str():
            return text_literal(value)
        case float():
            return number(value)
        case _:
            return number(value)
