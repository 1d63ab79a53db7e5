"""Computes Retrieved_Gtid_Set, the GTIDs of the complete transactions in the relay logs, and finds positions by GTID.

For MySQL, the result is a set, `uuid[:tag]:1-5:7,…`. For MariaDB, it is the last GTID of each domain, `0-1-5,1-1-8`.
Invariant: the result has no GTID of a transaction that recovery cuts off, so that the source sends this transaction
again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rplctl import mysql_errors as er
from rplctl.errors import BinlogFormatError, RelayLogError
from rplctl.event.gtid import MariadbGtidState, MysqlGtidSet, is_executed
from rplctl.event.gtid_arrays import gtids_at
from rplctl.event.gtid_event import MysqlGtid, parse_gtid
from rplctl.event.jit import ByteArray
from rplctl.event.scan import GroupScan
from rplctl.relay_log.index import RelayLogIndex
from rplctl.relay_log.locate import RelayLogPlace, follows
from rplctl.relay_log.log_file import Boundary, boundary_after, event_at, first_groups, mapped_file, read_start, walk


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
    """
    found: RelayLogPlace | None = None
    place: RelayLogPlace | None = None
    before: Boundary | None = None
    try:
        for name in index.names():
            with mapped_file(index.path(name)) as data:
                before = _check_follows(before, name, read_start(data).boundary)
                for scan, after in walk(data, before):
                    number = _first_not_in(executed, data, scan) if found is None else None
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


def _check_follows(end: Boundary | None, name: str, start: Boundary) -> Boundary:
    """Return `start`, the boundary (file offset and source position) at which the relay log `name` begins.

    Raises BinlogFormatError if the previous relay log, which ends at the boundary `end`, ends at another source
    position.
    """
    if end is not None and not follows(end.source, start.source):
        raise BinlogFormatError(f"{name} begins at {start.source}, the relay log before it ends at {end.source}")
    return start


def _first_not_in(executed: str, data: ByteArray, scan: GroupScan) -> int | None:
    """Return the index of the first event group (transaction) in the scan whose GTID is not in `executed`.

    Return None if the GTIDs of all event groups in the scan are in `executed`.
    """
    found, last = gtids_at(data, scan.gtid_offset[scan.gtid_offset >= 0], scan.description_at)
    if not (found or last) or is_executed(str(last or found), executed):
        return None
    mysql = MysqlGtidSet.parse(executed if ":" in executed else "")
    mariadb = MariadbGtidState.parse("" if ":" in executed else executed)
    for number in np.flatnonzero(scan.gtid_offset >= 0).tolist():
        offset = int(scan.gtid_offset[number])
        description = scan.description_at(offset)
        assert description is not None
        gtid = parse_gtid(event_at(data, offset), description)
        if isinstance(gtid, MysqlGtid):
            is_known = gtid.is_anonymous or mysql.contains(gtid.server_uuid, gtid.number, gtid.tag)
        else:
            is_known = mariadb.contains(gtid.domain, gtid.sequence)
        if not is_known:
            return int(number)
    return None
