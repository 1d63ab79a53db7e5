r"""Compute a checksum of a table's rows that is the same in every database.

The checksum is the SHA-256 of the neutral text of all rows in primary key order:

    NULL              \N
    integer           decimal digits, with `-` before a negative number
    decimal           text with all digits of its scale: 12.50
    temporal          text as MySQL prints it: 2026-03-01 10:00:00.250
    text, ENUM, SET   UTF-8; a backslash, \x1e or \x1f in it is preceded by a backslash
    float             the shortest decimal number that gives the same double
    binary            0x and upper-case hexadecimal digits
    fields of a row   joined by \x1f; each row ends with \x1e

SQLite targets store decimals and temporals as text (design D10), so their rows need no conversion.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Iterable, Sequence

Value = int | float | str | bytes | None

FIELD_SEPARATOR = "\x1f"
ROW_END = "\x1e"
_SPECIAL = re.compile("[\\\\\x1e\x1f]")


def neutral_text(value: Value) -> str:
    """Return the neutral text of one field."""
    if value is None:
        return r"\N"
    if isinstance(value, bytes):
        return f"0x{value.hex().upper()}"
    return _SPECIAL.sub(r"\\\g<0>", value) if isinstance(value, str) else repr(value)


def rows_checksum(rows: Iterable[Sequence[Value]]) -> tuple[int, str]:
    """Return (number of rows, checksum in hexadecimal digits). The rows must be in primary key order."""
    digest = hashlib.sha256()
    count = 0
    for row in rows:
        digest.update((FIELD_SEPARATOR.join(map(neutral_text, row)) + ROW_END).encode())
        count += 1
    return count, digest.hexdigest()


def sqlite_checksum(
    connection: sqlite3.Connection, table: str, columns: Sequence[str], primary_key: Sequence[str]
) -> tuple[int, str]:
    """Return the number of rows and the checksum of a table in a SQLite target.

    Raises sqlite3.OperationalError if the table or a column is missing.
    """
    quoted = [
        ", ".join('"' + name.replace('"', '""') + '"' for name in names) for names in (columns, [table], primary_key)
    ]
    return rows_checksum(connection.execute("SELECT {} FROM {} ORDER BY {}".format(*quoted)))
