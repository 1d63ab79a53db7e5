"""Define the options of `reset`, and ask for confirmation before the command removes a position."""

from __future__ import annotations

from rplctl.cli.globals import Globals
from rplctl.cli.options import CHANNELS, DRY_RUN, YES, end, for_each, switch
from rplctl.cli.output import confirm, many, say
from rplctl.config import Config


def reset(
    options: Globals,
    channel: str | None = CHANNELS,
    everything: bool = switch("--all", "Also remove the connection settings and the channel."),
    forget_gtids: bool = switch("--forget-gtids", "Also forget which GTIDs are executed; --all implies it."),
    dry_run: bool = DRY_RUN,
    yes: bool = YES,
) -> None:
    """Remove the position and the relay logs (RESET SLAVE).

    The replicated tables are not changed.
    """
    from rplctl.command.reset import reset as run

    def reset_one(name: str, config: Config) -> None:
        if not dry_run:
            what = "its connection settings and position are" if everything else "its position is"
            confirm(f"Channel '{name}' is reset: {what} removed.", yes=yes)
        result = run(config, name, everything=everything, forget_gtids=forget_gtids, dry_run=dry_run)
        would = "would be " if dry_run else ""
        text = f"channel '{name}' {would}reset, {many(len(result.removed_relay_logs), 'relay log')} {would}removed"
        say(options, text, result)

    end(for_each(options, channel, reset_one))
