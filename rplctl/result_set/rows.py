"""Convert the packets of a binary result set's rows to row images, with kernels.

    packet     3 bytes length, 1 byte sequence number, payload; a payload of 16777215 bytes continues in the next packet
    payload    0x00; NULL bits (columns + 9) / 8, from bit 2 on; the cells that are not NULL
    cell       by its type in the protocol: fixed, a length byte (dates and times), or a length-encoded length and bytes

Invariant: a cell is inside its row, and the last cell ends at the end of the row. Otherwise, BinlogFormatError is
raised. No length from a server or a file is trusted.

The bytes of the images are the packets themselves. If cells are converted, the bytes are a copy of the packets,
followed by the converted cells of all rows. A row of several packets is a batch of its own, and is copied without the
packet headers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from rplctl.event.bytes_at import copy_bytes, u8, u24
from rplctl.event.header import format_error
from rplctl.event.images import Images
from rplctl.event.jit import Buffer, ByteArray, byte_view, lean_kernel
from rplctl.event.table_map import ColumnType
from rplctl.result_set import conversion as c
from rplctl.result_set.columns import SelectedColumn

BATCH_BYTES: Final = 8 << 20
_FULL_PACKET: Final = 0xFFFFFF
_WIRE_WIDTH: Final = {
    ColumnType.TINY: 1, ColumnType.SHORT: 2, ColumnType.YEAR: 2, ColumnType.LONG: 4, ColumnType.INT24: 4,
    ColumnType.LONGLONG: 8, ColumnType.FLOAT: 4, ColumnType.DOUBLE: 8, ColumnType.NULL: 0,
}  # fmt: skip
_COUNTED_BY_BYTE: Final = frozenset({ColumnType.DATE, ColumnType.TIME, ColumnType.DATETIME, ColumnType.TIMESTAMP})
_LENGTH_BYTE, _LENGTH_ENCODED = -1, -2

Ints = npt.NDArray[np.int64]
Allocate = Callable[[int], ByteArray]


def in_memory(size: int) -> ByteArray:
    return np.empty(size, np.uint8)


def read_images(
    packets: Buffer,
    columns: Sequence[SelectedColumn],
    wire_types: Sequence[int],
    *,
    batch_bytes: int = BATCH_BYTES,
    allocate: Allocate = in_memory,
) -> Iterator[Images]:
    """Yield all rows in batches of about `batch_bytes`, and of at least one row.

    `wire_types` has the type codes in the result set's column definitions. `allocate` returns memory for the bytes of a
    batch, which may be one very large row. Raises BinlogFormatError if the bytes are not complete rows of these
    columns.
    """
    view = byte_view(packets)
    shape = row_shape(columns, wire_types)
    extra = int(shape[2][shape[1] > 1].sum())
    for at, end, rows, payload in _measured(view, batch_bytes):
        is_split = payload >= _FULL_PACKET
        size = payload if is_split else end - at
        if is_split or extra:
            room = allocate(size + rows * extra)
            data, converted = byte_view(room), room[size:]
            if is_split:
                unite(view, at, room)
            else:
                room[:size] = view[at:end]
        else:
            data, converted = view[at:end], in_memory(0)
        starts, lengths = np.empty((rows, len(columns)), np.int64), np.empty((rows, len(columns)), np.int32)
        bad = walk(data, size, is_split, shape, converted, starts, lengths)
        if bad >= 0:
            raise format_error("a row of a result set that cannot be read", view.data, at)
        yield _inserted(data, starts, lengths)


def row_ranges(packets: Buffer, batch_bytes: int = BATCH_BYTES) -> Iterator[tuple[int, int, int]]:
    """Yield (start, end, rows) of each batch of `read_images`. Raises BinlogFormatError for an incomplete packet."""
    return ((at, end, rows) for at, end, rows, _ in _measured(byte_view(packets), batch_bytes))


def _measured(view: ByteArray, batch_bytes: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield (start, end, rows, payload) of each batch.

    `payload` is the number of bytes of a row that has several packets, otherwise 0.
    """
    at = 0
    while at < len(view):
        rows, payload, end = map(int, measure(view, at, batch_bytes))
        if rows == 0:
            raise format_error("a result set that ends within a row", view.data, at)
        yield at, end, rows, payload
        at = end


def row_shape(columns: Sequence[SelectedColumn], wire_types: Sequence[int]) -> Ints:
    """Return an array [5, columns]: width in the protocol, action, bytes in the image, digits or precision, scale.

    A negative width means that the cell has a length before it. Raises BinlogFormatError if the numbers of columns
    differ.
    """
    if len(columns) != len(wire_types):
        raise format_error(f"a result set of {len(wire_types)} columns for a table of {len(columns)}", b"")
    shape = np.zeros((5, len(columns)), np.int64)
    for number, (column, code) in enumerate(zip(columns, wire_types, strict=True)):
        counted = _LENGTH_BYTE if code in _COUNTED_BY_BYTE else _LENGTH_ENCODED
        metadata = column.format.metadata
        is_decimal = column.format.type_code == ColumnType.NEWDECIMAL
        precision, scale = (metadata >> 8, metadata & 0xFF) if is_decimal else (metadata, 0)
        width = _WIRE_WIDTH.get(ColumnType(code), counted) if code in ColumnType._value2member_map_ else counted
        shape[:, number] = width, column.action, column.size, precision, scale
    return shape


def _inserted(data: ByteArray, starts: Ints, lengths: npt.NDArray[np.int32]) -> Images:
    rows = len(starts)
    none = np.empty((0, starts.shape[1]), np.bool_)
    ops, before, after = np.ones(rows, np.uint8), np.full(rows, -1, np.int64), np.arange(rows)
    return Images(
        data=data,
        cell_start=starts,
        cell_length=lengths,
        is_diff=none,
        ops=ops,
        before=before,
        after=after,
        event_of_change=np.zeros(rows, np.int32),
    )


@lean_kernel
def measure(packets: Any, at: Any, most: Any) -> Any:
    """Return (rows, payload, end of the rows) for the complete rows from `at` on, up to about `most` bytes.

    A row of several packets is returned alone, and `payload` is the number of its bytes. Otherwise, `payload` is 0.
    """
    rows = 0
    begin = at
    while at + 4 <= len(packets) and at - begin < most:
        length = u24(packets, at)
        p = at + 4 + length
        if length == _FULL_PACKET:
            if rows:
                break
            payload = length
            while length == _FULL_PACKET:
                if p + 4 > len(packets):
                    return 0, 0, at
                length = u24(packets, p)
                payload += length
                p += 4 + length
            return 1 if p <= len(packets) else 0, payload, p
        if p > len(packets):
            break
        rows += 1
        at = p
    return rows, 0, at


@lean_kernel
def unite(packets: Any, at: Any, data: Any) -> None:
    """Copy the payload of one row that has several packets to `data`, without the packet headers."""
    p = 0
    while True:
        length = u24(packets, at)
        at += 4
        copy_bytes(packets, at, length, data, p)
        p += length
        at += length
        if length < _FULL_PACKET:
            return


@lean_kernel
def _length_at(data: Any, p: Any, end: Any) -> Any:
    """Read a length-encoded length at `p`, and return (length, start of the bytes). An invalid length is -1."""
    if p >= end:
        return np.int64(-1), p
    first = u8(data, p)
    if first < 251:
        return first, p + 1
    width = 2 if first == 252 else (3 if first == 253 else (8 if first == 254 else 0))
    if width == 0 or p + 1 + width > end:
        return np.int64(-1), p
    length = np.int64(0)
    for k in range(width):
        length |= u8(data, p + 1 + k) << (8 * k)
    return length, p + 1 + width


@lean_kernel
def _convert(
    data: Any, start: Any, length: Any, action: Any, size: Any, more: Any, scale: Any, out: Any, at: Any
) -> Any:
    if action == 2:
        return c.put_decimal(data, start, length, more, scale, out, at, size)
    if action == 3:
        return length == 2 and size == 1 and c.put_year(data, start, out, at)
    if action == 9:
        return length == 2 and size == 1 and c.put_short_year(data, start, out, at)
    if action == 4:
        return size == 3 and c.put_date(data, start, length, out, at)
    if action == 5:
        return c.put_datetime(data, start, length, more, out, at, size)
    if action == 6:
        return c.put_timestamp(data, start, length, more, out, at, size)
    if action == 7:
        return c.put_time(data, start, length, more, out, at, size)
    return size == 16 and c.put_uuid(data, start, length, out, at)


@lean_kernel
def _walk_row(
    data: Any, p: Any, end: Any, shape: Any, row: Any, out: Any, extra: Any, behind: Any, starts: Any, lengths: Any
) -> Any:
    """Write the cells of the row in data[p:end] to row `row` of the arrays.

    Return the end of the converted cells in `out`, or -1 if the row is invalid. `out` begins at offset `behind` of the
    images. A conversion writes at most `size` bytes, after a check that `out` has them.
    """
    n = shape.shape[1]
    nulls = p + 1
    p = nulls + ((n + 9) >> 3)
    if p > end or data[nulls - 1] != 0:
        return np.int64(-1)
    for column in range(n):
        lengths[row, column] = 0
        starts[row, column] = -1
        bit = column + 2
        if (u8(data, nulls + (bit >> 3)) >> (bit & 7)) & 1:
            continue
        length = shape[0, column]
        if length == -1:
            if p >= end:
                return np.int64(-1)
            length = u8(data, p)
            p += 1
        elif length == -2:
            length, p = _length_at(data, p, end)
        if length < 0 or length > end - p or length > 0x7FFFFFFF:  # lengths have 32 bits
            return np.int64(-1)
        action = shape[1, column]
        size = shape[2, column]
        starts[row, column] = p
        lengths[row, column] = length
        if size > 0 and action <= 1:  # only a number may have more bytes in the protocol than in the column
            if size > length or (size < length and shape[0, column] < 0):
                return np.int64(-1)
            lengths[row, column] = size
        if action == 1:
            kept = np.int64(lengths[row, column])
            while kept > 0 and data[p + kept - 1] == 0:
                kept -= 1
            lengths[row, column] = kept
        elif action > 1:
            if size > len(out) - extra:
                return np.int64(-1)
            if not _convert(data, p, length, action, size, shape[3, column], shape[4, column], out, extra):
                return np.int64(-1)
            kept = size
            if action == 8:
                while kept > 0 and out[extra + kept - 1] == 0:
                    kept -= 1
            starts[row, column] = behind + extra
            lengths[row, column] = kept
            extra += size
        p += length
    return extra if p == end else np.int64(-1)


@lean_kernel
def walk(data: Any, size: Any, is_split: Any, shape: Any, out: Any, starts: Any, lengths: Any) -> Any:
    """Write the images of the rows in data[:size], which are packets or the payload of one row.

    Return -1 if all rows can be read, or the index of the first row that cannot be read.
    """
    p = 0
    extra = 0
    for row in range(len(starts)):
        end = size if is_split else p + 4 + u24(data, p)
        begin = p if is_split else p + 4
        extra = _walk_row(data, begin, end, shape, row, out, extra, size, starts, lengths)
        if extra < 0:
            return row
        p = end
    return -1
