"""Define the expression that selects each column of a table, and the format in which its cells are read.

The session must have executed the statement `SESSION`. It sets `character_set_results=NULL` (text in its column's
charset), `time_zone='+00:00'`, and a sql_mode without PAD_CHAR_TO_FULL_LENGTH and ANSI_QUOTES. Invariant: each format
has the layout that a current server writes into a table map, even for old columns. `event.column.cell_layout` checks
this layout when a SelectedColumn is created. JSON is read as text: typed values within a document are lost, as in every
dump.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from rplctl import mysql_errors as er
from rplctl.errors import EXCLUDE, OR_EXCLUDE, BinlogFormatError, RplError
from rplctl.event.column import ColumnFormat, cell_layout
from rplctl.event.inet_uuid import ADDRESS_BYTES
from rplctl.event.table_map import ColumnType
from rplctl.schema.data_type import DECIMAL_LIMITS, fits_decimal
from rplctl.schema.model import BINARY_TYPES, BLOB_BYTES, CHARACTER_TYPES, GEOMETRY_TYPES, TEXT_BYTES, Column
from rplctl.schema.source_catalog import quote
from rplctl.sql_text import Sql, written

SESSION: Final = written(
    "SET SESSION sql_mode='', SESSION time_zone='+00:00', SESSION character_set_results=NULL, "
    "SESSION net_write_timeout=3600"
)


class CellAction(IntEnum):
    """The conversion of a cell from its form in the result set to its form in a row image."""

    KEEP = 0  # the first `size` bytes of a number; all bytes of a cell with its own length, which must be `size` if set
    TRIM = 1  # the cell without trailing zeros, which are not logged
    DECIMAL = 2
    YEAR = 3
    DATE = 4
    DATETIME = 5
    TIMESTAMP = 6
    TIME = 7
    UUID = 8
    SHORT_YEAR = 9  # YEAR(2)


@dataclass(frozen=True, slots=True)
class SelectedColumn:
    """A selected column, and the conversion of its cells.

    `size` is the number of bytes of a cell in the row image, or 0 if it varies. `format.metadata` has the fraction
    digits, or precision and scale. Raises BinlogFormatError if no table map could have this definition, or if its cells
    have another size.
    """

    expression: Sql
    format: ColumnFormat
    action: CellAction = CellAction.KEEP
    size: int = 0

    def __post_init__(self) -> None:
        prefix, width = cell_layout(self.format)
        if not prefix and width != self.size:
            raise _beyond_limits(self.expression, f"cells of {self.size} bytes, not {width}")


_NUMBERS: Final = {
    "tinyint": (ColumnType.TINY, 1),
    "smallint": (ColumnType.SHORT, 2),
    "mediumint": (ColumnType.INT24, 3),
    "int": (ColumnType.LONG, 4),
    "bigint": (ColumnType.LONGLONG, 8),
}
_MOMENTS: Final = {
    "datetime": (ColumnType.DATETIME2, CellAction.DATETIME, 5),
    "timestamp": (ColumnType.TIMESTAMP2, CellAction.TIMESTAMP, 4),
    "time": (ColumnType.TIME2, CellAction.TIME, 3),
}
_LONGEST_CHARACTER: Final = 4  # bytes per character
_LONGEST_FIXED: Final = 0x3FF  # bytes of the longest CHAR or BINARY
_MOST_ENUM_LABELS: Final = 0xFFFF


def selected_columns(columns: Sequence[Column], *, takes_numbers: bool = False) -> list[SelectedColumn]:
    """Return the expression and the format for each column.

    `takes_numbers` is true if the target reads ENUM and SET as numbers. Otherwise, a column without labels in the model
    (MySQL prints some labels with question marks) is selected as text. Raises RplError for an unknown type, and
    BinlogFormatError for a definition that no server has.
    """
    return [_selected(column, takes_numbers=takes_numbers) for column in columns]


def _selected(column: Column, *, takes_numbers: bool) -> SelectedColumn:
    name, kind = quote(column.name), column.type
    if kind in _NUMBERS:
        code, size = _NUMBERS[kind]
        return SelectedColumn(
            name, ColumnFormat(type_code=code, metadata=0, unsigned=column.unsigned, sql_type=kind), size=size
        )
    if kind in ("float", "double"):
        code, metadata = (ColumnType.FLOAT, 4) if kind == "float" else (ColumnType.DOUBLE, 8)
        return SelectedColumn(
            name,
            ColumnFormat(type_code=code, metadata=metadata, unsigned=column.unsigned, sql_type=kind),
            size=metadata,
        )
    if kind in _MOMENTS:
        code, action, size = _MOMENTS[kind]
        digits = column.fraction_digits
        word = f"{kind}({digits})"
        return SelectedColumn(
            name, ColumnFormat(type_code=code, metadata=digits, sql_type=word), action, size + (digits + 1) // 2
        )
    if kind in ("enum", "set"):
        if column.labels or takes_numbers:
            return _numbered(column, name)
        fmt = ColumnFormat(type_code=ColumnType.VARCHAR, metadata=65535, charset="utf8mb4", sql_type=kind)
        return SelectedColumn(written("CONVERT({} USING utf8mb4)", name), fmt)
    if kind in CHARACTER_TYPES or kind in BINARY_TYPES:
        return _string(column, name)
    return _other(column, name)


def _numbered(column: Column, name: Sql) -> SelectedColumn:
    count = len(column.labels) or 1 << 6  # unknown labels: the largest possible number
    if column.type == "enum":
        code, size = ColumnType.ENUM, 1 if 0 < len(column.labels) < 256 else 2
    else:
        code, size = ColumnType.SET, next((size for size in (1, 2, 3, 4, 8) if count <= 8 * size), 0)
    if size == 0 or len(column.labels) > _MOST_ENUM_LABELS:
        raise _beyond_limits(name, f"{column.type} of {len(column.labels)} members")
    fmt = ColumnFormat(
        type_code=ColumnType.STRING,
        metadata=code << 8 | size,
        charset=column.charset or "utf8mb4",
        labels=column.labels,
        sql_type=column.type,
    )
    return SelectedColumn(written("CAST({} AS UNSIGNED)", name), fmt, size=size)


def _string(column: Column, name: Sql) -> SelectedColumn:
    kind = column.type
    charset = "binary" if kind in BINARY_TYPES else column.charset or "utf8mb4"
    if kind in TEXT_BYTES or kind in BLOB_BYTES:
        width = ((TEXT_BYTES.get(kind) or BLOB_BYTES[kind]).bit_length() + 7) // 8
        return SelectedColumn(
            name, ColumnFormat(type_code=ColumnType.BLOB, metadata=width, charset=charset, sql_type=kind)
        )
    length = column.length if column.length is not None else 1
    if kind in ("char", "binary"):
        most = length * (1 if kind == "binary" else _LONGEST_CHARACTER)
        fmt = ColumnFormat(
            type_code=ColumnType.STRING, metadata=_fixed_metadata(name, most), charset=charset, sql_type=kind
        )
        return SelectedColumn(name, fmt, CellAction.TRIM if charset == "binary" else CellAction.KEEP)
    most = min(65535, length * (1 if charset == "binary" else _LONGEST_CHARACTER))
    return SelectedColumn(
        name, ColumnFormat(type_code=ColumnType.VARCHAR, metadata=most, charset=charset, sql_type=kind)
    )


def _fixed_metadata(name: Sql, most: int) -> int:
    """Return the metadata of a STRING of `most` bytes.

    The byte of the type also contains bits 8 and 9 of this length, inverted.
    """
    if not 0 <= most <= _LONGEST_FIXED:
        raise _beyond_limits(name, f"a string of {most} bytes")
    return (ColumnType.STRING ^ (most & 0x300) >> 4) << 8 | most & 0xFF


def _other(column: Column, name: Sql) -> SelectedColumn:
    kind = column.type
    if kind == "decimal":
        precision, scale = 10 if column.length is None else column.length, column.scale or 0
        if not fits_decimal(precision, scale):
            raise _beyond_limits(name, f"decimal({precision},{scale}), which has at most {DECIMAL_LIMITS}")
        fmt = ColumnFormat(
            type_code=ColumnType.NEWDECIMAL, metadata=precision << 8 | scale, unsigned=column.unsigned, sql_type=kind
        )
        return SelectedColumn(name, fmt, CellAction.DECIMAL, cell_layout(fmt)[1])
    if kind == "bit":
        bits = column.length or 1
        fmt = ColumnFormat(type_code=ColumnType.BIT, metadata=bits & 7 | (bits >> 3) << 8, sql_type=kind)
        return SelectedColumn(name, fmt, size=cell_layout(fmt)[1])
    if kind == "year":
        word, action = ("year(2)", CellAction.SHORT_YEAR) if column.length == 2 else ("year", CellAction.YEAR)
        return SelectedColumn(name, ColumnFormat(type_code=ColumnType.YEAR, unsigned=True, sql_type=word), action, 1)
    if kind == "date":
        return SelectedColumn(name, ColumnFormat(type_code=ColumnType.DATE, sql_type="date(0)"), CellAction.DATE, 3)
    if kind == "json":
        return SelectedColumn(
            name, ColumnFormat(type_code=ColumnType.BLOB, metadata=4, charset="utf8mb4", sql_type=kind)
        )
    if kind in GEOMETRY_TYPES or kind == "vector":
        code = ColumnType.VECTOR if kind == "vector" else ColumnType.GEOMETRY
        return SelectedColumn(name, ColumnFormat(type_code=code, metadata=4, sql_type=kind))
    if kind in ADDRESS_BYTES:
        size = ADDRESS_BYTES[kind]
        fmt = ColumnFormat(
            type_code=ColumnType.STRING, metadata=_fixed_metadata(name, size), charset="binary", sql_type=kind
        )
        is_uuid = kind == "uuid"
        return SelectedColumn(
            written("CAST({} AS BINARY({}))", name, size), fmt, CellAction.UUID if is_uuid else CellAction.TRIM, size
        )
    raise RplError(
        f"clone and verify do not support the type of column {name}: {kind}", errno=er.NOT_SUPPORTED_YET, hint=EXCLUDE
    )


def _beyond_limits(column: Sql, what: str) -> BinlogFormatError:
    return BinlogFormatError(
        f"the definition of column {column} exceeds the limits of MySQL and MariaDB: {what}",
        errno=er.SLAVE_CORRUPT_EVENT,
        hint="to load the table's definition from the source again, run: rplctl load-schema --from-source; rplctl start"
        f"{OR_EXCLUDE}",
    )
