"""Define the options of `doctor`, and print one line for each check."""

from __future__ import annotations

from rplctl.channel import check_channel_name
from rplctl.cli.globals import Globals
from rplctl.cli.options import CHANNELS, end
from rplctl.cli.output import show_records
from rplctl.errors import RplError, as_rpl_error


def doctor(options: Globals, channel: str | None = CHANNELS) -> None:
    """Check that everything replication needs is in place.

    doctor also reports what a power failure could lose. The exit code is 1 for a warning and 2 for a failure.
    """
    from rplctl.command.doctor import FAIL, WARN, DoctorLine, doctor as run

    if channel is not None:
        check_channel_name(channel)
    try:
        findings = run(options.config(channel or ""), None if channel is None else [channel], options.config)
    except (RplError, OSError) as error:  # the options cannot be read
        findings = [
            DoctorLine(Check="options", Result=FAIL, Detail=as_rpl_error(error).message, Hint=as_rpl_error(error).hint)
        ]
    show_records(options, findings, DoctorLine)
    results = {finding.Result for finding in findings}
    end(2 if FAIL in results else 1 if WARN in results else 0)
