"""Builds rows events byte by byte for tests of the walk and of net changes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rplctl.event.column import ColumnFormat
from rplctl.event.images import Images, walk_images
from rplctl.event.rows import RowsEvents, parse_rows_events
from rplctl.event.table_map import ColumnType

Cell = bytes | None
Image = dict[int, Cell]

VARCHAR = ColumnFormat(ColumnType.VARCHAR, 255)


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
