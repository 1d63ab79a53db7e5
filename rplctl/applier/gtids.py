"""Which GTIDs a batch applied: the set that is stored with the position, in the source's vendor's notation.

A batch may hold a hundred thousand transactions, so numbers are taken from the GTID events as arrays.
GTID (33) body: u8 flags, 16 bytes UUID, i64 number. MARIADB_GTID (162) body: u64 sequence, u32 domain.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rplctl.applier.plan import Batch
from rplctl.binlog.events import parse_gtid
from rplctl.binlog.format_description import FormatDescription
from rplctl.binlog.gtid import MariadbGtidState, MysqlGtidSet
from rplctl.binlog.gtid_event import MysqlGtid
from rplctl.binlog.header import HEADER_LENGTH, EventType
from rplctl.binlog.jit import ByteArray
from rplctl.binlog.rows import Ints
from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.info import RelayLogInfo
from rplctl.source.replica_id import replica_name

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
    if not len(offsets):
        return executed
    data = batch.groups.data
    types = data[offsets + 4]
    if (types == EventType.MARIADB_GTID).any():
        return str(_with_mariadb(executed, data, offsets))
    numbered = np.isin(types, (EventType.GTID, EventType.GTID_TAGGED))
    return (
        str(_with_mysql(executed, data, offsets[numbered], types[numbered], batch.description))
        if numbered.any()
        else executed
    )


def _with_mariadb(executed: str, data: ByteArray, offsets: Ints) -> MariadbGtidState:
    """The last GTID of each domain, in the order of the log."""
    state = MariadbGtidState.parse(executed)
    domains = _unsigned(data, offsets + HEADER_LENGTH + 8, 4)
    for domain in np.unique(domains):
        last = int(offsets[np.flatnonzero(domains == domain)[-1]])
        sequence = int.from_bytes(data[last + HEADER_LENGTH : last + HEADER_LENGTH + 8].tobytes(), "little")
        state = state.add(int(domain), int.from_bytes(data[last + 5 : last + 9].tobytes(), "little"), sequence)
    return state


def _with_mysql(
    executed: str, data: ByteArray, offsets: Ints, types: ByteArray, description: FormatDescription
) -> MysqlGtidSet:
    found = MysqlGtidSet.parse(executed)
    untagged = offsets[types == EventType.GTID]
    identifiers = [data[at + 20 : at + 36].tobytes() for at in untagged.tolist()]
    numbers = _unsigned(data, untagged + HEADER_LENGTH + 17, 8)
    for identifier in set(identifiers):
        mine = np.sort(numbers[[i for i, one in enumerate(identifiers) if one == identifier]])
        breaks = np.flatnonzero(np.diff(mine) != 1)
        firsts = mine[np.concatenate(([0], breaks + 1))]
        lasts = mine[np.concatenate((breaks, [len(mine) - 1]))]
        spans = ":".join(f"{a}-{b}" if a != b else f"{a}" for a, b in zip(firsts.tolist(), lasts.tolist(), strict=True))
        found = found.union(MysqlGtidSet.parse(f"{uuid.UUID(bytes=identifier)}:{spans}"))
    for at in offsets[types == EventType.GTID_TAGGED].tolist():
        length = int.from_bytes(data[at + 9 : at + 13].tobytes(), "little")
        gtid = parse_gtid(data[at : at + length].tobytes(), description)
        assert isinstance(gtid, MysqlGtid)
        found = found.add(gtid.server_uuid, gtid.number, gtid.tag)
    return found


def _unsigned(data: ByteArray, offsets: Ints, width: int) -> Ints:
    values = np.zeros(len(offsets), np.int64)
    for byte in range(width):
        values |= data[offsets + byte].astype(np.int64) << (8 * byte)
    return values
