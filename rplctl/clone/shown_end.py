"""Finds the position in the source's log that a snapshot on a replica shows (`clone --read-from`).

The cloner first reads the end of the source's log, and waits until the replica has all transactions before this end.
Then the cloner opens the snapshot, which may also show some later transactions. Invariant: the position is directly
after the last transaction that the snapshot shows. The snapshot shows all transactions before the position and none
after it. A replica that applies in parallel may, for a moment, show a transaction without an earlier one. A snapshot
from such a moment is not used.
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
    """Return the GTIDs of all transactions that a snapshot on the replica may show. Return None if they are unknown.

    `held`: the snapshot. `replica`: runs queries on the replica. Raises SourceError if the replica reports an error.
    """
    high = held.high()
    if high == held.low:
        return held.low.gtids
    assert held.low.position is not None and high.position is not None
    more = logged_gtids(replica, held.low.position, high.position)
    return str(MysqlGtidSet.parse(held.low.gtids).union(more)) if more is not None else None


@dataclass(kw_only=True)
class ShownEnd:
    """The search for the position of a replica's snapshot, in the event groups that arrive from the source.

    `surely`: the GTIDs that the snapshot certainly shows. `shown`: these GTIDs, and others that it may show.
    `position`: the position found so far. The snapshot shows all transactions before it.
    `names`: the tables whose events show a change of the copied tables; None means any table. `plain`: the copied
    tables with their original names.
    `fits`: False if a transaction shows that the snapshot is not at one position.
    """

    surely: str
    shown: str
    position: BinlogPosition
    names: frozenset[TableName] | None
    plain: frozenset[TableName]
    fits: bool = True
    _is_behind: bool = field(default=False, init=False)

    def look(self, groups: RelayGroups) -> None:
        """Examine the next event groups of the source, and move `position` past those that the snapshot shows."""
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
