"""Find the run of events in a batch that can be appended to the relay log unchanged, with compiled kernels.

The kernels also compute the source position after the run. The position has 64 bits, but end_log_pos in the header has
only 32. An event with end_log_pos moves the position to the smallest position that is not before the current one and
has the same low 32 bits. An event without end_log_pos (MariaDB >= 11.4 in a group) moves the position by the event's
length, unless the event is artificial.

ROTATE, FORMAT_DESCRIPTION and heartbeats end a run, because the receiver handles them itself. A GTID_LIST states which
GTIDs were logged before a log of the source. It is dropped, because mariadb-binlog refuses a GTID_LIST in the middle of
a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rplctl.event.bytes_at import u32
from rplctl.event.header import CHECKSUM_LENGTH
from rplctl.event.jit import kernel
from rplctl.event.types import GTIDS, EventType
from rplctl.receiver.dropped_gtids import DroppedGtids
from rplctl.source.base import Bytes, EventBatch, Offsets

# Plain numbers, which a kernel compiles as constants.
_STOP: Final = int(EventType.STOP)
_ROTATE: Final = int(EventType.ROTATE)
_DESCRIPTION: Final = int(EventType.FORMAT_DESCRIPTION)
_HEARTBEAT: Final = int(EventType.HEARTBEAT)
_HEARTBEAT_V2: Final = int(EventType.HEARTBEAT_V2)
_CHECKPOINT: Final = int(EventType.BINLOG_CHECKPOINT)
_MARIADB_GTID: Final = int(EventType.MARIADB_GTID)
_GTID_LIST: Final = int(EventType.GTID_LIST)
_IS_NAMED: Final = np.isin(np.arange(256), sorted(GTIDS - {EventType.ANONYMOUS_GTID}))


class EventFilter:
    """The rules for events that must not enter the relay log.

    Events with the replica's own server id, or a server id in IGNORE_SERVER_IDS, do not enter. The same applies to
    events of domains that MariaDB's domain lists exclude. `skipping` is true while the current group belongs to an
    excluded domain. `dropped` has the GTIDs of dropped transactions that the relay log does not show yet.
    """

    def __init__(self, servers: Sequence[int], do_domains: Sequence[int] = (), ignored: Sequence[int] = ()) -> None:
        self.servers, self.do_domains = np.array(servers, np.int64), np.array(do_domains, np.int64)
        self.ignored_domains = np.array(ignored, np.int64)
        self.skipping = False
        self.dropped = DroppedGtids()


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendedRun:
    """A run of events in a batch, which ends before the event `stop`.

    `data` has the events that are appended to the relay log: those of the run, and empty transactions for the GTIDs of
    dropped transactions.
    """

    stop: int
    position: int  # source position after the run
    data: Bytes
    kept: int  # number of events in `data`
    ends_dropped: bool  # True if the last event was dropped


def next_run(
    batch: EventBatch, first: int, position: int, events: EventFilter, checksum_length: int = CHECKSUM_LENGTH
) -> AppendedRun:
    """Return the run from event `first` to the next ROTATE, FORMAT_DESCRIPTION or heartbeat, or to the batch's end.

    `position` is the source position before the run. `checksum_length` is the number of checksum bytes of each event.
    """
    keep = np.empty(len(batch) - first, np.uint8)
    stop, position, dropped, skipping = _run(
        batch.data,
        batch.offsets,
        first,
        position,
        keep,
        events.servers,
        events.do_domains,
        events.ignored_domains,
        events.skipping,
    )
    events.skipping = bool(skipping)
    count = int(stop) - first
    data = batch.data[int(batch.offsets[first]) : int(batch.offsets[stop])]
    made = 0
    if dropped or events.dropped:
        data, made = _kept(
            data, keep[:count], batch.offsets[first : stop + 1] - batch.offsets[first], events, checksum_length
        )
    ends_dropped = count > 0 and not keep[count - 1]
    return AppendedRun(
        stop=int(stop),
        position=int(position),
        data=data,
        kept=count - int(dropped) + made,
        ends_dropped=bool(ends_dropped),
    )


def _kept(data: Bytes, keep: Bytes, offsets: Offsets, events: EventFilter, checksum_length: int) -> tuple[Bytes, int]:
    """Return the bytes of the events whose value in `keep` is 1, with empty transactions for the others, whose number
    of events is the second value.

    A mask of bytes would be as large as the events, so the function joins ranges of bytes.
    """
    turns = np.flatnonzero(np.diff(keep, prepend=0, append=0))  # where `keep` changes: 0 → 1 and 1 → 0 alternate
    pieces, made, before = [], 0, 0
    for begin, end in turns.reshape(-1, 2).tolist():
        _drop(data, offsets[before : begin + 1], events.dropped)
        empty, count = events.dropped.take(checksum_length)
        pieces += [np.frombuffer(empty, np.uint8)] if count else []
        pieces.append(data[offsets[begin] : offsets[end]])
        made, before = made + count, end
    _drop(data, offsets[before:], events.dropped)
    return (np.concatenate(pieces) if len(pieces) > 1 else (pieces or [data[:0]])[0]), made


def _drop(data: Bytes, offsets: Offsets, dropped: DroppedGtids) -> None:
    """Add the GTID events among the dropped events at these offsets. The last offset is the end of the last event."""
    starts = offsets[:-1]
    for number in np.flatnonzero(_IS_NAMED[data[starts + 4]]).tolist():
        dropped.add(data[offsets[number] : offsets[number + 1]].tobytes())


def follow(position: int, end_log_pos: int, event_length: int, *, artificial: bool) -> int:
    """Return the 64-bit source position after one event that begins at `position`.

    The docstring of the module has the rule for the low 32 bits in `end_log_pos`.
    """
    if end_log_pos:
        return int(_advance(position, end_log_pos))
    return position if artificial else position + event_length


@kernel
def _advance(position: int, end_log_pos: int) -> int:
    candidate = (position >> 32 << 32) | end_log_pos
    return candidate if candidate >= position else candidate + (1 << 32)


@kernel
def _contains(values: Offsets, value: int) -> bool:
    for known in values:
        if known == value:
            return True
    return False


@kernel
def _run(  # noqa: PLR0913
    data: Bytes,
    offsets: Offsets,
    first: int,
    position: int,
    keep: Bytes,
    servers: Offsets,
    do_domains: Offsets,
    ignored_domains: Offsets,
    skipping: bool,
) -> tuple[int, int, int, bool]:
    dropped = 0
    i = first
    while i < len(offsets) - 1:
        at = offsets[i]
        kind = data[at + 4]
        if kind == _ROTATE or kind == _DESCRIPTION or kind == _HEARTBEAT or kind == _HEARTBEAT_V2:
            break
        end_log_pos = int(u32(data, at + 13))
        if end_log_pos != 0:
            position = _advance(position, end_log_pos)
        elif data[at + 17] & 0x20 == 0:
            position += offsets[i + 1] - at
        if kind == _MARIADB_GTID and offsets[i + 1] - at >= 32:
            domain = int(u32(data, at + 27))
            skipping = _contains(ignored_domains, domain) or (len(do_domains) > 0 and not _contains(do_domains, domain))
        elif kind == _GTID_LIST or kind == _CHECKPOINT or kind == _STOP:
            skipping = False
        drop = skipping or kind == _GTID_LIST or _contains(servers, int(u32(data, at + 5)))
        keep[i - first] = 0 if drop else 1
        dropped += 1 if drop else 0
        i += 1
    return i, position, dropped, skipping
