"""UNLOCK INSTANCE: release the lock of `lock-instance`, by ending the process that holds it."""

from __future__ import annotations

from rplctl.command.instance.backup_lock import ReleasedLock, unlock
from rplctl.command.lock_instance import INSTANCE
from rplctl.config import Config


def unlock_instance(config: Config) -> ReleasedLock:
    """Release the lock of `lock-instance`. Raises the errors of `instance.backup_lock.unlock`."""
    return unlock(config, INSTANCE)
