"""`restore`: an instance folder from a backup."""

from __future__ import annotations

from pathlib import Path

from rplctl.cli.globals import Globals
from rplctl.cli.options import argument, option
from rplctl.cli.output import many, say


def restore(
    options: Globals,
    folder: Path = argument("DIR", "What backup made.", ...),
    binary_log_dir: list[Path] | None = option(
        "--binary-log-dir", "DIR", "Put a binary log back that was in this folder."
    ),
) -> None:
    """Make an instance folder from a backup."""
    from rplctl.command.restore import restore as run

    result = run(folder.absolute(), options.datadir, [place.absolute() for place in binary_log_dir or []])
    say(options, f"{many(result.files, 'file')} restored into {result.datadir}; rplctl start goes on", result)
