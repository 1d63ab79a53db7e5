"""FLUSH TABLES WITH READ LOCK: the batches in work end, no applier writes; receivers go on (WL#9452 F-4)."""

from __future__ import annotations

from rplctl.command.instance.backup_lock import BackupLock
from rplctl.locks import RwLock, read_lock

TABLES = BackupLock(
    "tables",
    "FLUSH TABLES WITH READ LOCK",
    "an applier is in a batch, or the lock is held",
    read_lock,
    RwLock.acquire_exclusive,
)
