"""`clone`: a living source becomes a replica with one command."""

from __future__ import annotations

import typer

from rplctl.cli.options import ChannelName, DryRun, options_of, the_channel
from rplctl.cli.output import many, say, show_records


def clone(context: typer.Context, channel: ChannelName = None, dry_run: DryRun = False) -> None:
    """Copy a living source, then replicate it.

    Of its tables those that the target lacks, without a lock; show-clone tells how far it is.
    """
    from rplctl.command.clone import TableToClone
    from rplctl.command.clone import clone as run

    options = options_of(context)
    name, config = the_channel(options, channel)
    result = run(config, name, dry_run=dry_run)
    if dry_run:
        return show_records(options, result.listed, TableToClone)
    text = f"channel '{name}' is at {result.position} and copies {many(result.tables, 'table')}: rplctl show-clone"
    say(options, text, result)
