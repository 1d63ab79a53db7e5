"""Parse TABLE_MAP: the table of a table id, and the format of its columns in the row events that follow.

    offset  size      field           (after the 19-byte header)
    0       6         table id
    6       2         flags
    8       1+n+1     database        length n, name, NUL
    …       1+n+1     table           length n, name, NUL
    …       1-9       column count c  length-encoded
    …       c         type codes      one byte per column
    …       (1-9)+m   metadata        length m, length-encoded; then 0–4 bytes per column, by its type
    …       (c+7)/8   null bits       bit set = may be NULL
    …       rest      optional        (type, length, value)*: signedness, collations, names, labels, keys, visibility

Invariant: every tuple of a TableMap has one entry per column. None means that the source did not log the values. By
default, MariaDB logs no optional metadata, and MySQL only signedness and collations. Optional metadata of an unknown
type are skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import lru_cache
from typing import Final, Self

from rplctl.event.cursor import EventCursor, open_event
from rplctl.event.format_description import FormatDescription
from rplctl.event.header import format_error
from rplctl.event.types import EventType

NUMBER, TEXT, COUNTED = 1, 2, 4


class ColumnType(IntEnum):
    """The type codes of the binary log, with the properties of each type. 140 and 141 are MariaDB's compressed columns.

    metadata    bytes of metadata in a table map; negative: the high byte comes first
    width       bytes of a cell, if all cells have the same width
    traits      NUMBER: signed or unsigned; TEXT: has a charset, even if it is binary;
                COUNTED: the metadata is the width of the length prefix
    """

    metadata: int
    width: int | None
    traits: int

    def __new__(cls, code: int, metadata: int = 0, width: int | None = None, traits: int = 0) -> Self:
        member = int.__new__(cls, code)
        member._value_ = code
        member.metadata, member.width, member.traits = metadata, width, traits
        return member

    DECIMAL = 0
    TINY = 1, 0, 1, NUMBER
    SHORT = 2, 0, 2, NUMBER
    LONG = 3, 0, 4, NUMBER
    FLOAT = 4, 1, 4, NUMBER
    DOUBLE = 5, 1, 8, NUMBER
    NULL = 6, 0, 0
    TIMESTAMP = 7
    LONGLONG = 8, 0, 8, NUMBER
    INT24 = 9, 0, 3, NUMBER
    DATE = 10, 0, 3
    TIME = 11
    DATETIME = 12
    YEAR = 13, 0, 1, NUMBER  # always unsigned, yet MySQL and MariaDB log the signedness
    NEWDATE = 14, 0, 3
    VARCHAR = 15, 2, None, TEXT
    BIT = 16, 2
    TIMESTAMP2 = 17, 1
    DATETIME2 = 18, 1
    TIME2 = 19, 1
    TYPED_ARRAY = 20
    BLOB_COMPRESSED = 140, 1, None, TEXT | COUNTED
    VARCHAR_COMPRESSED = 141, 2, None, TEXT
    VECTOR = 242, 1, None, TEXT | COUNTED  # MySQL's is a BLOB with a charset (binary)
    JSON = 245, 1, None, COUNTED
    NEWDECIMAL = 246, -2, None, NUMBER
    ENUM = 247, -2
    SET = 248, -2
    TINY_BLOB = 249, 1, None, TEXT | COUNTED
    MEDIUM_BLOB = 250, 1, None, TEXT | COUNTED
    LONG_BLOB = 251, 1, None, TEXT | COUNTED
    BLOB = 252, 1, None, TEXT | COUNTED
    VAR_STRING = 253, -2, None, TEXT
    STRING = 254, -2, None, TEXT
    GEOMETRY = 255, 1, None, COUNTED


def of_trait(trait: int) -> frozenset[ColumnType]:
    """Return all column types with the trait."""
    return frozenset(column_type for column_type in ColumnType if column_type.traits & trait)


_METADATA: Final = {int(column_type): column_type.metadata for column_type in ColumnType}
_NUMERIC: Final = of_trait(NUMBER)
_CHARACTER: Final = of_trait(TEXT)
BINARY_COLLATION: Final = 63


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMap:
    """The table definition in one TABLE_MAP event.

    `metadata` has one number per column. Its meaning depends on the type:

        VARCHAR              the maximum length in bytes
        BIT                  bits | bytes << 8
        NEWDECIMAL           precision << 8 | scale
        STRING, ENUM, SET    real type << 8 | length byte (see `real_type`)
        BLOB, JSON           the width of the length prefix in bytes
        temporal types       the number of fraction digits
    """

    table_id: int
    flags: int
    database: str
    table: str
    type_codes: tuple[int, ...]
    metadata: tuple[int, ...]
    nullable: tuple[bool, ...]
    unsigned: tuple[bool, ...] | None = None  # False for columns that are not numbers
    charsets: tuple[int, ...] | None = None  # collation ids; 0 for columns without characters, 63 = binary
    column_names: tuple[str, ...] | None = None
    labels: tuple[tuple[bytes, ...] | None, ...] | None = None  # members of ENUM and SET, as bytes in their charset
    geometry_types: tuple[int, ...] | None = None  # 0 for other columns
    primary_key: tuple[tuple[int, int], ...] | None = None  # (column index, prefix characters or 0)
    visibility: tuple[bool, ...] | None = None
    vector_dimensions: tuple[int, ...] | None = field(default=None)

    @property
    def column_count(self) -> int:
        return len(self.type_codes)


def real_type(type_code: int, metadata: int) -> int:
    """Return the real type of a column. In `type_code`, ENUM (247), SET (248) and STRING (254) are all STRING.

    The real type is then in the high byte of the metadata. A CHAR of more than 255 bytes stores part of its length in
    bits 4 and 5 of this byte.
    """
    if type_code != ColumnType.STRING or metadata < 256:
        return type_code
    high = metadata >> 8
    return high if high & 0x30 == 0x30 else high | 0x30


@lru_cache(maxsize=128)  # each step of a transaction parses its table maps again
def parse_table_map(event: bytes, description: FormatDescription) -> TableMap:
    """Return the table map of one complete event. Raises BinlogFormatError for wrong lengths and unknown types."""
    body = open_event(event, description.checksum_length)
    if event[4] != EventType.TABLE_MAP:
        raise format_error("a TABLE_MAP event was expected", event)
    table_id = body.unsigned(4 if description.fixed_length(EventType.TABLE_MAP) == 6 else 6)
    flags = body.unsigned(2)
    database = _name(body)
    table = _name(body)
    column_count = body.packed_length()
    type_codes = tuple(body.take(column_count))
    metadata = _parse_metadata(body.sub(body.packed_length()), type_codes)
    nullable = _bits(body.take((column_count + 7) // 8), column_count, most_significant_first=False)
    table_map = TableMap(
        table_id=table_id,
        flags=flags,
        database=database,
        table=table,
        type_codes=type_codes,
        metadata=metadata,
        nullable=nullable,
    )
    readers = _OPTIONAL_MARIADB if description.is_mariadb else _OPTIONAL
    while body.remaining:
        kind = body.unsigned(1)
        value = body.sub(body.packed_length())
        reader = readers.get(kind)
        if reader is not None:
            table_map = reader(value, table_map)
    return table_map


def _name(body: EventCursor) -> str:
    name = body.take(body.unsigned(1))
    if body.unsigned(1) != 0:
        raise body.error("a name in a TABLE_MAP does not end with NUL")
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        raise body.error(f"a name in a TABLE_MAP is not UTF-8: {name.hex(' ')}") from None


def _parse_metadata(body: EventCursor, type_codes: tuple[int, ...]) -> tuple[int, ...]:
    values: list[int] = []
    for type_code in type_codes:
        size = _METADATA.get(type_code)
        if size is None:
            raise body.error(f"unknown column type {type_code}")
        if type_code == ColumnType.TYPED_ARRAY:
            raise body.error("column type TYPED_ARRAY (a multi-valued index) is not expected in a binary log")
        values.append(body.big_endian(-size) if size < 0 else body.unsigned(size))
    if body.remaining:
        raise body.error(f"{body.remaining} unexpected bytes follow the column metadata")
    return tuple(values)


def _bits(data: bytes, count: int, *, most_significant_first: bool = True) -> tuple[bool, ...]:
    if most_significant_first:
        return tuple(bool(data[i >> 3] & (0x80 >> (i & 7))) for i in range(count))
    return tuple(bool(data[i >> 3] & (1 << (i & 7))) for i in range(count))


def _columns_of(table_map: TableMap, types: frozenset[ColumnType]) -> list[int]:
    pairs = zip(table_map.type_codes, table_map.metadata, strict=True)
    return [index for index, (code, meta) in enumerate(pairs) if real_type(code, meta) in types]


def _read_signedness(body: EventCursor, table_map: TableMap) -> TableMap:
    columns = _columns_of(table_map, _NUMERIC)
    flags = _bits(body.take((len(columns) + 7) // 8), len(columns))
    unsigned = [False] * table_map.column_count
    for column, flag in zip(columns, flags, strict=True):
        unsigned[column] = flag
    return replace(table_map, unsigned=tuple(unsigned))


def _merge_charsets(table_map: TableMap, charsets: dict[int, int]) -> TableMap:
    merged = list(table_map.charsets or (0,) * table_map.column_count)
    for column, collation in charsets.items():
        merged[column] = collation
    return replace(table_map, charsets=tuple(merged))


def _default_charsets(types: frozenset[ColumnType]) -> Callable[[EventCursor, TableMap], TableMap]:
    def read(body: EventCursor, table_map: TableMap) -> TableMap:
        columns = _columns_of(table_map, types)
        charsets = dict.fromkeys(columns, body.packed_length())
        while body.remaining:
            index = body.packed_length()
            if index >= len(columns):
                raise body.error("a collation in a TABLE_MAP is for a column that does not exist")
            charsets[columns[index]] = body.packed_length()
        return _merge_charsets(table_map, charsets)

    return read


def _column_charsets(types: frozenset[ColumnType]) -> Callable[[EventCursor, TableMap], TableMap]:
    def read(body: EventCursor, table_map: TableMap) -> TableMap:
        charsets = {c: body.packed_length() for c in _columns_of(table_map, types)}
        if body.remaining:
            raise body.error("a TABLE_MAP has more collations than columns")
        return _merge_charsets(table_map, charsets)

    return read


def _read_names(body: EventCursor, table_map: TableMap) -> TableMap:
    names = tuple(body.counted().decode("utf-8", "surrogateescape") for _ in table_map.type_codes)
    return replace(table_map, column_names=names)


def _labels(column_type: ColumnType) -> Callable[[EventCursor, TableMap], TableMap]:
    def read(body: EventCursor, table_map: TableMap) -> TableMap:
        labels = list(table_map.labels or (None,) * table_map.column_count)
        for column in _columns_of(table_map, frozenset({column_type})):
            count = body.packed_length()
            if count > body.remaining:
                raise body.error(f"{count} labels cannot be in {body.remaining} bytes")
            labels[column] = tuple(body.counted() for _ in range(count))
        return replace(table_map, labels=tuple(labels))

    return read


def _per_column(body: EventCursor, table_map: TableMap, column_type: ColumnType) -> tuple[int, ...]:
    values = [0] * table_map.column_count
    for column in _columns_of(table_map, frozenset({column_type})):
        values[column] = body.packed_length()
    return tuple(values)


def _primary_key(*, with_prefix: bool) -> Callable[[EventCursor, TableMap], TableMap]:
    def read(body: EventCursor, table_map: TableMap) -> TableMap:
        parts: list[tuple[int, int]] = []
        while body.remaining:
            column = body.packed_length()
            if column >= table_map.column_count:
                raise body.error(f"primary key column {column} is not in the table")
            parts.append((column, body.packed_length() if with_prefix else 0))
        return replace(table_map, primary_key=tuple(parts))

    return read


def _read_visibility(body: EventCursor, table_map: TableMap) -> TableMap:
    count = table_map.column_count
    return replace(table_map, visibility=_bits(body.take((count + 7) // 8), count))


_LABELLED = frozenset({ColumnType.ENUM, ColumnType.SET})
_OPTIONAL: dict[int, Callable[[EventCursor, TableMap], TableMap]] = {
    1: _read_signedness,
    2: _default_charsets(_CHARACTER),
    3: _column_charsets(_CHARACTER),
    4: _read_names,
    5: _labels(ColumnType.SET),
    6: _labels(ColumnType.ENUM),
    7: lambda body, table_map: replace(table_map, geometry_types=_per_column(body, table_map, ColumnType.GEOMETRY)),
    8: _primary_key(with_prefix=False),
    9: _primary_key(with_prefix=True),
    10: _default_charsets(_LABELLED),
    11: _column_charsets(_LABELLED),
    12: _read_visibility,
    13: lambda body, table_map: replace(table_map, vector_dimensions=_per_column(body, table_map, ColumnType.VECTOR)),
}
_WITH_GEOMETRY = _CHARACTER | {ColumnType.GEOMETRY}  # MariaDB's GEOMETRY is a BLOB with a charset (binary)
_OPTIONAL_MARIADB = {**_OPTIONAL, 2: _default_charsets(_WITH_GEOMETRY), 3: _column_charsets(_WITH_GEOMETRY)}
