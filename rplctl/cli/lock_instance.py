"""`lock-instance`: LOCK INSTANCE FOR BACKUP."""

from __future__ import annotations

import typer

from rplctl.cli.backup_lock import COMMAND, TIMEOUT, WAIT, lock
from rplctl.cli.options import options_of


def lock_instance(
    context: typer.Context, command: list[str] | None = COMMAND, wait: str = WAIT, timeout: str | None = TIMEOUT
) -> None:
    """Keep files as they are (LOCK INSTANCE FOR BACKUP)."""
    from rplctl.command.lock_instance import INSTANCE

    lock(options_of(context), INSTANCE, command, wait, timeout)
