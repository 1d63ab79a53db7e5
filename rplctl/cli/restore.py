"""Define the options of `restore`, run the command, and print its result."""

from __future__ import annotations

from pathlib import Path

from rplctl.cli.globals import Globals
from rplctl.cli.options import argument, option
from rplctl.cli.output import many, say


def restore(
    options: Globals,
    folder: Path = argument("DIR", "Folder that backup wrote.", ...),
    binary_log_dir: list[Path] | None = option(
        "--binary-log-dir", "DIR", "Also restore the binary log that was in this folder; may be repeated."
    ),
) -> None:
    """Create an instance folder from a backup."""
    from rplctl.command.restore import restore as run

    result = run(folder.absolute(), options.datadir, [place.absolute() for place in binary_log_dir or []])
    say(options, f"{many(result.files, 'file')} restored into {result.datadir}; to continue, run: rplctl start", result)
