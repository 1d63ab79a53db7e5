"""Computes Retrieved_Gtid_Set, the GTIDs of the complete transactions in the relay logs, and finds positions by GTID.

For MySQL, the result is a set, `uuid[:tag]:1-5:7,…`. For MariaDB, it is the last GTID of each domain, `0-1-5,1-1-8`.
Invariant: the result has no GTID of a transaction that recovery cuts off, so that the source sends this transaction
again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rplctl import mysql_errors as er
from rplctl.errors import BinlogFormatError, RelayLogError
from rplctl.event.gtid import MariadbGtidState, MysqlGtidSet
from rplctl.event.gtid_arrays import gtids_at, mariadb_gtids_at
from rplctl.event.gtid_event import MariadbGtid, MysqlGtid, parse_gtid
from rplctl.event.jit import ByteArray
from rplctl.event.scan import GroupScan
from rplctl.relay_log.index import RelayLogIndex
from rplctl.relay_log.locate import RelayLogPlace, follows
from rplctl.relay_log.log_file import Boundary, boundary_after, event_at, first_groups, mapped_file, read_start, walk
from rplctl.relay_log.origin import read_origin


def retrieved_gtids(index: RelayLogIndex, names: Sequence[str], last_size: int) -> str:
    """Return the GTIDs of all complete transactions in these relay logs, or '' if there are none.

    `last_size`: the size in bytes of the valid part of the last relay log. The function reads every event header, so
    only channels with GTIDs call it. Raises BinlogFormatError if a relay log does not begin at the end of the previous
    one.
    """
    mysql, mariadb = MysqlGtidSet(), MariadbGtidState()
    end: Boundary | None = None
    for name in names:
        with mapped_file(index.path(name)) as data:
            data = data[: last_size if name == names[-1] else len(data)]
            end = _check_follows(end, name, read_start(data).boundary)
            for scan, after in walk(data, end):
                found, last = gtids_at(data, scan.gtid_offset[scan.gtid_offset >= 0], scan.description_at)
                mysql, mariadb = mysql.union(found), mariadb.add_last(last.domains)
                end = after
    return str(mariadb or mysql)


def find_place_by_gtid(index: RelayLogIndex, executed: str) -> RelayLogPlace | None:
    """Return the position in the relay logs before the first transaction whose GTID is not in `executed`.

    If there is no such transaction, return the end of the last relay log. Return None if there is no relay log. Raises
    RelayLogError 1594 if a relay log is damaged. This error is transient, because recovery repairs the relay log or
    fetches it again.

    In MariaDB's log, the executed GTID of a domain shows the place, because the numbers of a domain may fall. Numbers
    decide only if the relay logs neither contain this GTID nor were begun directly after it.
    """
    found: RelayLogPlace | None = None
    place: RelayLogPlace | None = None
    before: Boundary | None = None
    try:
        known = _Known.of(index, executed)
        for name in index.names():
            with mapped_file(index.path(name)) as data:
                before = _check_follows(before, name, read_start(data).boundary)
                for scan, after in walk(data, before):
                    number = _first_not_in(known, data, scan) if found is None else None
                    if number is not None:
                        at = boundary_after(data, before, first_groups(scan, number)) if number else before
                        found = RelayLogPlace(name, at)
                    before = after
                place = RelayLogPlace(name, before)
    except (OSError, BinlogFormatError) as error:
        raise RelayLogError(
            f"cannot find the executed GTIDs in the relay logs: {error}",
            errno=er.SLAVE_RELAY_LOG_READ_FAILURE,
            channel=index.channel.name,
            hint="to fetch the relay logs again, run: rplctl start --receiver",
            transient=True,
        ) from error
    return found or place


@dataclass(slots=True, kw_only=True)
class _Known:
    """The executed transactions, for a walk through the relay logs.

    `ahead`: the domains whose executed GTID follows in the relay logs; all their transactions up to it are executed.
    `behind`: the domains whose executed GTID is before the relay logs, or was met; all their transactions are new.
    """

    mysql: MysqlGtidSet
    mariadb: MariadbGtidState
    ahead: set[int]
    behind: set[int]

    @classmethod
    def of(cls, index: RelayLogIndex, executed: str) -> _Known:
        if ":" in executed:
            return cls(mysql=MysqlGtidSet.parse(executed), mariadb=MariadbGtidState(), ahead=set(), behind=set())
        state, origin = MariadbGtidState.parse(executed), read_origin(index.channel)
        begun = {} if origin is None or ":" in origin.gtids else MariadbGtidState.parse(origin.gtids).domains
        ahead = domains_in_relay_logs(index, state)
        behind = {domain for domain, last in state.domains.items() if domain not in ahead and begun.get(domain) == last}
        return cls(mysql=MysqlGtidSet(), mariadb=state, ahead=ahead, behind=behind)

    def has(self, gtid: MysqlGtid | MariadbGtid) -> bool:
        """True if the transaction is executed. The caller asks for each transaction, in the order of the relay logs."""
        if isinstance(gtid, MysqlGtid):
            return gtid.is_anonymous or self.mysql.contains(gtid.server_uuid, gtid.number, gtid.tag)
        if gtid.domain in self.ahead:
            if self.mariadb.domains[gtid.domain] == (gtid.server_id, gtid.sequence):
                self.ahead.discard(gtid.domain)
                self.behind.add(gtid.domain)
            return True
        return gtid.domain not in self.behind and self.mariadb.contains(gtid.domain, gtid.sequence)


def domains_in_relay_logs(index: RelayLogIndex, state: MariadbGtidState) -> set[int]:
    """Return the domains whose last executed GTID is in the relay logs."""
    wanted = {(domain, *last) for domain, last in state.domains.items()}
    found: set[int] = set()
    before: Boundary | None = None
    for name in index.names():
        with mapped_file(index.path(name)) as data:
            before = _check_follows(before, name, read_start(data).boundary)
            for scan, after in walk(data, before):
                offsets = scan.gtid_offset[scan.gtid_offset >= 0]
                found |= {gtid[0] for gtid in mariadb_gtids_at(data, offsets) & wanted}
                before = after
    return found


def _check_follows(end: Boundary | None, name: str, start: Boundary) -> Boundary:
    """Return `start`, the boundary (file offset and source position) at which the relay log `name` begins.

    Raises BinlogFormatError if the previous relay log, which ends at the boundary `end`, ends at another source
    position.
    """
    if end is not None and not follows(end.source, start.source):
        raise BinlogFormatError(f"{name} begins at {start.source}, the relay log before it ends at {end.source}")
    return start


def _first_not_in(known: _Known, data: ByteArray, scan: GroupScan) -> int | None:
    """Return the index of the first event group (transaction) in the scan that is not executed.

    Return None if all event groups in the scan are executed.
    """
    found, _ = gtids_at(data, scan.gtid_offset[scan.gtid_offset >= 0], scan.description_at)
    if found and found.is_subset_of(known.mysql):
        return None
    for number in np.flatnonzero(scan.gtid_offset >= 0).tolist():
        offset = int(scan.gtid_offset[number])
        description = scan.description_at(offset)
        assert description is not None
        gtid = parse_gtid(event_at(data, offset), description)
        if not known.has(gtid):
            return int(number)
    return None
