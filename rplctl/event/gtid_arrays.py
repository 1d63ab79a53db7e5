"""Read the GTIDs of many events at once into arrays. A part of a log may have a hundred thousand transactions.

The body of a GTID event (33) begins with u8 flags, 16 bytes UUID, i64 number, and since MySQL 8.0 has the time of the
commit at byte 42. The body of a MARIADB_GTID event (162)
begins with u64 sequence number, u32 domain.

Invariant: the run time grows with the number of events, not with the number of sources or domains.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from rplctl.event.format_description import FormatDescription
from rplctl.event.gtid import Intervals, MariadbGtidState, MysqlGtidSet, Source
from rplctl.event.gtid_event import MysqlGtid, parse_gtid
from rplctl.event.header import HEADER_LENGTH, format_error
from rplctl.event.jit import ByteArray
from rplctl.event.rows import Ints
from rplctl.event.types import EventType

Describe: TypeAlias = Callable[[int], FormatDescription | None]  # offset → the description in force at this offset

UUID: Final = slice(HEADER_LENGTH + 1, HEADER_LENGTH + 17)
NUMBER: Final = slice(HEADER_LENGTH + 17, HEADER_LENGTH + 25)


def gtids_at(data: ByteArray, offsets: Ints, describe: Describe) -> tuple[MysqlGtidSet, MariadbGtidState]:
    """Return the GTIDs of the GTID events at these offsets, as a set of MySQL and a state of MariaDB.

    For each domain, the state has the GTID that comes last in the log. `describe` returns the FORMAT_DESCRIPTION in
    force at an offset. Raises BinlogFormatError if an event is cut short.
    """
    spans = {source: _spans(numbers) for source, (_, numbers) in _mysql_numbers(data, offsets, describe).items()}
    which = offsets[_of_type(data, offsets, EventType.MARIADB_GTID)][::-1]
    domains, last = np.unique(unsigned(data, which + HEADER_LENGTH + 8, 4), return_index=True)
    ends: dict[int, tuple[int, int]] = {}
    for domain, at in zip(domains.tolist(), which[last].tolist(), strict=True):
        sequence = int.from_bytes(data[at + HEADER_LENGTH : at + HEADER_LENGTH + 8].tobytes(), "little")
        ends[domain] = int.from_bytes(data[at + 5 : at + 9].tobytes(), "little"), sequence
    return MysqlGtidSet(spans), MariadbGtidState(ends)


def numbers_by_source(data: ByteArray, offsets: Ints, describe: Describe) -> dict[Source | int, tuple[Ints, Ints]]:
    """Group the GTID events at these offsets by MySQL's (uuid, tag) or MariaDB's domain.

    Each group is a pair: the indexes of its events, ascending, and the GTID numbers of these events. Anonymous GTIDs
    are skipped. `describe` returns the FORMAT_DESCRIPTION in force at an offset. Raises BinlogFormatError if an event
    is cut short.
    """
    found: dict[Source | int, tuple[Ints, Ints]] = {}
    found.update(_mysql_numbers(data, offsets, describe).items())
    which = _of_type(data, offsets, EventType.MARIADB_GTID)
    domains = unsigned(data, offsets[which] + HEADER_LENGTH + 8, 4)
    for alike in _alike(domains):
        mine = which[alike]
        found[int(domains[alike[0]])] = mine, unsigned(data, offsets[mine] + HEADER_LENGTH, 8)
    return found


def mariadb_gtids_at(data: ByteArray, offsets: Ints) -> set[tuple[int, int, int]]:
    """Return MariaDB's GTIDs (domain, server id, sequence number) among the GTID events at these offsets.

    Raises BinlogFormatError if an event is cut short.
    """
    at = offsets[_of_type(data, offsets, EventType.MARIADB_GTID)]
    numbers = (
        unsigned(data, at + HEADER_LENGTH + 8, 4),
        unsigned(data, at + 5, 4),
        unsigned(data, at + HEADER_LENGTH, 8),
    )
    return set(zip(*(values.tolist() for values in numbers), strict=True))


def commit_times(data: ByteArray, offsets: Ints, describe: Describe) -> Ints:
    """Return the times at which the source committed the transactions of these GTID events, in microseconds since 1970.

    A time is 0 if the event has none, as on MySQL 5.7 and MariaDB.
    """
    times = np.zeros(len(offsets), np.int64)
    kinds, lengths = data[offsets + 4], unsigned(data, offsets + 9, 4)
    has_time = np.isin(kinds, [EventType.GTID, EventType.ANONYMOUS_GTID]) & (lengths >= _COMMIT_TIME + 8)
    times[has_time] = unsigned(data, offsets[has_time] + _COMMIT_TIME, 8) & _TIME_BITS
    for number in np.flatnonzero(kinds == EventType.GTID_TAGGED).tolist():
        at = int(offsets[number])
        description = describe(at)
        assert description is not None
        gtid = parse_gtid(data[at : at + int(lengths[number])].tobytes(), description)
        assert isinstance(gtid, MysqlGtid)
        times[number] = gtid.immediate_commit_time
    return times


_COMMIT_TIME: Final = HEADER_LENGTH + 42  # the offset of 7 bytes, whose highest bit says that another time follows
_TIME_BITS: Final = (1 << 55) - 1
_LEAST: Final = {EventType.GTID: NUMBER.stop, EventType.MARIADB_GTID: HEADER_LENGTH + 12}  # shortest event in bytes


def _of_type(data: ByteArray, offsets: Ints, kind: EventType) -> Ints:
    """Return the indexes of the events that have the type `kind`.

    Raises BinlogFormatError if one of them is cut short.
    """
    which = np.flatnonzero(data[offsets + 4] == kind)
    at = offsets[which]
    short = np.flatnonzero((unsigned(data, at + 9, 4) < _LEAST[kind]) | (at + _LEAST[kind] > len(data)))
    if len(short):
        raise format_error("a GTID event is cut short", data.data, int(at[short[0]]))
    return which


def _alike(*keys: npt.NDArray[Any]) -> list[Ints]:
    """Return, for each distinct key, the indexes at which the key occurs, ascending.

    Key i consists of element i of each array.
    """
    order = np.lexsort(keys)
    if not len(order):
        return []
    differs = np.zeros(len(order) - 1, np.bool_)
    for key in keys:
        differs |= key[order][1:] != key[order][:-1]
    return np.split(order, np.flatnonzero(differs) + 1)


def is_within(numbers: Ints, intervals: Intervals) -> npt.NDArray[np.bool_]:
    """Return a mask of the numbers that are in one of the intervals. `intervals` must be ascending and disjoint."""
    firsts, lasts = np.array(intervals, np.int64).reshape(-1, 2).T
    before = np.searchsorted(firsts, numbers, "right") - 1
    found: npt.NDArray[np.bool_] = (before >= 0) & (numbers <= np.append(lasts, 0)[before])
    return found


def unsigned(data: ByteArray, offsets: Ints, width: int) -> Ints:
    """Return the little-endian numbers of `width` bytes at these offsets."""
    values = np.zeros(len(offsets), np.int64)
    for byte in range(width):
        values |= data[offsets + byte].astype(np.int64) << (8 * byte)
    return values


def _mysql_numbers(data: ByteArray, offsets: Ints, describe: Describe) -> dict[Source, tuple[Ints, Ints]]:
    found: dict[Source, tuple[Ints, Ints]] = {}
    which = _of_type(data, offsets, EventType.GTID)
    uuids = data[offsets[which][:, np.newaxis] + np.arange(UUID.start, UUID.stop)]
    halves = uuids.view(np.uint64)
    for alike in _alike(halves[:, 0], halves[:, 1]):
        mine = which[alike]
        source = (str(uuid.UUID(bytes=uuids[alike[0]].tobytes())), "")
        found[source] = mine, unsigned(data, offsets[mine] + NUMBER.start, 8)
    tagged: dict[Source, list[tuple[int, int]]] = {}
    for number in np.flatnonzero(data[offsets + 4] == EventType.GTID_TAGGED).tolist():
        at = int(offsets[number])
        length = int.from_bytes(data[at + 9 : at + 13].tobytes(), "little")
        description = describe(at)
        gtid = parse_gtid(data[at : at + length].tobytes(), description) if description else None
        if isinstance(gtid, MysqlGtid):
            tagged.setdefault((gtid.server_uuid, gtid.tag), []).append((number, gtid.number))
    for source, pairs in tagged.items():
        events, numbers = np.array(pairs, np.int64).T
        if source in found:  # some GTID_TAGGED events have no tag
            order = np.argsort(np.append(found[source][0], events))
            events = np.append(found[source][0], events)[order]
            numbers = np.append(found[source][1], numbers)[order]
        found[source] = events, numbers
    return found


def _spans(numbers: Ints) -> Intervals:
    mine = np.unique(numbers)
    breaks = np.flatnonzero(np.diff(mine) != 1)
    firsts = mine[np.append(0, breaks + 1)]
    lasts = mine[np.append(breaks, len(mine) - 1)]
    return tuple(zip(firsts.tolist(), lasts.tolist(), strict=True))
