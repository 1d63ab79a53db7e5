"""The applier's loop on one connection to the target, which reads the relay logs and applies them batch by batch.

Invariant: the target contains each transaction before the stored position exactly once, and no transaction after it.
The loop ends exactly at the UNTIL condition.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from contextlib import closing, suppress
from functools import partial

from rplctl.applier.apply.failover_position import enter_new_source
from rplctl.applier.copying import Copying, Hold, Idle, Loaded
from rplctl.applier.feed.plan import Batch, BatchKind, groups_due, plan_batches, skipped_first
from rplctl.applier.feed.prefetch import Prefetch
from rplctl.applier.feed.relay_feed import RelayFeed
from rplctl.applier.feed.relay_watch import POLL_S
from rplctl.applier.feed.until import groups_before, is_met
from rplctl.applier.options import Until
from rplctl.applier.outage import TargetPoll
from rplctl.applier.run import Connection, Run
from rplctl.applier.spark.failure import TasksFailed
from rplctl.applier.spark.splits import SMALLEST_SPLIT
from rplctl.commit.position_store import name_source
from rplctl.errors import BinlogFormatError, RelayLogError, RplError
from rplctl.event.gtid import has_reached
from rplctl.info import MasterInfo
from rplctl.locks import InstanceLock
from rplctl.relay_log.purge import purge_applied
from rplctl.relay_log.reader import RelayGroups
from rplctl.repository.base import InfoRepository
from rplctl.source_zones import SourceZones
from rplctl.status import read_status

LONGEST_WAIT_SECONDS = 0.5  # between two checks of the delay
log = logging.getLogger(__name__)


class Loop:
    """The applier's loop on one connection to the target.

    `follow` runs the loop. `close` ends the threads that read the relay log in advance or load rows of a copy.
    """

    def __init__(self, run: Run, connection: Connection) -> None:
        self._run, self._work, self._spark = run, connection.work, connection.spark
        self._store, self._target = connection.store, connection.target
        master, patience_s = run.patience.options, run.config.replica_net_timeout
        by_gtid, zones = master.uses_gtid, SourceZones(run.channel, run.config)
        place = partial(_source_place, connection.master_info)
        self._feed = RelayFeed(run.channel, patience_s, by_gtid=by_gtid, source_place=place, zones=zones)
        self._ahead: Prefetch[RelayGroups | None] = Prefetch(RelayLogError)
        self._copying = Copying(run, connection)
        self._look = TargetPoll(self._target, self._store)
        self._purged_to = self._work.info.relay_log_name
        self._is_held = False  # True if the next group is not permitted by UNTIL
        self._is_named = False  # True if the target has the source's name

    def close(self) -> None:
        self._ahead.close()
        self._copying.close()

    def follow(self) -> None:
        """Apply batches until a stop is requested or the UNTIL condition is met. Raises RplError if a batch fails."""
        while not self._run.stop.is_set() and not self._is_finished():
            self._run.woken.clear()
            copy = self._copying.poll()
            if isinstance(copy, Loaded):
                continue
            if isinstance(copy, Idle):  # the start of Spark would take a core from the copy for seconds
                self._spark.begin()
            groups = self._next_groups(copy)
            batch, wait = None, 0.0
            try:
                batches, wait = self._ready(groups, copy.until if isinstance(copy, Hold) else Until())
                for batch in batches:
                    if self._run.stop.is_set() or not self._carry_out(batch, groups):
                        return
            except BinlogFormatError as error:
                self._ahead.take(self._feed)  # discards groups that were read after the damage
                self._feed.damaged(self._work.info, error)
                self._run.stop.wait(POLL_S)
            if groups is not None and (batch is None or batch.last < len(groups.scan)):
                self._feed.rewind()  # UNTIL or the delay holds back the remaining groups
            if batch is None:
                self._rest(wait, is_cloning=isinstance(copy, Hold))
            self._purge_applied()

    def _next_groups(self, copy: Hold | Idle) -> RelayGroups | None:
        """Return the next groups (transactions) of the relay logs.

        Return None if there are none, or if rows of a copy must be loaded first. `copy`: the state of the copy.
        """
        comes_first = isinstance(copy, Hold) and copy.is_reached and self._run.options.until == Until()
        groups = self._ahead.take(self._feed)
        if groups is None and not comes_first:
            groups = self._feed.next(self._work.info, self._work.bulk.size.batch_bytes)
        if groups is None:
            self._look.look(self._work.info)
            self._run.patience.worked()
        elif not self._is_named:  # groups prove that the receiver has connected
            name_source(self._store, self._run.config, self._run.channel, self._target.engine)
            self._is_named = True
        return groups

    def _ready(self, groups: RelayGroups | None, copy: Until) -> tuple[Iterable[Batch], float]:
        """Return the batches that may be applied now, and the seconds to wait if there are none.

        The UNTIL condition, the delay (MASTER_DELAY) and the copy of tables limit the batches. `copy`: a condition at
        which the applier must wait for rows of the copy.
        """
        if groups is None:
            self._run.report.waiting(is_cloning=copy != Until())
            return [], 0.0
        executed = self._work.info.gtid_executed
        count = groups_before(groups, self._run.options.until, executed)
        self._is_held = not count
        count = min(count, groups_before(groups, copy, executed))
        due, wait = self._due(groups, count)
        due = max(due, skipped_first(groups, count, self._run.skips.count))  # on a server, no delay applies to them
        if wait > 0 and not due:
            self._run.report.delaying(int(groups.scan.timestamp[due]), int(wait) + 1)
        plan = plan_batches(
            groups,
            due,
            self._run.skips.count,
            skipped=self._run.skips.groups(groups, due, executed),
            has_rollbacks=self._work.executes_statements,
            per_commit=self._run.commit_group.transactions,
        )
        return plan, wait

    def _due(self, groups: RelayGroups, count: int) -> tuple[int, float]:
        """Return how many of the first `count` groups the delay permits, and the seconds until it permits the next one.

        The delay (MASTER_DELAY) is measured by the source's clock.
        """
        delay, receiver = self._work.info.sql_delay, self._run.channel.status_path("receiver")
        now = time.time() + (read_status(receiver).clock_difference if delay else 0.0)
        return groups_due(groups, count, delay, now)

    def _carry_out(self, batch: Batch, groups: RelayGroups | None) -> bool:
        """Apply a batch of the groups. Return False if a stop was requested while the tables were locked.

        The lock is that of FLUSH TABLES WITH READ LOCK.
        """
        run, work = self._run, self._work
        work.bulk.learn_tables(batch)
        is_last = groups is not None and batch.last == len(groups.scan)
        reads_ahead = is_last and batch.end - batch.start >= SMALLEST_SPLIT
        if batch.kind is not BatchKind.SKIP:
            self._spark.begin(batch.end - batch.start)
        run.report.begins(batch)
        with run.read_lock.shared(stop=run.held_up) as may_write:
            if not may_write:
                return False
            run.report.begins(batch)
            began, counts = time.monotonic(), (work.bulk.rows_by_spark, work.bulk.rows_by_driver)
            try:
                catalog = None if work.executes_statements else work.catalog
                work.info = enter_new_source(work.info, batch, self._target, self._store, catalog)
                changes = work.apply(batch, self._read_ahead if reads_ahead else lambda: None)
            finally:
                run.report.counted(work.retried, work.passed_over)
        run.patience.worked()
        run.commit_group.took(batch.transaction_count, time.monotonic() - began)
        by_spark, by_driver = work.bulk.rows_by_spark - counts[0], work.bulk.rows_by_driver - counts[1]
        run.report.decoded(self._spark.pipeline, by_spark, by_driver)
        run.report.applied(work.info, batch, changes)
        run.skips.took(batch, work.info)
        run.report.to_skip(run.skips.count)
        return True

    def _read_ahead(self) -> None:
        """Start to read the next groups and to decode their first batch, in a thread, while the target applies the
        current batch.
        """
        self._ahead.begin(self._feed, self._expected)

    def _expected(self) -> RelayGroups | None:
        work = self._work
        groups = self._feed.next_open(work.bulk.size.batch_bytes)
        if groups is not None:
            with suppress(RplError):  # raised again when the batch is applied; the feed returns these groups only once
                before = groups_before(groups, self._run.options.until, work.info.gtid_executed)
                work.bulk.expect(groups, self._due(groups, before)[0], self._run.commit_group.transactions)
        return groups

    def _rest(self, delay_s: float, *, is_cloning: bool) -> None:
        """Wait until there may be more to apply, or until a stop is requested.

        While tables are being copied, the wait is short, because no event reports new rows of the copy. `delay_s`: the
        seconds until a delayed transaction is due, or 0.
        """
        run = self._run
        if death := self._spark.death():  # report this now, and not only when the next batch needs Spark
            raise TasksFailed(death)
        if self._spark.pipeline.cluster is None:  # the context of an idle cluster may be over, and answers nothing
            run.report.spark(self._spark.pipeline)
        if delay_s > 0 or is_cloning:
            run.stop.wait(min(max(delay_s, POLL_S), LONGEST_WAIT_SECONDS))
        elif not run.stop.is_set():  # `Applier.end` sets `stop` before `woken`
            run.watch.wait(run.woken, run.report.rests)

    def _purge_applied(self) -> None:
        """Remove relay logs that are completely applied. A backup of the instance delays this to a later call."""
        info = self._work.info
        if not self._run.config.relay_log_purge or info.relay_log_name == self._purged_to:
            return
        with closing(InstanceLock(self._run.config.datadir)) as lock:
            if (self._store.log is None or self._store.log.sync()) and lock.acquire_verb(0):
                self._store.committed(info, force=True)
                purge_applied(self._run.channel, info.relay_log_position)
                self._purged_to = info.relay_log_name

    def _is_finished(self) -> bool:
        """True if the UNTIL condition is met, or if `rplctl start --until-synced` has nothing more to do.

        The latter is so when all transactions are applied that the source had when the command began, and no table is
        being copied.
        """
        options, info = self._run.options, self._work.info
        wanted, gtids = options.until_source, options.until_source_gtids
        synced = bool(gtids) and has_reached(gtids, info.gtid_executed)
        if not gtids and wanted is not None:
            synced = not info.exec_position.is_before(wanted)
        synced = synced and not self._copying.is_open
        met = self._is_held or is_met(options.until, info)
        if synced or met:
            self._run.report.done()
        if met:
            log.info("Slave SQL thread stopped because it reached its UNTIL %s", options.until.shown)
        return synced or met


def _source_place(master_info: InfoRepository[MasterInfo]) -> str:
    """Return the source's address that MasterInfo has stored, or '' before the first CHANGE MASTER."""
    return master_info.read().place if master_info.exists() else ""
