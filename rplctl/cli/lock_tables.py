"""`lock-tables`: FLUSH TABLES WITH READ LOCK."""

from __future__ import annotations

import typer

from rplctl.cli.backup_lock import COMMAND, TIMEOUT, WAIT, lock
from rplctl.cli.options import options_of


def lock_tables(
    context: typer.Context, command: list[str] | None = COMMAND, wait: str = WAIT, timeout: str | None = TIMEOUT
) -> None:
    """Hold appliers (FLUSH TABLES WITH READ LOCK)."""
    from rplctl.command.lock_tables import TABLES

    lock(options_of(context), TABLES, command, wait, timeout)
