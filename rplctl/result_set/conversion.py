"""Kernels that convert a result set's DECIMAL, YEAR, dates, times and UUIDs to the form of a row event.

In a result set (manual: "Binary Protocol Value"), a DECIMAL is its text, and a YEAR has two bytes. A date or time is a
length byte, then year (2), month, day, hour, minute, second, microseconds (4). A TIME is a length byte, then sign, days
(4), hour, minute, second, microseconds (4). Trailing zeros are omitted.

Each kernel reads only the `length` bytes at `data[start]` and writes `size` bytes at `out[at]`, which the caller has
allocated. The result is True if the value has a valid form. Invariant: nothing is rounded; a value that does not fit is
rejected.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rplctl.event.bytes_at import u16, u32
from rplctl.event.jit import lean_kernel


@lean_kernel
def put_big_endian(out: Any, at: Any, value: Any, size: Any) -> Any:
    for k in range(size):
        out[at + k] = (value >> (8 * (size - 1 - k))) & 0xFF
    return True


@lean_kernel
def put_decimal(data: Any, start: Any, length: Any, precision: Any, scale: Any, out: Any, at: Any, size: Any) -> Any:
    """Convert the text of a DECIMAL to the packed format of a row event (`event.decimal`).

    The digits are grouped by nine, from the decimal point outwards. The first bit is inverted. If the number is
    negative, all bits are inverted as well.
    """
    negative = length > 0 and data[start] == 45
    p = start + 1 if negative else start
    end = start + length
    point = end
    for k in range(p, end):
        if data[k] == 46 and point == end:
            point = k
        elif data[k] < 48 or data[k] > 57:
            return False
    whole = precision - scale
    if whole < 0 or scale < 0 or p == point:
        return False
    while p < point and data[p] == 48:  # a single zero, or the zeros of ZEROFILL
        p += 1
    if point - p > whole or end - point - 1 > scale:
        return False
    filled = at
    first = whole % 9
    groups = (1 if first else 0) + whole // 9 + (scale + 8) // 9
    position = 0  # number of digits before the group
    any_digit = np.int64(0)
    for g in range(groups):
        if position < whole:
            count = first if g == 0 and first else 9
        else:
            count = min(9, scale - (position - whole))
        value = np.int64(0)
        for d in range(position, position + count):
            digit = np.int64(0)
            if d < whole:
                k = point - (whole - d)
                if k >= p:
                    digit = np.int64(data[k]) - 48
            else:
                k = point + 1 + (d - whole)
                if k < end:
                    digit = np.int64(data[k]) - 48
            value = value * 10 + digit
        any_digit |= value
        width = (count + 1) // 2 if count < 9 else 4
        if count == 7 or count == 8:
            width = 4
        if filled + width > at + size:
            return False
        put_big_endian(out, filled, value, width)
        filled += width
        position += count
    if filled - at != size or size == 0:
        return False
    if negative and any_digit:
        for k in range(at, filled):
            out[k] ^= 0xFF
    out[at] ^= 0x80
    return True


@lean_kernel
def put_year(data: Any, start: Any, out: Any, at: Any) -> Any:
    """Convert a year to the number of years since 1900. The year 0 stays 0."""
    year = u16(data, start)
    if year == 0:
        out[at] = 0
    elif 1901 <= year <= 2155:
        out[at] = year - 1900
    else:
        return False
    return True


@lean_kernel
def put_short_year(data: Any, start: Any, out: Any, at: Any) -> Any:
    """Convert a YEAR(2) to years since 1900. The numbers 70 to 99 belong to the 20th century.

    MariaDB prints 00 also for '0000'. The result is then 2000, which MariaDB also stores for an inserted 0.
    """
    year = u16(data, start)
    out[at] = year if year >= 70 else year + 100
    return year < 100


@lean_kernel
def put_date(data: Any, start: Any, length: Any, out: Any, at: Any) -> Any:
    if length != 0 and length < 4:
        return False
    packed = np.int64(0)
    if length:
        packed = np.int64(u16(data, start)) << 9 | np.int64(data[start + 2]) << 5 | np.int64(data[start + 3])
    for k in range(3):
        out[at + k] = (packed >> (8 * k)) & 0xFF
    return True


@lean_kernel
def _put_moment(out: Any, at: Any, value: Any, micros: Any, digits: Any, size: Any, sign: Any) -> Any:
    """Write a date or time as one big-endian number: an offset, plus `value` followed by the bits of the fraction.

    `sign` is the offset without the bits of the fraction. For a TIME, a row event has such an offset, so that negative
    values sort before positive ones. If `sign` is negative, `value` and the fraction are subtracted from the offset.
    Return False if the fraction has more digits than the column.
    """
    width = (digits + 1) // 2
    unit = np.int64(1)
    for _ in range(6 - 2 * width):
        unit *= 10
    if micros % unit:
        return False
    bits = 8 * width
    value = (value << bits) | (micros // unit)
    if sign < 0:
        return put_big_endian(out, at, (-sign << bits) - value, size)
    return put_big_endian(out, at, (sign << bits) + value, size)


@lean_kernel
def put_datetime(data: Any, start: Any, length: Any, digits: Any, out: Any, at: Any, size: Any) -> Any:
    if length != 0 and length != 4 and length != 7 and length != 11:
        return False
    value = np.int64(0)
    micros = np.int64(0)
    if length:
        month = np.int64(u16(data, start)) * 13 + np.int64(data[start + 2])
        value = (month << 5 | np.int64(data[start + 3])) << 17
    if length >= 7:
        value |= np.int64(data[start + 4]) << 12 | np.int64(data[start + 5]) << 6 | np.int64(data[start + 6])
    if length == 11:
        micros = np.int64(u32(data, start + 7))
    return _put_moment(out, at, value | np.int64(1) << 39, micros, digits, size, np.int64(0))


@lean_kernel
def put_timestamp(data: Any, start: Any, length: Any, digits: Any, out: Any, at: Any, size: Any) -> Any:
    """Convert a timestamp of a session at +00:00 to seconds since 1970. The zero date becomes 0."""
    if length != 0 and length != 4 and length != 7 and length != 11:
        return False
    seconds = np.int64(0)
    micros = np.int64(0)
    if length:
        year = np.int64(u16(data, start))
        month = np.int64(data[start + 2])
        if year:
            shifted = year - (1 if month <= 2 else 0)  # proleptic Gregorian calendar; a year begins in March
            of_era = shifted % 400
            day = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + np.int64(data[start + 3]) - 1
            days = (shifted // 400) * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + day - 719468
            seconds = days * 86400
    if length >= 7:
        seconds += np.int64(data[start + 4]) * 3600 + np.int64(data[start + 5]) * 60 + np.int64(data[start + 6])
    if length == 11:
        micros = np.int64(u32(data, start + 7))
    if seconds < 0 or seconds >> 32:
        return False
    return _put_moment(out, at, seconds, micros, digits, size, np.int64(0))


@lean_kernel
def put_time(data: Any, start: Any, length: Any, digits: Any, out: Any, at: Any, size: Any) -> Any:
    if length != 0 and length != 8 and length != 12:
        return False
    value = np.int64(0)
    micros = np.int64(0)
    negative = False
    if length:
        negative = data[start] != 0
        hours = np.int64(u32(data, start + 1)) * 24 + np.int64(data[start + 5])
        if hours > 838:
            return False
        value = hours << 12 | np.int64(data[start + 6]) << 6 | np.int64(data[start + 7])
    if length == 12:
        micros = np.int64(u32(data, start + 8))
    middle = np.int64(1) << 23
    return _put_moment(out, at, value, micros, digits, size, -middle if negative else middle)


@lean_kernel
def put_uuid(data: Any, start: Any, length: Any, out: Any, at: Any) -> Any:
    """Convert a UUID from the order of its text to MariaDB's order (`event.inet_uuid`).

    In MariaDB's order, UUIDs of the versions 1-5 sort by time.
    """
    if length != 16:
        return False
    if data[start + 8] & 0x80 and 0 < data[start + 6] < 0x60:
        for k in range(6):
            out[at + k] = data[start + 10 + k]
        for k in range(2):
            out[at + 6 + k] = data[start + 8 + k]
            out[at + 8 + k] = data[start + 6 + k]
            out[at + 10 + k] = data[start + 4 + k]
        for k in range(4):
            out[at + 12 + k] = data[start + k]
    else:
        for k in range(16):
            out[at + k] = data[start + k]
    return True
