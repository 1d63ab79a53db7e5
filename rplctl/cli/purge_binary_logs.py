"""`purge-binary-logs`: old binary logs go, by name or by age."""

from __future__ import annotations

from typing import Annotated

import typer

from rplctl.cli.options import ChannelNames, DryRun, end, for_each, option, options_of
from rplctl.cli.output import many, say
from rplctl.config import Config


def purge_binary_logs(
    context: typer.Context,
    to: Annotated[str, option("--to", "LOG", "Remove the logs before this one.")] = "",
    before: Annotated[str, option("--before", "TIME", "Remove the logs last written before this time.")] = "",
    channel: ChannelNames = None,
    dry_run: DryRun = False,
) -> None:
    """Remove old binary logs (PURGE BINARY LOGS)."""
    from rplctl.command.purge_binary_logs import purge_binary_logs as run

    options = options_of(context)

    def purge(name: str, config: Config) -> None:
        result = run(config, name, to=to, before=before, dry_run=dry_run)
        text = f"channel '{name}': {many(len(result.removed), 'binary log')} {'would be ' if dry_run else ''}removed"
        say(options, text, result)

    end(for_each(options, channel, purge))
