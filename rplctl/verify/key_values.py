"""Converts the values of a key between three forms: JSON in a report, plain values, and SQL literals for both sides.

A plain value is the form in which `target.compared` returns values. Invariant: a literal finds the row whose value it
represents. The literal may also find rows with other values that the column's collation treats as equal. For some
column types, it is not certain that a literal finds the row. A key with such a column is not used (`why_no_key`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, product
from typing import Any, Final

from rplctl.errors import RplError
from rplctl.event.charset import codes_by_character
from rplctl.schema.bounds import grammar_of
from rplctl.schema.model import BINARY_TYPES, CHARACTER_TYPES, GEOMETRY_TYPES, INTEGER_BITS, Column
from rplctl.schema.source_catalog import quote
from rplctl.sql_text import Sql, charset_literal, hex_literal, joined, matched, utf8_literal, written
from rplctl.target.registry import value_form
from rplctl.verify.report_file import KeyValue

Plain = int | float | str | bytes | None
Key = tuple[Plain, ...]
_NUMBERS: Final = frozenset({*INTEGER_BITS, "bit", "year"})
_BYTES: Final = BINARY_TYPES | GEOMETRY_TYPES | {"vector"}
_MOST_FORMS: Final = 64
_ZERO_DATE: Final = "-infinity"  # the zero date on PostgreSQL and DuckDB targets


def why_no_key(columns: Sequence[Column]) -> str:
    """Return the reason why SQL literals may fail to find rows by these key columns.

    The result is '' if SQL literals find all rows.
    """
    odd = [
        f"{column.name} is {column.type}" for column in columns if column.type in ("float", "double", *GEOMETRY_TYPES)
    ]
    return f"its key cannot be looked up exactly: {', '.join(odd)}" if odd else ""


def to_json(value: Plain) -> KeyValue:
    """Return a key's value in the form for the report (report_file.py). The value is not NULL."""
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    text = str(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        return {"hex": text.encode("utf-8", "surrogateescape").hex()}
    return text


def from_json(value: KeyValue, column: Column, kind: str) -> Plain:
    """Return a key's value from the report as a plain value for targets of `kind`.

    Raises ValueError if the column cannot have this value.
    """
    if isinstance(value, dict):
        raw = bytes.fromhex(value["hex"])
        return raw if column.type in _BYTES else raw.decode("utf-8", "surrogateescape")
    if column.type not in CHARACTER_TYPES:
        try:
            literal(value, column)
        except RplError as error:
            raise ValueError(error.message) from error
    if column.type not in _NUMBERS:
        return value
    plain: Any = value_form(kind).stored([int(value)])[0]
    return plain  # type: ignore[no-any-return]


def literal(value: Plain, column: Column) -> Sql:
    """Return the value as an SQL literal for a MySQL or MariaDB session with `result_set.columns.SESSION`.

    Raises RplError for a value that the column cannot have. The value may come from a report, which somebody may have
    edited.
    """
    if isinstance(value, bytes):
        return hex_literal(value)
    text = str(value)
    if column.type in CHARACTER_TYPES:
        return utf8_literal(text)
    found = matched(grammar_of(column), "0000-00-00" if text == _ZERO_DATE else text)
    return found if column.type in _NUMBERS or column.type == "decimal" else written("'{}'", found)


def _literals(value: Plain, column: Column) -> list[Sql]:
    """Return the literals that find all rows with this value in the column. Return [] if the column cannot have the
    value, for example the key of a row that another program has inserted on the target.

    A text may have several forms in the column's charset: cp932 has two codes for the character U+2252.
    """
    if column.type not in CHARACTER_TYPES or isinstance(value, bytes):
        try:
            return [literal(value, column)]
        except RplError:
            return []
    text, charset = str(value), column.charset or "utf8mb4"
    codes = codes_by_character(charset)
    if not codes:
        return [] if any(0xD800 <= ord(c) < 0xE000 for c in text) else [utf8_literal(text)]
    forms = product(*(codes.get(character, ()) for character in text))
    return [charset_literal(b"".join(form), charset) for form in islice(forms, _MOST_FORMS)]


def where_keys(columns: Sequence[Column], keys: Sequence[Key]) -> Sql:
    """Return the text ` WHERE …` that selects the rows with these keys, for MySQL and MariaDB.

    It may also select rows with other keys, which the column's collation treats as equal. A key that the columns cannot
    have selects no row.
    """
    names = [quote(column.name) for column in columns]
    found = [[_literals(value, column) for value, column in zip(key, columns, strict=True)] for key in keys]
    if len(columns) == 1:  # one list for all keys
        found = [[[form for key in found for form in key[0]]]]
    terms = [
        joined(
            " AND ", [written("{} IN ({})", name, joined(", ", forms)) for name, forms in zip(names, key, strict=True)]
        )
        for key in found
        if all(key)
    ]
    return written(" WHERE ({})", joined(") OR (", terms)) if terms else written(" WHERE FALSE")
