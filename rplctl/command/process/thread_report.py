"""The state of a channel's two threads at this moment: running, killed, or silent.

Invariant: nothing is said to be good that was not seen fresh (design D22). Whether a thread runs is its lock; what it
says of itself counts only as long as it goes on saying it. A dead thread's last word counts for its error alone.
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

# MySQL has no number for it; 1593 means equal server ids to every monitor
ER_KILLED: Final = er.UNKNOWN_ERROR


@dataclass(frozen=True, slots=True)
class ThreadReport:
    """`status` as it may be shown; timestamps are Unix seconds."""

    role: str
    pid: int | None  # None: does not run
    status: ThreadStatus
    has_run: bool  # since the channel was made, or its connection was changed
    silent_since: float | None = None
    killed_at: float | None = None  # about: its last sign of life

    @property
    def runs(self) -> bool:
        return self.pid is not None

    @property
    def is_connected(self) -> bool:
        """True if the receiver has a connection, as far as it was observed."""
        return self.runs and self.status.connected and self.silent_since is None

    @property
    def is_suspended(self) -> bool:
        """True if a signal has suspended it (SIGSTOP, Ctrl-Z, a debugger), as Linux reports."""
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
    """Both threads as they are now."""
    receiver, applier = (report_of(channel, role, now) for role in (RECEIVER, APPLIER))
    return Threads(receiver, applier)


def report_of(channel: Channel, role: str, now: float | None = None) -> ThreadReport:
    """`now` is for tests. A thread that starts or stops while we look is seen before or after it, never in between."""
    pid, status = _seen(channel, role)
    moment = time.time() if now is None else now
    has_run = channel.status_path(role).exists()
    if pid is not None:
        since = silent_since(status, _locked_at(channel, role), moment)
        if since is not None and status.state:
            status = replace(status, state=f"{status.state} (nothing reported since {clock(since)})")
        return ThreadReport(role, pid, status, has_run, since)
    gone = replace(status, state="", connected=False, is_waiting=False, remaining_delay=None)
    if not was_killed(status):
        return ThreadReport(role, None, gone, has_run)
    return ThreadReport(role, None, _killed(role, gone, channel.name), has_run, killed_at=status.updated)


def _seen(channel: Channel, role: str) -> tuple[int | None, ThreadStatus]:
    """Lock and status of one moment: a start takes the lock first, a stop gives it back last."""
    while True:
        pid = lock_holder(channel, role)
        status = read_status(channel.status_path(role))
        if pid is not None or not was_killed(status):
            return pid, status
        if lock_holder(channel, role) is None and read_status(channel.status_path(role)) == status:
            return None, status


def _locked_at(channel: Channel, role: str) -> float:
    """When whoever holds the lock took it and wrote its pid."""
    try:
        return channel.lock_path(role).stat().st_mtime
    except OSError:
        return 0.0


def _killed(role: str, status: ThreadStatus, channel: str) -> ThreadStatus:
    """The status, with the end that nobody wrote down as its error; what it had met before stays in the text."""
    text = (
        f"the {role} did not stop by itself: it was killed at about {clock(status.updated)} (SIGKILL, out of memory or "
        "a crash of the machine)"
    )
    hint = f"to recover and continue, run: {for_channel('rplctl start', channel)}"
    if status.last_errno:
        text += f"; its last error was {status.last_errno}: {status.last_error}"
    return replace(status, last_errno=ER_KILLED, last_error=text, last_hint=hint, last_error_timestamp=status.updated)


def clock(timestamp: float) -> str:
    """`2026-11-23 06:40:12`, local time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(timestamp))
