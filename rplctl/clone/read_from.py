"""Checks a replica that a copy reads instead of the source (`clone --read-from`), and parses its address.

A transaction has the same GTID on the source and on the replica. Invariant: a replica that is not a complete copy of
the source is refused. Such a replica has transactions of its own, or skips some of the source's transactions.
"""

from __future__ import annotations

import re
from dataclasses import replace

from rplctl.config import Config
from rplctl.errors import SourceError, UsageError
from rplctl.event.gtid import MariadbGtidState, MysqlGtidSet
from rplctl.info import MasterInfo
from rplctl.secret import reveal
from rplctl.source.snapshot import SnapshotKind, settled_end, step_of
from rplctl.source.survey import Ask, survey
from rplctl.sql_text import written

_PATIENCE_S = 10.0
READ_SOURCE = "to read from the source itself, run: rplctl clone --read-from ''"
_NEEDS = f"set gtid_mode=ON (MySQL) and log_replica_updates=ON on both servers\nOr, {READ_SOURCE}"
_FILTERS = re.compile(
    r"(?:replicate_(?:wild_)?(?:do|ignore)_(?:db|table|domain_ids)|replicate_rewrite_db)", re.IGNORECASE
)
_MYSQL_FILTERS = written(
    "SELECT filter_name, filter_rule FROM performance_schema.replication_applier_filters UNION ALL"
    " SELECT filter_name, filter_rule FROM performance_schema.replication_applier_global_filters"
)


def with_address(info: MasterInfo, read_from: str, option: str = "--read-from") -> MasterInfo:
    """Return the channel's connection settings, but with the host and the port in `read_from`.

    `read_from`: HOST or HOST:PORT. `option`: the name of the option, for the message. Raises UsageError for any other
    text.
    """
    host, colon, port = read_from.rpartition(":") if not read_from.endswith("]") else (read_from, "", "")
    if not colon or "]" in port or (":" in host and not host.startswith("[")):
        host, port = read_from, str(info.port)
    if not host or not re.fullmatch(r"[0-9]{1,5}", port) or not 0 < int(port) < 65536 or "@" in host or "/" in host:
        raise UsageError(
            f"{option} {read_from}: expected HOST or HOST:PORT",
            hint="write only HOST or HOST:PORT, because clone uses the account of the channel",
        )
    return replace(info, host=host.strip("[]"), port=int(port))


def refuse_copy(config: Config, source: MasterInfo, read_from: str) -> None:
    """Check that the replica at the address `read_from` is a complete copy, in new sessions on both servers.

    Raises the errors of `refuse_other`, and UsageError if `read_from` is not an address.
    """
    copy = with_address(source, read_from)
    password = reveal(source.user_password, config.datadir)
    with survey(copy, password, config) as replica, survey(source, password, config) as query:
        refuse_other(replica, query, read_from)


def refuse_other(replica: Ask, source: Ask, address: str) -> None:
    """Raise SourceError if the replica at `address` is not a complete copy of the source.

    The replica must log the transactions that it applies, have no replication filters, and have no GTID that the source
    lacks. `replica`, `source`: run queries on these servers.
    """
    step = step_of(replica)
    if step is SnapshotKind.SHARE_LOCK or step is not step_of(source):
        raise SourceError(f"{address} and the source do not both have GTIDs of one vendor", hint=_NEEDS)
    logs = replica(
        written("SHOW GLOBAL VARIABLES WHERE variable_name IN ('log_bin', 'log_slave_updates', 'log_replica_updates')")
    )
    if len(logs) < 2 or any(str(value).upper() not in ("ON", "1") for _, value in logs):
        raise SourceError(f"{address} does not log the transactions that it applies", hint=_NEEDS)
    if filters := _filters(replica):
        raise SourceError(f"{address} skips some of the source's transactions: {filters[0]}", hint=READ_SOURCE)
    there = settled_end(replica, step, _PATIENCE_S).gtids
    refuse_foreign(there, settled_end(source, step, _PATIENCE_S).gtids, address)


def refuse_foreign(there: str, source: str, address: str) -> None:
    """Raise SourceError if the replica has GTIDs that the source lacks.

    `there`: the GTIDs of the replica. `source`: the GTIDs of the source. `address`: the replica's, for the message.
    """
    if foreign := missing_gtids(there, source):
        raise SourceError(f"{address} has transactions that the source does not have: {foreign}", hint=READ_SOURCE)


def missing_gtids(part: str, whole: str) -> str:
    """Return the GTIDs of `part` that `whole` lacks, in the notation of MySQL or of MariaDB."""
    if ":" in part + whole:
        return str(MysqlGtidSet.parse(part).subtract(MysqlGtidSet.parse(whole)))
    there = MariadbGtidState.parse(whole)
    rest = MariadbGtidState.parse(part).domains
    return str(MariadbGtidState({domain: last for domain, last in rest.items() if not _has(there, domain, *last)}))


def _has(state: MariadbGtidState, domain: int, server_id: int, sequence: int) -> bool:
    """True if the source's GTID state contains this GTID of MariaDB.

    A state has the last GTID of each domain. Any GTID of the domain with a lower number is also contained, whatever its
    server id.
    """
    last = state.domains.get(domain, (0, 0))
    return sequence < last[1] or (server_id, sequence) == last


def _filters(replica: Ask) -> list[str]:
    rows = replica(written("SHOW GLOBAL VARIABLES LIKE 'replicate\\_%'"))  # MariaDB
    found = [f"{name}={value}" for name, value in rows if value and _FILTERS.fullmatch(str(name))]
    if rows:
        return found
    return [f"{name}={rule}" for name, rule in replica(_MYSQL_FILTERS)]
