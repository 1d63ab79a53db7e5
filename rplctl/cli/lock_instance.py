"""`lock-instance`: LOCK INSTANCE FOR BACKUP."""

from __future__ import annotations

import typer

from rplctl.cli.backup_lock import Command, Timeout, Wait, lock
from rplctl.cli.options import options_of


def lock_instance(context: typer.Context, command: Command = None, wait: Wait = "50", timeout: Timeout = None) -> None:
    """Keep files as they are (LOCK INSTANCE FOR BACKUP)."""
    from rplctl.command.lock_instance import INSTANCE

    lock(options_of(context), INSTANCE, command, wait, timeout)
