"""Define the options of `purge-binary-logs`, run the command, and print its result."""

from __future__ import annotations

from rplctl.cli.globals import Globals
from rplctl.cli.options import CHANNELS, DRY_RUN, end, for_each, option
from rplctl.cli.output import many, say
from rplctl.config import Config


def purge_binary_logs(
    options: Globals,
    to: str = option("--to", "LOG", "Remove the logs before this one.", ""),
    before: str = option("--before", "TIME", "Remove the logs last written before this time.", ""),
    channel: str | None = CHANNELS,
    dry_run: bool = DRY_RUN,
) -> None:
    """Remove old binary logs (PURGE BINARY LOGS)."""
    from rplctl.command.purge_binary_logs import purge_binary_logs as run

    def purge(name: str, config: Config) -> None:
        result = run(config, name, to=to, before=before, dry_run=dry_run)
        text = f"channel '{name}': {many(len(result.removed), 'binary log')} {'would be ' if dry_run else ''}removed"
        say(options, text, result)

    end(for_each(options, channel, purge))
