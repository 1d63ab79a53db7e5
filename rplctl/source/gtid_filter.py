"""A dump by GTID from a folder: finds the first log to read, and skips the transactions that the replica already has.

The dump thread of a server does the same. Each log begins with the GTIDs of all earlier transactions: PREVIOUS_GTIDS
(MySQL) or GTID_LIST (MariaDB). The first log to read is the newest one for which the replica has all these GTIDs. From
this log on, transactions that the replica already has are skipped.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from rplctl.event.events import GtidList, PreviousGtids, parse_event
from rplctl.event.format_description import FormatDescription, parse_format_description
from rplctl.event.gtid import MariadbGtidState, MysqlGtidSet
from rplctl.event.gtid_event import MysqlGtid, parse_gtid
from rplctl.event.scan import scan_events
from rplctl.event.types import GTIDS, EventType
from rplctl.plain_file import open_plain
from rplctl.source.base import DumpStart, EventBatch, fatal_reading_binlog

_HEAD_BYTES: Final = 64 << 10
_MAX_HEAD_BYTES: Final = 64 << 20
_GTIDS: Final = sorted(GTIDS)
_BETWEEN: Final = [
    EventType.ROTATE,
    EventType.FORMAT_DESCRIPTION,
    EventType.STOP,
    EventType.PREVIOUS_GTIDS,
    EventType.GTID_LIST,
]


@dataclass(slots=True)
class GtidFilter:
    """Removes the transactions that the replica already has from the batches of one dump.

    The caller passes all batches in their order, because a transaction may extend over several batches.
    """

    mysql: MysqlGtidSet
    mariadb: MariadbGtidState
    description: FormatDescription | None = None
    skipping: bool = False
    passed: set[int] = field(default_factory=set)  # the domains in which the replica's last GTID was read

    def keep(self, batch: EventBatch) -> EventBatch | None:
        """Return the events of the batch that the replica lacks. Return None if the replica has all of them."""
        codes = batch.data[batch.offsets[:-1] + 4]
        decides = np.flatnonzero(np.isin(codes, _GTIDS) | np.isin(codes, _BETWEEN))
        if not len(decides):  # a part of a transaction
            return None if self.skipping else batch
        keep = np.empty(len(batch), np.bool_)
        keep[: decides[0]] = not self.skipping
        for at, following in zip(decides.tolist(), [*decides[1:].tolist(), len(batch)], strict=True):
            self.skipping = self._is_known(batch.event(at))
            keep[at:following] = not self.skipping
        if keep.all():
            return batch
        if not keep.any():
            return None
        lengths = np.diff(batch.offsets)
        data = batch.data[int(batch.offsets[0]) : int(batch.offsets[-1])][np.repeat(keep, lengths)]
        return EventBatch(data, np.concatenate(([0], np.cumsum(lengths[keep]))))

    def _is_known(self, event: bytes) -> bool:
        if event[4] == EventType.FORMAT_DESCRIPTION:
            self.description = parse_format_description(event)
        if event[4] == EventType.GTID_LIST and self.description is not None:
            before = parse_event(event, self.description)
            assert isinstance(before, GtidList)
            self.passed |= {d for d, last in before.state.domains.items() if self.mariadb.domains.get(d) == last}
        if event[4] in _BETWEEN or self.description is None:
            return False
        gtid = parse_gtid(event, self.description)
        if isinstance(gtid, MysqlGtid):
            return not gtid.is_anonymous and self.mysql.contains(gtid.server_uuid, gtid.number, gtid.tag)
        if gtid.domain in self.passed:  # a later number may be lower (GtidHistory)
            return False
        if self.mariadb.domains.get(gtid.domain) == (gtid.server_id, gtid.sequence):
            self.passed.add(gtid.domain)
        return self.mariadb.contains(gtid.domain, gtid.sequence)


def gtid_filter(start: DumpStart) -> GtidFilter | None:
    """Return the filter for a dump that begins by GTIDs. Return None if the dump begins at a position."""
    if not start.by_gtid:
        return None
    return GtidFilter(start.mysql_gtid_set or MysqlGtidSet(), MariadbGtidState.parse(start.mariadb_gtid or ""))


def has_all_before(path: Path, start: DumpStart) -> bool:
    """True if the replica has all transactions of the logs before the log at `path`.

    `start`: the GTIDs of the replica. Raises SourceError 1236 if the log does not list the earlier GTIDs.
    """
    state = _state_before(path)
    if isinstance(state, PreviousGtids):
        return state.gtids.is_subset_of(start.mysql_gtid_set or MysqlGtidSet())
    return state.history.is_reached_by(MariadbGtidState.parse(start.mariadb_gtid or ""))


def _state_before(path: Path) -> PreviousGtids | GtidList:
    size = _HEAD_BYTES
    while True:
        with os.fdopen(open_plain(path), "rb") as file:
            head = file.read(size)
        index = scan_events(head, 4)
        found = np.flatnonzero(np.isin(index.type_codes, [EventType.PREVIOUS_GTIDS, EventType.GTID_LIST]))
        if len(found):
            at = int(found[0])
            description = parse_format_description(head[4 : int(index.offsets[1])])
            event = parse_event(head[int(index.offsets[at]) : int(index.offsets[at + 1])], description)
            assert isinstance(event, PreviousGtids | GtidList)
            return event
        if len(head) < size or size >= _MAX_HEAD_BYTES or len(index) > 8:
            raise fatal_reading_binlog(
                f"'{path.name}' has no list of the GTIDs before it",
                hint="to begin at a position, run: rplctl change-master --master-log-file FILE --master-log-pos "
                "POSITION; rplctl start",
            )
        size *= 8
