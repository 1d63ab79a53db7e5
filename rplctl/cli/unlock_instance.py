"""`unlock-instance`: UNLOCK INSTANCE."""

from __future__ import annotations

import typer

from rplctl.cli.backup_lock import say_unlocked
from rplctl.cli.options import options_of


def unlock_instance(context: typer.Context) -> None:
    """Give back what lock-instance took (UNLOCK INSTANCE)."""
    from rplctl.command.unlock_instance import unlock_instance as run

    options = options_of(context)
    say_unlocked(options, run(options.config()))
