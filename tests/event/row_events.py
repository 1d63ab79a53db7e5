"""Builds rows events byte by byte for tests of the walk and of net changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rplctl.event.column import ColumnFormat
from rplctl.event.images import Images, walk_images
from rplctl.event.jit import Buffer, ByteArray
from rplctl.event.rows import RowsEvents, parse_rows_events
from rplctl.event.table_map import ColumnType

Cell = bytes | None
Image = dict[int, Cell]

VARCHAR = ColumnFormat(type_code=ColumnType.VARCHAR, metadata=255)


def bitmap(columns: Sequence[int], count: int) -> bytes:
    return sum(1 << column for column in columns).to_bytes((count + 7) // 8, "little")


def image_bytes(image: Image) -> bytes:
    """NULL bits and VARCHAR cells of the columns that are in the image."""
    cells = [image[column] for column in sorted(image)]
    nulls = bitmap([i for i, cell in enumerate(cells) if cell is None], len(cells)) if cells else b""
    return nulls + b"".join(bytes([len(cell)]) + cell for cell in cells if cell is not None)


def rows_event(code: int, columns: int, bitmaps: bytes, body: bytes) -> bytes:
    extra = b"\x02\x00" if code >= 30 else b""
    event = bytes(4) + bytes([code]) + bytes(14) + (9).to_bytes(6, "little") + b"\1\0" + extra
    event += bytes([columns]) + bitmaps + body + b"CRC!"
    return event[:9] + len(event).to_bytes(4, "little") + event[13:]


def change_event(columns: int, before: Image | None, after: Image | None) -> bytes:
    """One event with one row: insert, update or delete by what is given."""
    images = [image for image in (before, after) if image is not None]
    code = 31 if len(images) == 2 else 30 if before is None else 32
    bitmaps = b"".join(bitmap(list(image), columns) for image in images)
    return rows_event(code, columns, bitmaps, b"".join(map(image_bytes, images)))


def parsed(events: list[bytes]) -> RowsEvents:
    lengths = np.array([len(event) for event in events], np.int64)
    codes = np.array([event[4] for event in events], np.uint8)
    return parse_rows_events(b"".join(events), np.cumsum(lengths) - lengths, lengths, codes, 4)


def walked(events: list[bytes], columns: int) -> Images:
    return walk_images(parsed(events), [VARCHAR] * columns)


@dataclass(frozen=True, slots=True)
class RowsEvent:
    """One rows event; `before_columns` / `after_columns` are column numbers, None when there is no such image."""

    kind: str
    table_id: int
    flags: int
    column_count: int
    before_columns: tuple[int, ...] | None
    after_columns: tuple[int, ...] | None
    data_start: int
    data_end: int
    is_partial_json: bool


def parse_rows_event(data: Buffer, offset: int, event_length: int, type_code: int, checksum_length: int) -> RowsEvent:
    """One rows event that begins at `offset`; see `parse_rows_events` for many."""
    one = parse_rows_events(
        data, np.array([offset]), np.array([event_length]), np.array([type_code], np.uint8), checksum_length
    )
    count = int(one.column_count[0])
    return RowsEvent(
        {1: "insert", 2: "update", 3: "delete"}[int(one.kind[0])],
        int(one.table_id[0]),
        int(one.flags[0]),
        count,
        bitmap_columns(one.data, int(one.before_bitmap[0]), count),
        bitmap_columns(one.data, int(one.after_bitmap[0]), count),
        int(one.data_start[0]),
        int(one.data_end[0]),
        bool(one.partial_json[0]),
    )


def bitmap_columns(data: ByteArray, offset: int, count: int) -> tuple[int, ...] | None:
    """The column numbers whose bits are set in the bitmap at `offset`; None for offset -1."""
    if offset < 0:
        return None
    bits = np.unpackbits(data[offset : offset + (count + 7) // 8], bitorder="little")[:count]
    return tuple(int(column) for column in np.flatnonzero(bits))
