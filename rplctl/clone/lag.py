"""How far replicas of the source are behind it, for a copy that waits for them (`clone --lag-of`).

They are asked by the channel's account, each by a session of its own. Invariant: a replica of which that is not known
(it stands still, it is away, it does not tell) counts as one that is too far behind.
"""

from __future__ import annotations

import logging
from typing import Final

from rplctl import mysql_errors as er
from rplctl.clone.read_from import with_address
from rplctl.config import Config
from rplctl.errors import SourceError
from rplctl.info import MasterInfo
from rplctl.source.survey import Query, survey
from rplctl.sql_text import written

# Where Seconds_Behind_Master stands in all versions of both vendors (their manuals); MariaDB names connections before.
_SECONDS_BEHIND: Final = 32
_OF_ALL: Final = _SECONDS_BEHIND + 2
_STATEMENTS: Final = (  # the first that the server knows
    (written("SHOW ALL SLAVES STATUS"), _OF_ALL),
    (written("SHOW REPLICA STATUS"), _SECONDS_BEHIND),
    (written("SHOW SLAVE STATUS"), _SECONDS_BEHIND),
)

log = logging.getLogger("rplctl.cloner")


def lag_of(config: Config, source: MasterInfo, password: str, address: str) -> int | None:
    """Seconds; None where it is not known."""
    try:
        return asked_lag(config, source, password, address)
    except SourceError as error:
        log.warning("%s: %s", address, error.message)
        return None


def refuse_no_replica(config: Config, source: MasterInfo, password: str, addresses: str) -> None:
    """Raises UsageError for an address that is none, SourceError for what cannot be asked or is no replica."""
    for address in filter(None, addresses.split(",")):
        with_address(source, address, "--lag-of")
        try:
            asked_lag(config, source, password, address)
        except SourceError as error:
            error.hint = error.hint or "rplctl clone --lag-of '' asks no replica"
            raise


def asked_lag(config: Config, source: MasterInfo, password: str, address: str) -> int | None:
    """The largest of its channels; None where one stands still. Raises SourceError, also for a server that is no
    replica.
    """
    with survey(with_address(source, address), password, config) as query:
        found = _seconds_behind(query)
    if not found:
        raise SourceError(f"{address} replicates nothing")
    known = [seconds for seconds in found if seconds is not None]
    return max(known) if len(known) == len(found) else None


def _seconds_behind(query: Query) -> list[int | None]:
    for statement, place in _STATEMENTS:
        try:
            rows = query(statement)
        except SourceError as error:
            if error.errno == er.PARSE_ERROR:
                continue
            if error.errno == er.SPECIFIC_ACCESS_DENIED_ERROR:
                error.hint = "GRANT REPLICATION CLIENT ON *.* to the replication account (MariaDB: SLAVE MONITOR)"
            raise
        return [None if row[place] is None else int(row[place]) for row in rows]
    raise SourceError("the server knows no statement that shows the state of a replica")
