"""Verify the CRC32 checksums of many events at once, for the receiver and for recovery.

`verify_events` first checks all events as one run of bytes. Bytes that end with their own CRC32 always have the same
CRC32, the RESIDUE. So the CRC32 of a run of valid events depends only on the lengths of the events. The library zlib
reads one long run three times as fast as single events. If the run does not have the expected CRC32, a kernel checks
each event, with eight table accesses per eight bytes (slice-by-8).

A FORMAT_DESCRIPTION changes the checksum algorithm for the events after it. Since MySQL 5.6.1 and MariaDB 5.3, this
event has a checksum, too, which is computed with the in-use flag cleared. Earlier servers write no checksums.

A replica may request a log from a position in the middle of the file. The server then first sends a changed copy of the
file's FORMAT_DESCRIPTION, in which `created` is 0. If the log has no checksums, the copy has the checksum of the
original event (MariaDB 10.11, MySQL 9.7). This checksum does not match the copy, so the kernel does not verify it.

The module `checksum_trailer` computes and checks the checksum of a single event.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from isal.isal_zlib import crc32
from numpy.typing import NDArray

from rplctl.event.bytes_at import u32
from rplctl.event.group_position import SHORTEST_DESCRIPTION, description_checksum, has_checksum_field
from rplctl.event.header import CHECKSUM_LENGTH, HEADER_LENGTH
from rplctl.event.jit import Buffer, ByteArray, byte_view, lean_kernel
from rplctl.event.types import EventType

_POLYNOMIAL: Final = 0xEDB88320
_DESCRIPTION: Final = int(EventType.FORMAT_DESCRIPTION)
_CREATED: Final = HEADER_LENGTH + 52


def _tables() -> NDArray[np.uint32]:
    tables = np.zeros((8, 256), dtype=np.uint32)
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        tables[0, byte] = value
    for number in range(1, 8):
        previous = tables[number - 1]
        tables[number] = (previous >> 8) ^ tables[0][previous & 0xFF]
    tables.flags.writeable = False
    return tables


def _zeros_tables(byte_table: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return tables with which a CRC32 is continued over 2^k zero bytes, as an array with the indexes [k, j, v].

    The entry [k, j, v] is the new CRC32 if byte j of the old CRC32 is v, and its three other bytes are 0. For any other
    old CRC32, the new CRC32 is the XOR of four entries, one for each byte of the old CRC32.
    """
    tables = np.zeros((32, 4, 256), np.uint32)
    values = np.arange(256, dtype=np.uint32)
    for j in range(4):
        crc = values << np.uint32(8 * j)
        tables[0, j] = (crc >> np.uint32(8)) ^ byte_table[crc & np.uint32(0xFF)]
    for k in range(1, 32):
        before = tables[k - 1]
        for j in range(4):
            crc = before[j]
            tables[k, j] = np.bitwise_xor.reduce(
                [before[i][crc >> np.uint32(8 * i) & np.uint32(0xFF)] for i in range(4)]
            )
    tables.flags.writeable = False
    return tables


CRC_TABLES: Final = _tables()
RESIDUE: Final = 0x2144DF1C
_ZEROS_TABLES: Final = _zeros_tables(CRC_TABLES[0])
_SHORTEST: Final = HEADER_LENGTH + CHECKSUM_LENGTH


def verify_events(data: Buffer, offsets: NDArray[np.int64], algorithm: int = 1) -> int:
    """Return the index of the first event with a wrong checksum, or -1. Event i is `data[offsets[i]:offsets[i + 1]]`.

    `algorithm` is the checksum algorithm before the first event: 1 is CRC32. With 0, events are not checked until a
    FORMAT_DESCRIPTION sets another algorithm.
    """
    view, offsets = byte_view(data), np.ascontiguousarray(offsets, dtype=np.int64)
    if algorithm and len(offsets) > 1:
        piece = view[offsets[0] : offsets[-1]]
        if _crc_if_good(offsets, _ZEROS_TABLES) == crc32(piece.data):
            return -1
    return int(_verify(view, offsets, algorithm, CRC_TABLES))


@lean_kernel
def _crc_if_good(offsets: NDArray[np.int64], zeros: NDArray[np.uint32]) -> Any:
    """Return the CRC32 that the concatenated events have if the checksum of every event is correct.

    This value depends only on the lengths of the events. The caller compares it with the CRC32 of the bytes, and so
    checks all events at once. `zeros`: for each power of two, the tables that append so many zero bytes to a CRC32.
    Return -1 if an event is too short to have a checksum.
    """
    crc = np.uint32(0)
    low = np.uint32(0xFF)
    for index in range(len(offsets) - 1):
        length = offsets[index + 1] - offsets[index]
        if length < _SHORTEST:
            return np.int64(-1)
        k = 0
        while length:
            if length & 1:
                crc = (
                    zeros[k, 0, crc & low]
                    ^ zeros[k, 1, (crc >> np.uint32(8)) & low]
                    ^ zeros[k, 2, (crc >> np.uint32(16)) & low]
                    ^ zeros[k, 3, crc >> np.uint32(24)]
                )
            length >>= 1
            k += 1
        crc ^= np.uint32(RESIDUE)
    return np.int64(crc)


@lean_kernel
def crc_range(data: ByteArray, start: int, end: int, tables: NDArray[np.uint32], crc: np.uint32) -> np.uint32:
    t0, t1, t2, t3 = tables[0], tables[1], tables[2], tables[3]
    t4, t5, t6, t7 = tables[4], tables[5], tables[6], tables[7]
    at = start
    while at + 8 <= end:
        low = crc ^ np.uint32(u32(data, at))
        crc = (
            t7[low & np.uint32(0xFF)]
            ^ t6[(low >> np.uint32(8)) & np.uint32(0xFF)]
            ^ t5[(low >> np.uint32(16)) & np.uint32(0xFF)]
            ^ t4[low >> np.uint32(24)]
            ^ t3[data[at + 4]]
            ^ t2[data[at + 5]]
            ^ t1[data[at + 6]]
            ^ t0[data[at + 7]]
        )
        at += 8
    while at < end:
        crc = t0[(crc ^ np.uint32(data[at])) & np.uint32(0xFF)] ^ (crc >> np.uint32(8))
        at += 1
    return crc


@lean_kernel
def _verify(data: ByteArray, offsets: NDArray[np.int64], algorithm: int, tables: NDArray[np.uint32]) -> int:
    ones = np.uint32(0xFFFFFFFF)
    checked = algorithm != 0
    for index in range(len(offsets) - 1):
        start, end = offsets[index], offsets[index + 1] - CHECKSUM_LENGTH
        is_description = data[start + 4] == _DESCRIPTION
        if not checked and not is_description:
            continue
        if end < start + HEADER_LENGTH:
            return index
        if is_description:
            if end + CHECKSUM_LENGTH < start + SHORTEST_DESCRIPTION:
                return index
            checked = description_checksum(data, start, end + CHECKSUM_LENGTH) != 0
            is_stale = u32(data, start + _CREATED) == 0 and u32(data, end) != 0  # zeros: an incomplete write
            if not checked and (is_stale or not has_checksum_field(data, start)):
                continue
            crc = crc_range(data, start, start + 17, tables, ones)
            first = np.uint32(data[start + 17] & 0xFE)
            crc = tables[0][(crc ^ first) & np.uint32(0xFF)] ^ (crc >> np.uint32(8))
            crc = crc_range(data, start + 18, end, tables, crc)
        else:
            crc = crc_range(data, start, end, tables, ones)
        if np.uint32(crc ^ ones) != np.uint32(u32(data, end)):
            return index
    return -1
