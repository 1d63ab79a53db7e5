"""Convert the packets of a dump stream to complete events (`deframe`), and events to packets (`as_packets`).

    3 bytes payload length (little-endian), 1 byte sequence number, payload
    payload: 0x00, then one event; 0xff an error packet; 0xfe (shorter than 9 bytes) the end of the dump
    a payload of 16777215 bytes continues in the next packet

Invariant: only complete logical packets are consumed, so a recv() may end at any byte. The caller keeps the remaining
bytes and calls again with more bytes. The length in an event must match the length of its packet.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rplctl.event.bytes_at import copy_bytes, u24, u32
from rplctl.event.header import CHECKSUM_LENGTH, HEADER_LENGTH, format_error
from rplctl.event.jit import Buffer, ByteArray, byte_view, lean_kernel

_FULL_PACKET: Final = 0xFFFFFF
_INCOMPLETE: Final = -1
_BAD_SEQUENCE: Final = -2
_BAD_LENGTH: Final = -3
_END: Final = 1


class PacketEnd(IntEnum):
    """The reason why the stream ended after the last event. NONE means that the stream has not ended."""

    NONE = 0
    EOF = 0xFE
    ERROR = 0xFF


@dataclass(frozen=True, slots=True, kw_only=True)
class Deframed:
    events: NDArray[np.uint8]  # complete raw events, one after another
    offsets: NDArray[np.int64]  # n + 1
    consumed: int  # processed bytes of the buffer
    sequence: int  # sequence number of the next packet
    needed: int  # bytes from `consumed` on that the next call needs at least
    end: PacketEnd
    end_payload: bytes  # the error or end packet, with its first byte; b'' if the stream has not ended


def deframe(buffer: Buffer, length: int, sequence: int, *, in_place: bool = False) -> Deframed:
    """Extract the complete events from the packets in `buffer[:length]`. The first packet has the number `sequence`.

    With `in_place`, the events replace their packets from the start of the buffer on. The bytes after `consumed` are
    unchanged. Raises BinlogFormatError if packets are out of order, or if an event's length does not match its packet.
    """
    view = byte_view(buffer)[:length]
    events = np.frombuffer(buffer, np.uint8)[:length] if in_place else np.empty(length, np.uint8)
    offsets = np.empty(length // (HEADER_LENGTH + 5) + 2, np.int64)
    count, size, consumed, sequence, status, needed = _deframe(view, events, offsets, sequence)
    if status == _BAD_SEQUENCE:
        raise format_error(f"packets out of order: {sequence} was expected", view.data, consumed)
    if status == _BAD_LENGTH:
        raise format_error("a packet's length is not that of its event", view.data, consumed)
    end, payload = PacketEnd.NONE, b""
    needed = int(needed)  # the kernel returns a float
    if status == _END:
        payload = view[consumed + 4 : consumed + 4 + needed].tobytes()
        end = PacketEnd.ERROR if payload[0] == PacketEnd.ERROR else PacketEnd.EOF
        consumed += 4 + needed
        sequence = (sequence + 1) & 0xFF
        needed = 0
    return Deframed(
        events=events[:size],
        offsets=offsets[: count + 1],
        consumed=consumed,
        sequence=sequence,
        needed=needed,
        end=end,
        end_payload=payload,
    )


@lean_kernel
def _measure(buffer: ByteArray, at: int, sequence: int) -> tuple[int, int, int]:
    """Return (end of the logical packet at `at`, next sequence number, status).

    If the packet is incomplete, the first number is the number of bytes that are needed from `at` on.
    """
    begin = at
    while True:
        if at + 4 > len(buffer):
            return at + 4 - begin, sequence, _INCOMPLETE
        size = u24(buffer, at)
        if buffer[at + 3] != sequence:
            return at, sequence, _BAD_SEQUENCE
        sequence = (sequence + 1) & 0xFF
        at += 4 + size
        if at > len(buffer):
            return at - begin, sequence, _INCOMPLETE
        if size < _FULL_PACKET:
            return at, sequence, 0


@lean_kernel
def _deframe(
    buffer: ByteArray, events: ByteArray, offsets: NDArray[np.int64], sequence: int
) -> tuple[int, int, int, int, int, int]:
    """Copy the events out of complete packets to `events`.

    Return (events, bytes of the events, consumed bytes, next sequence number, status, size). If the status is _END,
    `size` is the length of the end packet. Otherwise, it is the number of bytes that are needed.
    """
    count, size, at = 0, 0, 0
    offsets[0] = 0
    while True:
        end, next_sequence, status = _measure(buffer, at, sequence)
        if status == _INCOMPLETE:
            return count, size, at, sequence, 0, end
        if status < 0:
            return count, size, at, sequence, status, 0
        first_size = u24(buffer, at)
        if first_size > 0 and (buffer[at + 4] == 0xFF or (buffer[at + 4] == 0xFE and first_size < 9)):
            return count, size, at, sequence, _END, first_size
        if first_size < 1 + HEADER_LENGTH or buffer[at + 4] != 0:
            return count, size, at, sequence, _BAD_LENGTH, 0
        begin = size
        chunk_at, chunk_size, skip = at, first_size, 1
        while True:
            chunk = chunk_size - skip
            copy_bytes(buffer, chunk_at + 4 + skip, chunk, events, size)
            size += chunk
            chunk_at += 4 + chunk_size
            if chunk_at >= end:
                break
            chunk_size, skip = u24(buffer, chunk_at), 0
        if u32(events, begin + 9) != size - begin:
            return count, begin, at, sequence, _BAD_LENGTH, 0
        count += 1
        offsets[count] = size
        at, sequence = end, next_sequence


def as_packets(
    data: ByteArray, starts: NDArray[np.int64], lengths: NDArray[np.int64], sequence: int, *, strips: bool
) -> tuple[ByteArray, int]:
    """Return (complete events as packets, next sequence number). The first packet gets the number `sequence`.

    With `strips`, the checksums are removed. Each event must fit into one packet.
    """
    packets = np.empty(int(lengths.sum()) + 5 * len(lengths), np.uint8)
    starts, lengths = np.ascontiguousarray(starts, np.int64), np.ascontiguousarray(lengths, np.int64)
    size, sequence = _as_packets(data, starts, lengths, sequence, CHECKSUM_LENGTH * strips, packets)
    return packets[:size], int(sequence)


@lean_kernel
def _as_packets(
    data: ByteArray,
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    sequence: int,
    removed: int,
    packets: ByteArray,
) -> tuple[int, int]:
    at = 0
    for number in range(len(starts)):
        length = lengths[number] - removed
        for byte in range(3):
            packets[at + byte] = ((length + 1) >> (8 * byte)) & 0xFF
        packets[at + 3] = sequence
        packets[at + 4] = 0
        copy_bytes(data, starts[number], length, packets, at + 5)
        if removed:
            for byte in range(4):
                packets[at + 5 + 9 + byte] = (length >> (8 * byte)) & 0xFF
        at += 5 + length
        sequence = (sequence + 1) & 0xFF
    return at, sequence
