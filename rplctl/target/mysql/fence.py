"""Locks a channel on a MySQL or MariaDB server with GET_LOCK, so that only one applier commits for it (design D4).

Invariant: the connection that commits has the lock, so an applier that loses its connection loses the lock. If a
connection does not get the lock, it is closed and never writes.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import Any

from rplctl import mysql_errors as er
from rplctl.errors import TargetError
from rplctl.sql_text import Sql, text_literal, written
from rplctl.target.base import another_applier
from rplctl.target.mysql.connection import LoadingConnection, mapped_errors

LOCK_WAIT_SECONDS = 10  # within this time, the server notices that a client was killed
_LONGEST_NAME = 64  # characters


def take(driver: LoadingConnection, channel: str, predecessor: int) -> int:
    """Take the channel's lock, and return the server's id of this connection (CONNECTION_ID).

    `predecessor`: the id of this applier's last connection, or 0. If the predecessor still has the lock after a network
    fault, it is killed. Raises LockBusy if another connection has the lock. Raises TargetError (transient) while the
    predecessor still rolls back.
    """
    name = f"rplctl:{channel}"
    if len(name) > _LONGEST_NAME:
        name = f"rplctl:{hashlib.sha256(channel.encode()).hexdigest()[:56]}"
    lock = text_literal(name)
    with mapped_errors(), driver.cursor() as cursor:

        def asked(sql: Sql) -> Any:
            cursor.execute(sql)
            return (cursor.fetchone() or (None,))[0]

        if predecessor and asked(written("SELECT IS_USED_LOCK({})", lock)) == predecessor:
            with suppress(TargetError), mapped_errors():  # KILL fails if the connection has ended already
                cursor.execute(written("KILL {}", predecessor))
        got = asked(written("SELECT GET_LOCK({}, {})", lock, LOCK_WAIT_SECONDS))
        owner = None if got == 1 else asked(written("SELECT IS_USED_LOCK({})", lock))
        driver.rollback()
    if got == 1:
        identifier: int = driver.thread_id()  # type: ignore[no-untyped-call]
        return identifier
    if predecessor and owner == predecessor:
        text = f"the target is still rolling back the changes of channel '{channel}' on the lost connection {owner}"
        raise TargetError(text, errno=er.CR_SERVER_LOST, transient=True)
    raise another_applier(channel, f"lock '{name}'")
