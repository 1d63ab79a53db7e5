"""LOCK INSTANCE FOR BACKUP: commands cannot change files or channels, or purge logs; replication runs (WL#9452 F-4)."""

from __future__ import annotations

from rplctl.command.instance.backup_lock import BackupLock
from rplctl.locks import InstanceLock

INSTANCE = BackupLock(
    kind="instance",
    statement="LOCK INSTANCE FOR BACKUP",
    waited_for="a command that changes files runs",
    open=InstanceLock,
    acquire=InstanceLock.acquire_backup,
)
