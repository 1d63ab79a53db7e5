"""Copy events to another offset in another file. Only end_log_pos (header offset 13) and the checksum change.

Invariant: a copied event keeps its length, and its end_log_pos is the end of the copy. Events in groups of MariaDB >=
11.4, which have no end_log_pos (0), also get this value. FORMAT_DESCRIPTION is never copied, because its checksum has
other rules.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rplctl.event.bytes_at import copy_bytes
from rplctl.event.checksum import CRC_TABLES, crc_range
from rplctl.event.header import CHECKSUM_LENGTH
from rplctl.event.jit import ByteArray, lean_kernel


def relocated(
    data: ByteArray, starts: NDArray[np.int64], lengths: NDArray[np.int64], position: int, *, has_checksum: bool
) -> ByteArray:
    """Return copies of complete events as consecutive bytes. The first copy begins at `position` in the new file."""
    copied = np.empty(int(lengths.sum()), np.uint8)
    starts, lengths = np.ascontiguousarray(starts, np.int64), np.ascontiguousarray(lengths, np.int64)
    _relocate(data, starts, lengths, position, has_checksum, CRC_TABLES, copied)
    return copied


@lean_kernel
def _relocate(
    data: ByteArray,
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    position: int,
    has_checksum: bool,
    tables: NDArray[np.uint32],
    copied: ByteArray,
) -> None:
    ones = np.uint32(0xFFFFFFFF)
    at = 0
    for number in range(len(starts)):
        start, length = starts[number], lengths[number]
        copy_bytes(data, start, length, copied, at)
        end = position + at + length
        for byte in range(4):
            copied[at + 13 + byte] = (end >> (8 * byte)) & 0xFF
        if has_checksum:
            body_end = start + length - CHECKSUM_LENGTH
            crc = crc_range(data, start, start + 13, tables, ones)
            for byte in range(4):
                changed = np.uint32((end >> (8 * byte)) & 0xFF)
                crc = tables[0][(crc ^ changed) & np.uint32(0xFF)] ^ (crc >> np.uint32(8))
            crc = crc_range(data, start + 17, body_end, tables, crc) ^ ones
            for byte in range(4):
                copied[at + length - CHECKSUM_LENGTH + byte] = (crc >> np.uint32(8 * byte)) & np.uint32(0xFF)
        at += length
