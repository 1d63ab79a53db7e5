"""START SLAVE UNTIL: how far the applier may go, and whether it is there (mission map 2.6).

Position forms let a group run when it *starts* before the position, so a position inside a transaction lets that
transaction complete. SQL_BEFORE_GTIDS stops before the first listed GTID, SQL_AFTER_GTIDS once all of them are applied.
MariaDB's GTIDs (`domain-server-sequence`) are taken as positions per domain, as its MASTER_GTID_POS.
"""

from __future__ import annotations

import numpy as np

from rplctl.applier.options import Until
from rplctl.binlog.events import MariadbGtid, parse_gtid
from rplctl.binlog.gtid import MariadbGtidState, MysqlGtidSet
from rplctl.binlog.gtid_event import Gtid
from rplctl.info import RelayLogInfo
from rplctl.position import RelayLogPosition
from rplctl.relay_log.reader import RelayGroups


def groups_before(groups: RelayGroups, until: Until, executed: str) -> int:
    """How many groups of the scan UNTIL lets through, given the set of GTIDs executed before it."""
    if until.relay_position is not None:
        return _before_relay_position(groups, until.relay_position)
    if until.source_position is not None:
        at = groups.start_source
        for number in range(len(groups.scan)):
            if not at.is_before(until.source_position):
                return number
            at = groups.scan.source_position(number)
        return len(groups.scan)
    if until.gtids:
        return _before_gtids(groups, until, executed)
    return len(groups.scan)


def is_met(until: Until, info: RelayLogInfo) -> bool:
    """True when the committed position is where UNTIL wants to stop."""
    if until.source_position is not None:
        return not info.exec_position.is_before(until.source_position)
    if until.relay_position is not None:
        return not info.relay_log_position.is_before(until.relay_position)
    if until.kind == "sql_after_gtids":
        return _is_applied(until.gtids, info.gtid_executed)
    if until.kind == "sql_before_gtids":
        return _is_begun(until.gtids, info.gtid_executed)
    return False


def _before_relay_position(groups: RelayGroups, until: RelayLogPosition) -> int:
    begins = RelayLogPosition(groups.log_name, 0)
    if begins.order_key()[0] == until.order_key()[0]:
        return int(np.searchsorted(groups.scan.start, until.log_pos))
    return len(groups.scan) if begins.is_before(until) else 0


def _before_gtids(groups: RelayGroups, until: Until, executed: str) -> int:
    """BEFORE: up to the first listed group. AFTER: up to and with the group that completes the set."""
    for number in np.flatnonzero(groups.scan.gtid_offset >= 0).tolist():
        gtid = gtid_at(groups, int(groups.scan.gtid_offset[number]))
        if until.kind == "sql_before_gtids":
            if _is_listed(gtid, until.gtids):
                return int(number)
            continue
        executed = _with(executed, gtid)
        if _is_applied(until.gtids, executed):
            return int(number) + 1
    return len(groups.scan)


def gtid_at(groups: RelayGroups, at: int) -> Gtid:
    """The GTID event at an offset of the scan's file."""
    length = int.from_bytes(groups.data[at + 9 : at + 13].tobytes(), "little")
    assert groups.format_description is not None
    return parse_gtid(groups.data[at : at + length].tobytes(), groups.format_description)


def _is_listed(gtid: Gtid, gtids: str) -> bool:
    if isinstance(gtid, MariadbGtid):
        wanted = MariadbGtidState.parse(gtids).domains.get(gtid.domain)
        return wanted is not None and gtid.sequence >= wanted[1]
    return MysqlGtidSet.parse(gtids).contains(gtid.server_uuid, gtid.number, gtid.tag)


def _with(executed: str, gtid: Gtid) -> str:
    if isinstance(gtid, MariadbGtid):
        return str(MariadbGtidState.parse(executed).add(gtid.domain, gtid.server_id, gtid.sequence))
    return (
        executed
        if gtid.is_anonymous
        else str(MysqlGtidSet.parse(executed).add(gtid.server_uuid, gtid.number, gtid.tag))
    )


def _is_applied(gtids: str, executed: str) -> bool:
    if ":" in gtids:
        return MysqlGtidSet.parse(gtids).is_subset_of(MysqlGtidSet.parse(executed))
    return MariadbGtidState.parse(gtids).is_subset_of(MariadbGtidState.parse(executed))


def _is_begun(gtids: str, executed: str) -> bool:
    """Some listed GTID is applied already: there is no place before it any more."""
    if ":" in gtids:
        done = MysqlGtidSet.parse(executed)
        return bool(done) and bool(done.subtract(MysqlGtidSet.parse(gtids)) != done)
    wanted, done_state = MariadbGtidState.parse(gtids), MariadbGtidState.parse(executed)
    return any(done_state.contains(domain, sequence) for domain, (_, sequence) in wanted.domains.items())
