"""Decompress the compressed record at the end of a QUERY_COMPRESSED or compressed rows event of MariaDB.

    u8     0x80 | algorithm << 4 | n      algorithm 0 = zlib, the only algorithm
    n      length of the plain bytes, big-endian, n = 1 … 4
    …      zlib stream

Invariant: the output never exceeds `max_bytes`, even if the record states a larger length.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rplctl.event.bytes_at import u16, u24
from rplctl.event.header import HEADER_LENGTH, format_error
from rplctl.event.jit import Buffer, ByteArray, byte_view, lean_kernel

MAX_INFLATED: Final = 1 << 30
_ALGORITHM_MASK = 0x70
_LENGTH_MASK = 0x07
_PIECE_BYTES = 1 << 20


def inflate(record: bytes, max_bytes: int, event: bytes) -> bytes:
    """Return the plain bytes of a compressed record. `event` is the event with this record, for the error's text.

    Raises BinlogFormatError if the record is damaged, or if it has more than `max_bytes` plain bytes.
    """
    return b"".join(inflated(record, max_bytes, event))


def inflated(record: memoryview | bytes, max_bytes: int, event: bytes) -> Iterator[bytes]:
    """Yield the plain bytes of a compressed record in parts. Raises BinlogFormatError as `inflate` does.

    A wrong length is detected only after the last part.
    """
    length = plain_length(record, event)
    if length > max_bytes:
        raise format_error(f"a compressed record has {length} plain bytes, more than {max_bytes}", event)
    left, stream = length, zlib.decompressobj()
    try:
        for at in range(1 + (record[0] & _LENGTH_MASK), len(record), _PIECE_BYTES):
            rest: memoryview | bytes = record[
                at : at + _PIECE_BYTES
            ]  # in parts, because zlib copies the unconsumed rest in each step
            piece = b" "
            while left >= 0 and not stream.eof and (piece or rest):
                piece = stream.decompress(rest, min(left + 1, _PIECE_BYTES))
                rest = stream.unconsumed_tail
                left -= len(piece)
                if left >= 0:
                    yield piece
    except zlib.error as error:
        raise format_error(f"a compressed record is damaged: {error}", event) from error
    if left or not stream.eof:
        raise format_error(f"a compressed record does not have the {length} plain bytes that it states", event)


def plain_length(record: memoryview | bytes, event: bytes) -> int:
    """Return the number of plain bytes that the first bytes of the record state.

    Raises BinlogFormatError if these bytes state another algorithm than zlib, or are not valid.
    """
    width = record[0] & _LENGTH_MASK if record else 0
    if not 1 <= width <= 4 or not record[0] & 0x80 or record[0] & _ALGORITHM_MASK or len(record) < 1 + width:
        raise format_error("a compressed record has an unknown head", event)
    return int.from_bytes(record[1 : 1 + width], "big")


def plain_sizes(data: Buffer, offsets: NDArray[np.int64], types: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the decompressed size of the compressed record in each event of MariaDB.

    Event i is `data[offsets[i]:offsets[i + 1]]`. The size is 0 for an uncompressed event. It is also 0 for a damaged
    event, which its reader rejects later.
    """
    sizes = np.zeros(len(types), np.int64)
    _plain_sizes(byte_view(data), offsets, types, sizes)
    return sizes


@lean_kernel
def _plain_sizes(
    data: ByteArray, offsets: NDArray[np.int64], types: NDArray[np.uint8], sizes: NDArray[np.int64]
) -> None:
    for i in range(len(types)):
        if types[i] < 165 or types[i] > 171:
            continue
        at = _record_offset(data, offsets[i] + HEADER_LENGTH, offsets[i + 1], types[i])
        if at < 0 or at >= offsets[i + 1]:
            continue
        for byte in range(min(int(data[at]) & 7, offsets[i + 1] - at - 1)):
            sizes[i] = sizes[i] << 8 | int(data[at + 1 + byte])


@lean_kernel
def _record_offset(data: ByteArray, at: int, end: int, type_code: int) -> int:
    """Return the offset of the compressed record in the event body `data[at:end]`, or -1 if the body is cut short."""
    if end - at < 13:
        return -1
    if type_code == 165:
        return at + 13 + u16(data, at + 11) + int(data[at + 8]) + 1
    at += 8
    if type_code >= 169:  # version 2 has extra data after their length
        at += u16(data, at)
    if end - at < 4:
        return -1
    columns = int(data[at])
    at += 1
    if columns == 252:
        columns = u16(data, at)
        at += 2
    elif columns == 253:
        columns = u24(data, at)
        at += 3
    bitmaps = 2 if type_code == 167 or type_code == 170 else 1
    return at + bitmaps * ((columns + 7) >> 3)
