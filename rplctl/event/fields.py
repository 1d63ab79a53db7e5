r"""Encode columns of row images as rows of text, in one of two forms that targets load.

The *delimited* form is the form of LOAD DATA and COPY. A tab separates fields, a newline ends a row, and `\N` is NULL.
Backslash, tab, newline, carriage return and NUL are escaped, and every other byte is unchanged.

The *length-prefixed* form is the form of the parameters of MariaDB's COM_STMT_BULK_EXECUTE. Each field consists of:

    1 byte      0 before a value, 1 for NULL
    1 byte      the length of the value, if it is at most 250
    3 bytes     252 and the length in two bytes, little-endian, if the value has 251 to 65,535 bytes
    4 bytes     253 and the length in three bytes, little-endian, if the value is longer
    …           the bytes of the value

After NULL, nothing follows.

Invariant: if the text of a cell equals its bytes, the bytes are copied only once, from the relay log into a part of the
result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rplctl.event.bytes_at import copy_bytes, u8
from rplctl.event.cells import Cells, cells_of, gather, signed_cells, unsigned_cells
from rplctl.event.charset import ASCII_COMPATIBLE, is_utf8
from rplctl.event.column import ColumnFormat
from rplctl.event.images import IS_NULL, Images
from rplctl.event.jit import ByteArray, byte_view, lean_kernel
from rplctl.event.rows import Ints
from rplctl.event.table_map import ColumnType
from rplctl.event.text_matrix import TextSheet
from rplctl.event.values import INTEGER_WIDTH, SHEETS, TEXT_OF_BYTES, decode_column

_DATED = frozenset(
    {
        *(ColumnType.DATE, ColumnType.NEWDATE, ColumnType.DATETIME, ColumnType.DATETIME2, ColumnType.TIMESTAMP),
        ColumnType.TIMESTAMP2,
    }
)
PIECE_BYTES = 16 << 20
LONGEST_LENGTH_PREFIXED = 1 << 16  # bytes of all cells in a row: a packet has room for many such rows
_NEWLINE = ord("\n")
_DIGITS = 20  # the length of the longest 64-bit number, sign included
_WITH_OWN_LENGTH = frozenset(
    {
        *(ColumnType.VARCHAR, ColumnType.VAR_STRING, ColumnType.BLOB, ColumnType.TINY_BLOB, ColumnType.MEDIUM_BLOB),
        *(ColumnType.LONG_BLOB, ColumnType.GEOMETRY, ColumnType.VECTOR, ColumnType.STRING),
    }
)
_TEXTUAL = _WITH_OWN_LENGTH - {ColumnType.GEOMETRY, ColumnType.VECTOR}


@dataclass(frozen=True, slots=True)
class Fields:
    """The encoded values of one column, with one field for each row.

    Field i is `data[starts[i] : starts[i] + lengths[i]]`. It is NULL if `starts[i]` is -1. If `plain` is true, no byte
    needs an escape. If `plain` is false, this is unknown.
    """

    data: ByteArray
    starts: Ints
    lengths: npt.NDArray[np.int32]
    plain: bool = False


@dataclass(frozen=True, slots=True)
class TextForm:
    """The form in which a target reads fields. `text_of` returns the text of a decoded value.

    If `takes_bytes` is true, the target accepts raw bytes, and text in the column's own charset. Otherwise text must be
    UTF-8, and `text_of` converts binary values and invalid dates.
    """

    text_of: Callable[[Any], bytes]
    takes_bytes: bool


def fields_of(images: Images, rows: Ints, column: int, fmt: ColumnFormat, form: TextForm) -> Fields:
    """Return the fields of one column in the row images with the indexes `rows`. The index -1 gives NULL.

    Raises BinlogFormatError if a cell cannot be decoded.
    """
    kind = fmt.real_type
    if kind in _WITH_OWN_LENGTH and fmt.sql_type not in TEXT_OF_BYTES and _is_text_already(fmt, form):
        starts = np.where(rows >= 0, images.cell_start[rows, column], IS_NULL)
        return Fields(images.data, np.maximum(starts, IS_NULL), images.cell_length[rows, column])
    cells = cells_of(images, rows, column)
    if kind in INTEGER_WIDTH:
        values = unsigned_cells(cells) if fmt.unsigned else signed_cells(cells, INTEGER_WIDTH[ColumnType(kind)])
        return _spread(cells, *_integers(values))
    if kind in SHEETS and len(cells):
        sheet = SHEETS[kind](cells, fmt)
        if form.takes_bytes or kind not in _DATED or _are_real_dates(sheet):
            return _spread(cells, *sheet.spans())
    if kind in _TEXTUAL and fmt.charset in ASCII_COMPATIBLE and not form.takes_bytes and len(cells):
        buffer, offsets = gather(cells)
        if not (buffer & 0x80).any():
            return _spread(cells, buffer, offsets[:-1], cells.lengths, plain=False)
    decoded = decode_column(images, rows, column, fmt)
    return text_fields([None if value is None else form.text_of(value) for value in decoded])


def _is_text_already(fmt: ColumnFormat, form: TextForm) -> bool:
    if form.takes_bytes:
        return (fmt.charset is None or fmt.charset == "binary") and fmt.real_type != ColumnType.STRING  # padded
    return fmt.charset is not None and is_utf8(fmt.charset) and fmt.real_type in _TEXTUAL


def _are_real_dates(sheet: TextSheet) -> bool:
    """True if no date has a year, a month or a day that is zero."""
    digits = sheet.sheet[:, :10] == ord("0")
    parts = (digits[:, 0:4], digits[:, 5:7], digits[:, 8:10])
    return not any(bool(part.all(axis=1).any()) for part in parts)


class EncodedText:
    """The rows of one or more columns as consecutive bytes. `len` is the number of bytes.

    An iteration creates the bytes in parts of about PIECE_BYTES, so that a row of 1 GB is never in memory as a whole.
    With `length_prefixed`, the cells of a row must have at most LONGEST_LENGTH_PREFIXED bytes together.
    """

    def __init__(self, columns: Sequence[Fields], *, length_prefixed: bool = False) -> None:
        self._columns = columns
        self._length_prefixed = length_prefixed
        self._ends = np.zeros(len(columns[0].starts), np.int64)  # end of each row
        if length_prefixed:
            for c in columns:
                _measure_length_prefixed(c.starts, c.lengths, self._ends)
        else:
            self._plain = [_measure(c.data, c.starts, c.lengths, c.plain, self._ends) for c in columns]
        np.cumsum(self._ends, out=self._ends)

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def __iter__(self) -> Iterator[memoryview]:
        first, begin = 0, 0
        while first < len(self._ends):
            stop = max(first + 1, int(np.searchsorted(self._ends, begin + PIECE_BYTES, "right")))
            end = int(self._ends[stop - 1])
            if end - begin <= PIECE_BYTES:
                yield self._rows(first, stop, begin, end)
            else:
                yield from self._large_row(first)
            first, begin = stop, end

    def _rows(self, first: int, stop: int, begin: int, end: int) -> memoryview:
        out = np.empty(end - begin, np.uint8)
        cursor = np.zeros(stop - first, np.int64)
        cursor[1:] = self._ends[first : stop - 1] - begin
        for number, column in enumerate(self._columns):
            self._put(number, column.starts[first:stop], column.lengths[first:stop], out, cursor)
        return out.data

    def _large_row(self, row: int) -> Iterator[memoryview]:
        for number, column in enumerate(self._columns):
            start, length = int(column.starts[row]), int(column.lengths[row])
            for at in range(0, max(length, 1), PIECE_BYTES // 2):
                size = min(PIECE_BYTES // 2, length - at)
                out = np.empty(2 * size + 3, np.uint8)
                cursor = np.zeros(1, np.int64)
                begins = np.array([start + at if start >= 0 else IS_NULL], np.int64)
                self._put(number, begins, np.array([size], np.int32), out, cursor)
                yield out[: int(cursor[0]) - (at + size < length)].data  # only the last part has the separator

    def _put(self, number: int, starts: Ints, lengths: npt.NDArray[np.int32], out: ByteArray, cursor: Ints) -> None:
        data = self._columns[number].data
        if self._length_prefixed:
            _put_length_prefixed(data, starts, lengths, out, cursor)
        else:
            separator = 10 if number == len(self._columns) - 1 else 9
            _put(data, starts, lengths, self._plain[number], np.uint8(separator), out, cursor)


def row_ends(text: ByteArray, columns: int, *, length_prefixed: bool) -> Ints:
    """Return the offset of the end of each row in the bytes of an EncodedText."""
    if not length_prefixed:
        return np.flatnonzero(text == _NEWLINE) + 1  # a newline within a field is escaped
    ends = np.empty(len(text) // columns, np.int64)
    return ends[: _find_frames(text, columns, ends)]


def field_spans(text: ByteArray, count: int) -> tuple[Ints, Ints]:
    """Return the start and the end of each of the `count` values in a length-prefixed text.

    If a value is NULL, its start is IS_NULL.
    """
    starts, ends = np.empty(count, np.int64), np.empty(count, np.int64)
    _find_fields(text, starts, ends)
    return starts, ends


def _spread(
    cells: Cells, data: npt.NDArray[np.uint8], starts: Ints, lengths: npt.NDArray[np.int32], *, plain: bool = True
) -> Fields:
    """Return the fields of all rows from the texts of `cells`, which are the cells that are not NULL.

    The text of cell i is `data[starts[i] : starts[i] + lengths[i]]`. The field of a row without a cell is NULL. `plain`
    is True if no byte needs an escape.
    """
    view = byte_view(data)
    if len(cells) == cells.total:
        return Fields(view, starts, lengths, plain)
    all_starts, all_lengths = np.full(cells.total, IS_NULL, np.int64), np.zeros(cells.total, np.int32)
    all_starts[cells.valid], all_lengths[cells.valid] = starts, lengths
    return Fields(view, all_starts, all_lengths, plain)


def _integers(values: npt.NDArray[Any]) -> tuple[npt.NDArray[np.uint8], Ints, npt.NDArray[np.int32]]:
    sheet = np.empty(len(values) * _DIGITS, np.uint8)
    starts, lengths = np.empty(len(values), np.int64), np.empty(len(values), np.int32)
    _print_integers(values.view(np.int64), values.dtype == np.uint64, sheet, starts, lengths)
    return sheet, starts, lengths


def text_fields(texts: Sequence[bytes | None]) -> Fields:
    """Return the fields of texts that are already encoded. None is NULL."""
    lengths = np.array([0 if text is None else len(text) for text in texts], np.int32)
    starts = np.zeros(len(texts), np.int64)
    np.cumsum(lengths[:-1], out=starts[1:])
    starts[[text is None for text in texts]] = IS_NULL
    return Fields(byte_view(b"".join(text for text in texts if text is not None)), starts, lengths)


@lean_kernel
def _print_integers(values: Any, unsigned: Any, sheet: Any, starts: Any, lengths: Any) -> None:
    for i in range(len(values)):
        negative = values[i] < 0 and not unsigned
        rest = np.uint64(values[i])
        if negative:
            rest = ~rest + np.uint64(1)
        at = (i + 1) * 20
        while True:
            at -= 1
            next_rest = rest // np.uint64(10)
            sheet[np.uint64(at)] = np.uint8(48 + np.int64(rest - next_rest * np.uint64(10)))
            rest = next_rest
            if rest == 0:
                break
        if negative:
            at -= 1
            sheet[at] = 45
        starts[i] = at
        lengths[i] = (i + 1) * 20 - at


@lean_kernel
def _measure(data: Any, starts: Any, lengths: Any, plain: Any, sizes: Any) -> Any:
    """Add the encoded length of each row's field, separator included, to the element of this row in `sizes`.

    Return True if no byte needs an escape. The docstring of `_put` explains the arguments.
    """
    escapes = 0
    for i in range(len(starts)):
        p = starts[i]
        if p < 0:
            sizes[i] += 3
            continue
        extra = 1
        if not plain:
            begin = np.uint64(p)
            for k in range(np.uint64(lengths[i])):
                byte = data[begin + k]
                extra += (byte == 92) | (byte == 13) | (byte == 10) | (byte == 9) | (byte == 0)
        escapes += extra - 1
        sizes[i] += lengths[i] + extra
    return escapes == 0


@lean_kernel
def _put(data: Any, starts: Any, lengths: Any, plain: Any, separator: Any, out: Any, cursor: Any) -> None:
    """Write each row's field and its separator to `out` at the cursor of the row, and advance the cursor.

    The field of row i is `data[starts[i] : starts[i] + lengths[i]]`. It is NULL if `starts[i]` is -1. If `plain` is
    true, no byte needs an escape. `cursor` has one offset in `out` for each row. `_measure` has computed the size of
    `out`.
    """
    for i in range(len(starts)):
        p = starts[i]
        at = cursor[i]
        if p < 0:
            out[at] = 92
            out[at + 1] = 78
            at += 2
        elif plain:
            copy_bytes(data, p, lengths[i], out, at)
            at += lengths[i]
        else:
            for k in range(p, p + lengths[i]):
                byte = np.uint8(u8(data, k))
                if byte == 92 or byte == 13 or byte == 10 or byte == 9 or byte == 0:
                    out[at] = 92
                    at += 1
                    if byte == 13:
                        byte = np.uint8(114)
                    elif byte == 10:
                        byte = np.uint8(110)
                    elif byte == 9:
                        byte = np.uint8(116)
                    elif byte == 0:
                        byte = np.uint8(48)
                out[at] = byte
                at += 1
        out[at] = separator
        cursor[i] = at + 1


@lean_kernel
def _measure_length_prefixed(starts: Any, lengths: Any, sizes: Any) -> None:
    """Add the length of each row's length-prefixed field to the element of this row in `sizes`.

    The docstring of `_put` explains the arguments.
    """
    for i in range(len(starts)):
        if starts[i] < 0:
            sizes[i] += 1
        elif lengths[i] <= 250:
            sizes[i] += lengths[i] + 2
        else:
            sizes[i] += lengths[i] + (4 if lengths[i] < 65536 else 5)


@lean_kernel
def _put_length_prefixed(data: Any, starts: Any, lengths: Any, out: Any, cursor: Any) -> None:
    """Write each row's length-prefixed field to `out` at the cursor of the row, and advance the cursor.

    The docstring of `_put` explains the arguments.
    """
    for i in range(len(starts)):
        p = starts[i]
        at = cursor[i]
        if p < 0:
            out[at] = 1
            cursor[i] = at + 1
            continue
        length = lengths[i]
        out[at] = 0
        at += 1
        if length <= 250:
            out[at] = length
        else:
            width = 2 if length < 65536 else 3
            out[at] = 250 + width
            for k in range(width):
                at += 1
                out[at] = (length >> (8 * k)) & 255
        at += 1
        copy_bytes(data, p, length, out, at)
        cursor[i] = at + length


@lean_kernel
def _frame(text: Any, at: Any) -> Any:
    """Return the start and the end of the value in the length-prefixed field at `at`.

    If the value is NULL, the start is IS_NULL.
    """
    if u8(text, at) == 1:
        return -1, at + 1
    length: Any = u8(text, at + 1)
    at += 2
    if length > 250:
        width = length - 250
        length = np.int64(0)
        for k in range(width):
            length |= u8(text, at + k) << (8 * k)
        at += width
    return at, at + length


@lean_kernel
def _find_fields(text: Any, starts: Any, ends: Any) -> None:
    at = 0
    for i in range(len(starts)):
        starts[i], at = _frame(text, at)
        ends[i] = at


@lean_kernel
def _find_frames(text: Any, columns: Any, ends: Any) -> Any:
    """Write the end of each row of `columns` fields to `ends`, and return the number of rows."""
    at = 0
    rows = 0
    field = 0
    while at < len(text):
        _, at = _frame(text, at)
        field += 1
        if field == columns:
            field = 0
            ends[rows] = at
            rows += 1
    return rows
