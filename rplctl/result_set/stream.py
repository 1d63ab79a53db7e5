"""Find the end of the rows in a stream of packets, which arrives in parts that may end anywhere.

A kernel skips the rows. Invariant: memory is only needed for the current part, so a row may have any size. Packets must
be in sequence.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from rplctl import mysql_errors as er
from rplctl.errors import BinlogFormatError
from rplctl.event.jit import ByteArray, byte_view, lean_kernel

_MOST_OF_AN_END: Final = 4096  # bytes: the text of an error has at most 512
_BAD, _END = -1, -2
_LEFT, _HEAD, _HEAD_BYTES, _GOES_ON, _SEQUENCE, _ROWS = range(6)  # indexes of the kernel's state

_READ_AGAIN = "the copy reads the rows again by itself. To see its state, run: rplctl show-clone"


class RowStream:
    """A stream of packets. The caller passes each part to `take`.

    row_bytes    the number of bytes so far that are rows, with their packet headers; up to four further bytes
                 belong to the next header, of a row or of the end packet
    rows         the number of rows that have begun
    end          the payload of the packet after the rows (0xfe… or 0xff…), or None until it is complete
    """

    def __init__(self, sequence: int) -> None:
        self._state = np.zeros(6, np.int64)
        self._state[_SEQUENCE] = sequence
        self._end: bytearray | None = None
        self._end_length = 0
        self._taken = 0
        self.row_bytes = 0
        self.end: bytes | None = None

    @property
    def rows(self) -> int:
        return int(self._state[_ROWS])

    def take(self, piece: ByteArray) -> None:
        """Process the next part of the stream.

        Raises BinlogFormatError if packets are out of sequence, or if a packet is neither a row nor an end packet.
        """
        if self._end is not None:
            self._gather_end(piece)
            return
        at = int(step_over(byte_view(piece), self._state))
        if at == _BAD:
            raise BinlogFormatError(
                "the packets are not those of a result set", errno=er.MALFORMED_PACKET, hint=_READ_AGAIN
            )
        if at >= 0:
            self._taken += at
            self.row_bytes = self._taken - int(self._state[_HEAD_BYTES])
            return
        at = _END - at
        self.row_bytes = self._taken + at - 4
        self._end, self._end_length = bytearray(), int(self._state[_HEAD]) & 0xFFFFFF
        if self._end_length > _MOST_OF_AN_END:
            raise BinlogFormatError(
                "the end packet of a result set is too large", errno=er.MALFORMED_PACKET, hint=_READ_AGAIN
            )
        self._gather_end(piece[at:])

    def _gather_end(self, piece: ByteArray) -> None:
        assert self._end is not None
        self._end += piece[: self._end_length - len(self._end)].tobytes()
        if len(self._end) == self._end_length:
            self.end = bytes(self._end)


@lean_kernel
def step_over(piece: Any, state: Any) -> Any:
    """Skip the rows in one part of the stream.

    Return the length of the part if it has only rows, and _BAD if it has an invalid packet. If it has the end packet,
    return _END minus the offset of this packet's payload. `state`: the place in the stream, which the call updates.
    """
    at = 0
    while at < len(piece):
        if state[0] > 0:
            step = min(state[0], len(piece) - at)
            state[0] -= step
            at += step
            continue
        if state[2] < 4:
            state[1] |= np.int64(piece[at]) << (8 * state[2])
            state[2] += 1
            at += 1
            if state[2] < 4:
                continue
            if (state[1] >> 24) != state[4]:
                return np.int64(-1)
            state[4] = (state[4] + 1) & 0xFF
        length = state[1] & 0xFFFFFF
        if not state[3]:  # the first byte distinguishes the first packet of a row from the end packet
            if at == len(piece):
                break
            first = piece[at]
            if length > 0 and (first == 0xFF or (first == 0xFE and length < 9)):
                return np.int64(-2 - at)
            if length == 0 or first != 0:
                return np.int64(-1)
            state[5] += 1
        state[3] = 1 if length == 0xFFFFFF else 0
        state[0], state[1], state[2] = length, 0, 0
    return at
