"""Report the age of the last verify, and the rows that it found to differ and that nobody has repaired."""

from __future__ import annotations

import time
from collections.abc import Iterator

from rplctl.channel import Channel
from rplctl.command.check.findings import Finding, found
from rplctl.command.process.thread_report import clock
from rplctl.verify.report_file import read_report


def check_verify(channel: Channel, max_age_s: int) -> Iterator[Finding]:
    """Yield the findings about the last verify. `max_age_s` is the maximum age in seconds.

    With 0, there is no maximum, and a channel that was never verified is not reported. Raises UsageError if the report
    of the verify is damaged.
    """
    try:
        report = read_report(channel.verify_report_path)
    except FileNotFoundError:
        if max_age_s:
            yield found("verify_old", "the channel was never verified", "rplctl verify")
        return
    when, verified = clock(report.header.time), report.header.verified
    if differing := [table for table in report.totals if table.differences]:
        names = ", ".join(f"{table.database}.{table.table}" for table in differing[:5])
        count = sum(table.differences for table in differing)
        text = f"the verify of {when} found {count} rows that differ, in {names}{' …' if len(differing) > 5 else ''}"
        yield found("verify_differs", text, "rplctl repair, then rplctl verify")
    if max_age_s and time.time() - verified > max_age_s:
        last = f"the last complete verify was at {clock(verified)}" if verified else "there was no complete verify yet"
        yield found("verify_old", last, "rplctl verify")
