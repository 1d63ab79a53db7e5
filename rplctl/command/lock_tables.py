"""FLUSH TABLES WITH READ LOCK: wait for the current batches, then block all appliers; receivers run (WL#9452 F-4)."""

from __future__ import annotations

from rplctl.command.instance.backup_lock import BackupLock
from rplctl.locks import RwLock, read_lock

TABLES = BackupLock(
    "tables",
    "FLUSH TABLES WITH READ LOCK",
    "an applier applies a batch, or another process holds the lock",
    read_lock,
    RwLock.acquire_exclusive,
)
