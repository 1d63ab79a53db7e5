"""Define the options of `lock-instance` (LOCK INSTANCE FOR BACKUP), and run the command."""

from __future__ import annotations

from rplctl.cli.backup_lock import COMMAND, TIMEOUT, WAIT, lock
from rplctl.cli.globals import Globals


def lock_instance(
    options: Globals, command: list[str] | None = COMMAND, wait: str = WAIT, timeout: str | None = TIMEOUT
) -> None:
    """Keep files unchanged (LOCK INSTANCE FOR BACKUP)."""
    from rplctl.command.lock_instance import INSTANCE

    lock(options, INSTANCE, command, wait, timeout)
