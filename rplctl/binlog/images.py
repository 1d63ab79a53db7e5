"""Row images: where every cell of every row of one table lies.

Byte table of one image (manual: MySQL Internals, Rows_event; WL#2955 for value options):

    length            field
    1-9               PARTIAL_UPDATE_ROWS, after image only: value options, length-encoded; bit 0: JSON diffs follow
    (j+7)/8           only when that bit is set: one bit per JSON column of the table (in the image or not)
    (p+7)/8           NULL bits, one per column that is in the image
    ..                cells of the columns that are in the image and not NULL: fixed length, or 1-4 bytes length + bytes

Invariant: a cell lies inside its event, and the last image of an event ends exactly where the event ends; anything
else is a BinlogFormatError (design D12). Cells are offsets into `data`; no byte is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rplctl.binlog.column import ColumnFormat, cell_layout
from rplctl.binlog.header import format_error
from rplctl.binlog.jit import ByteArray, kernel
from rplctl.binlog.rows import Ints, RowsEvents
from rplctl.binlog.table_map import ColumnType

IS_NULL = -1
NOT_IN_IMAGE = -2


@dataclass(frozen=True, slots=True)
class Images:
    """The images of one table in the order of the log, and the changes they make.

    `cell_start`, `cell_length`: [images, columns]; start -1 = NULL, -2 = not in the image.
    `is_diff`: [images, columns] where a cell is a JSON diff against the change's before image; [0, 0] when none is.
    `ops`: per change 1 insert, 2 update, 3 delete; `before` and `after`: image numbers or -1; `event_of_change`: number
    of the event among those given. `before_of_image`: for an after image of an update, its before image; else -1.
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
        """True when every image holds every column in full (binlog_row_image=FULL, no JSON diffs)."""
        return not self.is_diff.any() and not bool((self.cell_start == NOT_IN_IMAGE).any())


def walk_images(events: RowsEvents, formats: Sequence[ColumnFormat]) -> Images:
    """Find every cell of `events`, which all belong to one table with columns `formats`.

    Raises BinlogFormatError when an event has another number of columns or a row runs past its event.
    """
    view = events.data
    columns = len(formats)
    wrong = np.flatnonzero(events.column_count != columns)
    if len(wrong):
        at = int(events.event_start[wrong[0]])
        found = int(events.column_count[wrong[0]])
        raise format_error(f"A rows event of {found} columns for a table of {columns}", memoryview(view), at)
    layouts = [cell_layout(column) for column in formats]
    prefix = np.array([layout[0] for layout in layouts], np.uint8)
    size = np.array([layout[1] for layout in layouts], np.int32)
    is_json = np.array([column.type_code == ColumnType.JSON for column in formats], np.bool_)
    capacity = max(16, int((events.data_end - events.data_start).sum()) // max(2, (columns + 7) // 8 + int(size.sum())))
    bad, n, starts, lengths, diffs, changes = _walk(
        view,
        (events.kind, events.partial_json),
        (events.before_bitmap, events.after_bitmap, events.data_start, events.data_end),
        (prefix, size, is_json),
        capacity,
    )
    if bad >= 0:
        raise format_error("A row that does not fit its event", memoryview(view), int(events.event_start[bad]))
    op, before, after, event_of_change = np.ascontiguousarray(changes.T)
    return Images(
        view, starts[:n], lengths[:n], diffs[:n], op.astype(np.uint8), before, after, event_of_change.astype(np.int32)
    )


@kernel
def _walk_image(
    data: Any, p: Any, end: Any, bitmap: Any, partial: Any, column: Any, starts: Any, lengths: Any, diffs: Any, row: Any
) -> Any:
    """One image from `p`; where it ends, or -1 when it does not fit."""
    prefix, size, is_json = column
    n = len(prefix)
    json_bits = np.int64(-1)
    if partial:
        if p >= end or data[p] > 1:  # bit 0 is the only option there is; an unknown one stops
            return np.int64(-1)
        if data[p] == 1:
            json_bits = p + 1
            columns = 0
            for c in range(n):
                if is_json[c]:
                    columns += 1
            p += (columns + 7) >> 3
        p += 1
    present = 0
    for c in range(n):
        present += (data[bitmap + (c >> 3)] >> (c & 7)) & 1
    nulls = p
    p += (present + 7) >> 3
    if p > end:
        return np.int64(-1)
    k = 0
    j = 0
    for c in range(n):
        is_diff = False
        if json_bits >= 0 and is_json[c]:
            is_diff = (data[json_bits + (j >> 3)] >> (j & 7)) & 1 == 1
            j += 1
        lengths[row, c] = 0
        if (data[bitmap + (c >> 3)] >> (c & 7)) & 1 == 0:
            starts[row, c] = -2
            continue
        null = (data[nulls + (k >> 3)] >> (k & 7)) & 1
        k += 1
        if null:
            starts[row, c] = -1
            continue
        width = np.int64(prefix[c])
        length = np.int64(size[c])
        if width > 0:
            if p + width > end:
                return np.int64(-1)
            length = np.int64(data[p])
            for b in range(1, width):
                length |= np.int64(data[p + b]) << (8 * b)
            p += width
        if length > end - p:
            return np.int64(-1)
        starts[row, c] = p
        lengths[row, c] = length
        if is_diff:
            diffs[row, c] = True
        p += length
    return p


@kernel
def _grown(array: Any, used: Any) -> Any:
    """A copy of `array` with twice the rows; rows past `used` are zero."""
    larger = np.zeros((len(array) * 2, array.shape[1]), array.dtype)
    larger[:used] = array[:used]
    return larger


@kernel
def _walk(data: Any, what: Any, where: Any, column: Any, capacity: Any) -> Any:
    """All images of all events; the first event whose rows do not fit, or -1, comes first."""
    kind, partial = what
    before_bitmap, after_bitmap, begin, finish = where
    n = len(column[0])
    starts = np.zeros((capacity, n), np.int64)
    lengths = np.zeros((capacity, n), np.int32)
    changes = np.zeros((capacity, 4), np.int64)
    diffs = np.zeros((capacity, n) if partial.any() else (0, 0), np.bool_)
    images = 0
    rows = 0
    bad = -1
    for i in range(len(kind)):
        p = begin[i]
        while bad < 0:
            begun = p
            if images + 2 > len(starts):
                starts = _grown(starts, images)
                lengths = _grown(lengths, images)
                changes = _grown(changes, rows)
                if len(diffs):
                    diffs = _grown(diffs, images)
            before = -1
            after = -1
            if kind[i] != 1:
                p = _walk_image(data, p, finish[i], before_bitmap[i], False, column, starts, lengths, diffs, images)
                before = images
                images += 1
            if kind[i] != 3 and p >= 0:
                p = _walk_image(data, p, finish[i], after_bitmap[i], partial[i], column, starts, lengths, diffs, images)
                after = images
                images += 1
            changes[rows, 0] = kind[i]
            changes[rows, 1] = before
            changes[rows, 2] = after
            changes[rows, 3] = i
            rows += 1
            if p < 0 or (p == begun and p < finish[i]):
                bad = i
            if p >= finish[i]:  # tested last: an event of empty images holds one row and no byte
                break
        if bad >= 0:
            break
    return bad, images, starts, lengths, diffs, changes[:rows]
