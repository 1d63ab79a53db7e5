"""Define the options of `show-relaylog-events`, run the command, and print its result."""

from __future__ import annotations

from rplctl.cli.globals import Globals
from rplctl.cli.options import CHANNEL, option, the_channel
from rplctl.cli.output import show_records
from rplctl.errors import UsageError


def show_relaylog_events(
    options: Globals,
    channel: str | None = CHANNEL,
    log: str = option("--in", "FILE", "Relay log to list; default: the oldest.", ""),
    position: int = option("--from", "POS", "Position of the first event to list.", 4),
    limit: int | None = option("--limit", "N", "List at most N events."),
) -> None:
    """List the events of a relay log."""
    from rplctl.command.show_relaylog_events import RelayLogEvent, show_relaylog_events as run

    if limit is not None and limit < 0:
        raise UsageError(f"--limit {limit}: the number of events must not be negative")
    if position < 0:
        raise UsageError(f"--from {position}: the position must be 4 or more")
    name, config = the_channel(options, channel)
    show_records(options, list(run(config, name, log, position, limit)), RelayLogEvent)
