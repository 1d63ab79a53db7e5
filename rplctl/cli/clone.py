"""Define the options of `clone`, run the command, and print its result."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING

from rplctl.cli.globals import Globals
from rplctl.cli.options import CHANNEL, DRY_RUN, YES, number, option, switch, the_channel
from rplctl.cli.output import confirm, many, say, say_notes, show_rows, write
from rplctl.cli.text import clean, clock_time, short
from rplctl.command.channel.context import Note
from rplctl.config import Config, split_list
from rplctl.errors import UsageError

if TYPE_CHECKING:
    from rplctl.command.clone import CloneResult

_MOST_THREADS = 8  # an SQLAlchemy engine has 15 connections


def clone(
    options: Globals,
    channel: str | None = CHANNEL,
    databases: str = option("--databases", "DB,...", "Copy only tables of these databases.", ""),
    tables: str = option("--tables", "DB.TABLE,...", "Copy only these tables.", ""),
    replace: bool = switch("--replace", "Also copy tables that exist in the target; they are dropped first."),
    max_load: str | None = option(
        "--max-load", "N", "Pause while the source's Threads_running is above N; default: 25."
    ),
    max_rate: str | None = option(
        "--max-rate", "MB/s", "Read at most this many MB per second from the source; default: no limit."
    ),
    load_threads: str | None = option(
        "--load-threads", "N", "Number of target connections that load rows; default: 2."
    ),
    read_from: str | None = option("--read-from", "HOST[:PORT]", "Read the rows from this replica of the source."),
    max_history: str | None = option(
        "--max-history", "N", "Do not open a snapshot while InnoDB's history list is longer than N."
    ),
    lag_of: str | None = option(
        "--lag-of",
        "HOST[:PORT],...",
        "Pause while one of these replicas of the source is behind by more than --max-lag.",
    ),
    max_lag: str | None = option("--max-lag", "SECONDS", "Lag at which --lag-of pauses the copy; default: 10."),
    cancel: bool = switch("--cancel", "Cancel the copy of tables that are not yet copied."),
    dry_run: bool = DRY_RUN,
    yes: bool = YES,
) -> None:
    """Copy tables from the source, then replicate them.

    clone copies the tables that are missing in the target, or the tables that are named. It takes no table locks.
    show-clone shows its progress.
    """
    from rplctl.command.clone import Choice, CloneRequest, clone as run

    name, config = the_channel(options, channel)
    if cancel:
        limits = (max_load, max_rate, load_threads, read_from, max_history, lag_of, max_lag)
        if databases or tables or replace or any(given is not None for given in limits):
            raise UsageError("--cancel cannot be used with options that choose tables or set limits")
        return _cancel(options, name, config, dry_run=dry_run, yes=yes)
    choice = Choice.of(databases, tables, replace=replace)
    if replace and not dry_run:
        confirm("Tables that the target has are dropped before they are copied again.", yes=yes)
    load = None if max_load is None else number(max_load, "--max-load", 0, 10**6)
    threads = None if load_threads is None else number(load_threads, "--load-threads", 1, _MOST_THREADS)
    history = None if max_history is None else number(max_history, "--max-history", 0, 10**12)
    replicas = None if lag_of is None else ",".join(split_list(lag_of))
    lag = None if max_lag is None else number(max_lag, "--max-lag", 0, 10**6)
    request = CloneRequest(
        choice=choice,
        max_load=load,
        max_rate=_rate(max_rate),
        load_threads=threads,
        read_from=read_from,
        max_history=history,
        lag_of=replicas,
        max_lag=lag,
        dry_run=dry_run,
    )
    result = run(config, name, request)
    if dry_run:
        return _list(options, result)
    text = f"channel '{name}' is at {result.position} and copies {many(result.tables, 'table')}: rplctl show-clone"
    say(options, text, result)


def _cancel(options: Globals, name: str, config: Config, *, dry_run: bool, yes: bool) -> None:
    from rplctl.command.cloning.cancel import cancel

    if not dry_run:
        confirm("Tables whose copy is not complete are dropped and not replicated.", yes=yes)
    result = cancel(config, name, dry_run=dry_run)
    would = "would be " if dry_run else ""
    text = (
        f"channel '{name}': the copy of {many(len(result.taken_back), 'table')} {would}cancelled, "
        f"{result.kept} copied tables are kept"
    )
    if result.taken_back:
        text += (
            "; the cancelled tables are not replicated until rplctl clone copies them (to exclude them permanently, "
            "use rplctl change-filter); to continue, run: rplctl start"
        )
    say(options, text, result)


def _list(options: Globals, result: CloneResult) -> None:
    """Print the tables of a dry run. If `result` has a refusal, raise this error at the end.

    On a terminal, the GRANT statements follow the table, so that they can be copied.
    """
    from rplctl.command.clone import TableToClone

    columns, rows = list(TableToClone.__dataclass_fields__), [asdict(table) for table in result.listed]
    grants = [table.Missing_Grant for table in result.listed if table.Missing_Grant]
    is_table = options.is_terminal and options.format in ("", "table")
    if is_table:
        columns.remove("Missing_Grant")
        rows = [{name: row[name] for name in columns} for row in rows]
    show_rows(options, columns, rows)
    if is_table and grants:
        write("".join(f"{clean(grant)}\n" for grant in grants))
    rows_in_all = short(sum(table.Row_count or 0 for table in result.listed), " rows")
    bytes_in_all = short(sum(table.Byte_count or 0 for table in result.listed), "B")
    time = clock_time(sum(table.Seconds or 0 for table in result.listed))
    said = Note(f"{many(result.tables, 'table')}, {rows_in_all}, {bytes_in_all}, about {time}")
    say_notes(options, [said, *result.notes])
    if result.refusal:
        raise result.refusal


def _rate(given: str | None) -> float | None:
    if given is None:
        return None
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,3})?", given):
        raise UsageError(f"--max-rate {given}: the rate must be in MB per second, like 20 or 0.5; 0 is no limit")
    return float(given)
