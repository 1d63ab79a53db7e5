"""UNLOCK TABLES: end the process of `lock-tables` that holds the lock."""

from __future__ import annotations

from rplctl.command.instance.backup_lock import ReleasedLock, unlock
from rplctl.command.lock_tables import TABLES
from rplctl.config import Config


def unlock_tables(config: Config) -> ReleasedLock:
    """Release the tables lock. Raises the errors of `unlock`."""
    return unlock(config, TABLES)
