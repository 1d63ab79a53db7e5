"""LOCK INSTANCE FOR BACKUP: no command changes files or channels, no relay log is purged; data go on (WL#9452 F-4)."""

from __future__ import annotations

from pathlib import Path

from rplctl.command.instance.backup_lock import BackupLock
from rplctl.locks import InstanceLock


def _take(datadir: Path, wait_s: float) -> tuple[InstanceLock, bool]:
    lock = InstanceLock(datadir)
    return lock, lock.acquire_backup(wait_s)


INSTANCE = BackupLock("instance", "LOCK INSTANCE FOR BACKUP", "a command that changes files runs", _take)
