"""`show-clone`: how far the copy of the source's tables is."""

from __future__ import annotations

import typer

from rplctl.cli.options import ChannelName, options_of, the_channel
from rplctl.cli.output import show_records


def show_clone(context: typer.Context, channel: ChannelName = None) -> None:
    """Show how far the copy of each table is."""
    from rplctl.command.show_clone import show_clone as run
    from rplctl.own_tables.clones import ClonedTable

    options = options_of(context)
    name, config = the_channel(options, channel)
    show_records(options, run(config, name), ClonedTable)
