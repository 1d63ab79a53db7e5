"""`restore`: an instance folder from a backup."""

from __future__ import annotations

from pathlib import Path

import typer

from rplctl.cli.options import option, options_of
from rplctl.cli.output import many, say


def restore(
    context: typer.Context,
    folder: Path = typer.Argument(..., metavar="DIR", help="What backup made."),
    binary_log_dir: list[Path] | None = option(
        "--binary-log-dir", "DIR", "Put a binary log back that was in this folder."
    ),
) -> None:
    """Make an instance folder from a backup."""
    from rplctl.command.restore import restore as run

    options = options_of(context)
    result = run(folder.absolute(), options.datadir, [place.absolute() for place in binary_log_dir or []])
    say(options, f"{many(result.files, 'file')} restored into {result.datadir}; rplctl start goes on", result)
