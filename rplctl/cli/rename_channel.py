"""Define the arguments of `rename-channel`, the old and the new name, and print the result."""

from __future__ import annotations

from rplctl.cli.globals import Globals
from rplctl.cli.options import DRY_RUN, argument
from rplctl.cli.output import say


def rename_channel(
    options: Globals,
    old: str = argument("OLD", "Name of the channel; '' is the default channel.", ...),
    new: str = argument("NEW", "New name of the channel.", ...),
    dry_run: bool = DRY_RUN,
) -> None:
    """Give a stopped channel another name.

    The position, relay logs, options and rows of the channel stay the same.
    """
    from rplctl.command.rename_channel import rename_channel as run

    result = run(options.config(old), old, new, dry_run=dry_run)
    done = "would be renamed" if dry_run else "is renamed"
    steps = result.steps if dry_run else ()
    say(options, f"channel '{result.old}' {done} to '{result.channel}'", result, *steps)
