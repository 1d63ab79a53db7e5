"""Find the end of a folder of binary logs: the position after the last complete transaction that the channel accepts.

Two kinds of transactions do not count, because the channel will never apply them: incomplete ones, which a killed
server leaves, and those that the channel ignores.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rplctl.event.gtid import MysqlGtidSet
from rplctl.event.jit import ByteArray
from rplctl.event.scan import GroupScan
from rplctl.event.types import EventType
from rplctl.info import MasterInfo
from rplctl.position import FIRST_EVENT_POSITION, BinlogPosition
from rplctl.receiver.retrieved_gtids import RetrievedGtids
from rplctl.relay_log.log_file import Boundary, event_at, mapped_file, walk
from rplctl.source.base import DumpStart, EventBatch
from rplctl.source.binlog_folder import first_log_for_gtids
from rplctl.source.log_folder import log_names, read_head

_KIND, _SERVER_ID, _DOMAIN = 4, 5, 27  # offsets in an event; the domain is MARIADB_GTID's


class LeftOut:
    """The rules by which the receiver ignores transactions: their server ids, and the domains of their MariaDB
    GTIDs.
    """

    def __init__(self, master: MasterInfo) -> None:
        self.servers = list(master.ignored_server_ids)
        self._only, self._never = master.do_domain_ids, master.ignore_domain_ids

    def of(self, data: ByteArray, scan: GroupScan) -> NDArray[np.bool_]:
        """Return an array with one value for each group in `scan`: True if the receiver ignores the group.

        A group is a transaction, or an event between transactions. `data` is the mapped log to which the offsets in the
        scan refer.
        """
        found = np.isin(_u32(data, scan.start + _SERVER_ID), self.servers)
        if self._only or self._never:
            has_gtid = np.flatnonzero(scan.gtid_offset >= 0)
            has_domain = has_gtid[data[scan.gtid_offset[has_gtid] + _KIND] == EventType.MARIADB_GTID]
            domains = _u32(data, scan.gtid_offset[has_domain] + _DOMAIN)
            not_wanted = ~np.isin(domains, self._only) if self._only else np.isin(domains, self._never)
            found[has_domain] |= not_wanted
        return found


def _u32(data: ByteArray, at: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(sum(data[at + byte].astype(np.int64) << 8 * byte for byte in range(4)), np.int64)


def folder_end(folder: Path, left_out: LeftOut | None = None) -> BinlogPosition:
    """Return the position after the last complete transaction of the newest log.

    `left_out` decides which transactions do not count. If the folder has no log, log_name is ''. If the newest log has
    no such transaction, the position is the start of this log.
    """
    names = log_names(folder)
    if not names:
        return BinlogPosition("", FIRST_EVENT_POSITION)
    end = BinlogPosition(names[-1], FIRST_EVENT_POSITION)
    for data, scan, _ in _groups(folder / names[-1]):
        taken = np.flatnonzero(~left_out.of(data, scan)) if left_out else np.arange(len(scan))
        if len(taken):
            end = scan.source_position(int(taken[-1]))
    return end


def _groups(log: Path) -> Iterator[tuple[ByteArray, GroupScan, Boundary]]:
    """Yield the complete transactions of a log, several at a time.

    Each tuple has the bytes of the whole log, a scan with the next transactions, and the boundary after the last one.
    Raises SourceError if the file is not a binary log.
    """
    read_head(log)  # raises a clear error for an encrypted or foreign file
    with mapped_file(log) as data:
        at = Boundary(FIRST_EVENT_POSITION, BinlogPosition(log.name, FIRST_EVENT_POSITION))
        for scan, boundary in walk(data, at):
            yield data, scan, boundary


def gtids_of_folder(folder: Path, master: MasterInfo, executed: str, left_out: LeftOut) -> str:
    """Return the executed GTIDs and the GTIDs in the folder's logs as one set. Transactions that `left_out` ignores do
    not count.

    Raises SourceError 1236 if the folder lacks transactions that follow the executed GTIDs.
    """
    is_mariadb = not master.enabled_auto_position
    names = log_names(folder)
    if is_mariadb:
        start = DumpStart(master.read_position, mariadb_gtid=executed)
    else:
        start = DumpStart(master.read_position, mysql_gtid_set=MysqlGtidSet.parse(executed))
    found = RetrievedGtids(executed, is_mariadb=is_mariadb)
    for name in names[names.index(first_log_for_gtids(folder, names, start)) :]:
        for data, scan, _ in _groups(folder / name):
            taken = scan.gtid_offset[(scan.gtid_offset >= 0) & ~left_out.of(data, scan)].tolist()
            description = scan.description_at(taken[0]) if taken else None
            if description is not None:
                events = [event_at(data, at) for at in taken]
                offsets = np.concatenate(([0], np.cumsum([len(event) for event in events])))
                batch = EventBatch(np.frombuffer(b"".join(events), np.uint8), offsets)
                found.add_whole(batch, description)
    return found.text
