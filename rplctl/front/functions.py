"""The functions of MySQL and MariaDB that SELECT has in addition to SQLite's own functions.

Some functions wait, for example MASTER_POS_WAIT. Invariant: such a function ends at the latest after its timeout, and
also if its client has disconnected or the condition cannot become true. No function changes anything.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, Final
from uuid import uuid1

from rplctl import mysql_errors as er
from rplctl.command.wait import wait
from rplctl.errors import NotRunning, RplError, UsageError, WaitTimeout
from rplctl.event.gtid import MysqlGtidSet, is_executed
from rplctl.front.binlog_events import binlog_gtid_pos
from rplctl.front.front import ClientSession, Front
from rplctl.front.variables import executed
from rplctl.front.vendor import mysql_gtid_errors
from rplctl.position import BinlogPosition

_SLICE_S: Final = 1.0  # seconds of a wait between two checks that the client is still connected
_POLL_S: Final = 0.1


def functions(front: Front, session: ClientSession) -> dict[str, Callable[..., Any]]:
    """Return the functions by their names in lower case. If a function fails, it raises RplError."""

    def position_wait(log: object, position: Any, timeout: Any = None, channel: object = None) -> int | None:
        return _wait_for_position(front, session, BinlogPosition(str(log), int(position)), _seconds(timeout), channel)

    def mariadb_gtid_wait(gtids: object, timeout: Any = None) -> int | None:
        if gtids is None:
            return None
        limit_s = None if timeout is None or float(timeout) < 0 else float(timeout)
        return 0 if _wait_for_gtids(front, session, str(gtids), limit_s) else -1

    def mysql_gtid_wait(gtids: object, timeout: Any = None) -> int:
        with mysql_gtid_errors(str(gtids)):
            return 0 if _wait_for_gtids(front, session, str(gtids), _seconds(timeout)) else 1

    own = {"binlog_gtid_pos": partial(binlog_gtid_pos, front.logs)} if front.is_mariadb else {}
    return {
        **own,
        "version": lambda: front.version,
        "user": lambda: session.client.name,
        "current_user": lambda: session.client.name,
        "database": lambda: session.database or None,
        "schema": lambda: session.database or None,
        "connection_id": lambda: session.number,
        "unix_timestamp": _unix_timestamp,
        "last_insert_id": lambda: 0,
        "row_count": lambda: -1,
        "found_rows": lambda: session.last_rows,
        "uuid": lambda: str(uuid1()),
        "sleep": lambda seconds: _sleep(session, seconds),
        "now": lambda digits=0: datetime.now().isoformat(" ", "microseconds" if digits else "seconds"),
        "concat": lambda first, *more: None if None in (first, *more) else "".join(map(str, (first, *more))),
        "substring_index": _substring_index,
        "iif_": lambda condition, yes, no: yes if condition else no,
        "gtid_subset": _of_sets(lambda one, other: int(one.is_subset_of(other))),
        "gtid_subtract": _of_sets(lambda one, other: str(one.subtract(other))),
        "master_pos_wait": position_wait,
        "source_pos_wait": position_wait,
        "wait_for_executed_gtid_set": mysql_gtid_wait,
        "master_gtid_wait": mariadb_gtid_wait,
    }


def _sleep(session: ClientSession, seconds: Any) -> int:
    """Wait for these seconds, as the function SLEEP() does.

    Return 0 after the time, and 1 if the client disconnects before, or after KILL QUERY.
    """
    deadline = time.monotonic() + float(seconds or 0)
    while (left := deadline - time.monotonic()) > 0:
        if session.is_cancelled or _is_gone(session):
            return 1
        time.sleep(min(_POLL_S, left))
    return 0


def _of_sets(function: Callable[[MysqlGtidSet, MysqlGtidSet], int | str]) -> Callable[..., int | str | None]:
    """Return an SQL function that has two GTID sets as texts, and returns the result of `function` for these sets.

    The SQL function returns NULL if one of the texts is NULL.
    """

    def call(one: object, other: object) -> int | str | None:
        if one is None or other is None:
            return None
        return function(MysqlGtidSet.parse(str(one)), MysqlGtidSet.parse(str(other)))

    return call


def _substring_index(text: object, delimiter: object, count: Any) -> str | None:
    if text is None or delimiter is None:
        return None
    parts = str(text).split(str(delimiter)) if delimiter else [""]
    return str(delimiter).join(parts[:count] if count > 0 else parts[count:] if count else [])


def _unix_timestamp(moment: object = None) -> float:
    if moment is None:
        return int(time.time())
    found = datetime.fromisoformat(str(moment)).timestamp()
    return int(found) if found.is_integer() else found


def _seconds(timeout: Any) -> float | None:
    """Return the timeout of a function in seconds. As on a server, NULL and 0 mean no limit (None).

    For MASTER_GTID_WAIT of MariaDB, 0 is a limit, and a negative number is none.
    """
    return float(timeout) if timeout else None


def _wait_for_position(
    front: Front, session: ClientSession, position: BinlogPosition, timeout_s: float | None, channel: object
) -> int | None:
    """Wait until the channel has applied all transactions up to the position.

    `channel`: the name, or None for the only channel. Return 0 if the position was already applied, and 1 after a wait.
    Return -1 after the timeout or if the client has disconnected, and None if no applier runs. Raises UsageError 3079
    if `channel` is None and there are several channels.
    """
    names = [str(channel)] if channel is not None else front.looks.names() or [""]
    if len(names) > 1:
        raise UsageError(er.SLAVE_MULTIPLE_CHANNELS_CMD_TEXT, errno=er.SLAVE_MULTIPLE_CHANNELS_CMD)
    deadline, waited = time.monotonic() + (timeout_s or float("inf")), 0
    while True:
        left = min(_SLICE_S, max(0.0, deadline - time.monotonic()))
        try:
            wait(front.looks.config_of(names[0]), names[0], position=position, timeout_s=left if waited else 0.0)
        except WaitTimeout:
            waited = 1
            if _must_end(session) or time.monotonic() >= deadline:
                return -1
        except NotRunning:
            return None
        else:
            return waited


def _wait_for_gtids(front: Front, session: ClientSession, gtids: str, timeout_s: float | None) -> bool:
    """Wait until all these GTIDs are applied, and return True.

    Return False after the timeout, or if the client has disconnected. Raises UsageError 1772 or 1941 if the text is
    neither a GTID set nor a GTID list.
    """
    deadline = float("inf") if timeout_s is None else time.monotonic() + timeout_s
    while gtids.strip() and not is_executed(gtids, executed(front.looks)):
        if _must_end(session) or time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _must_end(session: ClientSession) -> bool:
    """True if the client has closed its connection. Raises RplError 1317 after KILL QUERY."""
    if session.is_cancelled:
        raise RplError("Query execution was interrupted", errno=er.QUERY_INTERRUPTED)
    return _is_gone(session)


def _is_gone(session: ClientSession) -> bool:
    """True if the client has closed its connection."""
    looked = select.poll()
    try:
        looked.register(session.link.connection, select.POLLRDHUP)
    except ValueError:  # KILL has closed the connection
        return True
    return bool(looked.poll(0))
