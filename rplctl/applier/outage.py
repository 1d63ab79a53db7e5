"""Makes the applier wait for an unreachable target, as the receiver waits for a source (CONNECT_RETRY, RETRY_COUNT).

Invariant: an outage of the target ends an applier only after RETRY_COUNT attempts, no matter when the outage begins.
The applier handles the outage like a crash of the connection. It begins again as at a start: it takes the channel's
lock in the target (*fence*), and reads the position that the target has stored. A stop ends the wait at once. Lock
waits and deadlocks are not outages: `replica_transaction_retries` limits their attempts.

    pauses     1 s for the first `replica_transaction_retries` attempts, then CONNECT_RETRY
    attempts   RETRY_COUNT in a row, 0 = no limit; any success on the target resets the count
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from rplctl.applier.apply.batch import KEEPS_CONNECTION, RETRY_PAUSE_SECONDS
from rplctl.applier.interrupt import Stopped
from rplctl.applier.report import Report
from rplctl.commit.ambiguous_commit import InDoubt
from rplctl.commit.step import PositionStore, taken_over
from rplctl.errors import TargetError
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.sql_run import run
from rplctl.sql_text import written
from rplctl.target import dialect_of
from rplctl.target.base import Target

LOCK_POLL_S = 1.0
LOOK_S = 2.0  # between two polls of the target, while there is nothing to apply
log = logging.getLogger(__name__)


def is_away(error: BaseException) -> bool:
    """True if the cause of the error may disappear without the operator.

    This is so if the target is unreachable, shutting down or full, or if the connection was lost during a COMMIT.
    """
    if isinstance(error, InDoubt):
        return True
    return isinstance(error, TargetError) and error.transient and error.errno not in KEEPS_CONNECTION


@contextmanager
def lock_waits_shown(target: Target, report: Report, position: Callable[[], object]) -> Iterator[None]:
    """Show in the status for which lock of another session the applier waits, while the block runs.

    A thread asks the target every LOCK_POLL_S seconds, if the committed position has not changed in the meantime.
    `position`: returns this position.
    """
    ended, reporting = threading.Event(), threading.Lock()

    def watch() -> None:
        before: object = None
        while not ended.wait(LOCK_POLL_S):
            is_same, before = position() == before, position()
            with suppress(TargetError):  # the applier meets the same error
                words = target.lock_wait() if is_same and not report.status.is_waiting else ""
                with reporting:
                    if not ended.is_set():  # a late answer would be wrong in the status of an applier that has ended
                        report.lock_waits(words)

    thread = threading.Thread(target=watch, name="rplctl-locks", daemon=True)
    thread.start()
    try:
        yield
    finally:
        with reporting:
            ended.set()


class TargetPoll:
    """Polls the target while there is nothing to apply, so that the status is true.

    The status may show "0 seconds behind" only if the target answers, and if no other applier has taken over the
    channel (design D22, D4). Only servers are polled: another process cannot take a file from the process that has the
    file open.
    """

    def __init__(self, target: Target, store: PositionStore) -> None:
        self._target, self._store = target, store
        dialect = dialect_of(target.engine.dialect.name)
        self._is_asked = not (dialect.is_one_file or dialect.commits_per_table)
        self._due = time.monotonic() + LOOK_S

    def look(self, info: RelayLogInfo) -> None:
        """Poll the target if LOOK_S seconds have passed since the last poll.

        Raises TargetError if the connection is lost, and LockBusy if another process has moved the stored position.
        """
        if not self._is_asked or time.monotonic() < self._due:
            return
        target = self._target
        target.begin(foreign_keys=True)
        try:
            with target.mapped_errors():
                run(target.connection, written("SELECT 1"))
            stored = self._store.stored(target.connection)
        finally:
            target.rollback()
        if stored is not None and not stored.is_at(info):
            raise taken_over(info)
        self._due = time.monotonic() + LOOK_S


@dataclass(slots=True, kw_only=True)
class TargetPatience:
    """Waits after errors of the target, and counts the failed attempts of one run.

    `options`: the record with CONNECT_RETRY and RETRY_COUNT. Until the record can be read, it has the defaults.
    """

    stop: threading.Event
    report: Report
    quick_attempts: int
    options: MasterInfo = field(default_factory=MasterInfo)
    attempts: int = 0  # failed attempts in a row
    lock_waits: int = 0  # during the current start

    def worked(self) -> None:
        """Reset the counts of failed attempts, because the target has executed a write or answered a poll."""
        self.attempts = self.lock_waits = 0
        self.report.target_is_back()

    def wait(self, error: TargetError) -> None:
        """Wait for one pause after `error`.

        Raises Stopped after a stop, and `error` itself if RETRY_COUNT attempts have failed.
        """
        if self.stop.is_set():
            raise Stopped from error
        self.attempts += 1
        most = self.options.retry_count
        if most and self.attempts > most:
            raise error
        pause = RETRY_PAUSE_SECONDS if self.attempts <= self.quick_attempts else float(self.options.connect_retry)
        self.report.target_is_away(error, pause, most)
        log.warning(
            "cannot reach the target: %s (%d), attempt %d of %s", error.message, error.errno, self.attempts, most
        )
        if self.stop.wait(pause):
            raise Stopped from error

    def wait_for_lock(self, error: TargetError) -> None:
        """Wait for one pause, because a lock of another session prevents the start of the applier.

        Raises Stopped after a stop, and `error` itself after `replica_transaction_retries` waits.
        """
        self.lock_waits += 1
        if self.lock_waits > self.quick_attempts:
            raise error
        log.warning("the next attempt is in %g s: %s (%d)", RETRY_PAUSE_SECONDS, error.message, error.errno)
        if self.stop.wait(RETRY_PAUSE_SECONDS):
            raise Stopped from error
