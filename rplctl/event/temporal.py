"""Convert temporal cells of every format of MySQL and MariaDB to the server's text (TIMESTAMP in UTC).

    type             bytes
    DATE             3, little-endian: year << 9 | month << 5 | day
    TIME2            3 + fraction, big-endian, + 0x800000: hour << 12 | minute << 6 | second; negative: complement
    DATETIME2        5 + fraction, big-endian, + 0x8000000000: ((year * 13 + month) << 5 | day) << 17 | time
    TIMESTAMP2       4 + fraction, big-endian: seconds since 1970
    TIME             3, little-endian, signed: hhmmss as a decimal number
    DATETIME         8, little-endian: yyyymmddhhmmss as a decimal number
    TIMESTAMP        4, little-endian: seconds since 1970

    fraction digits  bytes of the fraction
    0                0
    1 or 2           1, in hundredths of a second
    3 or 4           2, in ten-thousandths
    5 or 6           3, in microseconds

With mysql56_temporal_format=OFF, MariaDB stores TIME, DATETIME and TIMESTAMP with fraction digits in a big-endian
format of its own (`mariadb_*_sheet`). The table map does not show this.

Invariant: zero and partial dates are unchanged ('0000-00-00', '2024-00-10'); only TIMESTAMP uses a calendar. The
functions process arrays of cells, one integer per cell, and write the digits into one byte matrix (a sheet). `digits`
is the number of fraction digits of the column. (Manual: MySQL Internals, Date and Time Data Type Representation.)
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from rplctl.event.text_matrix import TextSheet, new_sheet

Unsigned = npt.NDArray[np.uint64]
Signed = npt.NDArray[np.int64]

_DATETIME_WIDTH: Final = 19
_FRACTION: Final = 1 << 24


def date_sheet(packed: Unsigned) -> TextSheet:
    """Return the texts of DATE and NEWDATE cells, which are little-endian integers."""
    value = packed.astype(np.int64)
    out = new_sheet(len(value), 10)
    _write_date(out, value >> 9, (value >> 5) & 15, value & 31)
    return _whole(out)


def datetime2_sheet(stored: Unsigned, digits: int) -> TextSheet:
    """Return the texts of DATETIME2 cells. `stored` has each whole cell, fraction included, as a big-endian integer."""
    scale, fraction_bits = _fraction_of(digits)
    value = stored.astype(np.int64) - (np.int64(1) << (39 + fraction_bits))
    whole = value >> fraction_bits
    return _datetimes(whole >> 17, whole & 0x1FFFF, (value & ((1 << fraction_bits) - 1)) * scale, digits)


def time2_sheet(stored: Unsigned, digits: int) -> TextSheet:
    """Return the texts of TIME2 cells. `stored` has each whole cell, fraction included, as a big-endian integer."""
    scale, fraction_bits = _fraction_of(digits)
    value = stored.astype(np.int64) - (np.int64(1) << (23 + fraction_bits))
    size = np.abs(value)
    whole = size >> fraction_bits
    micros = (size & ((1 << fraction_bits) - 1)) * scale
    return _times(value < 0, (whole >> 12) & 0x3FF, (whole >> 6) & 63, whole & 63, micros, digits)


def timestamp2_sheet(stored: Unsigned, digits: int) -> TextSheet:
    """Return the texts of TIMESTAMP2 cells in UTC. Zero is '0000-00-00 00:00:00'.

    `stored` has each whole cell, fraction included, as a big-endian integer.
    """
    scale, fraction_bits = _fraction_of(digits)
    value = stored.astype(np.int64)
    return timestamp_sheet(value >> fraction_bits, (value & ((1 << fraction_bits) - 1)) * scale, digits)


def timestamp_sheet(seconds: Signed, micros: Signed, digits: int) -> TextSheet:
    """Return the texts of points in time, in UTC, from seconds since 1970 and microseconds.

    Zero is '0000-00-00 00:00:00'.
    """
    days, second = np.divmod(seconds, 86400)
    year, month, day = _civil(days)
    is_zero = (seconds == 0) & (micros == 0)
    packed_day = np.where(is_zero, 0, ((year * 13 + month) << 5) | day)
    time = np.where(is_zero, 0, (second // 3600) << 12 | (second // 60 % 60) << 6 | second % 60)
    return _datetimes(packed_day, time, micros, digits)


def old_datetime_sheet(value: Unsigned) -> TextSheet:
    """Return the texts of DATETIME cells in the format before MySQL 5.6, which is the number yyyymmddhhmmss."""
    number = value.astype(np.int64)
    day, time = np.divmod(number, 1_000_000)
    packed_day = ((day // 10000 * 13 + day // 100 % 100) << 5) | day % 100
    packed_time = (time // 10000) << 12 | (time // 100 % 100) << 6 | time % 100
    return _datetimes(packed_day, packed_time, np.zeros_like(number), 0)


def old_time_sheet(value: Unsigned) -> TextSheet:
    """Return the texts of TIME cells in the format before MySQL 5.6, which is a signed 24-bit number hhmmss."""
    number = value.astype(np.int64)
    number = np.where(number >= 1 << 23, number - (1 << 24), number)
    size = np.abs(number)
    return _times(number < 0, size // 10000, size // 100 % 100, size % 100, np.zeros_like(size), 0)


def old_timestamp_sheet(value: Unsigned) -> TextSheet:
    """Return the texts of TIMESTAMP cells in the format before MySQL 5.6, which is the seconds since 1970."""
    seconds = value.astype(np.int64)
    return timestamp_sheet(seconds, np.zeros_like(seconds), 0)


def mariadb_datetime_sheet(stored: Unsigned, digits: int) -> TextSheet:
    """Return the texts of DATETIME(1-6) cells in MariaDB's old format.

    A cell counts the time since year 0, in units of the last fraction digit. In this count, every month has 32 days,
    and every year has 13 months.
    """
    unit = 10**digits
    value = stored.astype(np.int64)
    seconds, fraction = np.divmod(value, unit)
    days, second = np.divmod(seconds, 86400)
    packed_time = (second // 3600) << 12 | (second // 60 % 60) << 6 | second % 60
    return _datetimes(days, packed_time, fraction * (1_000_000 // unit), digits)


def mariadb_time_sheet(stored: Unsigned, digits: int) -> TextSheet:
    """Return the texts of TIME(1-6) cells in MariaDB's old format.

    A cell counts the time since one second before -838:59:59, in units of the last fraction digit.
    """
    unit = 10**digits
    value = stored.astype(np.int64) - (838 * 3600 + 59 * 60 + 59 + 1) * unit
    seconds, fraction = np.divmod(np.abs(value), unit)
    micros = fraction * (1_000_000 // unit)
    return _times(value < 0, seconds // 3600, seconds // 60 % 60, seconds % 60, micros, digits)


def mariadb_timestamp_sheet(stored: Unsigned, digits: int) -> TextSheet:
    """Return the texts of TIMESTAMP(1-6) cells in MariaDB's old format, in UTC.

    A cell has the seconds since 1970, and then the fraction in units of the last fraction digit.
    """
    width = (digits + 1) // 2
    value = stored.astype(np.int64)
    micros = (value & ((1 << (8 * width)) - 1)) * 10 ** (6 - digits)
    return timestamp_sheet(value >> (8 * width), micros, digits)


def packed_datetime_text(packed: int) -> str:
    """Return the text of a datetime in binary JSON, always with six fraction digits."""
    whole = np.array([packed >> 24], np.int64)
    return _datetimes(whole >> 17, whole & 0x1FFFF, np.array([packed % _FRACTION], np.int64), 6).texts()[0]


def packed_date_text(packed: int) -> str:
    """Return the text of a date in binary JSON."""
    return packed_datetime_text(packed)[:10]


def packed_time_text(packed: int) -> str:
    """Return the text of a time in binary JSON, always with six fraction digits."""
    size = np.array([abs(packed)], np.int64)
    whole = size >> 24
    negative = np.array([packed < 0])
    return _times(negative, (whole >> 12) & 0x3FF, (whole >> 6) & 63, whole & 63, size % _FRACTION, 6).texts()[0]


def _fraction_of(digits: int) -> tuple[int, int]:
    """Return (microseconds per unit of the stored fraction, bits of the fraction)."""
    width = (digits + 1) // 2
    return 10 ** (6 - 2 * width), 8 * width


def _civil(days: Signed) -> tuple[Signed, Signed, Signed]:
    """Return year, month and day for days since 1970-01-01 (proleptic Gregorian calendar)."""
    dates = days.astype("datetime64[D]")
    months = dates.astype("datetime64[M]")
    year, month = np.divmod(months.astype(np.int64), 12)
    return year + 1970, month + 1, (dates - months.astype("datetime64[D]")).astype(np.int64) + 1


def _write(out: npt.NDArray[np.uint8], at: int, value: Signed, digits: int) -> None:
    """Write the decimal digits of `value` into the columns from `at` to at + digits - 1."""
    rest = value
    for column in range(at + digits - 1, at - 1, -1):
        rest, digit = np.divmod(rest, 10)
        out[:, column] = digit + 48


def _write_date(out: npt.NDArray[np.uint8], year: Signed, month: Signed, day: Signed) -> None:
    _write(out, 0, year, 4)
    out[:, 4] = out[:, 7] = ord("-")
    _write(out, 5, month, 2)
    _write(out, 8, day, 2)


def _write_time(
    out: npt.NDArray[np.uint8], at: int, minute: Signed, second: Signed, micros: Signed, digits: int
) -> None:
    """Write `:mm:ss[.ffffff]` from column `at`."""
    out[:, at] = out[:, at + 3] = ord(":")
    _write(out, at + 1, minute, 2)
    _write(out, at + 4, second, 2)
    if digits:
        out[:, at + 6] = ord(".")
        _write(out, at + 7, micros // 10 ** (6 - digits), digits)


def _whole(out: npt.NDArray[np.uint8]) -> TextSheet:
    return TextSheet(out, np.zeros(len(out), np.int64))


def _datetimes(packed_day: Signed, packed_time: Signed, micros: Signed, digits: int) -> TextSheet:
    width = _DATETIME_WIDTH + (digits + 1 if digits else 0)
    out = new_sheet(len(packed_day), width)
    month = packed_day >> 5
    _write_date(out, month // 13, month % 13, packed_day & 31)
    out[:, 10] = ord(" ")
    _write(out, 11, packed_time >> 12, 2)
    _write_time(out, 13, (packed_time >> 6) & 63, packed_time & 63, micros, digits)
    return _whole(out)


def _times(
    negative: npt.NDArray[np.bool_], hour: Signed, minute: Signed, second: Signed, micros: Signed, digits: int
) -> TextSheet:
    """Return the texts `[-]hh[h]:mm:ss[.ffffff]`. Hours have two or three digits."""
    width = 10 + (digits + 1 if digits else 0)
    out = new_sheet(len(hour), width)
    _write(out, 1, hour, 3)
    _write_time(out, 4, minute, second, micros, digits)
    first = np.where(hour < 100, 2, 1)
    rows = np.flatnonzero(negative)
    out[rows, first[rows] - 1] = ord("-")
    return TextSheet(out, first - negative)
