"""Define the options of `fsync-report`, run the command, and print its result."""

from __future__ import annotations

from rplctl.cli.globals import Globals
from rplctl.cli.options import end, option, switch
from rplctl.cli.output import show_records


def fsync_report(
    options: Globals,
    transactions: int = option("--transactions", "N", "Number of transactions per variant.", 50),
    on_target: bool = switch("--on-target", "Measure on the configured target, not on a SQLite file of its own."),
) -> None:
    """Count the fsyncs that a committed position costs.

    The exit code is 1 if a count differs from the expected one.
    """
    from rplctl.command.fsync_report import FsyncLine, fsync_report as run

    lines = run(options.config(), transactions, on_target=on_target)
    show_records(options, lines, FsyncLine)
    end(1 if any(line.Result == "FAIL" for line in lines) else 0)
