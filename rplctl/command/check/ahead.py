"""Find problems that will occur soon: the source purges a log that the channel needs next, or a disk becomes full.

Two more findings are about the measurement of the lag: clocks that differ, and a missing program that writes
heartbeats.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rplctl.command.channel.true_lag import purge_moment
from rplctl.command.check.findings import Finding, found
from rplctl.command.process.thread_report import Threads
from rplctl.command.show_status import SlaveStatus

PURGE_WARNING_S: Final = 6 * 3600.0
PURGE_CRITICAL_S: Final = 3600.0
DISK_WARNING_S: Final = 4 * 3600
DISK_CRITICAL_S: Final = 3600
SKEW_S: Final = 1.0  # seconds in addition to the possible error of the measurement
_UNITS: Final = (("d", 86400), ("h", 3600), ("min", 60))


def check_ahead(status: SlaveStatus, threads: Threads, critical_s: int) -> Iterator[Finding]:
    """Yield the forecasts from the last reports of the threads. A lag of `critical_s` seconds counts as critical."""
    if status.Source_Purge_In is not None and purge_moment(threads.receiver):
        yield from judge_purge(status.Source_Purge_In, status.Master_Log_File, threads.receiver.status.source_keeps_s)
    full = status.Relay_Disk_Full_In
    if full is not None and full < DISK_WARNING_S:
        code = "relay_disk_filling" if full >= DISK_CRITICAL_S else "relay_disk_full_soon"
        text = f"the disk of the relay logs is full in about {rough(full)} at the rate of the last minutes"
        yield found(code, text, "free some space, or set relay_log_space_limit; the applier purges applied relay logs")
    yield from judge_skew(status.Clock_Skew, status.Clock_Skew_Error)
    lag, known = status.True_Lag, status.Seconds_Behind_Master
    if status.True_Lag_From == "heartbeat" and lag is not None and known is not None and lag - known >= critical_s:
        text = f"the last heartbeat is {rough(lag)} old, but the lag is {known} s: no program writes heartbeats"
        yield found("heartbeat_old", text, "start pt-heartbeat at the source, or run: rplctl heartbeat --update")


def judge_purge(left_s: float, log_name: str, keeps_s: float) -> Iterator[Finding]:
    """Yield a finding if the source soon purges the log `log_name`, which the channel reads next.

    `left_s` is the time until the purge, in seconds. `keeps_s` is the time for which the source keeps its logs, in
    seconds. It is 0 if the size of the logs decides. If `keeps_s` is short, the warning comes later, because `left_s`
    is then always small.
    """
    critical, warning = (
        min(bound, keeps_s * share) if keeps_s else bound
        for bound, share in ((PURGE_CRITICAL_S, 0.25), (PURGE_WARNING_S, 0.5))
    )
    if left_s >= warning:
        return
    code = "source_purges_soon" if left_s >= critical else "source_purges_now"
    keeps = f"; the source keeps its logs for {rough(keeps_s)}" if keeps_s else ""
    text = f"the source purges {log_name}, which is read next, in about {rough(left_s)}{keeps}"
    yield found(code, text, "run rplctl start, or raise binlog_expire_logs_seconds on the source")


def judge_skew(difference: float | None, error: float | None) -> Iterator[Finding]:
    """Yield a finding if the clocks differ by more than a second.

    `difference` is the source's clock minus the local clock, in seconds; None if it was not measured. `error` is half
    of the round-trip time of the measurement.
    """
    if difference is None or abs(difference) <= SKEW_S + (error or 0.0):
        return
    which = "ahead of" if difference > 0 else "behind"
    text = f"the source's clock is {abs(difference):.1f} s {which} the local clock (measured within {error or 0:.3f} s)"
    yield found("clock_skew", f"{text}; the lag uses the source's clock", "let NTP set the clocks of both machines")


def rough(seconds: float) -> str:
    """Return the rounded time, such as `3 h`, `40 min` or `20 s`."""
    for unit, size in _UNITS:
        if seconds >= 2 * size or seconds >= size and size == 60:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
