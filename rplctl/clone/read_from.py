"""A replica of the source that is read in its place (`clone --read-from`): where in the source's log its rows are.

Transactions have the same GTIDs on both. What the source has when a snapshot is asked for is waited for on the replica;
of what is logged behind that the replica may show some more. Invariant: L is where the source's log stands behind the
last transaction that the snapshot shows. All before L are shown, none behind it: a replica that applies in parallel may
show another picture for a moment, which is not used. A replica with transactions of its own, or one that leaves some
out, is no copy of the source, and is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from rplctl.clone.received import changed, named_by_ddl
from rplctl.config import Config
from rplctl.errors import SourceError, UsageError
from rplctl.event.gtid import MariadbGtidState, MysqlGtidSet
from rplctl.event.gtid_arrays import gtids_at
from rplctl.info import MasterInfo
from rplctl.position import BinlogPosition
from rplctl.relay_log.reader import RelayGroups
from rplctl.schema.statement import TableName
from rplctl.secret import reveal
from rplctl.source.snapshot import Snapshot, Step, logged_gtids, settled_end, step_of
from rplctl.source.survey import Query, survey

_PATIENCE_S = 10.0
READ_SOURCE = "rplctl clone --read-from '' reads from the source itself"
_NEEDS = f"on both: MySQL's gtid_mode=ON, and a binary log of what is applied (log_replica_updates); or {READ_SOURCE}"
_FILTERS = re.compile(
    r"(?:replicate_(?:wild_)?(?:do|ignore)_(?:db|table|domain_ids)|replicate_rewrite_db)", re.IGNORECASE
)
_MYSQL_FILTERS = (
    "SELECT filter_name, filter_rule FROM performance_schema.replication_applier_filters UNION ALL"
    " SELECT filter_name, filter_rule FROM performance_schema.replication_applier_global_filters"
)


def with_address(info: MasterInfo, read_from: str) -> MasterInfo:
    """The connection of the channel, to HOST or HOST:PORT. Raises UsageError."""
    host, colon, port = read_from.rpartition(":") if not read_from.endswith("]") else (read_from, "", "")
    if not colon or "]" in port or (":" in host and not host.startswith("[")):
        host, port = read_from, str(info.port)
    if not host or not re.fullmatch(r"[0-9]{1,5}", port) or not 0 < int(port) < 65536 or "@" in host or "/" in host:
        raise UsageError(f"--read-from {read_from}: write HOST or HOST:PORT", hint="the account is the channel's")
    return replace(info, host=host.strip("[]"), port=int(port))


def refuse_copy(config: Config, source: MasterInfo, read_from: str) -> None:
    """As `refuse_other`, by sessions of its own. Raises UsageError, too."""
    copy = with_address(source, read_from)
    password = reveal(source.user_password, config.datadir)
    with survey(copy, password, config) as replica, survey(source, password, config) as query:
        refuse_other(replica, query, read_from)


def refuse_other(replica: Query, source: Query, address: str) -> None:
    """Raises SourceError unless every transaction of the replica is the source's, by GTIDs that both log."""
    step = step_of(replica)
    if step is Step.SHARE_LOCK or step is not step_of(source):
        raise SourceError(f"{address} and the source do not both have GTIDs of one vendor", hint=_NEEDS)
    if not _logs_what_it_applies(replica):
        raise SourceError(f"{address} does not log what it applies", hint=_NEEDS)
    if filters := _filters(replica):
        raise SourceError(f"{address} leaves out some of the source's transactions: {filters[0]}", hint=READ_SOURCE)
    there = settled_end(replica, step, _PATIENCE_S).gtids
    refuse_foreign(there, settled_end(source, step, _PATIENCE_S).gtids, address)


def refuse_foreign(there: str, source: str, address: str) -> None:
    """Raises SourceError unless all that is `there` is the source's, too."""
    if foreign := _missing(there, source):
        raise SourceError(f"{address} has transactions that the source has not: {foreign}", hint=READ_SOURCE)


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
            if not _missing(str(of_mysql or of_mariadb), self.shown):
                is_sure = self.surely == self.shown or not changed(groups, number, self.names, seen)
                self.fits &= is_sure and not self._is_behind
                if self.position.is_before(scan.source_position(number)):
                    self.position = scan.source_position(number)
            else:
                self._is_behind = True
                self.fits &= not named_by_ddl(groups, number, self.plain)


def _missing(part: str, whole: str) -> str:
    """What of the one set is not in the other, as a server prints it."""
    if ":" in part + whole:
        return str(MysqlGtidSet.parse(part).subtract(MysqlGtidSet.parse(whole)))
    there = MariadbGtidState.parse(whole)
    rest = MariadbGtidState.parse(part).domains
    return str(MariadbGtidState({domain: last for domain, last in rest.items() if not _has(there, domain, *last)}))


def _has(state: MariadbGtidState, domain: int, server_id: int, sequence: int) -> bool:
    """The last number of a domain is one server's only."""
    last = state.domains.get(domain, (0, 0))
    return sequence < last[1] or (server_id, sequence) == last


def _logs_what_it_applies(replica: Query) -> bool:
    rows = replica(
        "SHOW GLOBAL VARIABLES WHERE variable_name IN ('log_bin', 'log_slave_updates', 'log_replica_updates')"
    )
    return len(rows) > 1 and all(str(value).upper() in ("ON", "1") for _, value in rows)


def _filters(replica: Query) -> list[str]:
    rows = replica("SHOW GLOBAL VARIABLES LIKE 'replicate\\_%'")  # MariaDB
    found = [f"{name}={value}" for name, value in rows if value and _FILTERS.fullmatch(str(name))]
    if rows:
        return found
    return [f"{name}={rule}" for name, rule in replica(_MYSQL_FILTERS)]
