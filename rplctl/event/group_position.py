"""Compute the position in the source's log in the group kernel, event by event, by the rules in `groups`.

A FORMAT_DESCRIPTION also sets the checksum length of the events after it.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from rplctl.event.bytes_at import u16, u32
from rplctl.event.event_classes import DESCRIPTION, ROTATE
from rplctl.event.header import FLAG_ARTIFICIAL, FLAG_RELAY_LOG, HEADER_LENGTH
from rplctl.event.jit import ByteArray, lean_kernel
from rplctl.position import LARGEST_POSITION

# Registers (int64). The caller of the group kernel sets the first two.
POSITION: Final = 0  # source position after the last exact event
CHECKSUM: Final = 1  # checksum length in force
INEXACT: Final = 2  # bytes of the events without end_log_pos since the last exact event

SHORTEST_DESCRIPTION: Final = HEADER_LENGTH + 57 + 5  # header, fixed part, algorithm and checksum
_HIGH_OF_NONE: Final = LARGEST_POSITION + 1 >> 32  # high 32 bits of the first impossible position
_LOW_32: Final = 0xFFFFFFFF
_BACKWARDS_FROM: Final = 3 << 30  # a step this large modulo 2^32 is a step back


@lean_kernel
def _advance(registers: NDArray[np.int64], end_log_pos: int, length: int, flags: int, event_class: int) -> bool:
    """Move the source position in `registers` past an event that is not a ROTATE of the source.

    Return False if the position would go backwards.
    """
    if flags & FLAG_RELAY_LOG:
        return True
    if event_class == DESCRIPTION:
        if registers[POSITION] < end_log_pos:
            registers[POSITION] = end_log_pos
        return True
    if end_log_pos == 0:
        if flags & FLAG_ARTIFICIAL == 0:
            registers[INEXACT] += length
        return True
    distance = (end_log_pos - registers[POSITION]) & _LOW_32
    if distance > _BACKWARDS_FROM:
        return flags & FLAG_ARTIFICIAL != 0
    registers[POSITION] += distance
    registers[INEXACT] = 0
    return True


@lean_kernel
def has_checksum_field(data: ByteArray, at: int) -> bool:
    """True if the FORMAT_DESCRIPTION at offset `at` ends with a checksum algorithm and a checksum.

    MySQL before 5.6.1 and MariaDB before 5.3 do not write these fields.
    """
    number, part, value = 0, 0, 0
    cursor = at + HEADER_LENGTH + 2
    while cursor < at + HEADER_LENGTH + 48:
        byte = int(data[cursor])
        if 48 <= byte <= 57:
            value = value * 10 + byte - 48
        elif byte == 46 and part < 2:
            number, part, value = number * 1000 + value, part + 1, 0
        else:
            break
        cursor += 1
    number = number * 1000 + value
    return number >= 5006001 or (number >= 5003000 and data[cursor] == 45 and data[cursor + 1] == 77)  # -M


@lean_kernel
def description_checksum(data: ByteArray, at: int, end: int) -> int:
    """Return the checksum length that a FORMAT_DESCRIPTION announces for the events after it.

    The event must have at least SHORTEST_DESCRIPTION bytes.
    """
    return 4 if has_checksum_field(data, at) and data[end - 5] == 1 else 0


@lean_kernel
def move_position(data: ByteArray, registers: NDArray[np.int64], at: int, event_class: int) -> bool:
    """Move the source position in `registers` past the event at offset `at`.

    Return False if the position would go backwards or is too large.
    """
    flags, length = u16(data, at + 17), u32(data, at + 9)
    if event_class == ROTATE and flags & FLAG_RELAY_LOG == 0:
        high = u32(data, at + HEADER_LENGTH + 4)
        registers[POSITION] = u32(data, at + HEADER_LENGTH) + (high << 32)
        registers[INEXACT] = 0
        return high < _HIGH_OF_NONE
    moved = _advance(registers, u32(data, at + 13), length, flags, event_class)
    if event_class == DESCRIPTION:
        registers[CHECKSUM] = description_checksum(data, at, at + length)
    return moved
