"""Rows events made anew: net changes as a MariaDB source would have logged them, for its BINLOG statement.

    TABLE_MAP   as the source logged it, without checksum
    rows event  WRITE_ROWS_V1, UPDATE_ROWS_V1 or DELETE_ROWS_V1
        0-18    header: timestamp, type, server id, length, end position 0, flags 0
        19-24   table id, the table map's
        25-26   flags: 1 end of statement, 2 no foreign key checks
        27-     number of columns, length-encoded; one bitmap of columns per image; the rows

A row is its images: one of the key's columns (update, delete), then one of all columns (insert, update), each behind
its NULL bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from rplctl.binlog.header import HEADER_LENGTH, EventType
from rplctl.binlog.images import Images
from rplctl.binlog.jit import lean_kernel
from rplctl.binlog.rows import NO_FOREIGN_KEY_CHECKS, Ints

LARGEST_ROW: Final = 1 << 20  # bytes of an image; larger ones go another way
_EVENT_BYTES: Final = 512 << 10  # of rows in one event, about
_STATEMENT_END: Final = 1
_TABLE_ID: Final = slice(HEADER_LENGTH, HEADER_LENGTH + 6)
_LONG_COUNT: Final = 251  # from here on a length-encoded number takes 3 bytes
_INSERT, _UPDATE, _DELETE = EventType.WRITE_ROWS_V1, EventType.UPDATE_ROWS_V1, EventType.DELETE_ROWS_V1


def row_images(
    images: Images, key_images: Ints, widths: npt.NDArray[np.int64], key: Sequence[int], after_images: Ints
) -> tuple[bytes, bytes]:
    """(rows, length of each as int32): the key's cells of `key_images` if there are any, then whole `after_images`.

    `widths`: bytes of the length prefix of each column of the key.
    """
    count = max(len(key_images), len(after_images))
    columns = np.array(sorted(key), np.int64)
    starts = images.cell_start[key_images][:, columns] - widths if len(key_images) else np.empty((0, 0), np.int64)
    ends = starts + widths + images.cell_length[key_images][:, columns] if len(key_images) else starts
    nulls = (len(key) + 7) // 8 if len(key_images) else 0
    lengths = (
        np.full(count, nulls, np.int64) + (ends - starts).sum(axis=1) if len(key_images) else np.zeros(count, np.int64)
    )
    spans = images.spans[after_images] if len(after_images) else np.empty((0, 2), np.int64)
    if len(after_images):
        lengths = lengths + spans[:, 1] - spans[:, 0]
    out = np.zeros(int(lengths.sum()), np.uint8)
    _put_rows(images.data, starts, ends, nulls, spans, out)
    return out.tobytes(), lengths.astype(np.int32).tobytes()


@lean_kernel
def _put_rows(data: Any, starts: Any, ends: Any, nulls: Any, spans: Any, out: Any) -> None:
    at = 0
    for i in range(max(len(starts), len(spans))):
        if len(starts):
            at += nulls
            for c in range(starts.shape[1]):
                for p in range(starts[i, c], ends[i, c]):
                    out[at] = data[p]
                    at += 1
        if len(spans):
            for p in range(spans[i, 0], spans[i, 1]):
                out[at] = data[p]
                at += 1


def row_events(
    table_map: bytes, columns: int, key: Sequence[int], rows: bytes, lengths: bytes, *, has_before: bool,
    has_after: bool, foreign_keys: bool,
) -> Iterator[bytes]:  # fmt: skip
    """Each a TABLE_MAP and a rows event of about half a MiB, complete for itself."""
    kind = _UPDATE if has_before and has_after else _DELETE if has_before else _INSERT
    flags = _STATEMENT_END | (0 if foreign_keys else NO_FOREIGN_KEY_CHECKS)
    number = bytes([columns]) if columns < _LONG_COUNT else b"\xfc" + columns.to_bytes(2, "little")
    bitmaps = [_bitmap(key, columns)] * has_before + [_bitmap(range(columns), columns)] * has_after
    head = table_map[_TABLE_ID] + flags.to_bytes(2, "little") + number + b"".join(bitmaps)
    ends = np.cumsum(np.frombuffer(lengths, np.int32), dtype=np.int64)
    cuts = ends[np.diff(ends // _EVENT_BYTES, append=-1) != 0].tolist()
    view, start = memoryview(rows), 0
    for cut in cuts:
        body = head + view[start:cut]
        start = cut
        length = (HEADER_LENGTH + len(body)).to_bytes(4, "little")
        yield table_map + table_map[:4] + bytes([kind]) + table_map[5:9] + length + bytes(6) + body


def _bitmap(wanted: Sequence[int] | range, columns: int) -> bytes:
    bits = sum(1 << column for column in wanted)
    return bits.to_bytes((columns + 7) // 8, "little")
