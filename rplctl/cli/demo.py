"""Define the options of `demo`, run the command, and print its result."""

from __future__ import annotations

import os
import shlex
from dataclasses import asdict
from pathlib import Path

from rplctl.cli.globals import Globals
from rplctl.cli.options import argument
from rplctl.cli.output import show_records, show_rows, write
from rplctl.cli.progress import progress_unless
from rplctl.cli.text import to_json
from rplctl.errors import RplError


def demo(
    options: Globals, folder: Path | None = argument("DIR", "Instance folder to create; default: a temporary folder.")
) -> None:
    """Replicate recorded binary logs and compare checksums."""
    from rplctl.command.demo import DemoTable, demo as run
    from rplctl.command.show_status import WORKLOG_COLUMNS

    with progress_unless(options.quiet) as progress:
        result = run(folder, progress)
    status = asdict(result.status)
    if options.format == "json":
        tables = [asdict(table) for table in result.tables]
        write(to_json([{"Datadir": str(result.datadir), "Tables": tables, "Status": status}]))
    else:
        write(f"{result.transactions} transactions of a {result.server} source, applied to {result.target_file}\n\n")
        show_records(options, result.tables, DemoTable)
        write("\n")
        show_rows(options, WORKLOG_COLUMNS, [{name: status[name] for name in WORKLOG_COLUMNS}], prefer_vertical=True)
        datadir = shlex.quote(os.fspath(result.datadir))
        commands = ("show-relaylog-events", "switch-repo --to table")
        write("\nTry next:\n" + "".join(f"  rplctl --datadir {datadir} {command}\n" for command in commands))
    if not result.is_equal:
        raise RplError("source and target differ")
