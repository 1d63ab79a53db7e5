"""`log-status`, and the locks of a backup: `lock-instance`, `lock-tables` and their opposites."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from rplctl.cli.globals import Globals
from rplctl.cli.options import options_of, seconds
from rplctl.cli.output import say, show_rows

Wait = Annotated[str, typer.Option("--wait", metavar="S", help="Wait for the lock at most so many seconds.")]
Timeout = Annotated[
    str | None, typer.Option("--timeout", metavar="S", help="Give it back after so many seconds; 1h without it.")
]
Command = Annotated[
    list[str] | None, typer.Argument(metavar="[-- COMMAND ...]", help="Run this, and hold the lock as long as it runs.")
]


def log_status(
    context: typer.Context,
    layout: Annotated[
        str,
        typer.Option(
            "--format", metavar="seed|mysql8", help="Names of columns and keys: WL#9452's text, or MySQL 8's."
        ),
    ] = "",
) -> None:
    """Show where a backup would begin (WL#9452).

    All are of one moment: coordinates for a backup.
    """
    from rplctl.command.log_status import log_status as run

    options = options_of(context)
    found = run(options.config, layout)
    row = found.row if options.format == "json" else {name: _as_text(value) for name, value in found.row.items()}
    show_rows(options, tuple(row), [row], prefer_vertical=True)
    if options.verbose:
        held, map_held, waited = (f"{s * 1000:.1f} ms" for s in (found.held_s, found.map_held_s, found.waited_s))
        sys.stderr.write(f"held {held} (commands {map_held}), waited {waited}\n")


def _as_text(value: Any) -> str:
    """JSON as MySQL prints a JSON column."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def lock_instance(context: typer.Context, command: Command = None, wait: Wait = "50", timeout: Timeout = None) -> None:
    """Keep files as they are (LOCK INSTANCE FOR BACKUP)."""
    _lock(options_of(context), "instance", command, wait, timeout)


def unlock_instance(context: typer.Context) -> None:
    """Give back what lock-instance took (UNLOCK INSTANCE)."""
    _unlock(options_of(context), "instance")


def lock_tables(context: typer.Context, command: Command = None, wait: Wait = "50", timeout: Timeout = None) -> None:
    """Hold appliers (FLUSH TABLES WITH READ LOCK)."""
    _lock(options_of(context), "tables", command, wait, timeout)


def unlock_tables(context: typer.Context) -> None:
    """Give back what lock-tables took (UNLOCK TABLES)."""
    _unlock(options_of(context), "tables")


def _lock(options: Globals, kind: str, command: list[str] | None, wait: str, timeout: str | None) -> None:
    from rplctl.command.instance.backup_lock import HOLDER_TIMEOUT_S, lock_detached, run_under_lock
    from rplctl.errors import UsageError

    wait_s = seconds(wait, "--wait") or 0.0
    if command:
        if timeout is not None:
            raise UsageError("--timeout goes with no COMMAND: the lock is held as long as it runs")
        raise typer.Exit(run_under_lock(options.config(), kind, wait_s, command))
    held = lock_detached(options.config(), kind, wait_s, seconds(timeout, "--timeout") or HOLDER_TIMEOUT_S)
    text = f"held by process {held.pid} for {held.timeout_s:g} s at most; rplctl unlock-{kind} ends it"
    say(options, text, {"Lock": kind, "Pid": held.pid, "Timeout": held.timeout_s})


def _unlock(options: Globals, kind: str) -> None:
    from rplctl.command.instance.backup_lock import unlock

    pid = unlock(options.config(), kind)
    say(options, "unlocked" if pid is not None else "was not locked", {"Lock": kind, "Pid": pid})
