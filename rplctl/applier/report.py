"""Writes the applier's status file, which `show-status` reads, at each change of state and periodically.

If an applier keeps up with its source, its state changes with each transaction, and again when it waits for the next
transaction. These changes are written at most a few times a second, and once when a wait is long (`rests`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from rplctl import mysql_errors as er
from rplctl.applier.feed.plan import Batch
from rplctl.applier.options import UNTIL_KINDS, Until
from rplctl.applier.spark.pipeline import Pipeline
from rplctl.applier.way_out import way_out
from rplctl.channel import Channel
from rplctl.commit.belonging import UnfitTarget
from rplctl.config import Config
from rplctl.errors import RplError
from rplctl.incident import Incident
from rplctl.info import RelayLogInfo
from rplctl.status import AWAY, PATIENCE_S, StatusFile, ThreadStatus, read_status
from rplctl.target.registry import dialect_of, target_kind

INTERVAL = 0.2  # seconds
IDLE_INTERVAL = 5.0  # seconds, while the applier waits

STARTING = "Starting Spark"
READING = "Reading event from the relay log"
WAITING = "Slave has read all relay log; waiting for more updates"
LOCKED = "Waiting for global read lock"
DELAYING = "Waiting until MASTER_DELAY seconds after master executed event"

log = logging.getLogger(__name__)


def log_error(error: RplError) -> int:
    """Log the error with which the applier stopped, and return the exit code."""
    where = f" (at {error.position})" if error.position else ""
    unforeseen = type(error) is RplError and not error.transient  # a full disk is an expected error
    log.error("%s%s", error.message, where, exc_info=error.__cause__ if unforeseen else None)
    return error.exit_code


class Report:
    """The status of one run of the applier, and the file with this status.

    A start clears the last error, as START REPLICA does. `copies`: False for a lake, whose tables cannot be copied
    again.
    """

    def __init__(self, channel: Channel, status: ThreadStatus, incident: Incident, *, copies: bool = True) -> None:
        self._channel = channel.name
        self.is_away = False
        self._before_waiting = ""  # the state that `spark_waits` has replaced by its words
        self._lock_words = READING  # the last state that `lock_waits` has shown
        self._incident = incident
        self._copies = copies
        self.status = status
        self._file = StatusFile(channel.status_path("applier"), status, PATIENCE_S)

    @classmethod
    def open(cls, channel: Channel, until: Until, config: Config | None = None) -> Report:
        """Return the report of a new run, and write the status "Starting Spark" to its file."""
        before, incident = read_status(channel.status_path("applier")), Incident(channel, "applier", config)
        incident.begins(before)
        status = ThreadStatus(
            state=STARTING,
            last_event_timestamp=before.last_event_timestamp,
            last_applied_timestamp=before.last_applied_timestamp,
            heartbeats=before.heartbeats,
            exec_log_name=before.exec_log_name,  # until `at` is called, to show that transactions were applied
            exec_log_pos=before.exec_log_pos,
            executed_gtid_set=before.executed_gtid_set,
            until_condition=UNTIL_KINDS[until.kind],
            until_log_name=until.log_name,
            until_log_pos=until.log_pos,
        )
        copies = config is None or not dialect_of(target_kind(config.target_place)).commits_per_table
        report = cls(channel, status, incident, copies=copies)
        report.write()
        return report

    def pulse(self) -> AbstractContextManager[None]:
        """Rewrite the status file periodically while the block runs, so that it stays fresh during a long batch."""
        return self._file.pulse()

    def at(self, info: RelayLogInfo) -> None:
        status = self.status
        status.relay_log_name, status.relay_log_pos = info.relay_log_name, info.relay_log_pos
        status.exec_log_name, status.exec_log_pos = info.master_log_name, info.master_log_pos
        status.executed_gtid_set = info.gtid_executed

    def applied(self, info: RelayLogInfo, batch: Batch, changes: int) -> None:
        self.at(info)
        self.status.batches += 1
        self.status.transactions += batch.transaction_count
        self.status.row_changes += changes
        self._incident.gone()
        self.status.last_applied_timestamp = batch.last_timestamp or self.status.last_applied_timestamp
        self.state(READING)

    def to_skip(self, count: int) -> None:
        """Set the number of transactions that are still to be skipped. If it has changed, write the status at once."""
        if count != self.status.skip_counter:
            self.status.skip_counter = count
            self.write()

    def decoded(self, pipeline: Pipeline, rows_by_spark: int, rows_by_driver: int) -> None:
        """Count the committed rows of a batch or copy, by the process that decoded them.

        `rows_by_spark`: rows that Spark tasks decoded. `rows_by_driver`: rows that this process decoded.
        """
        self.status.rows_by_spark += rows_by_spark
        self.status.rows_by_driver += rows_by_driver
        self.spark(pipeline)

    def spark(self, pipeline: Pipeline) -> None:
        """Set the fields about Spark itself. With spark=auto, Spark starts while the applier already works."""
        status = self.status
        status.spark_jobs, status.small_jobs = pipeline.spark_jobs, pipeline.small_jobs
        status.spark_workers, status.spark_job = pipeline.workers, pipeline.job_name

    def begins(self, batch: Batch) -> None:
        """Report that a batch begins. Seconds_Behind_Master is then the age of its first transaction, as in MySQL."""
        self.status.last_event_timestamp = batch.first_timestamp or self.status.last_event_timestamp
        self.state(READING)

    def counted(self, retried: int, passed_over: int) -> None:
        """Set the numbers of retries and of skipped errors. If a number has changed, the status is written at once."""
        status = self.status
        if (retried, passed_over) != (status.retried_transactions, status.passed_over_errors):
            status.retried_transactions, status.passed_over_errors = retried, passed_over
            self.write()

    def waiting(self, *, is_cloning: bool = False) -> None:
        """Report that there is nothing to apply now.

        The relay log is applied completely or, with `is_cloning`, up to the position at which the next rows of a copy
        are loaded.
        """
        if not is_cloning:
            self.status.last_event_timestamp = 0
        self._incident.gone()
        self.state(WAITING)

    def cloning(self, progress: Mapping[str, Any]) -> None:
        """Set the status fields about a copy of tables, which `show-status` shows as the state of the applier."""
        for name, value in progress.items():
            setattr(self.status, name, value)
        self._file.write_if_older(INTERVAL)

    def delaying(self, timestamp: int, remaining_s: int) -> None:
        """Report that the delay (MASTER_DELAY) holds back a transaction.

        `timestamp`: the Unix time of this transaction, whose age is Seconds_Behind_Master. `remaining_s`: seconds until
        the transaction is due.
        """
        self.status.last_event_timestamp = timestamp
        self.state(DELAYING, remaining_s)

    def state(self, words: str, remaining_delay: int | None = None) -> None:
        """Set the state of the thread. A new state is written at once, except if "reading" and "waiting" alternate.

        `remaining_delay`: the seconds until a delayed transaction is due, or None if no transaction is delayed.
        """
        before = self.status.state
        self.status.state, self.status.remaining_delay = words, remaining_delay
        self.status.is_waiting = words in (WAITING, DELAYING)
        if words != before and {words, before} != {READING, WAITING}:
            self.write()
        else:
            self._file.write_if_older(IDLE_INTERVAL if words == before == WAITING else INTERVAL)

    def rests(self) -> None:
        """Write the status file if it has changed. The applier calls this during a long wait for transactions."""
        self._file.write_if_changed()

    def lock_waits(self, words: str) -> None:
        """Show `words` as the state: the lock for which the applier waits on the target, or '' if it no longer waits.

        A thread other than the applier's calls this method.
        """
        if self.status.state in (READING, self._lock_words):
            self._lock_words = words or READING
            self.state(self._lock_words)

    def spark_waits(self, words: str) -> None:
        """Show `words` about Spark in place of the state, or the state again if `words` is ''.

        A thread other than the applier's calls this method.
        """
        if words:
            self._before_waiting = self._before_waiting or self.status.state
            self.state(words)
        elif self._before_waiting:
            self.state(self._before_waiting)
            self._before_waiting = ""

    def done(self) -> None:
        """Report that the applier ends by itself, because the UNTIL condition is met or the applier is synced."""
        self.status.is_done = True

    def target_is_away(self, error: RplError, pause_s: float, most: int) -> None:
        """Report that the target is unreachable, in the words that MySQL's receiver uses for its source.

        `pause_s`: seconds until the next attempt. `most`: the limit of attempts.
        """
        text = f"error connecting to the target - retry-time: {pause_s:g}  maximum-retries: {most}  message: "
        self._error(error, text)
        self._incident.lasts(error, self.status)
        self.is_away = True
        self.state(AWAY)
        self.write()

    def target_is_back(self) -> None:
        """Clear the error of an outage, because the target can be reached again."""
        if self.is_away:
            self.is_away = False
            status = self.status
            status.last_errno, status.last_error, status.last_hint, status.last_error_timestamp = 0, "", "", 0.0
            self.write()

    def failed(self, error: RplError) -> None:
        """Report the error that ends the applier, with its hint."""
        error.channel = error.channel or self._channel
        error.hint = way_out(error, copies=self._copies)
        self.status.target_state = error.state if isinstance(error, UnfitTarget) else ""
        self._error(error)
        self._incident.ends(error, self.status, error.hint)

    def _error(self, error: RplError, beginning: str = "") -> None:
        self.status.last_errno = error.errno or er.UNKNOWN_ERROR
        self.status.last_error, self.status.last_hint = beginning + error.message, error.hint
        self.status.last_error_timestamp = time.time()

    def stopped(self) -> None:
        self.status.state, self.status.remaining_delay, self.status.is_waiting = "", None, False
        self.write()

    def write(self) -> None:
        self._file.write()
