"""`change-filter`: set the rules by which one channel selects databases and tables (CHANGE REPLICATION FILTER).

A new rule list replaces the old list completely, and '' clears it. Lists that are not named are unchanged. The rules
are in the channel's section of the instance's rplctl.toml. The applier reads the rules only when it starts, so the
applier must not run during the command.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rplctl.command.channel.context import APPLIER, administer, refuse_while_running
from rplctl.config import OPTIONS, Config, check_value
from rplctl.errors import UsageError
from rplctl.history import note_event
from rplctl.option_file import store_options

FILTERS = tuple(name for name, o in OPTIONS.items() if o.is_filter)


@dataclass(frozen=True, slots=True)
class FilterResult:
    channel: str
    filters: dict[str, str] = field(metadata={"column": {name: name for name in FILTERS}})  # after the change
    dry_run: bool


def change_filter(
    config: Config, channel_name: str, rules: Mapping[str, object], *, dry_run: bool = False
) -> FilterResult:
    """Replace rule lists of a channel. `rules` maps the name of a filter option to its new list.

    Raises ConfigError if a list is not valid (3067: a pattern without a dot), NotConfigured if the channel does not
    exist, and UsageError 3085 if the applier runs.
    """
    if not rules:
        raise UsageError(
            "change-filter needs a rule list to change",
            hint="to see the options and their values, run: rplctl change-filter --help",
        )
    given = {name: check_value(name, value, "command line") for name, value in rules.items()}
    with administer(config, channel_name, dry_run=dry_run) as repositories:
        config = repositories.config
        repositories.master()
        refuse_while_running(repositories.channel, APPLIER)
        if not dry_run:
            store_options(config.datadir, channel_name, given, only_this_channel=True)
            text = ", ".join(f"{name}={value}" for name, value in given.items())
            note_event(config.datadir, channel_name, "change-filter", text)
    filters = {name: str(given.get(name, getattr(config, name))) for name in FILTERS}
    return FilterResult(channel_name, filters, dry_run)
