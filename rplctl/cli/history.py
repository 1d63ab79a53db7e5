"""`history`: the last events, of one channel or of all."""

from __future__ import annotations

from typing import Annotated

import typer

from rplctl.cli.options import ChannelNames, names_of, option, options_of, seconds
from rplctl.cli.output import show_records
from rplctl.errors import UsageError
from rplctl.history import Event


def history(
    context: typer.Context,
    channel: ChannelNames = None,
    since: Annotated[str | None, option("--since", "SECONDS", "Only what is not older: 90, 30m, 12h, 7d.")] = None,
    last: Annotated[int, option("--last", "N", "Only the last so many; 0: all that is kept.")] = 25,
) -> None:
    """Print what happened to the channels, and who did it."""
    from rplctl.command.history import HistoryRequest
    from rplctl.command.history import history as run

    options = options_of(context)
    if last < 0:
        raise UsageError(f"--last {last}: a number of events, 0 for all")
    if channel is not None:
        names_of(options, channel)
    request = HistoryRequest(channel, last, seconds(since, "--since"))
    show_records(options, run(options.config(), request), Event)
