"""`show-status`, `show-channels`, `show-relaylog-events`, `check`, `doctor`: what only looks."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated, Any

import typer

from rplctl.channel import check_channel_name
from rplctl.cli.globals import Globals
from rplctl.cli.options import (
    AllChannels,
    ChannelName,
    ChannelNames,
    Terminology,
    each_channel,
    end,
    for_each,
    options_of,
    seconds,
    the_channel,
)
from rplctl.cli.output import show_records, show_rows, write
from rplctl.errors import NotRunning, UsageError


def show_status(
    context: typer.Context,
    channel: ChannelNames = None,
    every: AllChannels = False,
    terminology: Terminology = "master",
    field: Annotated[
        str | None, typer.Option("--field", metavar="COLUMN", help="Print the bare value of one column per channel.")
    ] = None,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit 3 unless both threads of every channel run.")
    ] = False,
    watch: Annotated[
        str | None, typer.Option("--watch", metavar="SECONDS", help="Show again every so many seconds until Ctrl-C.")
    ] = None,
) -> None:
    """Show the state of each channel (SHOW SLAVE STATUS)."""
    options = options_of(context)
    if terminology not in ("master", "source"):
        raise UsageError(f"--terminology {terminology}: write master or source")
    interval = seconds(watch, "--watch")
    while True:
        rows, columns, failed = _status_rows(options, channel, terminology, every=every)
        if field is not None:
            _show_field(rows, field)
        else:
            shown = rows if options.format == "json" else [{name: row[name] for name in columns} for row in rows]
            show_rows(options, columns, shown, prefer_vertical=True)
        if interval is None:
            break
        time.sleep(max(0.1, interval))
    running = (("Slave_IO_Running", "Slave_SQL_Running"), ("Replica_IO_Running", "Replica_SQL_Running"))
    io, sql = running[terminology == "source"]
    end(failed)
    if exit_code and not all(row[io] == "Yes" and row[sql] == "Yes" for row in rows):
        raise NotRunning("not every thread is running", hint="rplctl start")


def _status_rows(
    options: Globals, channel: str | None, terminology: str, *, every: bool
) -> tuple[list[dict[str, object]], tuple[str, ...], int]:
    """(rows, columns to show, exit code of the first channel whose records cannot be read)."""
    from rplctl.cli.terminology import to_source, to_source_text
    from rplctl.command.show_status import COLUMNS, SOURCE_COLUMNS, WORKLOG_COLUMNS
    from rplctl.command.show_status import show_status as run

    rows: list[dict[str, object]] = []
    failed = for_each(options, channel, lambda name, config: rows.append(asdict(run(config, name))), every=every)
    if terminology == "master":
        return rows, COLUMNS if options.verbose else WORKLOG_COLUMNS, failed
    new = [{to_source(name): to_source_text(name, value) for name, value in row.items()} for row in rows]
    return new, tuple(to_source(name) for name in (COLUMNS if options.verbose else SOURCE_COLUMNS)), failed


def _show_field(rows: list[dict[str, object]], field: str) -> None:
    from rplctl.cli.text import shown

    names = {name.lower(): name for row in rows for name in row}
    if field.lower() not in names:
        import difflib

        close = difflib.get_close_matches(field.lower(), names, n=1)
        hint = f"did you mean {names[close[0]]}?" if close else "rplctl show-status lists the columns"
        raise UsageError(f"--field {field}: no such column", hint=hint)
    write("".join(shown(row[names[field.lower()]]) + "\n" for row in rows))


def show_channels(context: typer.Context) -> None:
    """List the configured channels."""
    from rplctl.command.show_channels import ChannelLine
    from rplctl.command.show_channels import show_channels as run

    options = options_of(context)
    show_records(options, run(options.config(), options.config), ChannelLine)


def show_relaylog_events(
    context: typer.Context,
    channel: ChannelName = None,
    log: Annotated[str, typer.Option("--in", metavar="FILE", help="Relay log; without it the oldest.")] = "",
    position: Annotated[int, typer.Option("--from", metavar="POS", help="Begin with the event at this position.")] = 4,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", help="At most so many events.")] = None,
) -> None:
    """List a relay log's events (SHOW RELAYLOG EVENTS)."""
    from rplctl.command.relay_logs import RelayLogEvent
    from rplctl.command.relay_logs import show_relaylog_events as run

    options = options_of(context)
    if limit is not None and limit < 0:
        raise UsageError("--limit: write a number of events")
    if position < 0:
        raise UsageError(f"--from {position}: write a position, 4 or more")
    name, config = the_channel(options, channel)
    show_records(options, list(run(config, name, log, position, limit)), RelayLogEvent)


def check(
    context: typer.Context,
    channel: ChannelNames = None,
    lag_warning: Annotated[str, typer.Option("--lag-warning", metavar="SECONDS", help="Lag that is a warning.")] = "60",
    lag_critical: Annotated[
        str, typer.Option("--lag-critical", metavar="SECONDS", help="Lag that is critical.")
    ] = "300",
    offline: Annotated[
        bool, typer.Option("--offline", help="Judge what is stored, not threads and lag; read every relay log byte.")
    ] = False,
    online: Annotated[bool, typer.Option("--online", help="Ask the source, too.")] = False,
    max_sync_age: Annotated[
        str | None,
        typer.Option("--max-sync-age", metavar="SECONDS", help="Of a channel run from cron; instead of the option."),
    ] = None,
) -> None:
    """Print a verdict for monitoring systems, and why.

    Exit code 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.
    """
    from rplctl.cli.text import clean
    from rplctl.command.channel.context import one_engine
    from rplctl.command.check.verb import WORDS, Limits, Scope, worst
    from rplctl.command.check.verb import check as run
    from rplctl.errors import RplError, file_error

    options = options_of(context)
    if offline and online:
        raise UsageError("--offline and --online exclude each other")
    scope = Scope.OFFLINE if offline else Scope.ONLINE if online else Scope.LOCAL
    try:
        low, high = (
            int(seconds(t, f) or 0) for t, f in ((lag_warning, "--lag-warning"), (lag_critical, "--lag-critical"))
        )
        age = seconds(max_sync_age, "--max-sync-age")
        with one_engine():
            verdicts = [
                run(config, name, Limits(low, high, config.max_sync_age if age is None else int(age)), scope)
                for name, config in each_channel(options, channel)
            ]
    except UsageError:
        raise
    except (RplError, OSError) as error:  # its exit code is a verdict: 1 would be a warning
        told = file_error(error) if isinstance(error, OSError) else error
        write(clean(f"RPLCTL UNKNOWN - {told.message}") + "\n")
        raise typer.Exit(3) from None
    level = worst(v.level for v in verdicts)
    if options.format == "json":
        rows: list[dict[str, Any]] = [
            {
                **asdict(v),
                "level": WORDS[v.level],
                "findings": [{**asdict(f), "level": WORDS[f.level]} for f in v.findings],
            }
            for v in verdicts
        ]
        show_rows(options, tuple(rows[0]), rows)
        raise typer.Exit(level)
    details = "; ".join(f"'{v.channel}' {v.text}" if len(verdicts) > 1 or v.channel else v.text for v in verdicts)
    data = " ".join(
        f"'lag{f'_{v.channel}' if v.channel else ''}'={v.lag_s}s;{low + v.delay_s};{high + v.delay_s};0"
        for v in verdicts
        if v.lag_s is not None
    )
    data = " ".join([*filter(None, [data]), *(_sync_age(v.channel, v.sync_age_s) for v in verdicts)]).strip()
    lines = [f"RPLCTL {WORDS[level]} - {details}{f' | {data}' if data else ''}"]
    for v in verdicts:
        where = f"channel '{v.channel}' " if len(verdicts) > 1 or v.channel else ""
        for f in v.findings:
            repair = f"; repair: {f.repair}" if f.repair else ""
            lines.append(f"{where}{WORDS[f.level]} {f.code}: {f.text}{repair}")
    write("".join(clean(line.replace("|", "/") if number else line) + "\n" for number, line in enumerate(lines)))
    raise typer.Exit(level)


def _sync_age(channel: str, seconds: int | None) -> str:
    return "" if seconds is None else f"'sync_age{f'_{channel}' if channel else ''}'={seconds}s"


def doctor(context: typer.Context, channel: ChannelName = None) -> None:
    """Look whether all that replication needs is there.

    Says, too, what a power cut would take. Exit code 1 with a warning, 2 with a failure.
    """
    from rplctl.command.doctor import FAIL, WARN, DoctorLine
    from rplctl.command.doctor import doctor as run
    from rplctl.errors import RplError, file_error

    options = options_of(context)
    if channel is not None:
        check_channel_name(channel)
    try:
        findings = run(options.config(channel or ""), None if channel is None else [channel], options.config)
    except (RplError, OSError) as error:  # options that cannot be read
        told = file_error(error) if isinstance(error, OSError) else error
        findings = [DoctorLine("options", FAIL, told.message, told.hint)]
    show_records(options, findings, DoctorLine)
    results = {finding.Result for finding in findings}
    raise typer.Exit(2 if FAIL in results else 1 if WARN in results else 0)
