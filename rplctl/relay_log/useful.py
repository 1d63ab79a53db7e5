"""Checks whether the relay logs on disk continue the stored records, MasterInfo and RelayLogInfo.

If the records are in tables of the target, a restore of the target sets the records back, but not the relay logs. The
relay logs then do not continue the records (design D7).

Invariant: relay logs are applied only with the records for which they were fetched:

    the same source     the address (host and port, or folder) in MasterInfo is the one from which they were fetched
    no gap              with GTIDs: the record has the GTIDs that were executed when fetching began, and the GTIDs in
                        relay logs that were purged since; without GTIDs, the positions in the source's log show a gap
"""

from __future__ import annotations

from collections.abc import Sequence

from rplctl.errors import BinlogFormatError, UsageError
from rplctl.event.gtid import MariadbGtidState, MysqlGtidSet, is_executed
from rplctl.info import RelayLogInfo
from rplctl.plain_file import size_of
from rplctl.relay_log.gtid import domains_in_relay_logs, retrieved_gtids
from rplctl.relay_log.index import RelayLogIndex
from rplctl.relay_log.locate import boundary_at
from rplctl.relay_log.log_file import start_of
from rplctl.relay_log.origin import read_origin


def reason_not_to_apply(
    index: RelayLogIndex, names: Sequence[str], executed: RelayLogInfo, place: str, *, by_gtid: bool
) -> str:
    """Return the reason why these relay logs do not continue the stored records.

    Return '' if the relay logs continue the records, or if rplctl cannot find this out.

    `executed`: the stored RelayLogInfo. `place`: MasterInfo's address of the source; '' for any source.
    """
    found = read_origin(index.channel)
    if found is None or not names:
        return ""
    other = found.differs_from(place)
    if other or not by_gtid:
        return other
    try:
        (MysqlGtidSet if ":" in found.gtids else MariadbGtidState).parse(found.gtids)
    except UsageError:  # the record is damaged
        return ""
    if _has_executed(index, names, found.gtids, executed) and (found.is_whole or _holds_place(index, names, executed)):
        return ""
    return f"the relay logs begin after the executed GTIDs {executed.gtid_executed or '(none)'}"


def _has_executed(index: RelayLogIndex, names: Sequence[str], gtids: str, executed: RelayLogInfo) -> bool:
    """True if the record has the GTIDs with which the relay logs begin."""
    if not gtids or ":" in gtids or ":" in executed.gtid_executed:
        return not gtids or is_executed(gtids, executed.gtid_executed)
    begun, state = MariadbGtidState.parse(gtids).domains, MariadbGtidState.parse(executed.gtid_executed)
    others = set()
    for domain, (server_id, sequence) in begun.items():
        its_server, its_sequence = state.domains.get(domain, (server_id, -1))
        if its_server != server_id:  # the numbers of two servers show no order (GtidHistory)
            others.add(domain)
        elif its_sequence < sequence:
            return False
    try:
        return not others or _holds_place(index, names, executed) or others <= domains_in_relay_logs(index, state)
    except (OSError, BinlogFormatError):
        return False


def _holds_place(index: RelayLogIndex, names: Sequence[str], executed: RelayLogInfo) -> bool:
    """True if the relay logs contain the executed position: at their start, or at the relay log position in `executed`.

    If a power failure has truncated the relay logs before this relay log position, the result is True if all remaining
    transactions are executed.
    """
    if start_of(index.path(names[0])) == executed.exec_position:
        return True
    if executed.relay_log_name not in names:
        return False
    path = index.path(executed.relay_log_name)
    if executed.relay_log_pos <= size_of(path):
        at = boundary_at(path, executed.relay_log_pos)
        return at is not None and at.source == executed.exec_position
    try:
        left = retrieved_gtids(index, names, size_of(index.path(names[-1])))
    except BinlogFormatError:
        return False
    return not left or is_executed(left, executed.gtid_executed)
