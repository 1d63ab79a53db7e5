"""Where the source's binary log ends right now: what `--until-synced` has to reach.

A server says so itself. In a folder of binary logs it is the end of the last complete transaction that the channel
takes: what a killed server left behind, and what is left out, will never be applied.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.event.gtid import MysqlGtidSet
from rplctl.event.types import EventType
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.position import FIRST_EVENT_POSITION, BinlogPosition
from rplctl.receiver.identity import replica_identity
from rplctl.receiver.retrieved_gtids import RetrievedGtids
from rplctl.relay_log.log_file import Boundary, event_at, mapped_file, walk
from rplctl.secret import reveal
from rplctl.source.base import DumpStart, EventBatch
from rplctl.source.binlog_folder import first_log_for_gtids, log_names, read_head

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rplctl.event.jit import ByteArray
    from rplctl.event.scan import GroupScan
    from rplctl.relay_log.log_file import Boundary

_KIND, _SERVER_ID, _DOMAIN = 4, 5, 27  # offsets in an event; the domain is MARIADB_GTID's


@dataclass(frozen=True, slots=True)
class SourceEnd:
    """`gtids`: what of its binary log the channel takes, with what is executed; '' when the channel does not ask by
    GTID, or that is not to be said. Positions of two sources cannot be compared, GTIDs can.
    """

    position: BinlogPosition
    gtids: str = ""
    is_comparable: bool = True  # False: by GTID, yet a position is all there is: only who sees the receiver can tell
    asked_at: float = field(default_factory=time.time, compare=False)  # Unix seconds


def source_end(config: Config, master: MasterInfo, relay: RelayLogInfo) -> SourceEnd:
    """Raises SourceError when the source is away, has no binary log or may not be asked."""
    if master.master_binlog_dir:
        return _end_of_folder(config, master, relay)
    from rplctl.source.survey import executed_gtids, log_end, survey

    with survey(master, reveal(master.user_password, config.datadir), config) as query:
        gtids = ""
        if master.uses_gtid and not master.ignored_server_ids:  # a set does not say which server wrote what
            gtids = _taken(executed_gtids(query, of_mysql=master.enabled_auto_position), master)
        return SourceEnd(log_end(query), gtids, bool(gtids) or not master.uses_gtid)


def _taken(gtids: str, master: MasterInfo) -> str:
    """Without the domains that the channel leaves out."""
    if ":" in gtids or not gtids:
        return gtids
    domains = {gtid: int(gtid.partition("-")[0]) for gtid in gtids.split(",")}
    return ",".join(
        gtid
        for gtid, domain in domains.items()
        if domain not in master.ignore_domain_ids and (not master.do_domain_ids or domain in master.do_domain_ids)
    )


def _end_of_folder(config: Config, master: MasterInfo, relay: RelayLogInfo) -> SourceEnd:
    folder, left_out = Path(master.master_binlog_dir), _LeftOut(master)
    if not config.replicate_same_server_id:
        left_out.servers.append(replica_identity(config, Channel(relay.channel_name, config.datadir)).server_id)
    end = folder_end(folder, left_out)
    if not master.uses_gtid or not end.log_name:
        return SourceEnd(end)
    gtids = _gtids_of_folder(folder, master, relay.gtid_executed, left_out)
    return SourceEnd(end, gtids, is_comparable=bool(gtids))


class _LeftOut:
    """Which groups of a log the receiver leaves out: by server, and by MariaDB's domain."""

    def __init__(self, master: MasterInfo) -> None:
        self.servers = list(master.ignored_server_ids)
        self._only, self._never = master.do_domain_ids, master.ignore_domain_ids

    def of(self, data: ByteArray, scan: GroupScan) -> NDArray[np.bool_]:
        """For each group of the scan."""
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


def folder_end(folder: Path, left_out: _LeftOut | None = None) -> BinlogPosition:
    """The position after the last complete transaction of the newest log; log_name '' when there is no log yet."""
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
    """Its complete groups, each time with the boundary behind them. Raises SourceError for what is no binary log."""
    read_head(log)  # says clearly what is wrong with an encrypted or foreign file
    with mapped_file(log) as data:
        at = Boundary(FIRST_EVENT_POSITION, BinlogPosition(log.name, FIRST_EVENT_POSITION))
        for scan, boundary in walk(data, at):
            yield data, scan, boundary


def _gtids_of_folder(folder: Path, master: MasterInfo, executed: str, left_out: _LeftOut) -> str:
    """What is executed and what the folder has beyond that and the channel takes. Raises SourceError 1236."""
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
                found.add(batch, 0, len(events), description)
    return found.text
