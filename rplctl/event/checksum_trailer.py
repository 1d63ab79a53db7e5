"""Compute, append, remove or check the checksum of one event. The module `checksum` verifies many events at once.

The checksum is the last four bytes of an event: the CRC32 of all bytes before them, little-endian. The CRC32 of a
FORMAT_DESCRIPTION is computed with its in-use flag cleared.
"""

from __future__ import annotations

import zlib

from rplctl.event.header import CHECKSUM_LENGTH, FLAG_BINLOG_IN_USE, HEADER_LENGTH, format_error
from rplctl.event.types import EventType

_LENGTH_AT = slice(9, 13)
_FLAGS_AT = 17


def event_crc(event_without: bytes) -> int:
    """Return the CRC32 of one event. `event_without` is the event without its checksum."""
    if len(event_without) >= HEADER_LENGTH and event_without[4] == EventType.FORMAT_DESCRIPTION:
        flags = event_without[_FLAGS_AT] & ~FLAG_BINLOG_IN_USE & 0xFF
        event_without = event_without[:_FLAGS_AT] + bytes([flags]) + event_without[_FLAGS_AT + 1 :]
    return zlib.crc32(event_without)


def append_checksum(event_without: bytes) -> bytes:
    """Return the event with its checksum.

    Raises BinlogFormatError if the length in the header does not already include the checksum.
    """
    length = int.from_bytes(event_without[_LENGTH_AT], "little")
    if length != len(event_without) + CHECKSUM_LENGTH:
        raise format_error(f"event length {length} does not count the checksum", event_without)
    return event_without + event_crc(event_without).to_bytes(CHECKSUM_LENGTH, "little")


def without_checksum(event: bytes, checksum_length: int) -> bytes:
    """Return the event without its checksum, and with the shorter length in its header.

    `checksum_length` is the number of checksum bytes at the end of `event`: 4 or 0.
    """
    length = len(event) - checksum_length
    return event[:9] + length.to_bytes(4, "little") + event[13:length]


def has_valid_checksum(event: bytes) -> bool:
    """True if the last four bytes of one complete event are its checksum."""
    stored = int.from_bytes(event[-CHECKSUM_LENGTH:], "little")
    return len(event) >= HEADER_LENGTH + CHECKSUM_LENGTH and stored == event_crc(event[:-CHECKSUM_LENGTH])
