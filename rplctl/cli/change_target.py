"""Define the options of `change-target`, the URL and the password of the new address, and print the result."""

from __future__ import annotations

from pathlib import Path

from rplctl.cli.globals import Globals
from rplctl.cli.options import DRY_RUN, argument, option, switch
from rplctl.cli.output import say
from rplctl.cli.passwords import password_sources
from rplctl.secret import find_password

_FILE = option("--target-password-file", "FILE", "Read the target's password from a file.")
_STDIN = switch("--target-password-stdin", "Read the target's password from standard input.")


def change_target(
    options: Globals,
    url: str = argument("URL", "New address of the target, as for init --target.", ...),
    channel: str | None = option(
        ("--channel", "--for-channel"),
        "NAME",
        "Change the target of this channel only; default: the target of the instance.",
    ),
    target_password_file: Path | None = _FILE,
    target_password_stdin: bool = _STDIN,
    dry_run: bool = DRY_RUN,
) -> None:
    """Set the new address of a target that was moved.

    rplctl first checks that the new target holds the data of each channel.
    """
    from rplctl.command.change_target import change_target as run

    sources = password_sources(target_password_file, target_password_stdin, False, "", "")
    password = find_password(sources, "") if sources.is_given else None
    result = run(options.config(channel or ""), url, channel, password, dry_run=dry_run)
    where = ", ".join(f"channel '{name}' at {place}" for name, place in result.channels.items())
    say(options, f"the target {'would be' if dry_run else 'is'} {result.target}; {where or 'no channel'}", result)
