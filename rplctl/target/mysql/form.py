"""Values for MySQL and MariaDB: text as the bytes of the column's own charset, ENUM and SET as their numbers.

They are stored byte for byte as the source has them, with no conversion either way. Text of another charset on the
target stays str.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from rplctl.event.column import ColumnFormat
from rplctl.event.table_map import ColumnType
from rplctl.schema.model import CHARACTER_TYPES, Column, TableModel
from rplctl.sql_text import double_bytes
from rplctl.target.value_form import ValueForm

_COMPRESSED: Final = frozenset({ColumnType.VARCHAR_COMPRESSED, ColumnType.BLOB_COMPRESSED})


def _own_bytes(fmt: ColumnFormat, column: Column) -> ColumnFormat:
    """ENUM and SET as numbers, text of the same charset on both sides as bytes."""
    if fmt.real_type in (ColumnType.ENUM, ColumnType.SET):
        return ColumnFormat(ColumnType.LONGLONG, unsigned=True)
    if fmt.sql_type == "year(2)":  # stored as the whole year
        return replace(fmt, sql_type="year")
    if (
        column.type not in CHARACTER_TYPES
        or fmt.sql_type in ("inet4", "inet6", "uuid")
        or fmt.charset != column.charset
    ):
        return fmt
    if fmt.real_type in _COMPRESSED or fmt.real_type != ColumnType.STRING:
        return replace(fmt, charset=None)
    return replace(fmt, type_code=ColumnType.VARCHAR, metadata=0, charset=None)  # a CHAR is not padded as BINARY is


def _loads_as_bytes(formats: Sequence[ColumnFormat], model: TableModel) -> bool:
    """LOAD DATA takes bytes as they are: text must be of the column's own charset."""
    pairs = zip(formats, model.columns, strict=False)  # the target's table may have more of them
    return all(column.type not in CHARACTER_TYPES or fmt.charset == column.charset for fmt, column in pairs)


def _text(column: Column, value: Any) -> bytes:
    match value:
        case bytes():
            return value
        case str():
            return value.encode()
        case float():
            return double_bytes(value)
    return b"%04d" % value if column.type == "year" else b"%d" % value  # the text '0' is the year 2000


FORM = ValueForm(
    _own_bytes,
    keeps_json_types=True,
    knows_defaults=True,
    describes_itself=True,
    takes_views=True,
    encodes=_loads_as_bytes,
    field_text=_text,
    takes_bytes=True,
)
