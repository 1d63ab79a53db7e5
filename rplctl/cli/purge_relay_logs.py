"""Define the options of `purge-relay-logs`, run the command, and print its result."""

from __future__ import annotations

from rplctl.cli.globals import Globals
from rplctl.cli.options import CHANNELS, DRY_RUN, end, for_each
from rplctl.cli.output import many, say
from rplctl.config import Config


def purge_relay_logs(options: Globals, channel: str | None = CHANNELS, dry_run: bool = DRY_RUN) -> None:
    """Remove relay logs that are completely applied."""
    from rplctl.command.purge_relay_logs import purge_relay_logs as run

    def purge(name: str, config: Config) -> None:
        result = run(config, name, dry_run=dry_run)
        text = f"channel '{name}': {many(len(result.removed), 'relay log')} {'would be ' if dry_run else ''}removed"
        say(options, text, result)

    end(for_each(options, channel, purge))
