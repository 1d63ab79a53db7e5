"""Define the options of `switch-repo`, run the command, and print its result."""

from __future__ import annotations

from rplctl.cli.globals import Globals
from rplctl.cli.options import CHANNELS, DRY_RUN, end, for_each, option
from rplctl.cli.output import show_records


def switch_repo(
    options: Globals,
    to: str = option("--to", "table|file", "Where the positions are stored from now on.", ...),
    channel: str | None = CHANNELS,
    repository: str = option("--repository", "master-info|relay-log-info|both", "Repository to move.", "both"),
    dry_run: bool = DRY_RUN,
) -> None:
    """Move the positions between files and tables."""
    from rplctl.command.switch_repo import SwitchStep, switch_repo as run

    steps: list[SwitchStep] = []
    failed = for_each(
        options, channel, lambda name, config: steps.extend(run(config, name, to, repository, dry_run=dry_run))
    )
    if not options.quiet:
        show_records(options, steps, SwitchStep)
    end(failed)
