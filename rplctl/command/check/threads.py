"""Find problems of the threads: each must run and report, and the channel must not lag behind its source.

The age of each report counts (design D22). An old status is a finding, and a lost connection becomes critical with
time. A channel that cron runs is judged by the age of its last successful run. A delay by MASTER_DELAY does not count
as lag.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rplctl.command.channel.context import APPLIER, RECEIVER
from rplctl.command.check.findings import Finding, found
from rplctl.command.check.sync_record import SyncRecord
from rplctl.command.process.thread_report import ThreadReport, Threads, clock
from rplctl.command.show_status import SlaveStatus
from rplctl.config import Config
from rplctl.status import NO_EXECUTORS


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckLimits:
    """The limits of `check`, in seconds.

    * `warning_s`, `critical_s`: the lag in addition to MASTER_DELAY
    * `sync_age_s`: the age of the last run from cron; twice this age is critical
    * `verify_age_s`: the age of the last verify; 0 = no limit
    """

    warning_s: int
    critical_s: int
    sync_age_s: int = 3600
    verify_age_s: int = 0


def limits_of(
    config: Config, warning_s: int, critical_s: int, sync_age_s: float | None = None, verify_age_s: float | None = None
) -> CheckLimits:
    """Return the limits of `check`. For an age that is None, the configured option decides."""
    return CheckLimits(
        warning_s=warning_s,
        critical_s=critical_s,
        sync_age_s=config.max_sync_age if sync_age_s is None else int(sync_age_s),
        verify_age_s=config.max_verify_age if verify_age_s is None else int(verify_age_s),
    )


def check_running(status: SlaveStatus, threads: Threads, limits: CheckLimits, now: float) -> Iterator[Finding]:
    """Yield findings about a channel whose threads must always run. `now` is the time in Unix seconds."""
    if not (threads.receiver.has_run or threads.applier.has_run or threads.receiver.runs or threads.applier.runs):
        yield found("never_started", "the channel was never started", "rplctl start")
        return
    for thread in (threads.receiver, threads.applier):
        yield from _thread(thread)
        if not thread.runs and not thread.killed_at and not thread.status.last_errno:
            yield found(f"{thread.role}_stopped", _how_stopped(thread), f"rplctl start --{thread.role}")
    yield from _connection(threads.receiver, limits, now)
    if threads.applier.runs and threads.applier.status.last_errno:
        yield found("applier_retrying", f"the applier retries after {status.Last_SQL_Error}", "rplctl show-status")
    lag = status.Seconds_Behind_Master
    if lag is not None and lag - status.SQL_Delay >= min(limits.warning_s, limits.critical_s):
        code = "lag_critical" if lag - status.SQL_Delay >= limits.critical_s else "lag_warning"
        delay = f", MASTER_DELAY is {status.SQL_Delay} s" if status.SQL_Delay else ""
        yield found(code, f"{lag} s behind the source{delay}", "rplctl show-status (shows the applier's state)")


def check_cron(record: SyncRecord | None, threads: Threads, limits: CheckLimits, now: float) -> Iterator[Finding]:
    """Yield findings about a channel that cron runs with `start --until-synced`. `now` is the time in Unix seconds.

    A stopped thread is normal, but a thread that ended with an error is a problem.
    """
    for thread in (threads.receiver, threads.applier):
        yield from _thread(thread)
    if record is None:
        yield found("never_synced", "no start --until-synced has succeeded", "rplctl start --until-synced")
        return
    age = int(now - record.at)
    if age > limits.sync_age_s:
        code = "sync_too_old" if age > 2 * limits.sync_age_s else "sync_old"
        text = f"last synced {age} s ago, at {clock(record.at)}, to {record.to}; expected within {limits.sync_age_s} s"
        yield found(code, text, "rplctl start --until-synced (and check the log of cron)")


def check_skips(status: SlaveStatus) -> Iterator[Finding]:
    """Yield a finding for the transactions that the operator wants to skip. `skip` needs a stopped applier."""
    runs = status.Slave_SQL_Running == "Yes"
    cancel = "rplctl stop --applier; rplctl skip 0; rplctl start --applier" if runs else "rplctl skip 0"
    if status.Skip_Counter:
        who = "the applier will skip the next" if runs else "the next start skips"
        text = f"{who} {status.Skip_Counter} transactions: their changes will be missing"
        yield found("skip_pending", text, f"{cancel} (cancels this)")
    if status.Skip_Gtids:
        text = f"{status.Skip_Gtids} will be skipped: its changes will be missing"
        yield found("skip_pending", text, f"{cancel} (cancels this)")


def _thread(thread: ThreadReport) -> Iterator[Finding]:
    """Yield the problems of a thread that are the same for a channel that always runs and for one that cron runs."""
    role, status = thread.role, thread.status
    if thread.runs:
        if thread.silent_since is not None:
            yield _silent(thread, thread.silent_since)
        elif status.state.startswith(NO_EXECUTORS):
            text = f"the {role} has no executors: {status.state}"
            yield found("no_executors", text, "check Spark's cluster; the channel then continues by itself")
    elif thread.killed_at:
        yield found(f"{role}_killed", status.last_error, status.last_hint)
    elif status.last_errno:
        text = f"the {role} does not run since {clock(status.updated)}; its last error: {status.last_error}"
        hint = status.last_hint or "repair the cause of the error, then run: rplctl start"
        yield found(f"{role}_error", text, hint)


def _silent(thread: ThreadReport, since: float) -> Finding:
    text = f"the {thread.role} (process {thread.pid}) does not report since {clock(since)}"
    if thread.is_suspended:
        return found(f"{thread.role}_silent", f"{text}: a signal has suspended it", f"kill -CONT {thread.pid}")
    return found(f"{thread.role}_silent", f"{text}: it hangs", "rplctl stop (kills it if needed); rplctl start")


def _how_stopped(thread: ThreadReport) -> str:
    status = thread.status
    if not thread.has_run:
        return f"the {thread.role} was not started"
    if thread.role == APPLIER and status.is_done:
        is_until = status.until_condition != "None"
        why = "it reached its UNTIL condition" if is_until else "it had applied everything from the source"
        return f"the applier stopped at {clock(status.updated)}: {why}"
    return f"the {thread.role} was stopped at {clock(status.updated)} (rplctl stop or SIGTERM)"


def _connection(receiver: ThreadReport, limits: CheckLimits, now: float) -> Iterator[Finding]:
    status = receiver.status
    if not receiver.runs or receiver.silent_since is not None or status.connected:
        return
    since = f" since {clock(status.lost)}" if status.lost else ""
    reason = f": {status.last_error}" if status.last_error else ""
    is_long = status.lost and now - status.lost >= limits.critical_s
    code = "receiver_not_connected" if is_long else "receiver_connecting"
    repair = "rplctl doctor; check that the source runs"
    yield found(code, f"the {RECEIVER} has no connection to the source{since}{reason}", repair)
