"""LOCK INSTANCE FOR BACKUP: no command changes files or channels, no relay log is purged; data go on (WL#9452 F-4)."""

from __future__ import annotations

from rplctl.command.instance.backup_lock import BackupLock
from rplctl.locks import InstanceLock

INSTANCE = BackupLock(
    "instance",
    "LOCK INSTANCE FOR BACKUP",
    "a command that changes files runs",
    InstanceLock,
    InstanceLock.acquire_backup,
)
