"""FLUSH TABLES WITH READ LOCK: the batches in work end, no applier writes; receivers go on (WL#9452 F-4)."""

from __future__ import annotations

from pathlib import Path

from rplctl.command.instance.backup_lock import BackupLock
from rplctl.locks import RwLock, read_lock


def _take(datadir: Path, wait_s: float) -> tuple[RwLock, bool]:
    lock = read_lock(datadir)
    return lock, lock.acquire_exclusive(wait_s)


TABLES = BackupLock("tables", "FLUSH TABLES WITH READ LOCK", "an applier is in a batch, or the lock is held", _take)
