"""Define the options of `lock-instance` and `lock-tables`, and print their results and those of the unlock commands.

If the operator names a command, the lock is held while this command runs. Otherwise, a separate process holds the
lock until the unlock command, or until a timeout.
"""

from __future__ import annotations

from rplctl.cli.globals import Globals
from rplctl.cli.options import argument, end, option, seconds
from rplctl.cli.output import say
from rplctl.command.instance.backup_lock import (
    HOLDER_TIMEOUT_S,
    BackupLock,
    ReleasedLock,
    lock_detached,
    run_under_lock,
)
from rplctl.errors import UsageError

WAIT = option("--wait", "S", "Wait for the lock at most this many seconds.", "50")
TIMEOUT = option("--timeout", "S", "Release the lock after this many seconds; default: 1h.")
COMMAND = argument("[-- COMMAND ...]", "Hold the lock while this command runs.")


def lock(options: Globals, chosen: BackupLock, command: list[str] | None, wait: str, timeout: str | None) -> None:
    wait_s = seconds(wait, "--wait") or 0.0
    if command:
        if timeout is not None:
            raise UsageError("--timeout cannot be used with COMMAND: the lock is held while the command runs")
        return end(run_under_lock(options.config(), chosen, wait_s, command))
    held = lock_detached(options.config(), chosen, wait_s, seconds(timeout, "--timeout") or HOLDER_TIMEOUT_S)
    text = f"held by process {held.pid} for {held.timeout_s:g} s at most; to end it, run: rplctl unlock-{held.kind}"
    say(options, text, held)


def say_unlocked(options: Globals, released: ReleasedLock) -> None:
    say(options, "unlocked" if released.pid is not None else "was not locked", released)
