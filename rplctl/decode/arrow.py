"""Convert the cells of one column to an Arrow array, from the bytes of the log.

Invariant: a value is exact, or it raises an error. Arrow has no invalid dates ('0000-00-00', '2024-02-00'). Such a date
raises an error, or becomes NULL with the option zero_dates=null.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from rplctl import mysql_errors as er
from rplctl.errors import BinlogFormatError, RplError
from rplctl.event.cells import Cells, cells_of, gather, has_large_cell, signed_cells, unsigned_cells
from rplctl.event.charset import decode_text, is_single_byte, is_utf8
from rplctl.event.column import ColumnFormat
from rplctl.event.images import Images
from rplctl.event.rows import Ints
from rplctl.event.table_map import ColumnType as Wire
from rplctl.event.text_matrix import TextSheet
from rplctl.event.values import INTEGER_WIDTH, SHEETS, TEXT_OF_BYTES, decode_column, not_finite
from rplctl.schema.model import Column

if TYPE_CHECKING:
    import numpy.typing as npt

_ASCII: Final = bytes(range(128))
_PADDED: Final = frozenset({Wire.STRING})  # BINARY(n), whose trailing zeros the log omits
_AS_LOGGED: Final = frozenset(
    {Wire.VARCHAR, Wire.VAR_STRING, Wire.BLOB, Wire.TINY_BLOB, Wire.MEDIUM_BLOB, Wire.LONG_BLOB}
)


def column_array(  # noqa: PLR0913 - the cells, and their format
    images: Images, rows: Ints, number: int, fmt: ColumnFormat, column: Column, wanted: pa.DataType, *, zero_null: bool
) -> pa.Array:
    """Return one column of row images as an Arrow array of the type `wanted`.

    `number` is the index of the column. `rows` has the index of each image, and the index -1 gives NULL. With
    `zero_null`, an invalid date also gives NULL. Without `zero_null`, an invalid date raises RplError 1292. Raises
    BinlogFormatError for a damaged value.
    """
    cells, kind = cells_of(images, rows, number), fmt.real_type
    if not len(cells):
        return pa.nulls(len(rows), wanted)
    if kind in INTEGER_WIDTH:
        values = unsigned_cells(cells) if fmt.unsigned else signed_cells(cells, INTEGER_WIDTH[Wire(kind)])
        return _numbers(values, cells).cast(wanted)
    if kind == Wire.BIT:
        return _numbers(unsigned_cells(cells, big_endian=True), cells).cast(wanted)
    if kind in (Wire.FLOAT, Wire.DOUBLE):
        raw = unsigned_cells(cells)
        floats: npt.NDArray[Any] = (
            raw.astype(np.uint32).view(np.float32) if kind == Wire.FLOAT else raw.view(np.float64)
        )
        if not np.isfinite(floats).all():
            raise not_finite()
        return _numbers(floats, cells).cast(wanted)
    if kind in SHEETS and column.type != "time":
        return _printed(SHEETS[kind](cells, fmt), cells, column, wanted, zero_null=zero_null)
    if _can_use_logged_bytes(fmt, cells, images, number):
        buffer, offsets = gather(cells)
        is_text = fmt.charset is not None and fmt.charset != "binary" and not is_utf8(fmt.charset)
        is_read = not is_text or int(buffer.max(initial=0)) < 128
        found = _strings(buffer, offsets, cells, wanted) if is_read else None
        if found is not None:
            return found
    decoded = decode_column(images, rows, number, fmt)
    if column.type == "time":
        return pa.array([None if text is None else _microseconds(text) for text in decoded], pa.int64()).cast(wanted)
    return pa.array(decoded, wanted)


def _can_use_logged_bytes(fmt: ColumnFormat, cells: Cells, images: Images, number: int) -> bool:
    """True if the logged bytes can be used unchanged: bytes, or text in a character set that extends ASCII.

    The caller must still check that such text is UTF-8, or has only ASCII characters.
    """
    if fmt.sql_type in TEXT_OF_BYTES or has_large_cell(cells):
        return False
    if fmt.charset is None or fmt.charset == "binary":
        return fmt.real_type in _AS_LOGGED | {Wire.GEOMETRY, Wire.VECTOR}
    return _holds_ascii(fmt.charset) and fmt.real_type in _AS_LOGGED | _PADDED


@cache
def _holds_ascii(charset: str) -> bool:
    """True if each byte below 128 is the same character in this character set as in ASCII."""
    if is_utf8(charset):
        return True
    try:
        return is_single_byte(charset) and decode_text(_ASCII, charset) == _ASCII.decode("ascii")
    except BinlogFormatError:  # the character set lacks an ASCII character
        return False


def _numbers(values: npt.NDArray[Any], cells: Cells) -> pa.Array:
    if len(cells) == cells.total:
        return pa.array(values)
    everything, is_null = np.zeros(cells.total, values.dtype), np.ones(cells.total, np.bool_)
    everything[cells.valid], is_null[cells.valid] = values, False
    return pa.array(everything, mask=is_null)


def _strings(buffer: npt.NDArray[np.uint8], offsets: Ints, cells: Cells, wanted: pa.DataType) -> pa.Array | None:
    """Return the cells as an Arrow array of strings or bytes.

    Return None if the cells are not UTF-8, or have too many bytes for 32-bit offsets.
    """
    if int(offsets[-1]) >= 1 << 31:
        return None
    lengths = np.zeros(cells.total + 1, np.int32)
    lengths[1:][cells.valid] = np.diff(offsets)
    places = np.cumsum(lengths, dtype=np.int32)
    valid = None
    if len(cells) < cells.total:
        bits = np.zeros(cells.total, np.bool_)
        bits[cells.valid] = True
        valid = pa.py_buffer(np.packbits(bits, bitorder="little"))
    array = pa.Array.from_buffers(wanted, cells.total, [valid, pa.py_buffer(places), pa.py_buffer(buffer)])
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return None
    return array


def _printed(sheet: TextSheet, cells: Cells, column: Column, wanted: pa.DataType, *, zero_null: bool) -> pa.Array:
    """Return an Arrow array from the texts that a server prints for the values.

    Raises RplError 1292 for an invalid date. With `zero_null`, such a date becomes NULL.
    """
    raw, starts, lengths = sheet.spans()
    count, width = sheet.sheet.shape
    if sheet.first.any():
        printed = Cells(
            data=np.ascontiguousarray(raw),
            starts=starts,
            lengths=lengths,
            images=cells.images,
            valid=cells.valid,
            total=cells.total,
        )
        buffer, offsets = gather(printed)
    else:
        buffer, offsets = np.ascontiguousarray(raw), np.arange(count + 1, dtype=np.int64) * width
    if column.type in ("date", "datetime", "timestamp"):
        is_zero = _is_no_date(sheet)
        if is_zero.any() and not zero_null:
            text = sheet.sheet[np.flatnonzero(is_zero)[0]].tobytes().decode("ascii")
            raise RplError(
                f"Incorrect {column.type} value: '{text}' for column `{column.name}`: Spark has no such date",
                errno=er.TRUNCATED_WRONG_VALUE,
                hint="to get NULL instead of the date, set the option zero_dates=null of the query\n"
                "To get the logged value as JSON, omit the option table of the query",
            )
        if is_zero.any():
            stays = np.flatnonzero(~is_zero)
            kept = TextSheet(np.ascontiguousarray(sheet.sheet[stays]), sheet.first[stays])
            if not len(stays):
                return pa.nulls(cells.total, wanted)
            own = Cells(
                data=cells.data,
                starts=cells.starts[stays],
                lengths=cells.lengths[stays],
                images=cells.images[stays],
                valid=cells.valid[stays],
                total=cells.total,
            )
            return _printed(kept, own, column, wanted, zero_null=False)
    texts = _strings(buffer, offsets, cells, pa.string())
    if texts is None:
        raise BinlogFormatError(
            f"the values of column `{column.name}` are too large for one piece of a batch",
            errno=er.SLAVE_CORRUPT_EVENT,
            hint="to apply smaller batches in a channel (init changes only this setting), run: rplctl init "
            "--max-batch-bytes BYTES; rplctl start\n"
            "To read smaller parts in a query, set its option partition_bytes, and start the query again",
        )
    if pa.types.is_string(wanted):
        return texts
    try:
        if pa.types.is_timestamp(wanted):
            return texts.cast(pa.timestamp("us")).cast(wanted)
        return texts.cast(wanted)
    except pa.ArrowInvalid as error:  # for example 31 February, with ALLOW_INVALID_DATES
        raise RplError(
            f"Spark cannot store a value of column `{column.name}`: {error}",
            errno=er.TRUNCATED_WRONG_VALUE,
            hint="to get NULL instead of the date, set the option zero_dates=null of the query",
        ) from error


def _is_no_date(sheet: TextSheet) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows with an invalid date: year, month or day is 0, or the month does not have the day."""
    digits = sheet.sheet[:, :10].astype(np.int64) - ord("0")
    year = digits[:, 0] * 1000 + digits[:, 1] * 100 + digits[:, 2] * 10 + digits[:, 3]
    month, day = digits[:, 5] * 10 + digits[:, 6], digits[:, 8] * 10 + digits[:, 9]
    is_none: npt.NDArray[np.bool_] = (year == 0) | (month == 0) | (day == 0)
    late = np.flatnonzero((day > 28) & ~is_none)
    if len(late):
        months = (year[late] - 1970).astype("datetime64[Y]").astype("datetime64[M]") + (month[late] - 1)
        days = ((months + 1).astype("datetime64[D]") - months.astype("datetime64[D]")).astype(np.int64)
        is_none[late] = day[late] > days
    return is_none


def _microseconds(text: str) -> int:
    """Return a TIME such as '-838:59:59.000001' as a number of microseconds."""
    hours, minutes, seconds = text.lstrip("-").split(":")
    whole, _, fraction = seconds.partition(".")
    size = (int(hours) * 3600 + int(minutes) * 60 + int(whole)) * 1_000_000 + int(fraction.ljust(6, "0") or 0)
    return -size if text.startswith("-") else size
