"""Define the options of `change-filter`: all options of an instance whose value is a list of filter rules."""

from __future__ import annotations

from typing import Any

from rplctl.cli.globals import Globals
from rplctl.cli.options import CHANNEL, DRY_RUN, option_parameter, parameter, takes, the_channel
from rplctl.cli.output import say
from rplctl.config import OPTIONS


@takes(
    parameter("channel", str | None, CHANNEL),
    *(option_parameter(o) for o in OPTIONS.values() if o.is_filter),
    parameter("dry_run", bool, DRY_RUN),
)
def change_filter(options: Globals, channel: str | None, dry_run: bool, **given: Any) -> None:
    """Set which databases and tables a channel applies.

    As in CHANGE REPLICATION FILTER, a list replaces the previous list.
    """
    from rplctl.command.change_filter import change_filter as run

    name, config = the_channel(options, channel)
    rules = {name: given[name] for name in OPTIONS if given.get(name) is not None}
    result = run(config, name, rules, dry_run=dry_run)
    shown = "; ".join(f"{rule}: {text}" for rule, text in result.filters.items() if text) or "everything is applied"
    say(options, f"{'would change: ' if dry_run else ''}channel '{name}': {shown}", result)
