"""Define the options of `export-info`, run the command, and print its result."""

from __future__ import annotations

from pathlib import Path

from rplctl.cli.globals import Globals
from rplctl.cli.options import CHANNEL, DRY_RUN, YES, argument, option, the_channel
from rplctl.cli.output import say


def export_info(
    options: Globals,
    folder: Path = argument("DIR", "Folder that receives the files.", ...),
    server: str = option(
        "--server", "mysql-5.6|mysql-5.7|mysql-8.0|mariadb", "Server for which the files are written.", ...
    ),
    channel: str | None = CHANNEL,
    dry_run: bool = DRY_RUN,
    yes: bool = YES,
) -> None:
    """Write the position as a server's own info files.

    The files hold the position, the connection, and the password in clear text.
    """
    from rplctl.command.export_info import Destination, export_info as run

    name, config = the_channel(options, channel)
    result = run(config, name, Destination(server, folder, yes), dry_run=dry_run)
    done = "would be written to" if dry_run else "written to"
    say(options, f"channel '{name}' at {result.position} {done} {', '.join(result.files)}", result)
