"""Define the options of `recover`, run the command, and print its result."""

from __future__ import annotations

from rplctl.cli.globals import Globals
from rplctl.cli.options import CHANNELS, DRY_RUN, end, for_each, switch
from rplctl.cli.output import show_records


def recover(
    options: Globals,
    channel: str | None = CHANNELS,
    refetch: bool = switch(
        "--refetch", "Remove all relay logs; the next start fetches the events that are not applied again."
    ),
    dry_run: bool = DRY_RUN,
) -> None:
    """Repair the relay log, as every start does.

    recover removes an incomplete transaction from the end of the relay log, and finds the position of the next event.
    """
    from rplctl.command.recover import RecoverResult, recover as run

    results: list[RecoverResult] = []
    failed = for_each(
        options, channel, lambda name, config: results.append(run(config, name, refetch=refetch, dry_run=dry_run))
    )
    show_records(options, results, RecoverResult)
    end(failed)
