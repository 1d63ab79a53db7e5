"""FLUSH TABLES WITH READ LOCK: wait until the current batches are applied, then block all appliers (WL#9452 F-4).

The receivers continue.
"""

from __future__ import annotations

from rplctl.command.instance.backup_lock import BackupLock
from rplctl.locks import RwLock, read_lock

TABLES = BackupLock(
    kind="tables",
    statement="FLUSH TABLES WITH READ LOCK",
    waited_for="an applier applies a batch, or another process holds the lock",
    open=read_lock,
    acquire=RwLock.acquire_exclusive,
)
