"""Compares the position of the applier with the position of a snapshot.

Invariant: `Side.AT` means that the applier has applied exactly the transactions that the snapshot shows. Without GTIDs,
the positions in the source's log are compared. The GTIDs of the snapshot then only reveal transactions from another
source.
"""

from __future__ import annotations

from enum import Enum, auto

from rplctl.clone.folder import StoredSnapshot
from rplctl.event.gtid import MariadbGtidState, is_executed
from rplctl.info import RelayLogInfo


class Side(Enum):
    """The position of the applier relative to the position of a snapshot."""

    BEFORE = auto()
    AT = auto()
    PAST = auto()


def side_of(found: StoredSnapshot, info: RelayLogInfo, *, by_gtid: bool) -> Side:
    """Return whether the applier's executed position is before, at or past the snapshot's position.

    `by_gtid`: True to compare the GTIDs, because positions of different sources cannot be compared.
    """
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
    """True if the GTID set `others` contains `gtids`.

    `exactly`: True to compare MariaDB's GTID states for equality. For MySQL, the result is then True, because the
    caller has already compared the sets.
    """
    if exactly:
        return ":" in gtids or MariadbGtidState.parse(gtids) == MariadbGtidState.parse(others)
    return not gtids or is_executed(gtids, others)
