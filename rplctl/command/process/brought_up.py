"""Threads for as long as another command needs them: `verify` and `repair` of a channel that is stopped or run by cron.

A target that only one process opens cannot be compared while the applier has it. There the channel is brought to the
source's end as `start --until-synced` does it, and then the applier is kept out while the receiver goes on.
Invariants: what was begun here ends with the block, and what others began goes on. A thread that somebody stops
meanwhile is not begun again, unless cron runs the channel: there each run ends by itself.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock
from typing import Final

from rplctl import mysql_errors as er
from rplctl.channel import Channel, hold_lock
from rplctl.command.channel.context import ADMIN, APPLIER, RECEIVER, ROLES, is_held_by_applier, running
from rplctl.command.check.sync_record import read_sync_record, runs_from_cron
from rplctl.command.process.child import Child, error_of, terminate
from rplctl.command.process.start_request import StartRequest
from rplctl.command.start import bring_up, ended_by_signals, start
from rplctl.config import Config
from rplctl.errors import LockBusy, NotRunning, TargetError, for_channel
from rplctl.status import read_status
from rplctl.target import dialect_of, target_kind

_PATIENCE_S: Final = 120.0  # for a run of cron to end, which may take a minute, or another command
_POLL_S: Final = 0.1


class BroughtUp:
    """`holds_still`: the applier is kept out, and the target stays where it is."""

    def __init__(self, config: Config, channel: Channel) -> None:
        self._config, self._channel, self._lock = config, channel, Lock()
        self._own: list[Child] = []
        self.holds_still = dialect_of(target_kind(config.target_place)).is_held

    @property
    def has_begun_some(self) -> bool:
        return bool(self._own)

    def run(self) -> None:
        """Begin the threads that do not run. Raises what `start` does."""
        roles = (RECEIVER,) if self.holds_still else ROLES
        if not set(roles).issubset(running(self._channel)):
            self._own += bring_up(self._config, self._channel.name, StartRequest(roles, is_passing=True))[1]

    def keep(self) -> None:
        """Begin again what a run of cron ended. Raises the error of a thread that was begun here and failed."""
        with self._lock:
            codes = [(child, child.exit_code()) for child in self._own]
            for child, code in codes:
                if code:
                    raise error_of(child, code)
            was_stopped = any(code == 0 for _, code in codes)
            if not was_stopped and runs_from_cron(self._config, read_sync_record(self._channel)):
                try:
                    self.run()
                except LockBusy:  # another command begins or ends them now
                    return

    def end(self) -> None:
        """Stop what was begun here, the receiver first."""
        for child in sorted(self._own, key=lambda child: child.role != RECEIVER):
            if child.exit_code() is None:
                terminate(child)


@contextmanager
def brought_up(config: Config, channel: Channel) -> Iterator[BroughtUp]:
    """Raises what `start` does, StoppedEarly at SIGTERM, TargetError 1205 while an applier has the target's file, and
    NotRunning for a channel whose applier has never run: a command that compares makes no copy.
    """
    _refuse_nothing_applied(channel)
    threads = BroughtUp(config, channel)
    with ended_by_signals(channel.name, "while another command needed its threads"), ExitStack() as held:
        held.callback(threads.end)
        deadline = time.monotonic() + _PATIENCE_S
        is_synced = False  # by us, or by a run of cron that we have waited for
        while True:
            try:
                if not threads.holds_still:
                    threads.run()
                    break
                is_synced = _wait_for_cron(config, channel, deadline) or is_synced
                if not is_synced:
                    start(config, channel.name, StartRequest(until_synced=True, is_passing=True))
                    is_synced = True
                threads.run()
                lock = held.enter_context(ExitStack())
                lock.enter_context(hold_lock(channel, ADMIN))  # nobody starts an applier now
                if set(running(channel)) == {RECEIVER}:
                    break
                lock.close()
            except LockBusy:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_POLL_S)
        yield threads


@contextmanager
def left_as_it_is(config: Config, channel: Channel) -> Iterator[bool]:
    """Nothing is started or stopped, for a dry run. True if no applier runs, nor is started for the length of the
    block: the target holds still. Raises LockBusy, NotRunning as `brought_up`, TargetError 1205 while an applier has
    the target's file.
    """
    _refuse_nothing_applied(channel)
    with ExitStack() as held:
        if APPLIER not in running(channel):
            held.enter_context(hold_lock(channel, ADMIN))
        if is_held_by_applier(config, channel):
            raise _is_open(config, channel, "rplctl stop --applier; rplctl repair --dry-run; rplctl start")
        yield APPLIER not in running(channel)


def _refuse_nothing_applied(channel: Channel) -> None:
    if APPLIER not in running(channel) and not read_status(channel.status_path(APPLIER)).has_applied:
        raise NotRunning(
            f"channel '{channel.name}' has applied nothing yet, so there is no copy to compare",
            hint=for_channel("rplctl start", channel.name),
        )


def _is_open(config: Config, channel: Channel, commands: str) -> TargetError:
    pid = running(channel).get(APPLIER)
    text = f"the target {config.target_place} is open in the applier of channel '{channel.name}' (process {pid})"
    hint = for_channel(commands, channel.name)
    return TargetError(text, errno=er.LOCK_WAIT_TIMEOUT, channel=channel.name, hint=hint)


def _wait_for_cron(config: Config, channel: Channel, deadline: float) -> bool:
    """Until no applier has the file; True if one had it. Raises TargetError 1205 for one that stays."""
    has_waited = False
    while is_held_by_applier(config, channel):
        if not runs_from_cron(config, read_sync_record(channel)) or time.monotonic() > deadline:
            raise _is_open(config, channel, "rplctl stop; rplctl verify; rplctl start")
        time.sleep(_POLL_S)
        has_waited = True
    return has_waited
