"""`check`, the last verify: how old it is, and what it found that is not repaired."""

from __future__ import annotations

import time
from collections.abc import Iterator

from rplctl.channel import Channel
from rplctl.command.check.findings import Finding, found
from rplctl.command.process.thread_report import clock
from rplctl.verify.report_file import read_report


def check_verify(channel: Channel, max_age_s: int) -> Iterator[Finding]:
    """`max_age_s`: 0 is any. Nothing where none was ever asked for. Raises UsageError for a report that is damaged."""
    try:
        report = read_report(channel.verify_report_path)
    except FileNotFoundError:
        if max_age_s:
            yield found("verify_old", "it was never verified", "rplctl verify")
        return
    when, verified = clock(report.header.time), report.header.verified
    if differing := [table for table in report.totals if table.differences]:
        names = ", ".join(f"{table.database}.{table.table}" for table in differing[:5])
        count = sum(table.differences for table in differing)
        text = f"the verify of {when} found {count} rows that differ, in {names}{' …' if len(differing) > 5 else ''}"
        yield found("verify_differs", text, "rplctl repair, then rplctl verify")
    if max_age_s and time.time() - verified > max_age_s:
        last = f"all of it was verified at {clock(verified)} last" if verified else "never was all of it verified"
        yield found("verify_old", last, "rplctl verify")
