"""UNLOCK TABLES: release the lock of `lock-tables`, by ending the process that holds it."""

from __future__ import annotations

from rplctl.command.instance.backup_lock import ReleasedLock, unlock
from rplctl.command.lock_tables import TABLES
from rplctl.config import Config


def unlock_tables(config: Config) -> ReleasedLock:
    """Release the lock of `lock-tables`. Raises the errors of `instance.backup_lock.unlock`."""
    return unlock(config, TABLES)
