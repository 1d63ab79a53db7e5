"""Define the options of `show-clone`, run the command, and print its result."""

from __future__ import annotations

from rplctl.cli.globals import Globals
from rplctl.cli.options import CHANNEL, in_time, the_channel
from rplctl.cli.output import say_notes, show_rows
from rplctl.cli.text import clock_time, short
from rplctl.command.channel.context import Note

_SHORT = ("Database_name", "Table_name", "State", "Row_count", "Byte_count", "Expected_rows", "Expected_bytes")


def show_clone(options: Globals, channel: str | None = CHANNEL) -> None:
    """Show the progress of a copy, table by table."""
    from rplctl.command.show_clone import progress, show_clone as run
    from rplctl.own_tables.clones import ClonedTable

    name, config = in_time(lambda: the_channel(options, channel))
    rows = in_time(lambda: run(config, name))
    is_table = options.is_terminal and options.format in ("", "table") and not options.verbose
    columns = _SHORT if is_table else tuple(ClonedTable.__dataclass_fields__)
    show_rows(options, columns, [{name: getattr(row, name) for name in columns} for row in rows])
    if (found := progress(config, name, rows)) is None:
        return
    rate = f"  {short(found.bytes, 'B')}/s  {short(found.rows, ' rows')}/s" if found.bytes else ""
    left = f"  {clock_time(found.left_s)} left" if found.left_s is not None else ""
    paused = (f"the {role} does not run: rplctl start --{role}" for role in found.paused)
    done = f"{found.done} of {found.tables} tables  {found.percent} %{rate}{left}"
    say_notes(options, [Note(text) for text in (done, found.reader, *paused, found.incident, found.error) if text])
