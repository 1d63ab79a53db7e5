"""Event boundaries in raw bytes: what the receiver, the relay log reader and the planner stand on.

Invariant: only whole events are indexed; a torn tail is left out (it may be completed later), a length that no event
can have raises. `groups` finds transactions, `split` cuts them for Spark, `packets` strips the protocol's framing;
their functions are exported here too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rplctl.binlog.bytes_at import u16, u32
from rplctl.binlog.format_description import encrypted_error
from rplctl.binlog.groups import GroupKind, GroupScan, scan_groups
from rplctl.binlog.header import HEADER_LENGTH, MAX_EVENT_LENGTH, EventType, format_error
from rplctl.binlog.jit import Buffer, ByteArray, byte_view, lean_kernel
from rplctl.binlog.packets import Deframed, PacketEnd, deframe
from rplctl.binlog.split import RowSplit, split_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "Deframed",
    "EventIndex",
    "GroupKind",
    "GroupScan",
    "PacketEnd",
    "RowSplit",
    "deframe",
    "scan_events",
    "scan_groups",
    "split_rows",
]


@dataclass(frozen=True, slots=True)
class EventIndex:
    """n whole events: event i is `data[offsets[i]:offsets[i + 1]]`."""

    offsets: NDArray[np.int64]  # n + 1
    type_codes: NDArray[np.uint8]
    flags: NDArray[np.uint16]
    timestamps: NDArray[np.uint32]
    end_log_pos: NDArray[np.uint32]
    server_ids: NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.type_codes)

    @property
    def end(self) -> int:
        """Offset behind the last whole event."""
        return int(self.offsets[-1])


def scan_events(data: Buffer, offset: int = 0) -> EventIndex:
    """Index the whole events from `offset` on. Raises BinlogFormatError for impossible lengths and encrypted logs."""
    view = byte_view(data)
    count, bad = _count_events(view, offset)
    if bad >= 0:
        head = view[bad : bad + 64].tobytes()
        if head[4] == EventType.START_ENCRYPTION:
            raise encrypted_error(head)
        raise format_error("Impossible event length", view.data, bad)
    index = EventIndex(
        np.empty(count + 1, np.int64),
        np.empty(count, np.uint8),
        np.empty(count, np.uint16),
        np.empty(count, np.uint32),
        np.empty(count, np.uint32),
        np.empty(count, np.uint32),
    )
    _fill_index(view, offset, index.offsets, index.type_codes, index.flags)
    _fill_fields(view, index.offsets, index.timestamps, index.end_log_pos, index.server_ids)
    return index


@lean_kernel
def _count_events(data: ByteArray, offset: int) -> tuple[int, int]:
    """(whole events, offset of the first impossible one or -1)."""
    count = 0
    end = len(data)
    while offset + HEADER_LENGTH <= end:
        length = u32(data, offset + 9)
        if length < HEADER_LENGTH or length > MAX_EVENT_LENGTH or data[offset + 4] == 164:
            return count, offset
        if length > end - offset:
            break
        offset += length
        count += 1
    return count, -1


@lean_kernel
def _fill_index(
    data: ByteArray,
    offset: int,
    offsets: NDArray[np.int64],
    type_codes: NDArray[np.uint8],
    flags: NDArray[np.uint16],
) -> None:
    for index in range(len(type_codes)):
        offsets[index] = offset
        type_codes[index] = data[offset + 4]
        flags[index] = u16(data, offset + 17)
        offset += u32(data, offset + 9)
    offsets[len(type_codes)] = offset


@lean_kernel
def _fill_fields(
    data: ByteArray,
    offsets: NDArray[np.int64],
    timestamps: NDArray[np.uint32],
    end_log_pos: NDArray[np.uint32],
    server_ids: NDArray[np.uint32],
) -> None:
    for index in range(len(timestamps)):
        offset = offsets[index]
        timestamps[index] = u32(data, offset)
        server_ids[index] = u32(data, offset + 5)
        end_log_pos[index] = u32(data, offset + 13)
