"""Find the boundaries of events in raw bytes, for the receiver, the relay log reader and the planner.

Invariant: only complete events are indexed. An incomplete event at the end is skipped, because the rest may follow. An
impossible length raises an error. This module also exports functions of three other modules:
* `groups` finds transactions.
* `split` cuts row transactions for Spark.
* `packets` extracts events from the packets of the protocol.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rplctl.event.bytes_at import u16, u32
from rplctl.event.format_description import encrypted_error
from rplctl.event.groups import GroupKind, GroupScan, scan_groups
from rplctl.event.header import HEADER_LENGTH, MAX_EVENT_LENGTH, format_error
from rplctl.event.jit import Buffer, ByteArray, byte_view, lean_kernel
from rplctl.event.packets import Deframed, PacketEnd, deframe
from rplctl.event.split import RowSplit, split_rows
from rplctl.event.types import EventType

__all__ = [
    "Deframed",
    "EventIndex",
    "GroupKind",
    "GroupScan",
    "PacketEnd",
    "RowSplit",
    "deframe",
    "event_offsets",
    "scan_events",
    "scan_groups",
    "split_rows",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventIndex:
    """The boundaries and headers of n complete events. Event i is `data[offsets[i]:offsets[i + 1]]`."""

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
        """The end offset of the last complete event."""
        return int(self.offsets[-1])


def scan_events(data: Buffer, offset: int = 0) -> EventIndex:
    """Index the complete events from `offset` on.

    Raises BinlogFormatError for impossible lengths and encrypted logs.
    """
    view = byte_view(data)
    offsets, type_codes = event_offsets(view, offset)
    count = len(type_codes)
    timestamps, ends, server_ids = (np.empty(count, np.uint32) for _ in range(3))
    flags = np.empty(count, np.uint16)
    _fill_fields(view, offsets, flags, timestamps, ends, server_ids)
    return EventIndex(
        offsets=offsets,
        type_codes=type_codes,
        flags=flags,
        timestamps=timestamps,
        end_log_pos=ends,
        server_ids=server_ids,
    )


def event_offsets(data: Buffer, offset: int = 0) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return (offsets[n + 1], type codes[n]) of the n complete events from `offset` on.

    Raises BinlogFormatError for impossible lengths and encrypted logs.
    """
    view = byte_view(data)
    room = max(0, len(view) - offset) // HEADER_LENGTH
    offsets, type_codes = np.empty(room + 1, np.int64), np.empty(room, np.uint8)  # unused pages take no memory
    count, bad = _find_events(view, offset, offsets, type_codes)
    if bad >= 0:
        head = view[bad : bad + 64].tobytes()
        if head[4] == EventType.START_ENCRYPTION:
            raise encrypted_error(head)
        raise format_error("impossible event length", view.data, bad)
    return offsets[: count + 1].copy(), type_codes[:count].copy()


@lean_kernel
def _find_events(
    data: ByteArray, offset: int, offsets: NDArray[np.int64], type_codes: NDArray[np.uint8]
) -> tuple[int, int]:
    """Write the offset and the type code of each complete event to the arrays.

    Return (number of complete events, offset of the first impossible event or -1).
    """
    count = 0
    end = len(data)
    while offset + HEADER_LENGTH <= end:
        length = u32(data, offset + 9)
        type_code = data[offset + 4]
        if length < HEADER_LENGTH or length > MAX_EVENT_LENGTH or type_code == 164:
            return count, offset
        if length > end - offset:
            break
        offsets[count] = offset
        type_codes[count] = type_code
        offset += length
        count += 1
    offsets[count] = offset
    return count, -1


@lean_kernel
def _fill_fields(
    data: ByteArray,
    offsets: NDArray[np.int64],
    flags: NDArray[np.uint16],
    timestamps: NDArray[np.uint32],
    end_log_pos: NDArray[np.uint32],
    server_ids: NDArray[np.uint32],
) -> None:
    for index in range(len(timestamps)):
        offset = offsets[index]
        flags[index] = u16(data, offset + 17)
        timestamps[index] = u32(data, offset)
        server_ids[index] = u32(data, offset + 5)
        end_log_pos[index] = u32(data, offset + 13)
