"""Cells become what the server prints: recorded from MySQL 9.7.4 (JSON) and MariaDB 10.11.19 (its own types)."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import pytest

from rplctl.errors import BinlogFormatError
from rplctl.event.cells import LARGE_CELL, cells_of, gather
from rplctl.event.column import ColumnFormat
from rplctl.event.images import Images
from rplctl.event.table_map import ColumnType
from rplctl.event.values import decode_column, expand_column
from tests.event.replay import Table, recorded, replay


def column(cells: list[bytes | None]) -> Images:
    """One column of insert images."""
    data = np.frombuffer(b"".join(cell or b"" for cell in cells) + b"\0", np.uint8)
    lengths = np.array([len(cell or b"") for cell in cells], np.int32)
    starts = np.cumsum(lengths) - lengths
    starts[[cell is None for cell in cells]] = -1
    n = np.arange(len(cells))
    return Images(
        data=data,
        cell_start=starts.reshape(-1, 1).astype(np.int64),
        cell_length=lengths.reshape(-1, 1),
        is_diff=np.empty((0, 1), np.bool_),
        ops=np.ones(len(cells), np.uint8),
        before=np.full(len(cells), -1),
        after=n,
        event_of_change=n.astype(np.int32),
    )


def decoded(cells: list[bytes | None], fmt: ColumnFormat) -> list[Any]:
    return decode_column(column(cells), np.arange(len(cells)), 0, fmt)


def rows_by_id(table: Table, columns: int) -> list[list[Any]]:
    return [[row[c] for c in range(columns)] for row in sorted(table.rows, key=lambda row: row[0])]


def text_of(value: Any) -> Any:
    return value.hex().upper() if isinstance(value, bytes) else None if value is None else str(value)


def test_json_text_is_the_servers_whole_and_partial_under_every_row_image() -> None:
    state = json.loads(recorded("my97-json.state.xz"))
    tables = replay(recorded("my97-json.xz"))
    assert len(state) == 7
    for name, rows in state.items():
        assert rows_by_id(tables[f"tj.{name}"], len(rows[0])) == rows, name


def test_mariadb_types_old_temporal_uuid_inet_compressed() -> None:
    recording = json.loads(recorded("ma1011-types.state.xz"))
    tables = replay(recorded("ma1011-types.xz"), recording["columns"])
    assert len(recording["rows"]) == 9
    for name, rows in recording["rows"].items():
        mine = rows_by_id(tables[f"to_.{name}"], len(rows[0]))
        assert [[text_of(value) for value in row] for row in mine] == rows, name


@pytest.mark.parametrize(
    ("fmt", "cells", "values"),
    [
        (ColumnFormat(type_code=ColumnType.TINY), [b"\xff", None, b"\x7f"], [-1, None, 127]),
        (ColumnFormat(type_code=ColumnType.TINY, unsigned=True), [b"\xff"], [255]),
        (ColumnFormat(type_code=ColumnType.INT24), [b"\x00\x00\x80"], [-8388608]),
        (ColumnFormat(type_code=ColumnType.LONGLONG, unsigned=True), [b"\xff" * 8], [2**64 - 1]),
        (ColumnFormat(type_code=ColumnType.LONGLONG), [b"\xff" * 8], [-1]),
        (ColumnFormat(type_code=ColumnType.FLOAT), [struct.pack("<f", 0.5)], [0.5]),
        (ColumnFormat(type_code=ColumnType.YEAR), [b"\0", b"\xff"], [0, 2155]),
        (ColumnFormat(type_code=ColumnType.BIT, metadata=8 << 8), [b"\x80" + b"\0" * 7], [1 << 63]),
        (ColumnFormat(type_code=ColumnType.VARCHAR, metadata=20, charset="latin1"), [b"\xe9\x81"], ["é\x81"]),
        (
            ColumnFormat(type_code=ColumnType.VARCHAR, metadata=20, charset="utf8mb4"),
            [b"a", None, "é".encode()],
            ["a", None, "é"],
        ),
        (ColumnFormat(type_code=ColumnType.VARCHAR, metadata=20, charset="binary"), [b"a\0"], [b"a\0"]),
        (ColumnFormat(type_code=ColumnType.STRING, metadata=0xFE04, charset="binary"), [b"a"], [b"a\0\0\0"]),
        (ColumnFormat(type_code=ColumnType.STRING, metadata=0xFE04, charset="utf8mb4"), [b"a"], ["a"]),
        (ColumnFormat(type_code=ColumnType.STRING, metadata=0xF701, labels=("x", "y")), [b"\0", b"\2"], ["", "y"]),
        (ColumnFormat(type_code=ColumnType.STRING, metadata=0xF801, labels=("x", "y")), [b"\0", b"\3"], ["", "x,y"]),
        (ColumnFormat(type_code=ColumnType.NULL), [None], [None]),
        (ColumnFormat(type_code=ColumnType.TINY), [], []),
    ],
)
def test_neutral_values(fmt: ColumnFormat, cells: list[bytes | None], values: list[Any]) -> None:
    assert decoded(cells, fmt) == values


def test_minus_one_and_missing_columns_are_none() -> None:
    images = column([b"\1", None])
    assert decode_column(images, np.array([-1, 0, 1]), 0, ColumnFormat(type_code=ColumnType.TINY)) == [None, 1, None]


@pytest.mark.parametrize(
    ("fmt", "cell", "message"),
    [
        (ColumnFormat(type_code=ColumnType.STRING, metadata=0xF701), b"\1", "members of an ENUM or SET"),
        (ColumnFormat(type_code=ColumnType.STRING, metadata=0xF701, labels=("x",)), b"\2", "ENUM value 2 is too large"),
        (
            ColumnFormat(type_code=ColumnType.STRING, metadata=0xF801, labels=("x",)),
            b"\2",
            "SET value 0x2 is too large",
        ),
        (ColumnFormat(type_code=99), b"\1", "unknown column type 99"),
        (ColumnFormat(type_code=ColumnType.JSON, metadata=4), b"\x0d\0", "invalid JSON value: unknown type 0x0d"),
        (ColumnFormat(type_code=ColumnType.VARCHAR, metadata=9, charset="utf8mb4"), b"\xff", "not utf8mb4 text"),
        (ColumnFormat(type_code=ColumnType.BLOB_COMPRESSED, metadata=2), b"\x99\1\1", "compressed column"),
    ],
)
def test_what_cannot_be_told_exactly_stops(fmt: ColumnFormat, cell: bytes, message: str) -> None:
    with pytest.raises(BinlogFormatError, match=message):
        decoded([cell], fmt)


def test_a_compressed_column_cannot_grow_past_the_length_it_states() -> None:
    import zlib

    bomb = zlib.compress(bytes(1 << 20))
    assert expand_column(b"\x83" + (1 << 20).to_bytes(3, "big") + bomb) == bytes(1 << 20)
    with pytest.raises(BinlogFormatError):
        expand_column(b"\x81\x05" + bomb)


def test_gathered_cells_are_ready_for_arrow() -> None:
    buffer, offsets = gather(cells_of(column([b"ab", None, b"", b"c"]), np.arange(4), 0))
    assert (buffer.tobytes(), offsets.tolist()) == (b"abc", [0, 2, 2, 3])


def test_a_large_cell_among_others_is_its_own_bytes() -> None:
    cells: list[bytes | None] = [b"ab", None, bytes(range(256)) * (LARGE_CELL // 200), b"", b"c"]
    assert decoded(cells, ColumnFormat(type_code=ColumnType.BLOB, metadata=4)) == cells


@pytest.mark.parametrize("raw", [struct.pack("<d", float("nan")), struct.pack("<f", float("-inf")), b"\1\0\x80\x7f"])
def test_a_number_that_is_none_stops(raw: bytes) -> None:
    with pytest.raises(BinlogFormatError, match="NaN or infinite"):
        decoded([raw], ColumnFormat(type_code=ColumnType.DOUBLE if len(raw) == 8 else ColumnType.FLOAT))


@pytest.mark.parametrize(("word", "size"), [("inet4", 4), ("inet6", 16), ("uuid", 16)])
def test_an_address_of_another_length_is_refused(word: str, size: int) -> None:
    fmt = ColumnFormat(
        type_code=ColumnType.STRING, metadata=ColumnType.STRING << 8 | 2, charset="binary", sql_type=word
    )
    assert len(decoded([b"", b"\1"], fmt)) == 2, "zeros at the end are not logged"
    with pytest.raises(BinlogFormatError, match=f"not of type {word}"):
        decoded([bytes(size + 1)], fmt)
