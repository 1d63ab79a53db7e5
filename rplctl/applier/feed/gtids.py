"""The GTIDs of a batch, which are added to the executed GTIDs that are stored with the position.

They are in the notation of the source's vendor.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace

import numpy as np

from rplctl.applier.feed.plan import Batch
from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.event.gtid import MariadbGtidState, MysqlGtidSet
from rplctl.event.gtid_arrays import NUMBER, UUID, gtids_at
from rplctl.event.jit import ByteArray
from rplctl.event.rows import Ints
from rplctl.event.types import EventType
from rplctl.info import RelayLogInfo
from rplctl.source.replica_id import replica_name


@dataclass(slots=True)
class Assigned:
    """Assigns GTIDs to anonymous transactions (ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS).

    `uuid`: the UUID of these GTIDs, or '' if the option is OFF. `number`: the number of the next GTID.
    """

    uuid: str
    number: int = 0

    def take(self, event: bytes) -> bytes:
        """Return the ANONYMOUS_GTID event as a GTID event with the next number. The caller computes the checksum."""
        given = bytearray(event)
        given[4] = EventType.GTID
        given[UUID] = uuid.UUID(self.uuid).bytes
        given[NUMBER] = self.number.to_bytes(8, "little")
        self.number += 1
        return bytes(given)

    def take_all(self, data: ByteArray, offsets: Ints) -> ByteArray:
        """Return the data with each ANONYMOUS_GTID event replaced by a GTID event.

        `offsets`: the offsets of all GTID events. The data is copied only if an event is replaced.
        """
        offsets = offsets[data[offsets + 4] == EventType.ANONYMOUS_GTID]
        if not self.uuid or not len(offsets):
            return data
        given = data.copy()
        for at in offsets.tolist():
            head = given[at : at + NUMBER.stop]
            head[:] = np.frombuffer(self.take(head.tobytes()), np.uint8)
        return given


def assigned(info: RelayLogInfo, config: Config) -> Assigned:
    """Return the object that assigns GTIDs to the anonymous transactions after the position in `info`.

    If the option is LOCAL, the UUID is the one that `rplctl log-status` shows for this instance.
    """
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
    """Return `info` with the position and the executed GTIDs after the batch."""
    new = info.at(batch.relay_position, batch.source_position)
    return replace(new, gtid_executed=executed_after(info.gtid_executed, batch, assigned(info, config)))


def executed_after(executed: str, batch: Batch, given: Assigned | None = None) -> str:
    """Return the set of executed GTIDs after the batch: `executed`, and the GTIDs of the batch's transactions.

    `given`: assigns GTIDs to the transactions that have none. If `executed` is from a source of another vendor, its
    GTIDs have no meaning for this source, and are removed.
    """
    offsets = batch.scan.gtid_offset[batch.first : batch.last]
    offsets = offsets[offsets >= 0]
    mysql, mariadb = gtids_at(batch.groups.data, offsets, lambda _: batch.description)
    after, is_mysqls = executed, ":" in executed
    if mariadb:
        after = str(MariadbGtidState.parse("" if is_mysqls else executed).add_last(mariadb.domains))
    elif mysql:
        after = str(MysqlGtidSet.parse(executed if is_mysqls else "").union(mysql))
    if given is None or not given.uuid:
        return after
    count = int((batch.groups.data[offsets + 4] == EventType.ANONYMOUS_GTID).sum())
    if not count:
        return after
    interval = MysqlGtidSet({(given.uuid, ""): ((given.number, given.number + count - 1),)})
    return str(MysqlGtidSet.parse(after if ":" in after else "").union(interval))
