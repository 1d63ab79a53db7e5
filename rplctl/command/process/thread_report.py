"""Report the present state of a channel's two threads: running, stopped, killed, or silent.

The lock of a thread shows whether it runs. Invariant: nothing is reported as good without a fresh status (design D22).
The status of a running thread counts only while the thread updates it. The last status of a dead thread counts only for
its error.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from rplctl import mysql_errors as er
from rplctl.channel import Channel, lock_holder
from rplctl.command.channel.context import APPLIER, RECEIVER
from rplctl.errors import for_channel
from rplctl.status import ThreadStatus, read_status, silent_since, was_killed

# MySQL has no number for a killed thread. Monitors interpret 1593 as equal server ids, so it cannot be used.
ER_KILLED: Final = er.UNKNOWN_ERROR


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadReport:
    """The state of one thread, with a status that may be shown to people. Timestamps are Unix seconds."""

    role: str
    pid: int | None  # None: the thread does not run
    status: ThreadStatus
    has_run: bool  # since the channel was created, or its connection was changed
    silent_since: float | None = None
    killed_at: float | None = None  # the time of its last status, so only approximate

    @property
    def runs(self) -> bool:
        return self.pid is not None

    @property
    def is_connected(self) -> bool:
        """True if the receiver runs and its fresh status says that it has a connection to the source."""
        return self.runs and self.status.connected and self.silent_since is None

    @property
    def is_suspended(self) -> bool:
        """True if a signal has suspended the process (SIGSTOP, Ctrl-Z, a debugger), as Linux reports."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text() if self.pid else ""
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[:1] in (["T"], ["t"])


@dataclass(frozen=True, slots=True)
class Threads:
    receiver: ThreadReport
    applier: ThreadReport


def threads_of(channel: Channel, now: float | None = None) -> Threads:
    """Return the reports of the channel's two threads. `now` replaces the present time in tests."""
    receiver, applier = (report_of(channel, role, now) for role in (RECEIVER, APPLIER))
    return Threads(receiver, applier)


def report_of(channel: Channel, role: str, now: float | None = None) -> ThreadReport:
    """Return the report of a thread. `now` replaces the present time in tests.

    If the thread starts or stops at this moment, the report shows the state before or after, but never a mixture.
    """
    pid, status = _seen(channel, role)
    moment = time.time() if now is None else now
    has_run = channel.status_path(role).exists()
    if pid is not None:
        since = silent_since(status, _locked_at(channel, role), moment)
        if since is not None and status.state:
            status = replace(status, state=f"{status.state} (nothing reported since {clock(since)})")
        return ThreadReport(role=role, pid=pid, status=status, has_run=has_run, silent_since=since)
    gone = replace(status, state="", connected=False, is_waiting=False, remaining_delay=None)
    if not was_killed(status):
        return ThreadReport(role=role, pid=None, status=gone, has_run=has_run)
    return ThreadReport(
        role=role, pid=None, status=_killed(role, gone, channel.name), has_run=has_run, killed_at=status.updated
    )


def _seen(channel: Channel, role: str) -> tuple[int | None, ThreadStatus]:
    """Return the process id and the status that the thread had at the same moment.

    The two can be compared because a start acquires the lock first, and a stop releases it last.
    """
    while True:
        pid = lock_holder(channel, role)
        status = read_status(channel.status_path(role))
        if pid is not None or not was_killed(status):
            return pid, status
        if lock_holder(channel, role) is None and read_status(channel.status_path(role)) == status:
            return None, status


def _locked_at(channel: Channel, role: str) -> float:
    """Return the time at which the thread's process wrote its id into the lock file, in Unix seconds.

    Return 0 if there is no lock file.
    """
    try:
        return channel.lock_path(role).stat().st_mtime
    except OSError:
        return 0.0


def _killed(role: str, status: ThreadStatus, channel: str) -> ThreadStatus:
    """Return the status of a killed thread with an error about the kill, which the thread itself could not write.

    The text of the error includes the last error of the thread.
    """
    text = (
        f"the {role} did not stop by itself: it was killed at about {clock(status.updated)} (SIGKILL, out of memory or "
        "a crash of the machine)"
    )
    hint = f"to recover and continue, run: {for_channel('rplctl start', channel)}"
    if status.last_errno:
        text += f"; its last error was {status.last_errno}: {status.last_error}"
    return replace(status, last_errno=ER_KILLED, last_error=text, last_hint=hint, last_error_timestamp=status.updated)


def clock(timestamp: float) -> str:
    """Return the time as text in the local time zone, such as `2026-11-23 06:40:12`."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(timestamp))
