"""Find the offset of every cell in the row images of one table.

Byte table of one image (manual: MySQL Internals, Rows_event; WL#2955 for value options). The image has p of the table's
columns, and j of the table's columns are JSON:

    length            field
    1-9               PARTIAL_UPDATE_ROWS, after image only: value options, length-encoded; bit 0: JSON diffs follow
    (j+7)/8           only if that bit is set: one bit per JSON column of the table (in the image or not)
    (p+7)/8           NULL bits, one per column in the image
    ..                cells of the columns that are in the image and not NULL: fixed length, or 1-4 bytes length + bytes

Invariant: a cell is inside its event, and the last image of an event ends exactly at the end of the event. Otherwise,
BinlogFormatError is raised (design D12). The result has only offsets into `data`, and no byte is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rplctl.event.bytes_at import u8
from rplctl.event.column import ColumnFormat, cell_layout
from rplctl.event.header import format_error
from rplctl.event.jit import ByteArray, lean_kernel
from rplctl.event.rows import Ints, RowsEvents
from rplctl.event.table_map import ColumnType

IS_NULL = -1
NOT_IN_IMAGE = -2
_AHEAD, _MOST_AHEAD, _CACHE_LINE = 6, 512, 64  # events, bytes of each, bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """The row images of one table in log order, and the changes to which they belong.

    cell_start, cell_length   [images, columns]: the bytes of each cell; start -1 = NULL, -2 = not in the image
    is_diff                   [images, columns]: True for a JSON diff against the before image of the change;
                              no rows if there are no diffs
    ops                       [changes]: 1 insert, 2 update, 3 delete
    before, after             [changes]: the indexes of the before image and the after image, or -1
    event_of_change           [changes]: the index of the event
    before_of_image           [images]: for the after image of an update, the index of the before image; else -1
    """

    data: ByteArray
    cell_start: Ints
    cell_length: npt.NDArray[np.int32]
    is_diff: npt.NDArray[np.bool_]
    ops: npt.NDArray[np.uint8]
    before: Ints
    after: Ints
    event_of_change: npt.NDArray[np.int32]

    @property
    def column_count(self) -> int:
        return int(self.cell_start.shape[1])

    @property
    def before_of_image(self) -> Ints:
        pairs = np.full(len(self.cell_start), -1, np.int64)
        updates = self.after[self.before >= 0]
        present = updates >= 0
        pairs[updates[present]] = self.before[self.before >= 0][present]
        return pairs

    def are_full(self) -> bool:
        """True if every image has every column in full (binlog_row_image=FULL, no JSON diffs)."""
        return not self.is_diff.any() and not bool((self.cell_start == NOT_IN_IMAGE).any())


def walk_images(events: RowsEvents, formats: Sequence[ColumnFormat]) -> Images:
    """Find every cell of `events`, which all belong to one table with columns `formats`.

    Raises BinlogFormatError if an event has another number of columns or a row extends beyond its event.
    """
    view = events.data
    columns = len(formats)
    wrong = np.flatnonzero(events.column_count != columns)
    if len(wrong):
        at = int(events.event_start[wrong[0]])
        found = int(events.column_count[wrong[0]])
        raise format_error(f"a rows event has {found} columns, but its table has {columns}", view.data, at)
    layouts = np.array([cell_layout(column) for column in formats], np.int64).T
    is_json = np.array([column.type_code == ColumnType.JSON for column in formats], np.int64)
    shape = np.ascontiguousarray(np.vstack([layouts, is_json]))
    kinds = events.kind + 4 * events.partial_json.astype(np.int64)
    where = np.stack([kinds, events.before_bitmap, events.after_bitmap, events.data_start, events.data_end])
    least = max(2, (columns + 7) // 8 + int(layouts.sum()))
    room = 16 + int((events.data_end - events.data_start).sum()) // least
    starts, lengths = np.empty((room, columns), np.int64), np.empty((room, columns), np.int32)
    diffs = np.empty((room if events.partial_json.any() else 0, columns), np.bool_)
    changes = np.empty((room, 4), np.int64)
    progress = np.zeros(5, np.int64)
    progress[1] = events.data_start[0] if len(events) else 0
    while not _walk(view, where, shape, starts, lengths, diffs, changes, progress):
        if progress[0] < 0:
            raise format_error("a row does not fit into its event", view.data, int(events.event_start[~progress[0]]))
        starts, lengths, changes = _doubled(starts), _doubled(lengths), _doubled(changes)
        diffs = _doubled(diffs)
    images, rows = int(progress[2]), int(progress[3])
    op, before, after, event_of_change = np.ascontiguousarray(changes[:rows].T)
    return Images(
        data=view,
        cell_start=starts[:images],
        cell_length=lengths[:images],
        is_diff=diffs[:images],
        ops=op.astype(np.uint8),
        before=before,
        after=after,
        event_of_change=event_of_change.astype(np.int32),
    )


def first_columns(images: Images, count: int) -> Images:
    """Return the images with only their first `count` columns."""
    if images.column_count <= count:
        return images
    starts = np.ascontiguousarray(images.cell_start[:, :count])
    lengths = np.ascontiguousarray(images.cell_length[:, :count])
    diffs = np.ascontiguousarray(images.is_diff[:, :count])
    return replace(images, cell_start=starts, cell_length=lengths, is_diff=diffs)


def _doubled(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a copy of the array with twice as many rows. The second half is undefined."""
    larger = np.empty((2 * len(array), array.shape[1]), array.dtype)
    larger[: len(array)] = array
    return larger


@lean_kernel
def _walk_image(
    data: Any, p: Any, end: Any, bitmap: Any, partial: Any, shape: Any, starts: Any, lengths: Any, diffs: Any, row: Any
) -> Any:
    """Find the cells of the image at offset `p`, and write them to row `row` of the arrays.

    Return the end of the image, or -1 if the image does not fit into the event, which ends at `end`. `bitmap` is the
    offset of the bitmap of the columns that are in the image. `partial` is not 0 if value options precede the image.
    `shape` has, for each column, the width of the length prefix, the fixed length, and 1 for JSON.
    """
    n = shape.shape[1]
    json_bits = np.int64(-1)
    if partial:
        if p >= end or u8(data, p) > 1:  # bit 0 is the only known option; an unknown option is an error
            return np.int64(-1)
        if u8(data, p) == 1:
            json_bits = p + 1
            columns = 0
            for c in range(n):
                columns += shape[2, c]
            p += (columns + 7) >> 3
        p += 1
    present = 0
    for c in range(n):
        present += (u8(data, bitmap + (c >> 3)) >> (c & 7)) & 1
    nulls = p
    p += (present + 7) >> 3
    if p > end:
        return np.int64(-1)
    k = 0
    j = 0
    for c in range(n):
        is_diff = False
        if json_bits >= 0 and shape[2, c]:
            is_diff = (u8(data, json_bits + (j >> 3)) >> (j & 7)) & 1 == 1
            j += 1
        lengths[row, c] = 0
        if len(diffs):
            diffs[row, c] = False
        if (u8(data, bitmap + (c >> 3)) >> (c & 7)) & 1 == 0:
            starts[row, c] = -2
            continue
        null = (u8(data, nulls + (k >> 3)) >> (k & 7)) & 1
        k += 1
        if null:
            starts[row, c] = -1
            continue
        width = shape[0, c]
        length = shape[1, c]
        if width > 0:
            if p + width > end:
                return np.int64(-1)
            for b in range(width):
                length |= u8(data, p + b) << (8 * b)
            p += width
        if length > end - p:
            return np.int64(-1)
        starts[row, c] = p
        lengths[row, c] = length
        if is_diff:
            diffs[row, c] = True
        p += length
    return p


@lean_kernel
def _walk(data: Any, where: Any, shape: Any, starts: Any, lengths: Any, diffs: Any, changes: Any, progress: Any) -> Any:
    """Find the images from `progress` on, and return True after the last event.

    `progress` is [event, offset, number of images, number of changes, a meaningless sum]. The kernel reads some bytes
    of later events in advance, so that the processor loads them from memory in time. The sum of these bytes keeps the
    compiler from removing the reads. Return False if the arrays are full, or if a row does not fit into its event. If a
    row does not fit, progress[0] is the bitwise inverse of the event's index.
    """
    for i in range(progress[0], where.shape[1]):
        kind = where[0, i] & 3
        end = where[4, i]
        if i + _AHEAD < where.shape[1]:  # load a later event from memory now: waiting for memory costs most of the time
            start = where[3, i + _AHEAD]
            for at in range(start, min(start + _MOST_AHEAD, where[4, i + _AHEAD]), _CACHE_LINE):
                progress[4] += data[at]
        if i > progress[0]:
            progress[0] = i
            progress[1] = where[3, i]
        while True:
            begun = progress[1]
            row = progress[2]
            change = progress[3]
            if row + 2 > len(starts):
                return False
            p = begun
            changes[change, 0] = kind
            changes[change, 1] = -1
            changes[change, 2] = -1
            changes[change, 3] = i
            if kind != 1:
                p = _walk_image(data, p, end, where[1, i], np.int64(0), shape, starts, lengths, diffs, row)
                changes[change, 1] = row
                row += 1
            if kind != 3 and p >= 0:
                p = _walk_image(data, p, end, where[2, i], where[0, i] & 4, shape, starts, lengths, diffs, row)
                changes[change, 2] = row
                row += 1
            if p < 0 or (p == begun and p < end):
                progress[0] = ~i
                return False
            progress[1] = p
            progress[2] = row
            progress[3] = change + 1
            if p >= end:  # tested last, because an event with empty images has one row and no bytes
                break
    return True
