"""Define the options of `repair`, run the command, and print its result."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

from rplctl.cli.globals import Globals
from rplctl.cli.options import CHANNEL, DRY_RUN, end, number, option, the_channel
from rplctl.cli.output import say_notes, show_rows
from rplctl.cli.progress import live_text
from rplctl.command.channel.context import Note
from rplctl.errors import for_channel


def repair(
    options: Globals,
    channel: str | None = CHANNEL,
    report: Path | None = option("--report", "FILE", "Report of verify --report; default: the last one."),
    dry_run: bool = DRY_RUN,
    show: str = option("--show", "N", "With --dry-run, print at most N statements per table.", "10"),
) -> None:
    """Repair the rows that verify found to differ.

    A stopped channel runs during the repair. The exit code is 0 if all rows were repaired, otherwise 1.
    """
    from rplctl.command.repair import RepairedTable, repair as run

    most = number(show, "--show", 0, 10**6)
    name, config = the_channel(options, channel)
    with live_text(silent=options.quiet or options.format == "json") as shows:

        def says(done: int, reported: int) -> None:
            if shows is not None:
                shows(f"{done} of {reported} keys")

        result = run(config, name, report, dry_run=most if dry_run else None, says=says)
    columns = tuple(RepairedTable.__dataclass_fields__)
    rows = [asdict(replace(table, Note=for_channel(table.Note, name))) for table in result.tables]
    notes: list[Note] = []
    if options.format != "json":
        columns = columns[:-1]
        notes += [Note(text) for row in rows for text in row.pop("Statements")]
    show_rows(options, columns, rows)
    if result.undo is not None:
        notes.append(Note(f"to undo the repair, execute the files in {result.undo} in the order of their names"))
    say_notes(options, notes)
    if not result.is_whole:
        end(1)
