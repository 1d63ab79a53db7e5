"""A target that is away is waited for, as the receiver waits for a source (CONNECT_RETRY, RETRY_COUNT).

Invariant: an outage of the target ends no applier before RETRY_COUNT does, whenever it begins: it is a crash of the
connection, so what follows begins as a start does, with the fence and with the position that is stored there. STOP
ends the wait at once. Lock waits and deadlocks are no outage: they have `replica_transaction_retries`.

    pauses     1 s for the first `replica_transaction_retries` attempts, then CONNECT_RETRY
    attempts   RETRY_COUNT in a row, 0 = without end; anything that the target took in between begins the count anew
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field

from rplctl.applier.apply.batch import KEEPS_CONNECTION, RETRY_PAUSE_SECONDS
from rplctl.applier.interrupt import Stopped
from rplctl.applier.report import Report
from rplctl.commit.ambiguous_commit import InDoubt
from rplctl.errors import TargetError
from rplctl.info import MasterInfo

log = logging.getLogger(__name__)


def is_away(error: BaseException) -> bool:
    """Whether the target may come back from it by itself: unreachable, shutting down, full, or gone in a COMMIT."""
    if isinstance(error, InDoubt):
        return True
    return isinstance(error, TargetError) and error.transient and error.errno not in KEEPS_CONNECTION


@dataclass(slots=True)
class TargetPatience:
    """`options`: CONNECT_RETRY and RETRY_COUNT; those of a new channel as long as they cannot be read."""

    stop: threading.Event
    report: Report
    quick_attempts: int
    options: MasterInfo = field(default_factory=MasterInfo)
    attempts: int = 0  # failed ones in a row
    lock_waits: int = 0  # of the start in work

    def worked(self) -> None:
        """The target took something, or was asked and answered while there was nothing to do."""
        self.attempts = self.lock_waits = 0
        self.report.target_is_back()

    def wait(self, error: TargetError) -> None:
        """One pause. Raises Stopped, and the error once RETRY_COUNT is used up."""
        if self.stop.is_set():
            raise Stopped from error
        self.attempts += 1
        most = self.options.retry_count
        if most and self.attempts > most:
            raise error
        pause = RETRY_PAUSE_SECONDS if self.attempts <= self.quick_attempts else float(self.options.connect_retry)
        self.report.target_is_away(error, pause, most)
        log.warning("the target is away: %s (%d), attempt %d of %s", error.message, error.errno, self.attempts, most)
        if self.stop.wait(pause):
            raise Stopped from error

    def wait_for_lock(self, error: TargetError) -> None:
        """One pause of a start that met another's lock. Raises Stopped, and the error as a batch does."""
        self.lock_waits += 1
        if self.lock_waits > self.quick_attempts:
            raise error
        log.warning("tried again in %g s: %s (%d)", RETRY_PAUSE_SECONDS, error.message, error.errno)
        if self.stop.wait(RETRY_PAUSE_SECONDS):
            raise Stopped from error
