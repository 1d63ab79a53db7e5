"""A key's values between report, source and target: plain ones (`target.compared`), JSON, literals of the source.

Invariant: a literal finds the row whose key it is made of, and perhaps others by the column's collation; of a key for
which that is not sure nothing is looked up (`why_no_key`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rplctl.schema.model import BINARY_TYPES, CHARACTER_TYPES, GEOMETRY_TYPES, INTEGER_BITS, TEMPORAL_TYPES, Column
from rplctl.schema.source_catalog import quote
from rplctl.target.registry import value_form
from rplctl.verify.report_file import KeyValue

Plain = int | float | str | bytes | None
Key = tuple[Plain, ...]
_NUMBERS: Final = frozenset({*INTEGER_BITS, "bit", "year"})
_BYTES: Final = BINARY_TYPES | GEOMETRY_TYPES | {"vector"}
_ZERO_DATE: Final = "-infinity"  # as one kind of target has it


def why_no_key(columns: Sequence[Column]) -> str:
    """Of key columns whose values no literal of the source finds again for sure; '' when all do."""
    odd = [
        f"{column.name} is {column.type}" for column in columns if column.type in ("float", "double", *GEOMETRY_TYPES)
    ]
    return f"its key cannot be looked up exactly: {', '.join(odd)}" if odd else ""


def to_json(value: Plain) -> KeyValue:
    """As the report has it. NULL is in no key."""
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    text = str(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        return {"hex": text.encode("utf-8", "surrogateescape").hex()}
    return text


def from_json(value: KeyValue, column: Column, kind: str) -> Plain:
    """Back again, as that kind of target has it. Raises ValueError."""
    if isinstance(value, dict):
        raw = bytes.fromhex(value["hex"])
        return raw if column.type in _BYTES else raw.decode("utf-8", "surrogateescape")
    if column.type not in _NUMBERS:
        return value
    plain: Any = value_form(kind).stored([int(value)])[0]
    return plain  # type: ignore[no-any-return]


def literal(value: Plain, column: Column) -> str:
    """For a MySQL or MariaDB whose session is `result_set.columns.SESSION`."""
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if column.type in _NUMBERS or column.type == "decimal":
        return str(value)
    text = str(value)
    if text == _ZERO_DATE:
        text = "0000-00-00"
    if column.type in CHARACTER_TYPES:
        return f"_utf8mb4 x'{text.encode('utf-8', 'surrogateescape').hex()}'"
    assert column.type in TEMPORAL_TYPES or "'" not in text and "\\" not in text
    return f"'{text}'"


def where_keys(columns: Sequence[Column], keys: Sequence[Key]) -> str:
    """` WHERE …` of rows with one of the keys, for a MySQL or MariaDB; in its collations, which may find more."""
    if len(columns) == 1:
        found = ", ".join(literal(value, columns[0]) for (value,) in keys)
        return f" WHERE {quote(columns[0].name)} IN ({found})"
    terms = (
        " AND ".join(
            f"{quote(column.name)} = {literal(value, column)}" for column, value in zip(columns, key, strict=True)
        )
        for key in keys
    )
    return " WHERE " + " OR ".join(f"({term})" for term in terms)
