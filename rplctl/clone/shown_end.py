"""Where in the source's log the rows of a replica's snapshot are (`clone --read-from`).

What the source has when a snapshot is asked for is waited for on the replica; of what is logged behind that the replica
may show some more. Invariant: L is where the source's log stands behind the last transaction that the snapshot shows.
All before L are shown, none behind it: a replica that applies in parallel may show another picture for a moment, which
is not used.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rplctl.clone.read_from import missing_gtids
from rplctl.clone.received import changed, named_by_ddl
from rplctl.event.gtid import MysqlGtidSet
from rplctl.event.gtid_arrays import gtids_at
from rplctl.position import BinlogPosition
from rplctl.relay_log.reader import RelayGroups
from rplctl.schema.statement import TableName
from rplctl.source.snapshot import Snapshot, logged_gtids
from rplctl.source.survey import Query


def shown_by(held: Snapshot, replica: Query) -> str | None:
    """GTIDs of all that a snapshot of the replica may show; None where that cannot be known. Raises SourceError."""
    high = held.high()
    if high == held.low:
        return held.low.gtids
    assert held.low.position is not None and high.position is not None
    more = logged_gtids(replica, held.low.position, high.position)
    return str(MysqlGtidSet.parse(held.low.gtids).union(more)) if more is not None else None


@dataclass
class ShownEnd:
    """Looks for L in what the source sends. `surely`: GTIDs that the snapshot shows; `shown`: those and others that it
    may show; `position`: one that it shows all before. `names`: the tables by which a change of the family is known
    (received.changed); `plain`: as they are written.
    """

    surely: str
    shown: str
    position: BinlogPosition
    names: frozenset[TableName] | None
    plain: frozenset[TableName]
    fits: bool = True
    _is_behind: bool = field(default=False, init=False)

    def look(self, groups: RelayGroups) -> None:
        """`fits` is false from the first transaction on which is not as it must be."""
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
