"""LOCK INSTANCE FOR BACKUP: prevent commands from changing files or channels and purging logs (WL#9452 F-4).

The threads of the channels continue.
"""

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
