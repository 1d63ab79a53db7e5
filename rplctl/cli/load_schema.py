"""Define the options of `load-schema`, run the command, and print its result."""

from __future__ import annotations

import sys
from pathlib import Path

from rplctl.cli.globals import Globals
from rplctl.cli.options import CHANNEL, DRY_RUN, argument, option, switch, the_channel
from rplctl.cli.output import many, say
from rplctl.errors import UsageError


def load_schema(
    options: Globals,
    file: Path | None = argument("FILE", "Output of mysqldump --no-data."),
    channel: str | None = CHANNEL,
    from_source: bool = switch("--from-source", "Read the definitions from the source, not from a file."),
    loaded: str | None = option(
        "--rows-loaded", "DB.TABLE,...|all", "Declare that the rows of these tables are already in the target."
    ),
    dry_run: bool = DRY_RUN,
) -> None:
    """Load table definitions for a channel.

    Row events do not carry definitions. Tables that are missing in the target are created empty.
    """
    from rplctl.command.load_schema import load_schema as run, rows_loaded

    name, config = the_channel(options, channel)
    if loaded is not None:
        if file is not None or from_source or dry_run:
            raise UsageError("--rows-loaded cannot be used with options other than --channel")
        done = rows_loaded(config, name, loaded)
        return say(options, f"channel '{name}': rows of {', '.join(done.loaded) or 'no table'} are loaded", done)
    result = run(config, name, file, from_source=from_source, dry_run=dry_run)
    known = f"{many(len(result.tables), 'table')} {'would be ' if dry_run else ''}known from {result.position} on"
    text = f"channel '{name}': {known}"
    if result.empty and not options.quiet:
        sys.stderr.write(
            f"Note: {many(len(result.empty), 'table')} created empty: the source's rows before {result.position} are "
            f"missing ({', '.join(result.empty)}); copy the rows (INITIAL COPY in rplctl(1)), then run: "
            "rplctl load-schema --rows-loaded all\n"
        )
    say(options, text, result)
