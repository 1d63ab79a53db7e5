"""Queries the lag of the source's replicas, for a copy that pauses while they are behind (`clone --lag-of`).

Each replica is queried with the channel's account, in a session of its own. Invariant: a replica counts as too far
behind if its lag is unknown, because it has stopped, is unreachable, or does not report the lag.
"""

from __future__ import annotations

import logging
from typing import Final

from rplctl import mysql_errors as er
from rplctl.clone.read_from import with_address
from rplctl.config import Config
from rplctl.errors import SourceError
from rplctl.info import MasterInfo
from rplctl.source.survey import Ask, survey
from rplctl.sql_text import written

# The index of the column Seconds_Behind_Master, the same in all versions of MySQL and MariaDB (see their manuals).
_SECONDS_BEHIND: Final = 32
_OF_ALL: Final = _SECONDS_BEHIND + 2
_STATEMENTS: Final = (  # the first statement that the server supports is used
    (written("SHOW ALL SLAVES STATUS"), _OF_ALL),
    (written("SHOW REPLICA STATUS"), _SECONDS_BEHIND),
    (written("SHOW SLAVE STATUS"), _SECONDS_BEHIND),
)

log = logging.getLogger("rplctl.cloner")


def lag_of(config: Config, source: MasterInfo, password: str, address: str) -> int | None:
    """Return the seconds by which the replica at `address` is behind its source. Return None if the lag is unknown.

    `address`: HOST or HOST:PORT. An error of the replica is logged, not raised.
    """
    try:
        return asked_lag(config, source, password, address)
    except SourceError as error:
        log.warning("%s: %s", address, error.message)
        return None


def refuse_no_replica(config: Config, source: MasterInfo, password: str, addresses: str) -> None:
    """Check that there is a replica at each of the addresses, which are separated by commas.

    Raises UsageError for an invalid address. Raises SourceError for a server that does not answer, rejects the account
    or is not a replica.
    """
    for address in filter(None, addresses.split(",")):
        with_address(source, address, "--lag-of")
        try:
            asked_lag(config, source, password, address)
        except SourceError as error:
            error.hint = error.hint or "to wait for no replica, run: rplctl clone --lag-of ''"
            raise


def asked_lag(config: Config, source: MasterInfo, password: str, address: str) -> int | None:
    """Return the lag of the replica at `address` in seconds. Return None if a channel of the replica has stopped.

    A replica with several channels has the lag of its slowest channel. Raises SourceError if the server does not
    answer, rejects the account or is not a replica.
    """
    with survey(with_address(source, address), password, config) as query:
        found = _seconds_behind(query)
    if not found:
        raise SourceError(f"{address} is not a replica")
    known = [seconds for seconds in found if seconds is not None]
    return max(known) if len(known) == len(found) else None


def _seconds_behind(query: Ask) -> list[int | None]:
    for statement, place in _STATEMENTS:
        try:
            rows = query(statement)
        except SourceError as error:
            if error.errno == er.PARSE_ERROR:
                continue
            if error.errno == er.SPECIFIC_ACCESS_DENIED_ERROR:
                error.hint = (
                    "on this replica, give the account of the channel the privilege: GRANT REPLICATION CLIENT ON *.* "
                    "TO 'USER'@'HOST' (MariaDB: GRANT SLAVE MONITOR)"
                )
            raise
        return [None if row[place] is None else int(row[place]) for row in rows]
    raise SourceError("the server supports no statement that shows the state of a replica")
