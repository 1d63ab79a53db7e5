"""Which GTIDs a batch applied: the set that is stored with the position, in the source's vendor's notation.

A batch may hold a hundred thousand transactions, so numbers are taken from the GTID events as arrays.
GTID (33) body: u8 flags, 16 bytes UUID, i64 number. MARIADB_GTID (162) body: u64 sequence, u32 domain.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from rplctl.applier.feed.plan import Batch
from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.event.events import parse_gtid
from rplctl.event.format_description import FormatDescription
from rplctl.event.gtid import Intervals, MariadbGtidState, MysqlGtidSet, Source
from rplctl.event.gtid_event import MysqlGtid
from rplctl.event.header import HEADER_LENGTH
from rplctl.event.jit import ByteArray
from rplctl.event.rows import Ints
from rplctl.event.types import EventType
from rplctl.info import RelayLogInfo
from rplctl.source.replica_id import replica_name

if TYPE_CHECKING:
    import numpy.typing as npt

_UUID: Final = slice(HEADER_LENGTH + 1, HEADER_LENGTH + 17)
_NUMBER: Final = slice(HEADER_LENGTH + 17, HEADER_LENGTH + 25)


@dataclass(slots=True)
class Assigned:
    """ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS: the next number of that UUID, in the order of the log; '' for OFF."""

    uuid: str
    number: int = 0

    def take(self, event: bytes) -> bytes:
        """An ANONYMOUS_GTID event as the GTID event that it becomes; the checksum, if any, is the caller's."""
        given = bytearray(event)
        given[4] = EventType.GTID
        given[_UUID] = uuid.UUID(self.uuid).bytes
        given[_NUMBER] = self.number.to_bytes(8, "little")
        self.number += 1
        return bytes(given)

    def take_all(self, data: ByteArray, offsets: Ints) -> ByteArray:
        """The same for all ANONYMOUS_GTID events at these offsets, in a copy; the data themselves without one."""
        offsets = offsets[data[offsets + 4] == EventType.ANONYMOUS_GTID]
        if not self.uuid or not len(offsets):
            return data
        given = data.copy()
        for at in offsets.tolist():
            head = given[at : at + _NUMBER.stop]
            head[:] = np.frombuffer(self.take(head.tobytes()), np.uint8)
        return given


def assigned(info: RelayLogInfo, config: Config) -> Assigned:
    """What the next anonymous transaction behind `info` becomes. LOCAL is the uuid that log-status shows as ours."""
    kind = info.assign_gtids_to_anonymous_transactions_type
    if kind == "OFF":
        return Assigned("")
    name = info.assign_gtids_to_anonymous_transactions_value
    if kind == "LOCAL":
        name = str(uuid.uuid5(uuid.NAMESPACE_OID, replica_name(config, Channel("", config.datadir))))
    text = info.gtid_executed
    intervals = MysqlGtidSet.parse(text if ":" in text else "").intervals.get((name, ""), ())
    return Assigned(name, intervals[-1][1] + 1 if intervals else 1)


def moved_by(batch: Batch, info: RelayLogInfo, config: Config) -> RelayLogInfo:
    """`info` behind the batch."""
    new = info.at(batch.relay_position, batch.source_position)
    return replace(new, gtid_executed=executed_after(info.gtid_executed, batch, assigned(info, config)))


def executed_after(executed: str, batch: Batch, given: Assigned | None = None) -> str:
    """`executed` plus the GTIDs of the batch; unchanged when its transactions have none and are given none."""
    after = _executed_after(executed, batch)
    if given is None or not given.uuid:
        return after
    offsets = batch.scan.gtid_offset[batch.first : batch.last]
    count = int((batch.groups.data[offsets[offsets >= 0] + 4] == EventType.ANONYMOUS_GTID).sum())
    if not count:
        return after
    interval = MysqlGtidSet({(given.uuid, ""): ((given.number, given.number + count - 1),)})
    return str(MysqlGtidSet.parse(after).union(interval))


def _executed_after(executed: str, batch: Batch) -> str:
    offsets = batch.scan.gtid_offset[batch.first : batch.last]
    offsets = offsets[offsets >= 0]
    found = numbers_by_source(batch.groups.data, offsets, batch.description)
    if not found:
        return executed
    if any(isinstance(source, int) for source in found):
        return str(_with_mariadb(executed, batch.groups.data, offsets, found))
    spans = {source: _spans(numbers) for source, (_, numbers) in found.items() if isinstance(source, tuple)}
    return str(MysqlGtidSet.parse(executed).union(MysqlGtidSet(spans)))


def numbers_by_source(
    data: ByteArray, offsets: Ints, description: FormatDescription | None
) -> dict[Source | int, tuple[Ints, Ints]]:
    """Of the GTID events at these offsets, by MySQL's (uuid, tag) or MariaDB's domain: which of them, ascending, and
    their numbers. Anonymous ones are left out.
    """
    types = data[offsets + 4]
    found: dict[Source | int, tuple[Ints, Ints]] = {}
    which = np.flatnonzero(types == EventType.MARIADB_GTID)
    domains = unsigned(data, offsets[which] + HEADER_LENGTH + 8, 4)
    for domain in np.unique(domains).tolist():
        mine = which[domains == domain]
        found[domain] = mine, unsigned(data, offsets[mine] + HEADER_LENGTH, 8)
    which = np.flatnonzero(types == EventType.GTID)
    uuids = data[offsets[which][:, np.newaxis] + np.arange(_UUID.start, _UUID.stop)]
    while len(which):
        is_mine = (uuids == uuids[0]).all(axis=1)
        mine = which[is_mine]
        source = (str(uuid.UUID(bytes=uuids[0].tobytes())), "")
        found[source] = mine, unsigned(data, offsets[mine] + _NUMBER.start, 8)
        which, uuids = which[~is_mine], uuids[~is_mine]
    tagged: dict[Source, list[tuple[int, int]]] = {}
    for number in np.flatnonzero(types == EventType.GTID_TAGGED).tolist():
        at = int(offsets[number])
        length = int.from_bytes(data[at + 9 : at + 13].tobytes(), "little")
        assert description is not None
        gtid = parse_gtid(data[at : at + length].tobytes(), description)
        assert isinstance(gtid, MysqlGtid)
        tagged.setdefault((gtid.server_uuid, gtid.tag), []).append((number, gtid.number))
    for source, pairs in tagged.items():
        events, numbers = np.array(pairs, np.int64).T
        if source in found:  # without a tag, but of the newer type
            order = np.argsort(np.append(found[source][0], events))
            events = np.append(found[source][0], events)[order]
            numbers = np.append(found[source][1], numbers)[order]
        found[source] = events, numbers
    return found


def is_within(numbers: Ints, intervals: Intervals) -> npt.NDArray[np.bool_]:
    """`intervals`: ascending and apart."""
    firsts, lasts = np.array(intervals, np.int64).reshape(-1, 2).T
    before = np.searchsorted(firsts, numbers, "right") - 1
    found: npt.NDArray[np.bool_] = (before >= 0) & (numbers <= np.append(lasts, 0)[before])
    return found


def _with_mariadb(
    executed: str, data: ByteArray, offsets: Ints, found: Mapping[Source | int, tuple[Ints, Ints]]
) -> MariadbGtidState:
    """The last GTID of each domain, in the order of the log."""
    ends: dict[int, tuple[int, int]] = {}
    for domain, (events, _) in found.items():
        if isinstance(domain, int):
            last = int(offsets[events[-1]])
            sequence = int.from_bytes(data[last + HEADER_LENGTH : last + HEADER_LENGTH + 8].tobytes(), "little")
            ends[domain] = int.from_bytes(data[last + 5 : last + 9].tobytes(), "little"), sequence
    return MariadbGtidState.parse(executed).add_last(ends)


def _spans(numbers: Ints) -> Intervals:
    mine = np.unique(numbers)
    breaks = np.flatnonzero(np.diff(mine) != 1)
    firsts = mine[np.append(0, breaks + 1)]
    lasts = mine[np.append(breaks, len(mine) - 1)]
    return tuple(zip(firsts.tolist(), lasts.tolist(), strict=True))


def unsigned(data: ByteArray, offsets: Ints, width: int) -> Ints:
    """The little-endian numbers of `width` bytes at these offsets."""
    values = np.zeros(len(offsets), np.int64)
    for byte in range(width):
        values |= data[offsets + byte].astype(np.int64) << (8 * byte)
    return values
