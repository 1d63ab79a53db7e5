"""The format of values for a MySQL or MariaDB target: text as bytes in the column's character set, ENUM as a number.

The target stores values byte for byte as on the source, without conversion. Text is a Python str only if the target's
column has another character set than the source's column.
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
    """Return the format in which a column is decoded for this target. ENUM and SET become numbers. Text becomes bytes
    if the columns of source and target have the same character set.
    """
    if fmt.real_type in (ColumnType.ENUM, ColumnType.SET):
        return ColumnFormat(type_code=ColumnType.LONGLONG, unsigned=True)
    if fmt.sql_type == "year(2)":  # stored with four digits
        return replace(fmt, sql_type="year")
    if (
        column.type not in CHARACTER_TYPES
        or fmt.sql_type in ("inet4", "inet6", "uuid")
        or fmt.charset != column.charset
    ):
        return fmt
    if fmt.real_type in _COMPRESSED or fmt.real_type != ColumnType.STRING:
        return replace(fmt, charset=None)
    return replace(fmt, type_code=ColumnType.VARCHAR, metadata=0, charset=None)  # CHAR must not be padded like BINARY


def _loads_as_bytes(formats: Sequence[ColumnFormat], model: TableModel) -> bool:
    """True if LOAD DATA can load these columns as bytes, because each text has the character set of its column."""
    pairs = zip(formats, model.columns, strict=False)  # the target's table may have additional columns
    return all(column.type not in CHARACTER_TYPES or fmt.charset == column.charset for fmt, column in pairs)


def _text(column: Column, value: Any) -> bytes:
    match value:
        case bytes():
            return value
        case str():
            return value.encode()
        case float():
            return double_bytes(value)
    return b"%04d" % value if column.type == "year" else b"%d" % value  # the text '0' would be the year 2000


FORM = ValueForm(
    format_for=_own_bytes,
    keeps_json_types=True,
    knows_defaults=True,
    describes_itself=True,
    takes_views=True,
    encodes=_loads_as_bytes,
    field_text=_text,
    takes_bytes=True,
)
