from __future__ import annotations

import pytest

from rplctl.errors import BinlogFormatError
from rplctl.event.format_description import FormatDescription
from rplctl.event.table_map import BINARY_COLLATION, ColumnType, TableMap, parse_table_map, real_type
from rplctl.event.types import EventType
from tests.event.logs import described, event, log

MYSQL = FormatDescription(
    binlog_version=4, server_version="9.7.4", created=0, header_lengths=(), checksum_algorithm=1, is_mariadb=False
)


def table_maps(case: str) -> list[TableMap]:
    return [parse_table_map(e, description) for e, description in described(log(case)) if e[4] == EventType.TABLE_MAP]


def built(types: bytes, metadata: bytes, optional: bytes = b"", name: bytes = b"\x01t\0") -> bytes:
    head = b"\x05\0\0\0\0\0\1\0" + b"\x01d\0" + name + bytes([len(types)]) + types
    nullable = bytes((len(types) + 7) // 8)
    return event(EventType.TABLE_MAP, head + bytes([len(metadata)]) + metadata + nullable + optional)


def test_full_metadata_of_mariadb_fits_the_table_it_came_from() -> None:
    """(id INT UNSIGNED PRIMARY KEY, y YEAR, b BIGINT UNSIGNED, s SMALLINT, f FLOAT UNSIGNED, d DECIMAL(10,2) UNSIGNED,
    bt BIT(9), c VARCHAR(20) latin1, x BLOB, e ENUM latin1, st SET utf8mb4, g POINT, ts TIMESTAMP(3),
    vc VARCHAR COMPRESSED, bc BLOB COMPRESSED, u UUID, i6 INET6, j JSON, hid INT INVISIBLE)"""
    table = table_maps("mariadb-compressed")[0]
    assert (table.database, table.table, table.column_count) == ("f", "t", 19)
    assert table.column_names == tuple("id y b s f d bt c x e st g ts vc bc u i6 j hid".split())
    assert table.unsigned is not None
    assert [table.column_names[i] for i, flag in enumerate(table.unsigned) if flag] == ["id", "y", "b", "f", "d"]
    assert table.charsets is not None
    charsets = {name: charset for name, charset in zip(table.column_names, table.charsets, strict=True) if charset}
    assert charsets == {
        "c": 8, "x": BINARY_COLLATION, "e": 8, "st": 45, "g": 63, "vc": 8, "bc": 63, "u": 63, "i6": 63, "j": 46,
    }  # fmt: skip
    assert table.labels is not None
    assert (table.labels[9], table.labels[10], table.labels[0]) == ((b"a", b"\xe9"), (b"p", b"q"), None)
    assert table.geometry_types is not None
    assert table.geometry_types[11] == 1
    assert table.primary_key == ((0, 0),)
    assert table.nullable == (False,) + (True,) * 18
    assert table.type_codes[13:15] == (ColumnType.VARCHAR_COMPRESSED, ColumnType.BLOB_COMPRESSED)
    assert table.metadata[5] == 10 << 8 | 2  # DECIMAL(10,2)
    assert table.metadata[6] == 1 | 1 << 8  # BIT(9): one bit and one byte
    assert table.metadata[7] == 20
    assert table.visibility is None


def test_full_metadata_of_mysql_fits_the_table_it_came_from() -> None:
    """id INT UNSIGNED PRIMARY KEY, y YEAR, b BIGINT UNSIGNED, c VARCHAR latin1, e ENUM, v VECTOR(3), g POINT, j JSON"""
    table = table_maps("mysql-tagged")[0]
    assert table.column_names == tuple("id y b c e v g j".split())
    assert table.unsigned == (True, True, True, False, False, False, False, False)
    assert table.charsets == (0, 0, 0, 8, 255, BINARY_COLLATION, 0, 0)
    assert table.labels is not None
    assert table.labels[4] == (b"a", "é".encode())
    assert table.vector_dimensions == (0, 0, 0, 0, 0, 3, 0, 0)
    assert table.visibility == (True,) * 8
    assert real_type(table.type_codes[4], table.metadata[4]) == ColumnType.ENUM


def test_a_vector_of_mysql_counts_among_the_columns_with_a_charset() -> None:
    """(a VARCHAR latin1, v VECTOR(3), b VARCHAR gb18030), and (v, a latin1, b latin1): a default and its exceptions."""
    each = built(b"\x0f\xf2\x0f", b"\x0a\0\x04\x28\0", b"\x03\x03\x08\x3f\xf8")
    assert parse_table_map(each, MYSQL).charsets == (8, BINARY_COLLATION, 248)
    default = built(b"\xf2\x0f\x0f", b"\x04\x0a\0\x0a\0", b"\x02\x03\x08\0\x3f")
    assert parse_table_map(default, MYSQL).charsets == (BINARY_COLLATION, 8, 8)
    with pytest.raises(BinlogFormatError, match="more collations than columns"):
        parse_table_map(built(b"\x0f", b"\x0a\0", b"\x03\x02\x08\x3f"), MYSQL)


def test_mariadb_logs_no_names_signs_or_charsets_by_default() -> None:
    table = table_maps("ma1011-torture-mixed")[0]
    assert (table.unsigned, table.charsets, table.column_names, table.primary_key) == (None, None, None, None)


def test_a_primary_key_on_a_prefix_says_how_many_characters() -> None:
    table = next(table for table in table_maps("mariadb-compressed") if table.table == "p")
    assert table.primary_key == ((2, 10), (0, 0))


@pytest.mark.parametrize("case", ["ma1011-torture-row", "my97-torture-row", "my97-torture-rowsquery"])
def test_every_table_map_of_the_torture_logs_is_read(case: str) -> None:
    tables = {(table.database, table.table): table for table in table_maps(case)}
    assert len(tables) >= 30
    for table in tables.values():
        assert len(table.metadata) == len(table.nullable) == table.column_count


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (0xFE0A, ColumnType.STRING),  # CHAR(10) of one-byte characters
        (0xEEFC, ColumnType.STRING),  # CHAR(255) utf8mb4: 1020 bytes borrow two bits
        (0xF701, ColumnType.ENUM),
        (0xF808, ColumnType.SET),
        (0x00FF, ColumnType.STRING),
    ],
)
def test_the_real_type_of_a_string_column_is_in_its_metadata(metadata: int, expected: int) -> None:
    assert real_type(ColumnType.STRING, metadata) == expected
    assert real_type(ColumnType.LONG, metadata) == ColumnType.LONG


def test_optional_metadata_that_nobody_knows_yet_is_stepped_over() -> None:
    table = parse_table_map(built(b"\x03\x01", b"", b"\xc8\x02zz" + b"\x01\x01\x80"), MYSQL)
    assert table.unsigned == (True, False)


@pytest.mark.parametrize(
    ("types", "metadata", "optional", "message"),
    [
        (b"\x63", b"", b"", "unknown column type 99"),
        (b"\x14", b"\x00\x00", b"", "TYPED_ARRAY"),
        (b"\x0f", b"\x14", b"", "cut short"),
        (b"\x03", b"\x14", b"", "unexpected bytes"),
        (b"\x03", b"", b"\x01\x00", "cut short"),
        (b"\x03", b"", b"\x04\x02\x05a", "cut short"),
        (b"\xfe", b"\xf7\x01", b"\x06\x02\xfa\x01", "250 labels cannot be in 1 bytes"),
        (b"\x0f", b"\x14\0", b"\x02\x03\x08\x05\x08", "for a column that does not exist"),
        (b"\x03", b"", b"\x04\xfe\xff\xff\xff\xff\xff\xff\xff\x7f", "cut short"),
    ],
)
def test_a_table_map_that_does_not_add_up_stops(types: bytes, metadata: bytes, optional: bytes, message: str) -> None:
    with pytest.raises(BinlogFormatError, match=message):
        parse_table_map(built(types, metadata, optional), MYSQL)


def test_names_must_be_text_and_end() -> None:
    for name in (b"\x01\xff\0", b"\x01tx"):
        with pytest.raises(BinlogFormatError, match="name in a TABLE_MAP"):
            parse_table_map(built(b"\x03", b"", name=name), MYSQL)
