"""Where a connection begins: at recovery's next event, with GTIDs at all that is neither fetched nor applied."""

from __future__ import annotations

from rplctl.event.gtid import MariadbGtidState, MysqlGtidSet
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.recovery import RecoveryResult
from rplctl.source import DumpStart


def dump_start(info: MasterInfo, recovered: RecoveryResult, executed: RelayLogInfo) -> DumpStart:
    """By file and position, by MySQL GTID set (MASTER_AUTO_POSITION) or MariaDB GTID position (MASTER_USE_GTID)."""
    if info.enabled_auto_position:
        fetched = MysqlGtidSet.parse(recovered.retrieved_gtid_set)
        return DumpStart(recovered.next_event, mysql_gtid_set=fetched.union(MysqlGtidSet.parse(executed.gtid_executed)))
    if info.using_gtid:
        state = MariadbGtidState.parse(executed.gtid_executed).union(
            MariadbGtidState.parse(recovered.retrieved_gtid_set)
        )
        return DumpStart(recovered.next_event, mariadb_gtid=str(state))
    return DumpStart(recovered.next_event)
