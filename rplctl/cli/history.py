"""Define the options of `history`, run the command, and print its result."""

from __future__ import annotations

import shutil

from rplctl.cli.globals import Globals
from rplctl.cli.options import CHANNELS, names_of, option, seconds
from rplctl.cli.output import show_records, write
from rplctl.cli.text import fitted
from rplctl.errors import UsageError
from rplctl.history import Event


def history(
    options: Globals,
    channel: str | None = CHANNELS,
    since: str | None = option("--since", "SECONDS", "Only entries of the last SECONDS, or 30m, 12h, 7d."),
    last: int = option("--last", "N", "Only the last N entries; 0 = all.", 25),
) -> None:
    """List what happened to the channels, and who did it."""
    from rplctl.command.history import history as run

    if last < 0:
        raise UsageError(f"--last {last}: the number of events must not be negative")
    if channel is not None:
        names_of(options, channel)
    events = run(options.config(), channel, last, seconds(since, "--since"))
    if options.is_terminal and not options.format and not options.verbose:
        width = shutil.get_terminal_size().columns
        return write("".join(fitted(_line(event), width) + "\n" for event in events))
    show_records(options, events, Event)


def _line(event: Event) -> str:
    """Return an event as one line, the most important words first, because a narrow terminal cuts the end."""
    where = "instance" if event.Channel_Name is None else f"'{event.Channel_Name}'"
    what = f"{event.Thread} {event.Event}".strip() + (f" {event.Errno}" if event.Errno else "")
    at = f" at {event.Position}" if event.Position else ""
    return f"{event.Time}  {where}  {what}{at}" + "".join(f"  {text}" for text in (event.Done_By, event.Info) if text)
