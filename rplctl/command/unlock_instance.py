"""UNLOCK INSTANCE: end the process of `lock-instance` that holds the lock."""

from __future__ import annotations

from rplctl.command.instance.backup_lock import ReleasedLock, unlock
from rplctl.command.lock_instance import INSTANCE
from rplctl.config import Config


def unlock_instance(config: Config) -> ReleasedLock:
    """Release the instance lock. Raises the errors of `unlock`."""
    return unlock(config, INSTANCE)
