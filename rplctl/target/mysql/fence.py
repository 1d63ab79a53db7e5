"""One committer per channel on a MySQL or MariaDB server: GET_LOCK on the applier's own connection (design D4).

Invariant: the lock's life is the connection's, so whoever lost its connection has lost the lock, and a connection that
did not get it is closed, never written through.
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

LOCK_WAIT_SECONDS = 10  # a server notices a client killed a moment ago
_LONGEST_NAME = 64  # characters


def take(driver: LoadingConnection, channel: str, predecessor: int) -> int:
    """The connection's number. `predecessor`: that of before; what a network fault left open on the server is ended.

    Raises LockBusy when another connection has the lock, TargetError (transient while our own old one rolls back).
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
            with suppress(TargetError), mapped_errors():  # gone by itself: GET_LOCK tells
                cursor.execute(written("KILL {}", predecessor))
        got = asked(written("SELECT GET_LOCK({}, {})", lock, LOCK_WAIT_SECONDS))
        owner = None if got == 1 else asked(written("SELECT IS_USED_LOCK({})", lock))
        driver.rollback()
    if got == 1:
        identifier: int = driver.thread_id()  # type: ignore[no-untyped-call]
        return identifier
    if predecessor and owner == predecessor:
        text = f"the target still rolls back what channel '{channel}' did on its lost connection {owner}"
        raise TargetError(text, errno=er.CR_SERVER_LOST, transient=True)
    raise another_applier(channel, f"lock '{name}'")
