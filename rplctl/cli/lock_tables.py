"""Define the options of `lock-tables` (FLUSH TABLES WITH READ LOCK), and run the command."""

from __future__ import annotations

from rplctl.cli.backup_lock import COMMAND, TIMEOUT, WAIT, lock
from rplctl.cli.globals import Globals


def lock_tables(
    options: Globals, command: list[str] | None = COMMAND, wait: str = WAIT, timeout: str | None = TIMEOUT
) -> None:
    """Pause appliers (FLUSH TABLES WITH READ LOCK)."""
    from rplctl.command.lock_tables import TABLES

    lock(options, TABLES, command, wait, timeout)
