"""Define the options of `show-status`, and print the state of each channel, once or repeatedly.

By default, the columns have the names that MySQL used before 8.0.22. On request, they have the later names, with source
and replica instead of master and slave.
"""

from __future__ import annotations

import time
from functools import partial

from rplctl.cli.globals import Globals
from rplctl.cli.options import ALL_CHANNELS, CHANNELS, end, for_each, in_time, option, seconds, switch
from rplctl.cli.output import show_rows, write
from rplctl.cli.text import clean, short, shown
from rplctl.command.channel.context import one_look
from rplctl.command.channel.source_terms import to_source, to_source_text
from rplctl.config import Config
from rplctl.errors import NotConfigured, NotRunning, UsageError, in_one_line

HINTS = ("Last_IO_Hint", "Last_SQL_Hint")  # shown after MySQL's columns, but only if there is an error


def show_status(
    options: Globals,
    channel: str | None = CHANNELS,
    every: bool = ALL_CHANNELS,
    terminology: str = option(
        "--terminology", "master|source", "Column names: master up to MySQL 8.0.21, source since 8.0.22.", "master"
    ),
    field: str | None = option("--field", "COLUMN", "Print only the value of this column, one line per channel."),
    exit_code: bool = switch("--exit-code", "Exit with 3 if a thread of a channel does not run."),
    brief: bool = switch("--brief", "Print three lines per channel, and the hint of an error."),
    watch: str | None = option("--watch", "SECONDS", "Print the status every N seconds until Ctrl-C."),
) -> None:
    """Show the state of each channel (SHOW SLAVE STATUS)."""
    if terminology not in ("master", "source"):
        raise UsageError(f"--terminology {terminology}: the value must be master or source")
    interval = seconds(watch, "--watch")
    while True:
        look = partial(_status_rows, options, channel, terminology, every=every)
        try:
            rows, columns, failed = in_time(look)
        except NotConfigured:
            if options.format == "json":  # standard output must be a JSON document even after an error
                write("[]\n")
            raise
        if field is not None:
            _show_field(rows, field)
        elif brief and options.format != "json":
            write("".join(_brief(row, terminology) for row in rows))
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
        raise NotRunning("not every thread is running", hint="to start the missing threads, run: rplctl start")


def _status_rows(
    options: Globals, channel: str | None, terminology: str, *, every: bool
) -> tuple[list[dict[str, object]], tuple[str, ...], int]:
    """Return the rows, the columns to show, and an exit code.

    The exit code is that of the first channel whose records cannot be read, or 0.
    """
    from rplctl.command.show_status import COLUMNS, SOURCE_COLUMNS, WORKLOG_COLUMNS, show_status as run

    rows: list[dict[str, object]] = []

    def look(name: str, config: Config) -> None:
        status = run(config, name)
        rows.append({column: getattr(status, column) for column in COLUMNS})

    with one_look():
        failed = for_each(options, channel, look, every=every)
    hints = tuple(name for name in HINTS if any(row[name] for row in rows))
    if terminology == "master":
        return rows, COLUMNS if options.verbose else WORKLOG_COLUMNS + hints, failed
    new = [{to_source(name): to_source_text(name, value) for name, value in row.items()} for row in rows]
    return new, tuple(to_source(name) for name in (COLUMNS if options.verbose else SOURCE_COLUMNS + hints)), failed


def _brief(row: dict[str, object], terminology: str) -> str:
    """Return three lines about a channel, and its hints: the threads, the positions, and the errors or the present
    work.
    """
    names = (
        ("Slave_IO_Running", "Slave_SQL_Running", "Seconds_Behind_Master", "Master_Log_File", "Read_Master_Log_Pos",
         "Relay_Master_Log_File", "Exec_Master_Log_Pos", "Slave_IO_State", "Slave_SQL_Running_State")
    )  # fmt: skip
    io, sql, lag, *at, io_state, sql_state = (
        row[to_source(name) if terminology == "source" else name] for name in names
    )
    behind = "lag unknown" if lag is None else f"{lag} s behind"
    behind += f" (heartbeat {row['True_Lag']:.1f} s)" if row["True_Lag_From"] == "heartbeat" else ""
    errors = [f"{row[f'Last_{thread}_Errno']}: {row[f'Last_{thread}_Error']}" for thread in ("IO", "SQL")
              if row[f"Last_{thread}_Error"]]  # fmt: skip
    doing = f"ERROR {'; ERROR '.join(errors)}" if errors else sql_state or io_state or "no thread runs"
    space = short(int(str(row["Relay_Log_Space"])), "B")
    lines = (
        f"channel '{row['Channel_Name']}': receiver {io}, applier {sql}, {behind}",
        f"  read {_place(at[0], at[1])}, applied {_place(at[2], at[3])}, relay logs {space}",
        f"  {doing}",
        *(f"  hint: {in_one_line(str(row[name]))}" for name in HINTS if row[name]),
    )
    return "".join(clean(line) + "\n" for line in lines)


def _place(name: object, offset: object) -> str:
    return f"{name}:{offset}" if name else "nothing yet"


def _show_field(rows: list[dict[str, object]], field: str) -> None:
    names = {name.lower(): name for row in rows for name in row}
    if field.lower() not in names:
        import difflib

        close = difflib.get_close_matches(field.lower(), names, n=1)
        hint = f"did you mean {names[close[0]]}?" if close else "To list the columns, run: rplctl show-status --verbose"
        raise UsageError(f"--field {field}: there is no such column", hint=hint)
    write("".join(shown(row[names[field.lower()]]) + "\n" for row in rows))
