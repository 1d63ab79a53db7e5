"""The applier's loop: read the relay logs, apply them batch by batch, and stop exactly at the requested position.

Invariant: the target contains each transaction before the stored position exactly once, and none after it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rplctl.applier.apply.batch import RETRY_PAUSE_SECONDS, BatchApplier
from rplctl.applier.apply.failover_position import enter_new_source
from rplctl.applier.feed.batch_size import CommitGroupSize
from rplctl.applier.feed.plan import Batch, BatchKind, groups_due, plan_batches
from rplctl.applier.feed.prefetch import Prefetch
from rplctl.applier.feed.relay_feed import RelayFeed
from rplctl.applier.feed.relay_watch import POLL_S, RelayWatch
from rplctl.applier.feed.skip import SkipList
from rplctl.applier.feed.until import groups_before, is_met
from rplctl.applier.heartbeat import reading_heartbeats
from rplctl.applier.interrupt import GRACE_SECONDS, Interrupter, Stopped
from rplctl.applier.options import StartOptions, Until
from rplctl.applier.outage import TargetLook, TargetPatience, is_away, lock_waits_shown
from rplctl.applier.report import LOCKED, Report
from rplctl.applier.spark.cluster import Cluster, given_settings, is_on_this_machine, is_over
from rplctl.applier.spark.failure import TasksFailed, failure_of, memory_kills
from rplctl.applier.spark.java import find_java
from rplctl.applier.spark.pipeline import Pipeline, is_worth_a_job
from rplctl.applier.spark.session import ChannelSpark, OwnSpark, keeps_tasks
from rplctl.applier.spark.splits import SMALLEST_SPLIT
from rplctl.channel import Channel, hold_lock
from rplctl.clone.throttle import orders_seen
from rplctl.commit.ambiguous_commit import honouring_stop
from rplctl.commit.belonging import refuse_unfit
from rplctl.commit.position_store import name_source, open_position_store, shown_mode
from rplctl.commit.resolve import terminate_predecessor
from rplctl.commit.step import PositionStore
from rplctl.config import Config
from rplctl.demo.warm_up import warm_up
from rplctl.errors import BinlogFormatError, RelayLogError, RplError, TargetError
from rplctl.event.gtid import is_executed
from rplctl.failpoint import watch
from rplctl.history import note_event
from rplctl.info import MasterInfo
from rplctl.locks import InstanceLock, read_lock
from rplctl.own_tables.clones import is_copying
from rplctl.own_tables.tables import create_own_tables
from rplctl.relay_log.purge import purge_applied, relay_log_space
from rplctl.relay_log.reader import RelayGroups
from rplctl.repository import open_master_info
from rplctl.source_zones import SourceZones
from rplctl.status import read_status
from rplctl.target import open_target
from rplctl.target.base import Target

if TYPE_CHECKING:
    from pyspark import SparkContext

    from rplctl.applier.apply.clone_load import CloneLoader

LONGEST_WAIT_SECONDS = 0.5  # between two checks of the delay
log = logging.getLogger(__name__)


class Applier:
    """One run of the applier, from START to STOP.

    `spark`: this channel's part of a shared Spark, or its own Spark that has already begun; the caller then holds the
    channel's applier lock. `watch`: the relay log watch of a shared process.
    """

    def __init__(
        self,
        config: Config,
        channel: Channel,
        options: StartOptions,
        spark: ChannelSpark | None = None,
        watch: RelayWatch | None = None,
    ) -> None:
        self._watch = watch or RelayWatch(config.datadir)
        self._woken = self._watch.woken(channel.relay_log_base)
        self._config, self._channel, self._options = config, channel, options
        self._is_alone, self._is_always = spark is None or isinstance(spark, OwnSpark), keeps_tasks(config)
        self._spark = spark or OwnSpark(config, channel)
        self._has_lock = spark is not None and self._is_alone
        self._skips = SkipList(
            channel.run_folder,
            options.skip_count,
            lambda text, at: note_event(config.datadir, channel.name, "skip", text, thread="applier", position=at),
        )
        self._ahead: Prefetch[RelayGroups | None] = Prefetch(RelayLogError)
        self._worked: Callable[[], None] = lambda: None  # called when the target has answered or taken a write
        self._is_held = False
        self._commit_group = CommitGroupSize.from_config(config)
        self._by_gtid, self._source_place, self._is_named = False, "", False
        self._target: Target | None = None
        self._is_fenced = False
        self._context: SparkContext | None = None
        self._opening = threading.Lock()
        self._kills_before = 0
        self.stop = threading.Event()
        self._read_lock = read_lock(config.datadir)

    def run(self) -> None:
        """Apply until STOP, UNTIL or an error. An error is raised as RplError; the stored position is then exact."""
        with contextlib.nullcontext() if self._has_lock else hold_lock(self._channel, "applier"):
            self._report = Report.open(self._channel, self._options.until, self._config)
            self._skips.open()
            self._kills_before = memory_kills()
            self._watch.start()
            try:
                with self._report.pulse(), reading_heartbeats(self._config, self._report.status):
                    self._session()
            except RplError as error:
                self._report.failed(error)
                raise
            except Exception as error:  # the thread boundary: every error that ends the applier is reported
                failure = failure_of(error, self._spark.death(), self._kills_before, self._channel)
                self._report.failed(failure)
                if failure.__suppress_context__:
                    raise failure from None
                raise failure from error
            finally:
                self._skips.keep_rest()
                self._report.stopped()

    def end(self) -> None:
        """Stop the applier. Any thread and any signal handler may call this method."""
        self.stop.set()
        self._woken.set()

    def _session(self) -> None:
        watch(self._channel.run_folder, beside_others=not self._is_alone)
        shutil.rmtree(self._channel.spool_folder, ignore_errors=True)  # leftovers of a killed run
        patience = TargetPatience(self.stop, self._report, self._config.replica_transaction_retries)
        self._worked = patience.worked
        try:
            with honouring_stop(self.stop.is_set), Interrupter(self.stop, leave=self._leave) as interrupter:
                try:
                    while not self._connection(interrupter, patience):
                        pass
                finally:
                    self._spark.end()
        except Stopped:
            log.info("STOP came before anything was applied, or while the target was unreachable")
        finally:
            if self._target is not None:
                self._target.close()

    def _connection(self, interrupter: Interrupter, patience: TargetPatience) -> bool:
        """Apply on one connection. True if all is done, False to connect again. Raises Stopped after STOP; RplError."""
        work: BatchApplier | None = None
        try:
            with interrupter.abortable():
                pipeline = Pipeline(self._open_spark, self._spark.before_job, open_pool=self._spark.pool)
                if self._is_always:
                    pipeline.begin_beside(self._woken.set)
                master = open_master_info(self._config, self._channel, lambda: self._open_target().engine)
                patience.options = master.read() if master.exists() else patience.options
                self._by_gtid, self._source_place = patience.options.uses_gtid, patience.options.place
                target = self._open_target()
                store = self._open_position_store(target)
                pipeline.cluster = self._cluster(patience.options)
                if self._is_copying(target) and not self._is_always:
                    _warm_up_for_copy()
                else:
                    if self._wants_spark(relay_log_space(self._channel)):
                        pipeline.begin_beside(self._woken.set)
                    else:  # an unusable Java is reported now
                        find_java(self._config.java_home, self._channel.run_folder / "java")
                    warm_up()
            interrupter.actions = (self._spark.end, target.interrupt)
            with interrupter.abortable(GRACE_SECONDS):  # may wait for locks on the target
                work = BatchApplier.open(self._config, self._channel, target, store, pipeline, interrupter)
            if store.branches is not None:
                interrupter.actions = (*interrupter.actions, store.branches.interrupt)
            work.on_retry = partial(self._retried, work, patience)
            self._report.target_is_back()
            self._report.at(work.info)
            self._ahead = Prefetch(RelayLogError)
            self._pipeline = pipeline
            self._run_until_stopped(work, store, target)
        except TargetError as error:
            if self._target is not None:
                self._target.reconnect()
            if is_away(error):
                patience.wait(error)
            elif error.transient and work is None:
                patience.wait_for_lock(error)
            else:
                raise
            return False
        return True

    def _retried(self, work: BatchApplier, patience: TargetPatience, error: TargetError) -> None:
        self._report.counted(work.retried, work.passed_over)
        if is_away(error):
            self._report.target_is_away(error, RETRY_PAUSE_SECONDS, patience.options.retry_count)

    def _open_target(self) -> Target:
        """Return the target, one object for all connections, because it must free the last connection's lock (D4)."""
        if self._target is None:
            self._target = open_target(self._config.target_url)
        return self._target

    def _open_spark(self) -> SparkContext:
        """Return the Spark context, which outlives connections. It is opened again if its cluster gave it up."""
        with self._opening:  # the thread of an earlier connection may still be opening it
            if self._context is None or is_over(self._context):
                self._context = self._spark.open()
            return self._context

    def _cluster(self, master: MasterInfo) -> Cluster | None:
        if is_on_this_machine(self._config.spark_master):
            return None
        archive = Path(master.master_binlog_dir) if master.master_binlog_dir else None
        return Cluster(self._channel.run_folder, given_settings(self._config), self._report.spark_waits, archive)

    def _is_copying(self, target: Target) -> bool:
        """True if tables are being copied, or if the remains of a copy must be removed."""
        return is_copying(target.engine, self._channel.name) or self._channel.clone_folder.exists()

    def _open_position_store(self, target: Target) -> PositionStore:
        terminate_predecessor(self._channel, target.engine)
        if self._is_fenced:
            _ = target.connection  # each new connection takes the fence first
        else:
            target.fence(self._channel.name)
            self._is_fenced = True
        refuse_unfit(self._config, self._channel, lambda: target.engine)  # another target may answer after an outage
        create_own_tables(target.engine)
        store = open_position_store(self._config, self._channel, target.engine)
        self._report.status.commit_mode = shown_mode(self._config, store)
        return store

    def abort(self) -> None:
        """End this channel's work in the target as the death of its process would. Any thread may call this method."""
        if self._target is not None:
            self._target.abort()

    def _leave(self) -> None:
        """Write the status, then end the process as a crash would, or only this channel's work if it serves others."""
        if self._spark.serves_others():
            return self.abort()
        log.info("STOP interrupted work that does not end: the process ends without waiting for it")
        self._skips.keep_rest()
        self._report.stopped()
        logging.shutdown()
        os._exit(0)

    def _run_until_stopped(self, work: BatchApplier, store: PositionStore, target: Target) -> None:
        is_cut_off = False  # True if the target is unreachable: nothing more is written, as after a crash
        try:
            try:
                self._loop(work, store, target)
            except TargetError as error:
                is_cut_off = is_away(error)
                raise
            finally:
                if not is_cut_off:
                    self._spark.end()  # ends the Spark jobs of the next batches, too
                self._ahead.close()
                work.close()
        except Stopped:
            when = "while the target was unreachable" if self._report.is_away else "during a batch: it was rolled back"
            log.info("STOP came %s; the next start applies the batch again", when)
            if self._report.is_away:
                return  # the target cannot answer
            if not target.is_idle():
                log.warning("the target still rolls back the batch; the next start may wait for the rollback")
                return  # like a crash: the next start reconciles the repository
        except BaseException:
            if not is_cut_off:
                store.close(work.info)
            raise
        store.close(work.info)

    def _loop(self, work: BatchApplier, store: PositionStore, target: Target) -> None:
        shown = lock_waits_shown(target, self._report, lambda: work.info)
        with contextlib.ExitStack() as opened, shown:
            self._follow(work, store, target, opened)

    def _follow(self, work: BatchApplier, store: PositionStore, target: Target, opened: contextlib.ExitStack) -> None:
        patience_s, zones = self._config.replica_net_timeout, SourceZones(self._channel, self._config)
        feed = RelayFeed(self._channel, patience_s, by_gtid=self._by_gtid, source_place=self._source_place, zones=zones)
        purged_to = work.info.relay_log_name
        orders = orders_seen(self._channel)  # read first: orders that come later are then seen as new
        clone, target_look = self._open_clone(work, store, target, opened), TargetLook(target, store)

        def read_ahead() -> None:
            self._ahead.begin(feed, lambda: self._read_ahead(feed, work))

        while not self.stop.is_set() and not self._is_finished(work, clone):
            self._woken.clear()
            if is_asked := (now := orders_seen(self._channel)) != orders:
                orders = now
                if clone is not None:
                    clone.look()
            clone = clone or (self._open_clone(work, store, target, opened) if is_asked or work.left_out else None)
            if clone is not None and self._loads(clone, work):
                continue
            if clone is None or not clone.is_open:  # the start of Spark would take a core from the copy for seconds
                self._begin_spark(work)
            stands = clone is not None and clone.stands and self._options.until == Until()
            groups = self._ahead.take(feed) or (None if stands else feed.next(work.info, work.bulk.size.batch_bytes))
            if groups is None:
                target_look.look(work.info)
                self._worked()
            else:  # groups prove that the receiver has connected
                self._name_source(store, target)
            batch, wait = None, 0.0
            try:
                batches, wait = self._ready(groups, work, clone.until if clone is not None else Until())
                for batch in batches:
                    if self.stop.is_set():
                        return
                    work.bulk.learn_tables(batch)
                    is_last = groups is not None and batch.last == len(groups.scan)
                    more = is_last and batch.end - batch.start >= SMALLEST_SPLIT
                    if not self._carry_out(batch, work, store, target, read_ahead if more else lambda: None):
                        return
            except BinlogFormatError as error:
                self._ahead.take(feed)  # discards groups that were read after the damage
                feed.damaged(work.info, error)
                self.stop.wait(POLL_S)
            if groups is not None and (batch is None or batch.last < len(groups.scan)):
                feed.rewind()  # UNTIL or the delay holds back the remaining groups
            if batch is None:
                self._rest(wait, is_cloning=clone is not None and clone.is_open)
            if self._config.relay_log_purge and work.info.relay_log_name != purged_to and self._purge(work, store):
                purged_to = work.info.relay_log_name

    def _name_source(self, store: PositionStore, target: Target) -> None:
        if not self._is_named:
            name_source(store, self._config, self._channel, target.engine)
        self._is_named = True

    def _rest(self, delay_s: float, *, is_cloning: bool) -> None:
        """Wait until there may be work, or until STOP. No event wakes an applier that waits for a copy's rows."""
        if death := self._spark.death():  # reported now, not when the next batch needs Spark
            raise TasksFailed(death)
        if delay_s > 0 or is_cloning:
            self.stop.wait(min(max(delay_s, POLL_S), LONGEST_WAIT_SECONDS))
        elif not self.stop.is_set():  # `end` sets `stop` before `_woken`
            self._watch.wait(self._woken, self._report.rests)

    def _carry_out(
        self, batch: Batch, work: BatchApplier, store: PositionStore, target: Target, meanwhile: Callable[[], None]
    ) -> bool:
        """Apply a batch. Return False if STOP came while tables were locked. `meanwhile`: see BatchApplier.apply."""
        if batch.kind is not BatchKind.SKIP:
            self._begin_spark(work, batch.end - batch.start)
        self._report.begins(batch)
        with self._read_lock.shared(stop=self._held_up) as may_write:
            if not may_write:
                return False
            self._report.begins(batch)
            began, counts = time.monotonic(), (work.bulk.rows_by_spark, work.bulk.rows_by_driver)
            try:
                catalog = None if work.executes_statements else work.catalog
                work.info = enter_new_source(work.info, batch, target, store, catalog)
                changes = work.apply(batch, meanwhile)
            finally:
                self._report.counted(work.retried, work.passed_over)
        self._worked()
        self._commit_group.took(batch.transaction_count, time.monotonic() - began)
        by_spark, by_driver = work.bulk.rows_by_spark - counts[0], work.bulk.rows_by_driver - counts[1]
        self._report.decoded(self._pipeline, by_spark, by_driver)
        self._report.applied(work.info, batch, changes)
        self._skips.took(batch, work.info)
        return True

    def _wants_spark(self, size: int) -> bool:
        """True if the log of `size` bytes exceeds one task. Spark options of the operator are tried at once, whatever
        the size.
        """
        is_plain = is_on_this_machine(self._config.spark_master) and not self._config.spark_conf
        return not is_plain or is_worth_a_job(size)

    def _begin_spark(self, work: BatchApplier, size: int = 0) -> None:
        """Start Spark if it is needed. The driver decodes batches until Spark runs. `size`: bytes of the next batch.

        On a cluster and with spark=always, wait for the start. Raises the error with which the start failed.
        """
        pipeline, is_here = self._pipeline, is_on_this_machine(self._config.spark_master)
        is_here = is_here and not (self._is_always and size)
        if self._wants_spark(size):
            pipeline.begin_beside(self._woken.set)
        with contextlib.nullcontext() if is_here or pipeline.has_begun else work.interrupter.abortable():
            pipeline.await_begun(wanted=not is_here)

    def _open_clone(
        self, work: BatchApplier, store: PositionStore, target: Target, opened: contextlib.ExitStack
    ) -> CloneLoader | None:
        """Return the loader of a copy's rows; None if there is neither a copy nor the remains of one."""
        if not self._is_copying(target):
            return None
        from rplctl.applier.apply.clone_load import CloneLoader

        parts = (self._config, self._channel, target, store, work, self._pipeline)
        loader = CloneLoader(*parts, by_gtid=self._by_gtid)
        opened.callback(loader.close)
        return loader

    def _loads(self, clone: CloneLoader, work: BatchApplier) -> bool:
        """Load due rows of a copy. Return True if rows were loaded, or if STOP came while tables were locked."""
        if not clone.is_open:
            return False
        self._report.status.is_waiting = False  # loading a chunk may take long
        if self._is_always:
            self._begin_spark(work, 1)
        by_spark, by_driver = clone.rows_by_spark, clone.rows_by_driver
        with self._read_lock.shared(stop=self._held_up) as may_write:
            loaded = may_write and clone.step()
        if loaded or clone.until != Until():  # the applier may wait for as long as the cloner reads a table
            self._worked()
        self._report.decoded(self._pipeline, clone.rows_by_spark - by_spark, clone.rows_by_driver - by_driver)
        self._report.cloning(clone.status())
        return loaded or not may_write

    def _held_up(self) -> bool:
        """Report the lock, and return True after STOP. Called repeatedly while FLUSH TABLES WITH READ LOCK is
        in force.
        """
        self._report.state(LOCKED)
        return self.stop.is_set()

    def _read_ahead(self, feed: RelayFeed, work: BatchApplier) -> RelayGroups | None:
        groups = feed.next_open(work.bulk.size.batch_bytes)
        if groups is not None:
            with contextlib.suppress(RplError):  # raised again in its turn; the feed hands out these groups only once
                before = groups_before(groups, self._options.until, work.info.gtid_executed)
                work.bulk.expect(groups, self._due(groups, before, work)[0], self._commit_group.transactions)
        return groups

    def _purge(self, work: BatchApplier, store: PositionStore) -> bool:
        """Purge applied relay logs. Return False if the instance is locked for a backup; a later round tries again."""
        with contextlib.closing(InstanceLock(self._config.datadir)) as lock:
            may_purge = (store.log is None or store.log.sync()) and lock.acquire_verb(0)
            if may_purge:
                store.committed(work.info, force=True)
                purge_applied(self._channel, work.info.relay_log_position)
        return may_purge

    def _ready(self, groups: RelayGroups | None, work: BatchApplier, clone: Until) -> tuple[Iterable[Batch], float]:
        """Return the batches that UNTIL, `clone` and the delay permit, and the seconds to wait if there are none."""
        if groups is None:
            self._report.waiting(is_cloning=clone != Until())
            return [], 0.0
        count = groups_before(groups, self._options.until, work.info.gtid_executed)
        self._is_held = not count  # the very next group is after UNTIL
        count = min(count, groups_before(groups, clone, work.info.gtid_executed))
        due, wait = self._due(groups, count, work)
        if wait > 0 and not due:
            self._report.delaying(int(groups.scan.timestamp[due]), int(wait) + 1)
        plan = plan_batches(
            groups,
            due,
            self._skips.count,
            skipped=self._skips.groups(groups, due, work.info.gtid_executed),
            has_rollbacks=work.executes_statements,
            per_commit=self._commit_group.transactions,
        )
        return plan, wait

    def _due(self, groups: RelayGroups, count: int, work: BatchApplier) -> tuple[int, float]:
        """Return how many of `count` groups are due by the source's clock, and the seconds until the next one."""
        delay, receiver = work.info.sql_delay, self._channel.status_path("receiver")
        now = time.time() + (read_status(receiver).clock_difference if delay else 0.0)
        return groups_due(groups.scan, count, delay, now)

    def _is_finished(self, work: BatchApplier, clone: CloneLoader | None) -> bool:
        """True if UNTIL is met, or if all transactions that the source had when the command began are applied."""
        wanted, gtids = self._options.until_source, self._options.until_source_gtids
        synced = bool(gtids) and is_executed(gtids, work.info.gtid_executed)
        if not gtids and wanted is not None:
            synced = not work.info.exec_position.is_before(wanted)
        synced = synced and not (clone is not None and clone.is_open)
        met = self._is_held or is_met(self._options.until, work.info)
        if synced or met:
            self._report.done()
        if met:
            log.info("Slave SQL thread stopped because it reached its UNTIL %s", self._options.until.shown)
        return synced or met


def _warm_up_for_copy() -> None:
    from rplctl.result_set.warm_up import run_kernels

    warm_up()
    run_kernels()
