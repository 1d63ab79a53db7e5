"""Run the threads of a channel while `verify` or `repair` needs them, if the channel is stopped or cron runs it.

Some targets can be open in only one process. While the applier has such a target open, the target cannot be compared.
So the channel is first synced, as by `start --until-synced`. Then the applier is kept stopped while the receiver runs.

Invariants: a thread that was started here ends with the block, and other threads keep running. If somebody stops a
thread during the block, it is not started again. The exception is a channel that cron runs, because its runs end by
themselves.
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

_PATIENCE_S: Final = 120.0  # seconds to wait for another command, or for a run from cron, which may take a minute
_POLL_S: Final = 0.1


class BroughtUp:
    """The threads that a command has started for its own work.

    `is_unchanging` is True if the applier is kept stopped, so that the target does not change.
    """

    def __init__(self, config: Config, channel: Channel) -> None:
        self._config, self._channel, self._lock = config, channel, Lock()
        self._own: list[Child] = []
        self.is_unchanging = dialect_of(target_kind(config.target_place)).is_held

    @property
    def has_begun_some(self) -> bool:
        return bool(self._own)

    def run(self) -> None:
        """Start the threads of the channel that do not run yet. If `is_unchanging`, start only the receiver.

        Raises the errors of `start`.
        """
        roles = (RECEIVER,) if self.is_unchanging else ROLES
        if not set(roles).issubset(running(self._channel)):
            self._own += bring_up(self._config, self._channel.name, StartRequest(roles=roles, is_passing=True))[1]

    def keep(self) -> None:
        """Start the threads again if a run from cron has stopped them. Call this from time to time during the block.

        Raises the error of a thread that this command has started and that has failed.
        """
        with self._lock:
            codes = [(child, child.exit_code()) for child in self._own]
            for child, code in codes:
                if code:
                    raise error_of(child, code)
            was_stopped = any(code == 0 for _, code in codes)
            if not was_stopped and runs_from_cron(self._config, read_sync_record(self._channel)):
                try:
                    self.run()
                except LockBusy:  # another command is starting or stopping the threads
                    return

    def end(self) -> None:
        """Stop the threads that this command has started, the receiver first."""
        for child in sorted(self._own, key=lambda child: child.role != RECEIVER):
            if child.exit_code() is None:
                terminate(child)


@contextmanager
def brought_up(config: Config, channel: Channel) -> Iterator[BroughtUp]:
    """Start the threads of the channel that do not run, yield them, and stop them after the block.

    Raises NotRunning if the channel has never applied anything, because then there is no copy to compare. Raises
    TargetError 1205 if an applier has the target's file open, StoppedEarly at SIGTERM, and the errors of `start`.
    """
    _refuse_nothing_applied(channel)
    threads = BroughtUp(config, channel)
    with ended_by_signals(channel.name, "while another command needed its threads"), ExitStack() as held:
        held.callback(threads.end)
        deadline = time.monotonic() + _PATIENCE_S
        is_synced = False  # True after this command has synced, or has waited for a run from cron, which syncs
        while True:
            try:
                if not threads.is_unchanging:
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
def threads_unchanged(config: Config, channel: Channel) -> Iterator[bool]:
    """Start and stop no thread, for a dry run. Yield True if no applier runs or can be started within the block.

    Then the target does not change. Raises LockBusy if another command holds the channel's lock, and TargetError 1205
    if an applier has the target's file open. Raises NotRunning if the channel has never applied anything.
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
            hint=for_channel("to apply and to copy, run: rplctl start", channel.name),
        )


def _is_open(config: Config, channel: Channel, commands: str) -> TargetError:
    pid = running(channel).get(APPLIER)
    text = f"the target {config.target_place} is open in the applier of channel '{channel.name}' (process {pid})"
    hint = for_channel(f"to use the target while the applier is stopped, run: {commands}", channel.name)
    return TargetError(text, errno=er.LOCK_WAIT_TIMEOUT, channel=channel.name, hint=hint)


def _wait_for_cron(config: Config, channel: Channel, deadline: float) -> bool:
    """Wait until no applier has the target's file open. Return True if an applier of a run from cron had it open.

    Raises TargetError 1205 if the applier does not end before `deadline`, or if cron does not run the channel.
    """
    has_waited = False
    while is_held_by_applier(config, channel):
        if not runs_from_cron(config, read_sync_record(channel)) or time.monotonic() > deadline:
            raise _is_open(config, channel, "rplctl stop; rplctl verify; rplctl start")
        time.sleep(_POLL_S)
        has_waited = True
    return has_waited
