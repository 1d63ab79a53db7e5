"""`unlock-tables`: UNLOCK TABLES."""

from __future__ import annotations

import typer

from rplctl.cli.backup_lock import say_unlocked
from rplctl.cli.options import options_of


def unlock_tables(context: typer.Context) -> None:
    """Give back what lock-tables took (UNLOCK TABLES)."""
    from rplctl.command.unlock_tables import unlock_tables as run

    options = options_of(context)
    say_unlocked(options, run(options.config()))
