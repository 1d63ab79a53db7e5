"""Define the options of `verify`, run the command, and print its result."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from rplctl.cli.globals import Globals
from rplctl.cli.options import CHANNEL, end, number, option, switch, the_channel
from rplctl.cli.output import many, say_notes, show_rows
from rplctl.cli.progress import live_text
from rplctl.cli.text import clean, clock_time, short
from rplctl.command.channel.context import Note
from rplctl.errors import UsageError
from rplctl.position import BinlogPosition
from rplctl.verify.report_file import first_differences, read_report

if TYPE_CHECKING:
    from rplctl.command.verify import VerifyProgress

_COLUMNS = ("Database_name", "Table_name", "Row_count", "Equal", "Missing", "Extra", "Different", "In_motion", "Note")
_figures = attrgetter(
    "database", "table", "rows", "equal", "missing", "extra", "different", "in_motion", "not_comparable"
)
_MOST_THREADS = 64
_BY_TIME_ZONE = "each session of the source computes its value in the session's time zone"


def verify(
    options: Globals,
    channel: str | None = CHANNEL,
    databases: str = option("--databases", "DB,...", "Compare only tables of these databases.", ""),
    tables: str = option("--tables", "DB.TABLE,...", "Compare only these tables.", ""),
    threads: str = option("--threads", "N", "Number of tables to compare at the same time.", "2"),
    max_load: str = option(
        "--max-load", "N", "Pause while the source's Threads_running is above N; 0 = no limit.", "25"
    ),
    show: str = option("--show", "N", "Print at most N differing keys per table.", "0"),
    report: Path | None = option("--report", "FILE", "Also write the differences to this file, for repair --report."),
    offline_source: Path | None = option(
        "--offline-source", "DIR", "Compare with the data folder of a stopped server, or a backup of it."
    ),
    at: str = option(
        "--at", "FILE:POS", "Position in the source's log at which the --offline-source was stopped or backed up.", ""
    ),
    restart: bool = switch("--restart", "Start again instead of resuming an interrupted verify."),
) -> None:
    """Compare every row with the source while both run.

    A stopped channel runs during the comparison. The exit code is 0 if all rows are equal. It is 1 if rows differ, if a
    table is not yet copied or cannot be compared, or if there is nothing to compare.
    """
    from rplctl.command.cloning.choice import Choice
    from rplctl.command.verify import VerifyRequest, verify as run

    name, config = the_channel(options, channel)
    count = number(show, "--show", 0, 10**6)
    if at and offline_source is None:
        raise UsageError("--at requires --offline-source")
    request = VerifyRequest(
        choice=Choice.of(databases, tables, replace=False),
        threads=number(threads, "--threads", 1, _MOST_THREADS),
        max_load=number(max_load, "--max-load", 0, 10**6),
        report=report,
        restart=restart,
        offline=offline_source,
        at=BinlogPosition.parse(at) if at else None,
    )
    with _saying(silent=options.quiet or options.format == "json") as says:
        result = run(config, name, request, says)
    rows = [dict(zip(_COLUMNS, _figures(totals), strict=True)) for totals in result.totals]
    shown = list(first_differences(read_report(result.path), count)) if count else []
    if options.format == "json":
        for row, totals in zip(rows, result.totals, strict=True):
            full = f"{totals.database}.{totals.table}: "
            row["Drift"], row["Columns_Not_Compared"] = list(totals.drift), list(totals.ignored)
            row["Differences"] = [text.removeprefix(full) for text in shown if text.startswith(full)]
        show_rows(options, (*_COLUMNS, "Drift", "Columns_Not_Compared", "Differences"), rows)
    else:
        show_rows(options, _COLUMNS, rows)
        notes = [Note(clean(text)) for text in shown]
        notes += [Note(clean(f"{t.database}.{t.table}: {text}")) for t in result.totals for text in t.drift]
        notes += [
            Note(clean(f"{t.database}.{t.table}: column {name} is not compared, because {_BY_TIME_ZONE}"))
            for t in result.totals
            for name in t.ignored
        ]
        if result.resumed:
            notes.append(Note(f"{many(result.resumed, 'table')} were compared before the interruption"))
        notes.append(Note(f"Compared {many(len(result.compared), 'table')} and {many(result.rows, 'row')}."))
        say_notes(options, [*notes, Note(f"the report is {result.path}")])
    if not result.is_equal:
        end(1)


@contextmanager
def _saying(*, silent: bool) -> Iterator[Callable[[VerifyProgress], None]]:
    """Yield a function that shows the progress on stderr: as a live line on a terminal, or else one line for each
    table.
    """
    begun = time.monotonic()
    with live_text(silent=silent) as show:

        def says(now: VerifyProgress) -> None:
            if show is not None:
                show(_line(now, time.monotonic() - begun))
            elif not silent and (totals := now.totals) is not None:
                said = totals.not_comparable or f"{totals.equal} equal, {totals.differences} differ"
                moving = f", {totals.in_motion} in motion" if totals.in_motion else ""
                sys.stderr.write(clean(f"{totals.database}.{totals.table}: {totals.rows} rows, {said}{moving}") + "\n")

        yield says


def _line(now: VerifyProgress, passed: float) -> str:
    percent = 100 * now.rows // max(1, now.expected)
    left = f"  {clock_time((now.expected - now.rows) * passed / now.rows)} left" if now.rows else ""
    rate = f"  {short(now.rows / passed, ' rows')}/s" if passed else ""
    return f"{now.tables_done} of {now.tables} tables  {percent} %{f'  {now.waits}' if now.waits else rate + left}"
