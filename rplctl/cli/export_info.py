"""`export-info`: move a replica back to a server."""

from __future__ import annotations

from pathlib import Path

from rplctl.cli.globals import Globals
from rplctl.cli.options import CHANNEL, DRY_RUN, YES, argument, option, the_channel
from rplctl.cli.output import say


def export_info(
    options: Globals,
    folder: Path = argument("DIR", "Folder to write the files into.", ...),
    server: str = option("--server", "mysql-5.6|mysql-5.7|mysql-8.0|mariadb", "Whose files to write.", ...),
    channel: str | None = CHANNEL,
    dry_run: bool = DRY_RUN,
    yes: bool = YES,
) -> None:
    """Write a server's own info files.

    Position and connection, the password in clear text.
    """
    from rplctl.command.export_info import Destination, export_info as run

    name, config = the_channel(options, channel)
    result = run(config, name, Destination(server, folder, yes), dry_run=dry_run)
    done = "would be written to" if dry_run else "written to"
    say(options, f"channel '{name}' at {result.position} {done} {', '.join(result.files)}", result)
