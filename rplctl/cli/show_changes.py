"""Define the options of `show-changes`, run the command, and print its result."""

from __future__ import annotations

from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rplctl.cli.globals import Globals
from rplctl.cli.options import CHANNEL, number, option, the_channel
from rplctl.cli.output import show_rows
from rplctl.errors import UsageError

if TYPE_CHECKING:
    from rplctl.command.show_changes import ShownChange

_COLUMNS = ("Time", "Op", "Gtid", "Log_name", "Pos", "Change")


def show_changes(
    options: Globals,
    channel: str | None = CHANNEL,
    table: str = option("--table", "DB.TABLE", "Table, as named on the source.", ""),
    key: str = option("--key", "COLUMN=VALUE,...", "Show only rows with these values.", ""),
    path: Path | None = option("--in", "PATH", "Folder of binary logs, index file, or one log."),
    schema_file: Path | None = option(
        "--schema-file", "FILE", "Definitions at the first log: output of mysqldump --no-data."
    ),
    start_time: str = option("--start-time", "TIME", "Show transactions from this time on.", ""),
    end_time: str = option("--end-time", "TIME", "Show transactions before this time.", ""),
    limit: str = option("--limit", "N", "Show at most N changes.", ""),
) -> None:
    """List the changes of a table or a row."""
    from rplctl.command.show_changes import ShownChange, show_changes as run

    if not table:
        raise UsageError("show-changes requires --table DB.TABLE")
    wanted = {}
    for part in filter(None, key.split(",")):
        name, sign, value = part.partition("=")
        if not sign:
            raise UsageError(f"--key {part}: the condition must be COLUMN=VALUE")
        wanted[name.strip()] = value
    most = number(limit, "--limit", 0, 10**9) if limit else None
    name, config = the_channel(options, channel)
    more = {"schema_file": str(schema_file or ""), "start_time": start_time, "end_time": end_time}
    found = islice(run(config, name, table, wanted, path, more), most)
    if options.format == "json":
        show_rows(options, tuple(ShownChange.__dataclass_fields__), [asdict(change) for change in found])
    else:
        rows = [(c.Time, c.Op, c.Gtid, c.Log_name, c.Pos, _change(c)) for c in found]
        show_rows(options, _COLUMNS, [dict(zip(_COLUMNS, row, strict=True)) for row in rows])


def _change(change: ShownChange) -> str:
    """Return the text of a change. For an update, it shows only the changed columns.

    The first column is also shown if it is unchanged, because it is usually the key.
    """
    before, after = change.Before, change.After
    if before is None or after is None:
        row = after or before
        if row is None:
            return " ".join(change.Statement.split())
        return ", ".join(f"{name}={_value(value)}" for name, value in row.items())
    changed = [
        f"{name}: {_value(before[name]) if name in before else '?'} → {_value(value)}"
        for name, value in after.items()
        if before.get(name, change) != value
    ]
    first = next(iter(before.items()), None)
    if first is not None and after.get(first[0], first[1]) == first[1]:
        changed.insert(0, f"{first[0]}={_value(first[1])}")
    return ", ".join(changed)


def _value(value: Any) -> str:
    return "NULL" if value is None else str(value)
