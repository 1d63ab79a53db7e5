"""One committer per channel on a MySQL or MariaDB server: GET_LOCK on the applier's own connection (design D4).

Invariant: the lock's life is the connection's, so whoever lost its connection has lost the lock, and a connection that
did not get it is closed, never written through.
"""

from __future__ import annotations

import hashlib
from typing import Any

from rplctl.errors import LockBusy
from rplctl.target.mysql_connection import mapped_errors

LOCK_WAIT_SECONDS = 10  # a server notices a client killed a moment ago
_LONGEST_NAME = 64  # characters


def take(driver: Any, channel: str) -> None:
    """Raises LockBusy when another connection has it, TargetError."""
    name = f"rplctl:{channel}"
    if len(name) > _LONGEST_NAME:
        name = f"rplctl:{hashlib.sha256(channel.encode()).hexdigest()[:56]}"
    with mapped_errors(), driver.cursor() as cursor:
        cursor.execute(f"SELECT GET_LOCK({driver.escape(name)}, {LOCK_WAIT_SECONDS})")
        got = cursor.fetchone()[0]
        driver.rollback()
    if got != 1:
        raise LockBusy(
            f"another applier of channel '{channel}' is connected to the target (lock '{name}')",
            channel=channel,
            hint="stop it there, or give this channel another name: the target keeps one position per channel",
        )
