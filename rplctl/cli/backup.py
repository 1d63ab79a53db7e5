"""Define the options of `backup`, run the command, and print its result."""

from __future__ import annotations

import sys
from pathlib import Path

from rplctl.cli.globals import Globals
from rplctl.cli.options import argument, switch
from rplctl.cli.output import many, say


def backup(
    options: Globals,
    folder: Path = argument("DIR", "Folder for the backup; it must be empty or not exist.", ...),
    without_key: bool = switch(
        "--without-key", "Do not copy rplctl.key; the backup's passwords cannot be read without it."
    ),
) -> None:
    """Back up the instance while it runs.

    The backup holds the repositories, the relay logs and a SQLite target, all from the same moment.
    """
    from rplctl.command.backup import backup as run

    result = run(options.config, folder.absolute(), with_key=not without_key)
    channels = result.log_status["CHANNELS"]["channels"]
    where = ", ".join(
        f"{c['channel_name'] or chr(39) * 2} {c['relay_log_file']}:{c['relay_log_position']}"
        for c in channels
        if c["relay_log_file"]
    )
    text = f"{many(result.files, 'file')}, {result.size} bytes in {result.folder}; relay logs up to {where or 'none'}"
    say(options, text, result)
    if result.needs_dump and not options.quiet:
        sys.stderr.write(
            "Note: the backup does not include the target's data: dump them and rplctl's tables (man rplctl)\n"
        )
    if options.verbose:
        sys.stderr.write(f"held {result.held_s * 1000:.1f} ms\n")
