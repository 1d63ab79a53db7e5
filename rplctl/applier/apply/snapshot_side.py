"""The side of a snapshot's position on which the applier is.

Invariant: AT means that the applier has applied exactly the transactions that the snapshot shows. Without GTIDs, this
is a comparison of positions; the GTIDs of the position then only reveal transactions from another source.
"""

from __future__ import annotations

from enum import Enum, auto

from rplctl.clone.folder import StoredSnapshot
from rplctl.event.gtid import MariadbGtidState, is_executed
from rplctl.info import RelayLogInfo


class Side(Enum):
    """The side of a snapshot's position on which the applier is."""

    BEFORE = auto()
    AT = auto()
    PAST = auto()


def side_of(found: StoredSnapshot, info: RelayLogInfo, *, by_gtid: bool) -> Side:
    """Return the side of the applier's executed position. `by_gtid`: positions of several sources are not compared."""
    place = found.low
    has_all = _is_within(place.gtids, info.gtid_executed)
    has_more = not _is_within(info.gtid_executed, place.gtids)
    if not by_gtid:
        if not found.position.is_before(info.exec_position):
            return Side.BEFORE if info.exec_position.is_before(found.position) else Side.AT
        return Side.PAST if has_more or not (info.gtid_executed and place.gtids) else Side.AT
    if has_more or not has_all:
        return Side.PAST if has_more else Side.BEFORE
    return Side.AT if _is_within(info.gtid_executed, place.gtids, exactly=True) else Side.PAST


def _is_within(gtids: str, others: str, *, exactly: bool = False) -> bool:
    """True if the GTID set `others` contains `gtids`. `exactly`: the states of MariaDB must be equal."""
    if exactly:
        return ":" in gtids or MariadbGtidState.parse(gtids) == MariadbGtidState.parse(others)
    return not gtids or is_executed(gtids, others)
