"""Define the options of `stop`, and print its result.

If a channel does not stop in time and its process also serves other channels, the process must not be killed. The
command then stops the other channels first, and tries this channel again at the end.
"""

from __future__ import annotations

from rplctl.cli.globals import Globals
from rplctl.cli.options import (
    ALL_CHANNELS,
    ONLY_APPLIER,
    ONLY_RECEIVER,
    SEVERAL_CHANNELS,
    end,
    for_each,
    members,
    names_of,
    option,
    roles_of,
    seconds,
)
from rplctl.cli.output import one_list, say
from rplctl.config import Config


def stop(
    options: Globals,
    channel: list[str] | None = SEVERAL_CHANNELS,
    every: bool = ALL_CHANNELS,
    receiver: bool = ONLY_RECEIVER,
    applier: bool = ONLY_APPLIER,
    group: str = option("--group", "NAME", "Stop the channels of this channel_group.", ""),
    timeout: str = option(
        "--timeout", "SECONDS", "Seconds to wait until the transaction ends; then the thread is killed.", "60"
    ),
) -> None:
    """Stop after the current transaction (STOP SLAVE)."""
    from rplctl.command.process.child import ServesOthers
    from rplctl.command.stop import stop as run

    limit = seconds(timeout, "--timeout") or 0.0
    if group:
        channel = members(options, group, channel, every=every)
    left: list[str] = []  # their process also serves other channels, so they are tried again after these

    def stop_one(name: str, config: Config) -> None:
        patience = limit if name not in left else 0.0
        try:
            result = run(config, name, roles_of(receiver, applier), patience)
        except ServesOthers:
            if name in left or len(names_of(options, channel)) < 2:
                raise
            left.append(name)
            return
        text = f"channel '{name}': {' and '.join(result.stopped) or 'nothing'} stopped"
        say(options, text, result)

    with one_list(options):
        failed = for_each(options, channel, stop_one, every=every)
        failed = failed or (for_each(options, list(left), stop_one) if left else 0)
    end(failed)
