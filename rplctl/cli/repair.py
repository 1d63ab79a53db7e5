"""`repair`: what differs is mended."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from rplctl.cli.options import ChannelName, DryRun, option, options_of, the_channel
from rplctl.cli.output import say_notes, show_records
from rplctl.cli.progress import live_text
from rplctl.command.channel.context import Note
from rplctl.errors import for_channel


def repair(
    context: typer.Context,
    channel: ChannelName = None,
    report: Annotated[
        Path | None, option("--report", "FILE", "What verify --report wrote; without it what it wrote last.")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Mend the rows that verify found to differ.

    Exit code 0 when all are mended, 1 when some are left.
    """
    from rplctl.command.repair import RepairedTable
    from rplctl.command.repair import repair as run

    options = options_of(context)
    name, config = the_channel(options, channel)
    with live_text(silent=options.quiet or options.format == "json") as shows:

        def says(done: int, reported: int) -> None:
            if shows is not None:
                shows(f"{done} of {reported} keys")

        result = run(config, name, report, dry_run=dry_run, says=says)
    tables = [replace(table, Note=for_channel(table.Note, name)) for table in result.tables]
    show_records(options, tables, RepairedTable)
    if result.undo is not None:
        say_notes(
            options, [Note(0, f"what it was is in {result.undo}: its files take it back, in the order of their names")]
        )
    if not result.is_whole:
        raise typer.Exit(1)
