"""Wait for a started channel, for `start --foreground` (systemd, containers) and `start --until-synced` (cron).

The wait ends at one of these events:

* The position is reached.
* A thread fails.
* The time is up.
* Another command stops the channel.
* SIGTERM or SIGINT arrives.

Then the threads that this command has started are stopped, and other threads keep running. After SIGINT, this module
raises KeyboardInterrupt, and its cause is the error that SIGTERM would have raised.

Invariant: a position is reported as reached only after a check (design D22). Any other end is an error. The error has
an exit code of its own if somebody stopped the channel.
"""

from __future__ import annotations

import signal
import time
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from rplctl.channel import Channel
from rplctl.command.channel.context import APPLIER, RECEIVER, open_repositories, running
from rplctl.command.channel.position_applied import is_reached
from rplctl.command.check.source_end import SourceEnd
from rplctl.command.process.child import Child, error_of, terminate
from rplctl.command.process.service import Service
from rplctl.config import Config
from rplctl.errors import LockBusy, NotRunning, RplError, StoppedEarly, TargetError, WaitTimeout
from rplctl.history import note_event
from rplctl.hook import wait_for_hooks
from rplctl.incident import Incident
from rplctl.own_process import signal_name, signals_to
from rplctl.position import BinlogPosition
from rplctl.status import AWAY, ThreadStatus, read_status

if TYPE_CHECKING:
    from rplctl.command.process.start_request import Progress

_POLL_S = 0.1
_LAST_LOOK_S = 0.5  # seconds after the receiver's end until the applier's status includes all received events


class Ending(StrEnum):
    """The ways in which the wait ends. `start --json` prints these words."""

    REACHED = "reached"
    STOPPED = "stop"  # by `rplctl stop`, or a signal to the thread itself
    SIGNALLED = "signal"
    TIME_UP = "max-time"


@dataclass(slots=True)
class SupervisedRun:
    """A started channel for which `start` waits.

    `wanted` is the end of the source's log that the channel must reach. If it is None, the channel runs until it is
    stopped or reaches its UNTIL condition.
    """

    config: Config
    channel: Channel
    children: list[Child]
    wanted: SourceEnd | None
    has_until: bool = False
    service: Service = field(default_factory=Service)
    receiver_gone_at: float = 0.0  # Unix seconds; 0 while a receiver runs
    held_up: str = ""  # another reason for waiting, for the error if the position is not reached

    @property
    def goal(self) -> str:
        """The goal of the run as words in a message. The value is '' if the channel runs until it is stopped."""
        return str(self.wanted.position) if self.wanted else "its UNTIL" if self.has_until else ""


def supervise(run: SupervisedRun, max_time_s: float | None, progress: Progress | None) -> Ending:
    """Wait until the run ends, stop the threads of this command, and return how the run ended.

    Raises the error of a thread that failed, and WaitTimeout or StoppedEarly if the goal was not reached. After SIGINT,
    raises KeyboardInterrupt with such an error as its cause.
    """
    deadline = time.monotonic() + max_time_s if max_time_s is not None else None
    caught: list[int] = []
    with signals_to(lambda number, _: caught.append(number), signal.SIGTERM, signal.SIGINT):
        try:
            ending = _stay(run, deadline, progress, caught)
        finally:
            run.service.say(STOPPING="1")
            for child in sorted(run.children, key=lambda child: child.role != RECEIVER):
                if child.exit_code() is None:
                    terminate(child)
            wait_for_hooks(run.channel.datadir)
    if caught:
        note_event(run.config.datadir, run.channel.name, "stop", signal_name(caught[0]))
    early: RplError | None = None
    if run.goal and ending is not Ending.REACHED:
        early = None if _is_reached(run) else _not_reached(run, ending, max_time_s or 0, caught)
        ending = Ending.REACHED
    if signal.SIGINT in caught:
        raise KeyboardInterrupt from early
    if early is not None:
        raise early
    return ending


def _stay(run: SupervisedRun, deadline: float | None, progress: Progress | None, caught: list[int]) -> Ending:
    while not caught:
        ending = _ending(run)
        if ending is not None:
            return ending
        if deadline is not None and time.monotonic() > deadline:
            return Ending.TIME_UP
        run.service.look(run.channel, run.children)
        applier = read_status(run.channel.status_path(APPLIER))
        is_away = applier.state.startswith(AWAY)
        run.held_up = f"; the applier: {applier.state}: {applier.last_error}" if is_away else ""
        if progress and run.wanted is not None:
            progress(applier.exec_position, run.wanted.position)  # the applier's status file, ten times a second
        time.sleep(_POLL_S)
    return Ending.SIGNALLED


def _ending(run: SupervisedRun) -> Ending | None:
    """Return how the run has ended. Return None while it continues.

    Raises the error of a thread that failed. Raises LockBusy if the applier belongs to another command, which has
    stopped it before the goal.
    """
    for child in run.children:
        code = child.exit_code()
        if code:
            error = error_of(child, code)
            if code < 0:  # killed by a signal, so it could not report the error itself
                _tell_killed(run.config, child, error)
            raise error
        if code == 0 and (child.role == APPLIER or len(run.children) == 1):
            return Ending.STOPPED  # or at its goal, which `supervise` checks
    if run.wanted is None:
        return None
    is_own = any(child.role == APPLIER for child in run.children)
    if not is_own and APPLIER not in running(run.channel):
        status = read_status(run.channel.status_path(APPLIER))
        if status.last_error:
            number, hint = status.last_errno, status.last_hint
            raise NotRunning(status.last_error, errno=number, channel=run.channel.name, hint=hint)
        if _is_synced(run, run.wanted):
            return Ending.REACHED
        raise LockBusy(  # for example, a `verify` had started the applier; cron tries again a minute later
            f"another command stopped the applier of channel '{run.channel.name}'",
            channel=run.channel.name,
            hint="to continue, run: rplctl start --until-synced",
        )
    if run.wanted.is_comparable and is_own:
        return Ending.STOPPED if _cannot_come(run) else None  # the applier ends by itself at the goal
    try:
        if _is_synced(run, run.wanted):
            return Ending.REACHED
    except TargetError as error:
        if not error.transient:
            raise
        return None  # the applier waits until the target answers again
    return Ending.STOPPED if _cannot_come(run) else None


def _tell_killed(config: Config, child: Child, error: RplError) -> None:
    incident = Incident(child.channel, child.role, config)
    incident.begins(ThreadStatus())
    incident.ends(error, ThreadStatus(), error.hint)


def _cannot_come(run: SupervisedRun) -> bool:
    """True if the goal cannot be reached any more, because no receiver runs and everything received is applied.

    False while this command's own receiver is ending: its exit code will show whether this is an error.
    """
    if RECEIVER in running(run.channel) or any(
        child.role == RECEIVER and child.exit_code() is None for child in run.children
    ):
        run.receiver_gone_at = 0.0
        return False
    if not run.receiver_gone_at:  # The receiver may have ended after `_ending` read its exit code. Read it once more.
        run.receiver_gone_at = time.time()
        return False
    status = read_status(run.channel.status_path(APPLIER))
    return status.is_waiting and status.remaining_delay is None and status.worked > run.receiver_gone_at + _LAST_LOOK_S


def _is_reached(run: SupervisedRun) -> bool:
    """True if the run has reached its goal. The caller has stopped the threads that this command had started."""
    own = [child for child in run.children if child.role == APPLIER]
    status = read_status(run.channel.status_path(APPLIER))
    if own and status.is_done and status.updated >= own[0].started:
        return True
    try:
        return run.wanted is not None and _is_synced(run, run.wanted)
    except RplError:  # the target does not answer
        return False


def _not_reached(run: SupervisedRun, ending: Ending, max_time_s: float, caught: list[int]) -> RplError:
    name, at = run.channel.name, str(position_at_end(run.config, run.channel))
    hint = "to continue from this position, run: rplctl start"
    if ending is Ending.TIME_UP:
        text = f"channel '{name}' is not at {run.goal} after {round(max_time_s, 1):g} s{run.held_up}"
        return WaitTimeout(text, channel=name, position=at, hint=hint)
    by_signal = "SIGINT" if signal.SIGINT in caught else "SIGTERM"
    who = by_signal if ending is Ending.SIGNALLED else "rplctl stop"
    text = f"channel '{name}' was stopped by {who} before it was at {run.goal}{run.held_up}"
    error = StoppedEarly(text, channel=name, position=at, hint=hint)
    error.by_signal = ending is Ending.SIGNALLED
    return error


def _is_synced(run: SupervisedRun, wanted: SourceEnd) -> bool:
    """True if the applier has reached the wanted end of the source's log.

    The stored position decides, and not the status of the thread.
    """
    return is_reached(open_repositories(run.config, run.channel.name), wanted)


def position_at_end(config: Config, channel: Channel) -> BinlogPosition:
    """Return the last position of the applier: from its status file, or else from the repository."""
    at = read_status(channel.status_path(APPLIER)).exec_position
    if at.log_name:
        return at
    with suppress(RplError):  # the target does not answer
        return open_repositories(config, channel.name).relay().exec_position
    return at
