"""`wait`: wait until a channel has a state or, like MASTER_POS_WAIT, a position. After the timeout, the exit code is 9.

Invariant: the command does not wait in vain. If the condition needs a thread that is stopped, killed or suspended, the
command ends at once, with the thread's own error and hint. But it waits for a source or target that is unreachable, and
names this server after the timeout.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field

from rplctl import mysql_errors as er
from rplctl.channel import Channel
from rplctl.command.channel.context import Repositories, is_held_by_applier, one_engine, open_repositories
from rplctl.command.channel.position_applied import is_applied, is_reached
from rplctl.command.check.source_end import SourceEnd, source_end
from rplctl.command.process.thread_report import ThreadReport, Threads, clock, threads_of
from rplctl.config import Config
from rplctl.errors import NotRunning, RplError, TargetError, UsageError, WaitTimeout
from rplctl.info import MasterInfo
from rplctl.position import BinlogPosition
from rplctl.receiver.reporter import WAITING

STATES = ("running", "synced", "stopped")
_POLL_S = 0.1
_NOT_RUNNING = "This operation requires a running slave; configure slave and do START SLAVE"


@dataclass(frozen=True, slots=True)
class WaitResult:
    channel: str
    executed: BinlogPosition = field(metadata={"column": "Position"})
    waited_s: float = field(metadata={"column": "Waited"})


@dataclass(frozen=True, slots=True)
class _Goal:
    """The condition of a wait: a state ('' if none) or a position. `text` completes the sentence "channel … is not"."""

    state: str
    position: BinlogPosition | None

    @property
    def text(self) -> str:
        return self.state or f"at {self.position}"


@one_engine()
def wait(
    config: Config,
    channel_name: str,
    *,
    state: str = "",
    position: BinlogPosition | None = None,
    timeout_s: float | None = None,
) -> WaitResult:
    """Return when the channel has reached the condition: either `state`, a word of STATES, or `position`.

    Raises UsageError unless exactly one condition is given, and WaitTimeout after `timeout_s` seconds. Raises
    NotRunning if a required thread does not run. Raises TargetError if the position is in the target, which reports a
    permanent error.
    """
    if (position is None) == (not state) or (state and state not in STATES):
        raise UsageError(f"wait requires --pos FILE:POS or --state {'|'.join(STATES)}")
    repositories, goal = open_repositories(config, channel_name), _Goal(state, position)
    channel = repositories.channel
    begun = time.monotonic()
    executed, away = BinlogPosition("", 0), ""
    master: MasterInfo | None = None
    end: SourceEnd | None = None
    is_asked = goal.state != "synced"
    while True:
        threads = threads_of(channel)
        try:
            master = master or repositories.master()
            executed, away = repositories.relay().exec_position, ""
            if not is_asked and threads.receiver.is_connected:
                is_asked = True
                with suppress(RplError):  # the account may lack the privilege
                    end = source_end(config, master, repositories.relay())
            if _is_there(repositories, goal, threads, end):
                return WaitResult(channel_name, executed, round(time.monotonic() - begun, 3))
        except TargetError as error:
            if not error.transient:
                raise
            away = error.message
        if (dead := _that_it_needs(goal, threads, master)) is not None:
            raise _not_running(channel, dead, executed)
        if timeout_s is not None and time.monotonic() - begun > timeout_s:
            reasons = _held_up_by(threads, away)
            raise WaitTimeout(
                "; ".join([f"channel '{channel_name}' is not {goal.text} after {timeout_s:g} s", *reasons]),
                channel=channel_name,
                position=str(executed),
                hint=f"to see the state, run: rplctl show-status{f' --channel {channel_name}' if channel_name else ''}",
            )
        time.sleep(_POLL_S)


def _is_there(repositories: Repositories, goal: _Goal, threads: Threads, end: SourceEnd | None) -> bool:
    """True if the channel has reached the goal.

    `end`: the end of the source's log when the wait began. If it is None, `synced` means all events that the receiver
    has received at a moment at which the source sends none.
    """
    if goal.position is not None:
        return is_applied(repositories, goal.position)
    if goal.state == "stopped":
        return not (threads.receiver.runs or threads.applier.runs)
    receiver, applier = threads.receiver, threads.applier
    if not (applier.runs and applier.silent_since is None and receiver.is_connected):
        return False
    if goal.state == "running":
        return True
    if end is not None:
        is_synced = is_reached(repositories, end)
    else:
        is_synced = receiver.status.state == WAITING and is_applied(repositories, receiver.status.read_position)
    if not is_synced:
        return False
    if is_held_by_applier(repositories.config, repositories.channel):  # only the applier can read the target
        return not applier.status.cloning
    from rplctl.command.show_clone import cloned  # loads SQLAlchemy

    return not any(row.is_open for row in cloned(repositories))


def _that_it_needs(goal: _Goal, threads: Threads, master: MasterInfo | None) -> ThreadReport | None:
    """Return the first thread that the condition needs and that will not continue by itself.

    Return None if there is no such thread. If a thread has stopped without an error, a wait for `running` continues,
    because somebody may start it.
    """
    if goal.state == "stopped":
        return None
    status, needed = threads.receiver.status, [threads.receiver, threads.applier]
    received = status.read_position
    if not received.log_name and master is not None:
        received = master.read_position
    if goal.position is not None and received.log_name and not received.is_before(goal.position):
        needed = [threads.applier]
    for thread in needed:
        may_start = goal.state == "running" and not thread.status.last_error
        if not thread.runs and not may_start:
            return thread
        if thread.silent_since is not None and thread.is_suspended:
            return thread
    return None


def _not_running(channel: Channel, dead: ThreadReport, executed: BinlogPosition) -> NotRunning:
    """Return the error for a thread that has stopped or is suspended: its own error and hint if it has one."""
    name = f" --channel {channel.name}" if channel.name else ""
    if dead.runs:
        text = f"the {dead.role} (process {dead.pid}) is suspended since {clock(dead.silent_since or 0.0)}"
        hint = (
            f"to continue the process, run: kill -CONT {dead.pid}\n"
            f"To replace the process, run: rplctl stop{name}; rplctl start{name}"
        )
        return NotRunning(text, errno=er.SLAVE_NOT_RUNNING, channel=channel.name, position=str(executed), hint=hint)
    error = dead.status.last_error
    text = f"the {dead.role} of channel '{channel.name}' stopped: {error}" if error else _NOT_RUNNING
    hint = dead.status.last_hint or f"to start it, run: rplctl start{name}"
    errno = dead.status.last_errno or er.SLAVE_NOT_RUNNING
    return NotRunning(text, errno=errno, channel=channel.name, position=str(executed), hint=hint)


def _held_up_by(threads: Threads, away: str) -> list[str]:
    """Return the reasons for which the condition is not met yet.

    These are an unreachable target, a thread with an error, and a silent or stopped thread. `away` is the error of a
    target that does not answer, or ''.
    """
    reasons = [f"the target: {away}"] if away else []
    for thread in (threads.receiver, threads.applier):
        status = thread.status
        if thread.runs and (status.last_error or thread.silent_since is not None):
            reasons.append(f"the {thread.role}: {status.state}{f': {status.last_error}' if status.last_error else ''}")
        elif not thread.runs:
            reasons.append(f"the {thread.role} does not run")
    return reasons
