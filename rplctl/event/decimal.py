"""Convert DECIMAL values in row images and in JSON to text. The server stores them in its packed decimal format:

    bytes     field
    0-4       the first integer digits, which do not fill a group of 9
    4 each    groups of 9 integer digits, big-endian
    4 each    groups of 9 fraction digits
    0-4       the last fraction digits, which do not fill a group of 9

The highest bit of the first byte is inverted. In a negative number, all bits are inverted as well (manual: DECIMAL Data
Type Characteristics). Invariant: the text is exact and as the server prints it: all fraction digits, no leading zeros,
no "-0".
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from rplctl.event.text_matrix import TextSheet, new_sheet

DIGITS_PER_GROUP: Final = 9
_BYTES_OF_DIGITS: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


def decimal_size(precision: int, scale: int) -> int:
    """Return the size of a DECIMAL(precision, scale) in bytes."""
    whole, part = divmod(precision - scale, DIGITS_PER_GROUP)
    groups, rest = divmod(scale, DIGITS_PER_GROUP)
    return _BYTES_OF_DIGITS[part] + 4 * (whole + groups) + _BYTES_OF_DIGITS[rest]


def decimal_text(packed: bytes, precision: int, scale: int) -> str:
    """Return the text of one packed decimal. `packed` must have `decimal_size(precision, scale)` bytes."""
    negative = not packed[0] & 0x80
    value = int.from_bytes(packed, "big") ^ (1 << (8 * len(packed) - 1))
    if negative:
        value ^= (1 << (8 * len(packed))) - 1
    raw = value.to_bytes(len(packed), "big")
    digits: list[str] = []
    position = 0
    for count in _groups(precision, scale):
        width = _BYTES_OF_DIGITS[count]
        digits.append(str(int.from_bytes(raw[position : position + width], "big")).zfill(count))
        position += width
    text = "".join(digits)
    whole = text[: precision - scale].lstrip("0") or "0"
    body = f"{whole}.{text[precision - scale :]}" if scale else whole
    return f"-{body}" if negative and value else body


def _groups(precision: int, scale: int) -> list[int]:
    """Return the number of digits in each stored group, in the order of the bytes."""
    whole, part = divmod(precision - scale, DIGITS_PER_GROUP)
    groups, rest = divmod(scale, DIGITS_PER_GROUP)
    sizes = [part] if part else []
    sizes += [DIGITS_PER_GROUP] * (whole + groups)
    return [*sizes, rest] if rest else sizes


def decimal_sheet(packed: npt.NDArray[np.uint8], precision: int, scale: int) -> TextSheet:
    """Return the texts of n packed decimals. `packed` has the shape [n, decimal_size(precision, scale)]."""
    raw = packed.copy()
    raw[:, 0] ^= 0x80
    negative = packed[:, 0] < 0x80
    raw[negative] ^= 0xFF
    whole = precision - scale
    shown = max(whole, 1)
    width = 1 + shown + (1 + scale if scale else 0)
    sheet = new_sheet(len(raw), width)  # one column for the sign, then all digits
    at = 1 if whole else 2  # after the zero of 0.5
    position = 0
    for count in _groups(precision, scale):
        if at == 1 + shown:
            sheet[:, at] = ord(".")
            at += 1
        size = _BYTES_OF_DIGITS[count]
        value = np.zeros(len(raw), np.int64)
        for byte in range(position, position + size):
            value = (value << 8) | raw[:, byte]
        position += size
        for column in range(at + count - 1, at - 1, -1):
            value, digit = np.divmod(value, 10)
            sheet[:, column] = digit + ord("0")
        at += count
    zeros = (np.cumsum(sheet[:, 1 : shown + 1] != ord("0"), axis=1) == 0).sum(axis=1)
    first = np.minimum(zeros, shown - 1)
    rows = np.flatnonzero(negative)
    sheet[rows, first[rows]] = ord("-")
    return TextSheet(sheet, first + ~negative)
