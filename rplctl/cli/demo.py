"""`demo`: a whole replication in one command, on recorded binary logs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rplctl.cli.options import options_of
from rplctl.cli.output import say


def demo(
    context: typer.Context,
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="Instance folder to make; new and empty.")
    ] = None,
) -> None:
    """Replicate recorded binary logs into SQLite and compare with what the source had."""
    options = options_of(context)
    say(options, str(folder))
