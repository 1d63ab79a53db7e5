"""Find the row images in rows events: WRITE_ROWS, UPDATE_ROWS, DELETE_ROWS (v1 and v2) and PARTIAL_UPDATE_ROWS.

Byte table of one event (manual: MySQL Internals, Rows_event; MariaDB Knowledge Base, ROWS_EVENT_V1/V2):

    offset   length          field
    0        19              common header
    19       6               table id
    25       2               flags
    27       2               v2 only (30-32, 39): length of the extra data and of this field
    29       n-2             v2 only: extra data (NDB, partition ids), not needed to apply a row
    ..       1-9             column count m, length-encoded
    ..       (m+7)/8         columns in the before image (insert: in the after image)
    ..       (m+7)/8         UPDATE only: columns in the after image
    ..                       row images up to the end of the event
    end-4    4               CRC32 if the format description defines it

Invariant: the result has only offsets, and nothing is copied. Every returned offset is inside its event. `payload`
expands MariaDB's compressed events (166-171) before this module reads them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from rplctl.event.header import format_error
from rplctl.event.jit import Buffer, ByteArray, byte_view, lean_kernel

Ints = npt.NDArray[np.int64]

INSERT, UPDATE, DELETE = 1, 2, 3

NO_FOREIGN_KEY_CHECKS = 0x2
CASCADES_LOGGED = 0x10  # MySQL 9.6: the SQL layer handles foreign keys and logs cascaded changes


@dataclass(frozen=True, slots=True)
class RowsEvents:
    """Many rows events as arrays, one element per event. Offsets count from the start of `data`.

    `event_start` is the start of an event. Its row images are in `data_start`..`data_end`. `before_bitmap` and
    `after_bitmap` are the offsets of the column bitmaps, or -1 if the event has no such image.
    """

    data: ByteArray
    event_start: Ints
    kind: npt.NDArray[np.uint8]
    table_id: Ints
    flags: npt.NDArray[np.uint16]
    column_count: Ints
    before_bitmap: Ints
    after_bitmap: Ints
    data_start: Ints
    data_end: Ints
    partial_json: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.kind)

    def select(self, wanted: npt.NDArray[np.bool_] | Ints) -> RowsEvents:
        """Return the events that the mask or the event numbers `wanted` select, for example the events of one table."""
        arrays = (getattr(self, field.name)[wanted] for field in fields(self)[1:])
        return RowsEvents(self.data, *arrays)


def parse_rows_events(
    data: Buffer, starts: Ints, lengths: Ints, type_codes: npt.NDArray[np.uint8], checksum_length: int
) -> RowsEvents:
    """Find the row images of many rows events. `starts` and `lengths` (checksum included) are in bytes.

    Raises BinlogFormatError if a type is not a rows event, or if a body extends beyond its event.
    """
    view = byte_view(data)
    n = len(starts)
    begin = np.array(starts, np.int64)
    kind = np.zeros(n, np.uint8)
    flags = np.zeros(n, np.uint16)
    partial = np.zeros(n, np.bool_)
    found = np.full((6, n), -1, np.int64)
    codes = np.array(type_codes, np.uint8)
    bad = int(_parse(view, begin, np.array(lengths, np.int64), codes, checksum_length, kind, flags, partial, found))
    if bad >= 0:
        raise format_error("a rows event cannot be read", view.data, int(starts[bad]))
    table_id, count, before, after, data_start, data_end = found
    return RowsEvents(
        data=view,
        event_start=begin,
        kind=kind,
        table_id=table_id,
        flags=flags,
        column_count=count,
        before_bitmap=before,
        after_bitmap=after,
        data_start=data_start,
        data_end=data_end,
        partial_json=partial,
    )


@lean_kernel
def _parse(
    data: ByteArray,
    starts: Ints,
    lengths: Ints,
    type_codes: npt.NDArray[np.uint8],
    checksum_length: int,
    kind: npt.NDArray[np.uint8],
    flags: npt.NDArray[np.uint16],
    partial: npt.NDArray[np.bool_],
    found: Ints,
) -> int:
    """Fill the output arrays, and return the index of the first damaged event, or -1."""
    for i in range(len(starts)):
        code = type_codes[i]
        p = starts[i] + 19
        end = starts[i] + lengths[i] - checksum_length
        if lengths[i] < 0 or starts[i] < 0 or end > len(data):
            return i
        if 23 <= code <= 25:
            kind[i] = code - 22
            head = 8
        elif 30 <= code <= 32:
            kind[i] = code - 29
            head = 10
        elif code == 39:
            kind[i] = 2
            partial[i] = True
            head = 10
        else:
            return i
        if p + head >= end:
            return i
        table_id = np.int64(0)
        for k in range(6):
            table_id |= np.int64(data[p + k]) << (8 * k)
        found[0, i] = table_id
        flags[i] = data[p + 6] | np.uint16(data[p + 7]) << 8
        p += 8
        if head == 10:
            extra = np.int64(data[p]) | np.int64(data[p + 1]) << 8
            if extra < 2:
                return i
            p += extra
            if p >= end:
                return i
        count = np.int64(data[p])
        p += 1
        if count == 252:
            if p + 2 > end:
                return i
            count = np.int64(data[p]) | np.int64(data[p + 1]) << 8
            p += 2
        elif count > 250:
            return i
        bitmap = (count + 7) >> 3
        wanted = bitmap * 2 if kind[i] == 2 else bitmap
        if count == 0 or p + wanted > end:
            return i
        found[1, i] = count
        if kind[i] != 1:
            found[2, i] = p
            p += bitmap
        if kind[i] != 3:
            found[3, i] = p
            p += bitmap
        found[4, i] = p
        found[5, i] = end
    return -1
