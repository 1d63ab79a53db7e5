"""START REPLICA UNTIL: determines how far the applier may go, and whether the condition is met (MySQL manual).

* Position: a group (transaction) is applied if it *starts* before the position. So if the position is inside a
  transaction, the whole transaction is applied.
* SQL_BEFORE_GTIDS: the applier stops before the first listed GTID.
* SQL_AFTER_GTIDS: the applier stops when all listed GTIDs are applied.
* MASTER_GTID_POS: the applier stops when the listed GTIDs of MariaDB (`domain-server-sequence`) are applied. Each of
  them is a position in its domain. The applier also applies the transactions of other domains that precede the last
  listed GTID in the source's log.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rplctl.applier.options import AFTER_GTIDS, Until
from rplctl.event.gtid import MAX_SEQUENCE, Intervals, MariadbGtidState, MysqlGtidSet, Source, is_executed
from rplctl.event.gtid_arrays import is_within, numbers_by_source
from rplctl.info import RelayLogInfo
from rplctl.position import BinlogPosition, RelayLogPosition, log_number
from rplctl.relay_log.reader import RelayGroups


def groups_before(groups: RelayGroups, until: Until, executed: str) -> int:
    """Return how many groups of the scan the UNTIL condition permits. `executed`: the GTIDs before the scan."""
    if until.relay_position is not None:
        return _before_relay_position(groups, until.relay_position)
    if until.source_position is not None:
        return _before_source_position(groups, until.source_position)
    if until.gtids:
        return _before_gtids(groups, until, executed)
    return len(groups.scan)


def is_met(until: Until, info: RelayLogInfo) -> bool:
    """True if the committed position in `info` meets the UNTIL condition, so that the applier must stop."""
    if until.source_position is not None:
        return not info.exec_position.is_before(until.source_position)
    if until.relay_position is not None:
        return not info.relay_log_position.is_before(until.relay_position)
    if until.kind in AFTER_GTIDS:
        return is_executed(until.gtids, info.gtid_executed)
    if until.kind == "sql_before_gtids":
        return _is_begun(until.gtids, info.gtid_executed)
    return False


def _before_relay_position(groups: RelayGroups, until: RelayLogPosition) -> int:
    begins = RelayLogPosition(groups.log_name, 0)
    if begins.order_key()[0] == until.order_key()[0]:
        return int(np.searchsorted(groups.scan.start, until.log_pos))
    return len(groups.scan) if begins.is_before(until) else 0


def _before_source_position(groups: RelayGroups, until: BinlogPosition) -> int:
    if not groups.start_source.is_before(until):
        return 0
    scan = groups.scan
    log = np.array([log_number(name) for name in scan.log_names])[scan.source_log[:-1]]
    ends, (until_log, until_pos) = scan.source_end[:-1], until.order_key()
    beyond = np.flatnonzero((log > until_log) | ((log == until_log) & (ends >= until_pos)))
    return int(beyond[0]) + 1 if len(beyond) else len(scan)


def _before_gtids(groups: RelayGroups, until: Until, executed: str) -> int:
    """Return how many groups a condition with GTIDs permits.

    SQL_BEFORE_GTIDS permits the groups before the first listed GTID. SQL_AFTER_GTIDS permits the groups up to the one
    that completes the list.
    """
    scan = groups.scan
    with_gtid = np.flatnonzero(scan.gtid_offset >= 0)
    found = numbers_by_source(groups.data, scan.gtid_offset[with_gtid], lambda _: groups.format_description)
    places = []  # for each source, the first listed group, or the group that completes the list
    for source, intervals, count in _listed(until, executed):
        events, numbers = found.get(source, (with_gtid[:0], with_gtid[:0]))
        is_listed = is_within(numbers, intervals)
        _, first = np.unique(numbers[is_listed], return_index=True)
        listed = np.sort(with_gtid[events[is_listed][first]])
        places.append(int(listed[count - 1]) if len(listed) >= count else len(scan))
    if until.kind == "sql_before_gtids":
        return min(places, default=len(scan))
    return min(max(places, default=-1) + 1, len(scan))


def _listed(until: Until, executed: str) -> Iterator[tuple[Source | int, Intervals, int]]:
    """Yield (source, listed numbers, count) for each source in the condition.

    A source is a MySQL source's UUID and tag, or a MariaDB domain. `count`: which of the listed transactions in the log
    is the limit. For SQL_BEFORE_GTIDS, this is the first one (1). For SQL_AFTER_GTIDS, executed transactions are
    omitted, and the limit is the last of the other listed transactions.
    """
    is_after = until.kind in AFTER_GTIDS
    if ":" in until.gtids:
        wanted = MysqlGtidSet.parse(until.gtids)
        if is_after:
            wanted = wanted.subtract(MysqlGtidSet.parse(executed))
        for name, intervals in wanted.intervals.items():
            yield name, intervals, sum(last - first + 1 for first, last in intervals) if is_after else 1
        return
    state = MariadbGtidState.parse(executed)
    for domain, (_, sequence) in MariadbGtidState.parse(until.gtids).domains.items():
        if not (is_after and state.contains(domain, sequence)):
            yield domain, ((sequence, MAX_SEQUENCE),), 1


def _is_begun(gtids: str, executed: str) -> bool:
    """True if a listed GTID is already executed, so that SQL_BEFORE_GTIDS is met."""
    if ":" in gtids:
        done = MysqlGtidSet.parse(executed)
        return bool(done) and bool(done.subtract(MysqlGtidSet.parse(gtids)) != done)
    wanted, done_state = MariadbGtidState.parse(gtids), MariadbGtidState.parse(executed)
    return any(done_state.contains(domain, sequence) for domain, (_, sequence) in wanted.domains.items())
