"""Finds the position in the source's log that a snapshot on a replica shows (`clone --read-from`).

The cloner waits until the replica has all transactions that the source had at the time of the request; the snapshot may
show some later ones. Invariant: the position that is found, L, is after the last transaction that the snapshot shows.
The snapshot shows all transactions before L and none after it. A replica that applies in parallel may for a moment show
other transactions than a part of the log; such a snapshot is not used.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rplctl.clone.read_from import missing_gtids
from rplctl.event.gtid import MysqlGtidSet
from rplctl.event.gtid_arrays import gtids_at
from rplctl.position import BinlogPosition
from rplctl.relay_log.reader import RelayGroups
from rplctl.relay_log.received import changed, named_by_ddl
from rplctl.schema.statement import TableName
from rplctl.source.snapshot import Snapshot, logged_gtids
from rplctl.source.survey import Ask


def shown_by(held: Snapshot, replica: Ask) -> str | None:
    """Return the GTIDs of all transactions that a snapshot of the replica may show; None if they are unknown. Raises
    SourceError if the source or the replica reports an error.
    """
    high = held.high()
    if high == held.low:
        return held.low.gtids
    assert held.low.position is not None and high.position is not None
    more = logged_gtids(replica, held.low.position, high.position)
    return str(MysqlGtidSet.parse(held.low.gtids).union(more)) if more is not None else None


@dataclass(kw_only=True)
class ShownEnd:
    """Finds the snapshot's position in the groups that arrive from the source.

    `surely`: GTIDs that the snapshot shows; `shown`: these GTIDs, and others that the snapshot may show.
    `position`: the position found so far; the snapshot shows all transactions before it.
    `names`: the tables by which a change of the table group is recognised (received.changed).
    `plain`: the same tables with their original names.
    `fits`: True unless a transaction contradicts the snapshot.
    """

    surely: str
    shown: str
    position: BinlogPosition
    names: frozenset[TableName] | None
    plain: frozenset[TableName]
    fits: bool = True
    _is_behind: bool = field(default=False, init=False)

    def look(self, groups: RelayGroups) -> None:
        """Examine the next groups, and move `position` over those that the snapshot shows."""
        scan = groups.scan
        seen = MysqlGtidSet.parse(self.surely) if ":" in self.surely else MysqlGtidSet()
        for number in range(len(scan)):
            at = scan.gtid_offset[number : number + 1]
            if at[0] < 0:
                continue
            of_mysql, of_mariadb = gtids_at(groups.data, at, scan.description_at)
            if not missing_gtids(str(of_mysql or of_mariadb), self.shown):
                is_sure = self.surely == self.shown or not changed(groups, number, self.names, seen)
                self.fits &= is_sure and not self._is_behind
                if self.position.is_before(scan.source_position(number)):
                    self.position = scan.source_position(number)
            else:
                self._is_behind = True
                self.fits &= not named_by_ddl(groups, number, self.plain)
