"""Run `unlock-instance` (UNLOCK INSTANCE), and print its result."""

from __future__ import annotations

from rplctl.cli.backup_lock import say_unlocked
from rplctl.cli.globals import Globals


def unlock_instance(options: Globals) -> None:
    """Release the lock of lock-instance."""
    from rplctl.command.unlock_instance import unlock_instance as run

    say_unlocked(options, run(options.config()))
