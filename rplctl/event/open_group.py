"""Follow the transaction that the receiver has not received completely.

This is the state machine of `group_kernel` for events that arrive in parts. A part may begin and end between any two
events. Each event is read once, so a transaction of gigabytes has no extra cost.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rplctl.event import event_classes as c
from rplctl.event.bytes_at import u16
from rplctl.event.group_kernel import ENDS, GTID_AT, IDLE, PHASE, REGISTERS, TIMESTAMP, step
from rplctl.event.header import FLAG_IGNORABLE, HEADER_LENGTH
from rplctl.event.jit import Buffer, ByteArray, byte_view, lean_kernel
from rplctl.event.types import CLASS_TABLE


class OpenGroup:
    """A state machine that reports, after each part, if a transaction is open, and where its GTID event is."""

    def __init__(self) -> None:
        self._registers = np.zeros(REGISTERS, np.int64)

    @property
    def is_open(self) -> bool:
        """True if the transaction of the last processed event has not ended."""
        return bool(self._registers[PHASE] != IDLE)

    @property
    def timestamp(self) -> int:
        """The time of the open transaction's first event, by the source's clock, or 0 if no transaction is open."""
        return int(self._registers[TIMESTAMP]) if self.is_open else 0

    def follow(self, data: Buffer, offsets: NDArray[np.int64], checksum_length: int) -> tuple[int, bool]:
        """Process the complete events of one part, and return (offset, has_ended).

        `offset` is the offset in `data` of the GTID event of the transaction that is open at the end of the part. It is
        -1 if no transaction is open, or if `data` does not contain this event. `has_ended` is True if a transaction was
        open before the part and has ended.
        """
        self._registers[GTID_AT] = -1  # a GTID event of an earlier part is not in these bytes
        was_open = self.is_open
        has_ended = _follow(byte_view(data), offsets, checksum_length, self._registers, CLASS_TABLE)
        return int(self._registers[GTID_AT]) if self.is_open else -1, was_open and bool(has_ended)

    def cut(self) -> None:
        """Close the open transaction, because the source has cut it short and continues in its next log."""
        self._registers[PHASE] = IDLE


@lean_kernel
def _follow(
    data: ByteArray,
    offsets: NDArray[np.int64],
    checksum_length: int,
    registers: NDArray[np.int64],
    class_table: ByteArray,
) -> bool:
    has_ended = False
    for i in range(len(offsets) - 1):
        at = int(offsets[i])
        end = int(offsets[i + 1]) - checksum_length
        event_class = int(class_table[data[at + 4]])
        if event_class == c.UNKNOWN and u16(data, at + 17) & FLAG_IGNORABLE:
            event_class = c.NEUTRAL
        if end - at < HEADER_LENGTH or event_class == c.ENCRYPTION:
            continue
        is_of_log = c.CONTROL <= event_class <= c.DESCRIPTION or event_class == c.STOP
        if is_of_log or (registers[PHASE] == IDLE and event_class == c.NEUTRAL):
            continue
        if event_class == c.GTID or event_class == c.MARIADB_GTID:
            has_ended = has_ended or registers[PHASE] != IDLE
            registers[PHASE] = IDLE
        if step(data, registers, at, end, event_class) == ENDS:
            registers[PHASE] = IDLE
            has_ended = True
    return has_ended
