"""The GTIDs of many events at once: a piece of log may hold a hundred thousand transactions, so numbers are arrays.

GTID (33) body: u8 flags, 16 bytes UUID, i64 number. MARIADB_GTID (162) body: u64 sequence, u32 domain.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from rplctl.event.format_description import FormatDescription
from rplctl.event.gtid import Intervals, MariadbGtidState, MysqlGtidSet, Source
from rplctl.event.gtid_event import MysqlGtid, parse_gtid
from rplctl.event.header import HEADER_LENGTH
from rplctl.event.jit import ByteArray
from rplctl.event.rows import Ints
from rplctl.event.types import EventType

Describe: TypeAlias = Callable[[int], FormatDescription | None]  # offset → the description in force there

UUID: Final = slice(HEADER_LENGTH + 1, HEADER_LENGTH + 17)
NUMBER: Final = slice(HEADER_LENGTH + 17, HEADER_LENGTH + 25)


def gtids_at(data: ByteArray, offsets: Ints, describe: Describe) -> tuple[MysqlGtidSet, MariadbGtidState]:
    """The GTIDs of the GTID events at these offsets; of MariaDB's the last of each domain, in the order of the log."""
    spans = {source: _spans(numbers) for source, (_, numbers) in _mysql_numbers(data, offsets, describe).items()}
    which = offsets[data[offsets + 4] == EventType.MARIADB_GTID][::-1]
    domains, last = np.unique(unsigned(data, which + HEADER_LENGTH + 8, 4), return_index=True)
    ends: dict[int, tuple[int, int]] = {}
    for domain, at in zip(domains.tolist(), which[last].tolist(), strict=True):
        sequence = int.from_bytes(data[at + HEADER_LENGTH : at + HEADER_LENGTH + 8].tobytes(), "little")
        ends[domain] = int.from_bytes(data[at + 5 : at + 9].tobytes(), "little"), sequence
    return MysqlGtidSet(spans), MariadbGtidState(ends)


def numbers_by_source(data: ByteArray, offsets: Ints, describe: Describe) -> dict[Source | int, tuple[Ints, Ints]]:
    """Of the GTID events at these offsets, by MySQL's (uuid, tag) or MariaDB's domain: which of them, ascending, and
    their numbers. Anonymous ones are left out.
    """
    found: dict[Source | int, tuple[Ints, Ints]] = {}
    found.update(_mysql_numbers(data, offsets, describe).items())
    which = np.flatnonzero(data[offsets + 4] == EventType.MARIADB_GTID)
    domains = unsigned(data, offsets[which] + HEADER_LENGTH + 8, 4)
    for domain in np.unique(domains).tolist():
        mine = which[domains == domain]
        found[domain] = mine, unsigned(data, offsets[mine] + HEADER_LENGTH, 8)
    return found


def is_within(numbers: Ints, intervals: Intervals) -> npt.NDArray[np.bool_]:
    """`intervals`: ascending and apart."""
    firsts, lasts = np.array(intervals, np.int64).reshape(-1, 2).T
    before = np.searchsorted(firsts, numbers, "right") - 1
    found: npt.NDArray[np.bool_] = (before >= 0) & (numbers <= np.append(lasts, 0)[before])
    return found


def unsigned(data: ByteArray, offsets: Ints, width: int) -> Ints:
    """The little-endian numbers of `width` bytes at these offsets."""
    values = np.zeros(len(offsets), np.int64)
    for byte in range(width):
        values |= data[offsets + byte].astype(np.int64) << (8 * byte)
    return values


def _mysql_numbers(data: ByteArray, offsets: Ints, describe: Describe) -> dict[Source, tuple[Ints, Ints]]:
    types = data[offsets + 4]
    found: dict[Source, tuple[Ints, Ints]] = {}
    which = np.flatnonzero((types == EventType.GTID) & (offsets + NUMBER.stop <= len(data)))
    uuids = data[offsets[which][:, np.newaxis] + np.arange(UUID.start, UUID.stop)]
    while len(which):
        is_mine = (uuids == uuids[0]).all(axis=1)
        mine = which[is_mine]
        source = (str(uuid.UUID(bytes=uuids[0].tobytes())), "")
        found[source] = mine, unsigned(data, offsets[mine] + NUMBER.start, 8)
        which, uuids = which[~is_mine], uuids[~is_mine]
    tagged: dict[Source, list[tuple[int, int]]] = {}
    for number in np.flatnonzero(types == EventType.GTID_TAGGED).tolist():
        at = int(offsets[number])
        length = int.from_bytes(data[at + 9 : at + 13].tobytes(), "little")
        description = describe(at)
        gtid = parse_gtid(data[at : at + length].tobytes(), description) if description else None
        if isinstance(gtid, MysqlGtid):
            tagged.setdefault((gtid.server_uuid, gtid.tag), []).append((number, gtid.number))
    for source, pairs in tagged.items():
        events, numbers = np.array(pairs, np.int64).T
        if source in found:  # without a tag, but of the newer type
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
