"""Run `unlock-tables` (UNLOCK TABLES), and print its result."""

from __future__ import annotations

from rplctl.cli.backup_lock import say_unlocked
from rplctl.cli.globals import Globals


def unlock_tables(options: Globals) -> None:
    """Release the lock of lock-tables (UNLOCK TABLES)."""
    from rplctl.command.unlock_tables import unlock_tables as run

    say_unlocked(options, run(options.config()))
