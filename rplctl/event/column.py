"""The format of a column's cells, and the width of these cells in a row image.

Invariant: `cell_layout` knows every column type that a server writes into a table map. An unknown type raises an error
(design D12).
(Manual: MySQL Internals, Table_map_event, "metadata"; MariaDB Knowledge Base, TABLE_MAP_EVENT, Rows_event.)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from rplctl import mysql_errors as er
from rplctl.errors import UNKNOWN_FORM, BinlogFormatError
from rplctl.event.charset import CHARSETS, charset_of, decode_text
from rplctl.event.decimal import decimal_size
from rplctl.event.table_map import COUNTED, ColumnType, TableMap, of_trait, real_type


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFormat:
    """The format in which one column's cells are stored.

    `type_code` and `metadata` are the values of the table map (`TableMap`). `charset` is MySQL's name. If it is None or
    'binary', the cells are bytes. `labels` has the members of an ENUM or SET.

    `sql_type` is MySQL's word for the type if several types have the same `type_code`. It is 'inet4', 'inet6', 'uuid'
    or 'year(2)'. For a column in MariaDB's old temporal format, it also has the fraction digits, for example 'time(3)',
    'datetime(6)' or 'timestamp(2)'.
    """

    type_code: int
    metadata: int = 0
    unsigned: bool = False
    charset: str | None = None
    labels: tuple[str, ...] | None = None
    sql_type: str = ""

    @property
    def real_type(self) -> int:
        return real_type(self.type_code, self.metadata)


_FIXED: Final = {int(kind): kind.width for kind in ColumnType if kind.width is not None}
_WITH_FRACTION: Final[dict[int, int]] = {ColumnType.TIMESTAMP2: 4, ColumnType.DATETIME2: 5, ColumnType.TIME2: 3}
_COUNTED: Final = of_trait(COUNTED)
_MOST_METADATA: Final = 0xFFFF  # a table map has at most two bytes of metadata per column
_MOST_PRECISION, _MOST_SCALE = 65, 38  # limits of DECIMAL
_VARIABLE: Final = frozenset({ColumnType.VARCHAR, ColumnType.VAR_STRING, ColumnType.VARCHAR_COMPRESSED})
# MariaDB's temporal types with mysql56_temporal_format=OFF (big-endian): bytes of a cell for 0 to 6 fraction digits
_OLD_TEMPORAL: Final[dict[int, tuple[int, ...]]] = {
    ColumnType.TIMESTAMP: (4, 5, 5, 6, 6, 7, 7),
    ColumnType.TIME: (3, 4, 4, 5, 5, 5, 6),
    ColumnType.DATETIME: (8, 6, 6, 7, 7, 7, 8),
}


def fraction_digits(column: ColumnFormat) -> int:
    """Return the number of digits after the seconds of a temporal column. Return 0 for a column of another type.

    The table map contains this number, except for MariaDB's old temporal format. For that format, the number comes from
    `column.sql_type`.
    """
    if column.type_code in _WITH_FRACTION:
        return column.metadata
    digits = re.search(r"\((\d)\)", column.sql_type) if column.type_code in _OLD_TEMPORAL else None
    return int(digits[1]) if digits else 0


def char_length(metadata: int) -> int:
    """Return the length of the longest CHAR or BINARY value in bytes.

    The high byte of `metadata` contains bits 8 and 9 of the length, inverted (see `real_type`).
    """
    return (metadata & 0xFF) | (((metadata >> 8) & 0x30) ^ 0x30) << 4


def cell_layout(column: ColumnFormat) -> tuple[int, int]:
    """Return (bytes of the length prefix, bytes of the cell) for the cells of a column.

    If the cells have a length prefix, the second number is 0. Otherwise, the first number is 0. Every definition from a
    table map or a result set is checked here, before a kernel reads the cells. Raises BinlogFormatError if no server
    writes this type or this metadata.
    """
    kind, metadata = column.real_type, column.metadata
    if not 0 <= metadata <= _MOST_METADATA:
        raise _unknown(column)
    if kind in _FIXED:
        return 0, _FIXED[kind]
    if kind in _WITH_FRACTION and metadata <= 6:
        return 0, _WITH_FRACTION[kind] + (metadata + 1) // 2
    if kind in _OLD_TEMPORAL and fraction_digits(column) <= 6:
        return 0, _OLD_TEMPORAL[kind][fraction_digits(column)]
    if kind in _COUNTED and 1 <= metadata <= 4:
        return metadata, 0
    if kind in _VARIABLE:
        return (1 if metadata < 256 else 2), 0
    if kind == ColumnType.STRING:
        return (1 if char_length(metadata) < 256 else 2), 0
    if kind in (ColumnType.ENUM, ColumnType.SET) and 1 <= metadata & 0xFF <= (2 if kind == ColumnType.ENUM else 8):
        return 0, metadata & 0xFF
    if kind == ColumnType.BIT and metadata & 0xFF <= 7 and 1 <= (metadata >> 8) * 8 + (metadata & 0xFF) <= 64:
        return 0, (metadata >> 8) + (metadata & 0xFF > 0)
    precision, scale = metadata >> 8, metadata & 0xFF
    if kind == ColumnType.NEWDECIMAL and 1 <= precision <= _MOST_PRECISION and scale <= min(precision, _MOST_SCALE):
        return 0, decimal_size(precision, scale)
    raise _unknown(column)


def _unknown(column: ColumnFormat) -> BinlogFormatError:
    return BinlogFormatError(
        f"unknown column type {column.type_code} with metadata {column.metadata:#06x} in a table map of the log",
        errno=er.SLAVE_CORRUPT_EVENT,
        hint=UNKNOWN_FORM,
    )


def column_formats(table_map: TableMap, known: Sequence[ColumnFormat] | None = None) -> list[ColumnFormat]:
    """Return one format for each column of a table map.

    The values in the table map have priority. `known` contains the formats of the table model (design D18). They supply
    the values that the source did not log: signedness, charset, labels, type words. Raises BinlogFormatError if `known`
    has another number of columns.
    """
    if known is not None and len(known) != table_map.column_count:
        name = f"{table_map.database}.{table_map.table}"
        raise BinlogFormatError(
            f"table {name} has {len(known)} columns, but its table map has {table_map.column_count}"
        )
    formats = []
    for index, (type_code, metadata) in enumerate(zip(table_map.type_codes, table_map.metadata, strict=True)):
        model = known[index] if known is not None else ColumnFormat(type_code=type_code)
        unsigned = model.unsigned if table_map.unsigned is None else table_map.unsigned[index]
        collation = 0 if table_map.charsets is None else table_map.charsets[index]
        charset = charset_of(collation) if collation else model.charset
        raw_labels = None if table_map.labels is None else table_map.labels[index]
        labels = model.labels if raw_labels is None else _logged_labels(raw_labels, charset or "utf8mb4", model.labels)
        formats.append(
            ColumnFormat(
                type_code=type_code,
                metadata=metadata,
                unsigned=unsigned,
                charset=charset,
                labels=labels,
                sql_type=model.sql_type,
            )
        )
    return formats


def _logged_labels(raw: tuple[bytes, ...], charset: str, known: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return the members of an ENUM or SET as text, or None if the bytes are not text in `charset`.

    None is not an error, because not every target needs the members. After a change of the charset, MySQL and MariaDB
    log the members in the old charset. So if the bytes are the `known` members in any other charset, the result is
    `known`.
    """
    try:
        found = tuple(decode_text(label, charset) for label in raw)
    except BinlogFormatError:
        found = None
    return known if known is not None and found != known and _is_in_some_charset(raw, known) else found


def _is_in_some_charset(raw: tuple[bytes, ...], texts: tuple[str, ...]) -> bool:
    if len(raw) != len(texts):
        return False
    for charset in CHARSETS:
        with suppress(BinlogFormatError):
            if all(decode_text(label, charset) == text for label, text in zip(raw, texts, strict=True)):
                return True
    return False
