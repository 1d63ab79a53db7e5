"""One run of the applier, from its start to its stop.

The run holds the channel's applier lock, and writes the status. After an outage of the target, the run opens a new
connection to the target. Invariant: each connection begins as at a start (design D22). It takes the channel's lock in
the target (*fence*), and reads the position that the target has stored.
"""

from __future__ import annotations

import logging
import os
import shutil
import threading
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rplctl.applier.apply.batch import RETRY_PAUSE_SECONDS, BatchApplier
from rplctl.applier.copying import has_copy
from rplctl.applier.feed.relay_watch import RelayWatch
from rplctl.applier.heartbeat import reading_heartbeats
from rplctl.applier.interrupt import GRACE_SECONDS, Interrupter, Stopped
from rplctl.applier.loop import Loop
from rplctl.applier.options import StartOptions
from rplctl.applier.outage import is_away, lock_waits_shown
from rplctl.applier.run import Connection, Run
from rplctl.applier.spark.cluster import Cluster, given_settings, is_on_this_machine, is_over
from rplctl.applier.spark.failure import failure_of, memory_kills
from rplctl.applier.spark.java import find_java
from rplctl.applier.spark.pipeline import Pipeline
from rplctl.applier.spark.session import ChannelSpark, OwnSpark
from rplctl.applier.spark_start import SparkStart
from rplctl.channel import Channel, hold_lock
from rplctl.commit.ambiguous_commit import honouring_stop
from rplctl.commit.belonging import refuse_unfit
from rplctl.commit.position_store import open_position_store, shown_mode
from rplctl.commit.resolve import terminate_predecessor
from rplctl.commit.step import PositionStore
from rplctl.config import Config
from rplctl.errors import RplError, TargetError
from rplctl.event.warm_up import warm_up
from rplctl.failpoint import watch
from rplctl.history import note_event
from rplctl.info import MasterInfo
from rplctl.own_tables.tables import create_own_tables
from rplctl.relay_log.purge import relay_log_space
from rplctl.repository import open_master_info
from rplctl.target import open_target
from rplctl.target.base import Target

if TYPE_CHECKING:
    from pyspark import SparkContext

log = logging.getLogger(__name__)


class Applier:
    """The applier of one channel, for one run from its start to its stop.

    `spark`: the channel's access to a shared Spark, or its own Spark. An own Spark has already begun, and the caller
    then holds the channel's applier lock. `watch`: the relay log watch of a shared process.
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
        self._is_alone = spark is None or isinstance(spark, OwnSpark)
        self._spark = spark or OwnSpark(config, channel)
        self._has_lock = spark is not None and self._is_alone
        self._target: Target | None = None
        self._is_fenced = False
        self._context: SparkContext | None = None
        self._opening = threading.Lock()
        self.stop = threading.Event()

    def run(self) -> None:
        """Apply transactions until a stop, an UNTIL condition or an error.

        Raises RplError if an error ends the applier. The stored position then shows exactly the transactions that are
        applied.
        """
        with nullcontext() if self._has_lock else hold_lock(self._channel, "applier"):
            run = Run.open(self._config, self._channel, self._options, self._watch, self.stop)
            kills_before = memory_kills()
            self._watch.start()
            try:
                with run.report.pulse(), reading_heartbeats(self._config, run.report.status):
                    self._session(run)
            except RplError as error:
                run.report.failed(error)
                raise
            except Exception as error:  # at this thread boundary, every error that ends the applier is reported
                failure = failure_of(error, self._spark.death(), kills_before, self._channel)
                run.report.failed(failure)
                if failure.__suppress_context__:
                    raise failure from None
                raise failure from error
            finally:
                run.skips.keep_rest()
                run.report.stopped()

    def end(self) -> None:
        """Stop the applier. Any thread and any signal handler may call this method."""
        self.stop.set()
        self._woken.set()

    def abort(self) -> None:
        """End this channel's connections to the target as if the process had died. Any thread may call this method."""
        if self._target is not None:
            self._target.abort()

    def _session(self, run: Run) -> None:
        watch(self._channel.run_folder, beside_others=not self._is_alone)
        shutil.rmtree(self._channel.spool_folder, ignore_errors=True)  # files of a killed run
        try:
            with honouring_stop(self.stop.is_set), Interrupter(self.stop, leave=partial(self._leave, run)) as stopper:
                try:
                    while not self._connection(run, stopper):
                        pass
                finally:
                    self._spark.end()
        except Stopped:
            log.info("STOP came before anything was applied, or while the target was unreachable")
        finally:
            if self._target is not None:
                self._target.close()

    def _connection(self, run: Run, interrupter: Interrupter) -> bool:
        """Apply batches over one connection to the target.

        Return True if the run is finished, and False if the caller must connect again. Raises Stopped after a stop, and
        RplError for an error that ends the applier.
        """
        work: BatchApplier | None = None
        try:
            with interrupter.abortable():
                pipeline = Pipeline(self._open_spark, self._spark.before_job, open_pool=self._spark.pool)
                spark = SparkStart(self._config, self._spark, pipeline, interrupter, self._woken.set)
                master = open_master_info(self._config, self._channel, lambda: self._open_target().engine)
                run.patience.options = master.read() if master.exists() else run.patience.options
                target = self._open_target()
                store = self._open_position_store(run, target)
                pipeline.cluster = self._cluster(run, run.patience.options)
                self._load_kernels(spark, target)
            interrupter.actions = (self._spark.end, target.interrupt)
            with interrupter.abortable(GRACE_SECONDS):  # the block may wait for locks on the target
                work = BatchApplier.open(self._config, self._channel, target, store, pipeline, interrupter)
            if store.branches is not None:
                interrupter.actions = (*interrupter.actions, store.branches.interrupt)
            work.on_retry = partial(_retried, run, work)
            run.report.target_is_back()
            run.report.at(work.info)
            self._run_until_stopped(
                run, Connection(target=target, store=store, master_info=master, work=work, spark=spark)
            )
        except TargetError as error:
            if self._target is not None:
                self._target.reconnect()
            if is_away(error):
                run.patience.wait(error)
            elif error.transient and work is None:
                run.patience.wait_for_lock(error)
            else:
                raise
            return False
        return True

    def _load_kernels(self, spark: SparkStart, target: Target) -> None:
        """Load the compiled code that decodes events. Meanwhile, start Spark if the relay logs are large enough for it.

        With spark=auto, a copy of tables changes this: the code that decodes the copied rows is loaded, too, and Spark
        is not started.
        """
        if not spark.is_always and has_copy(self._channel, target):
            from rplctl.result_set.warm_up import run_kernels

            warm_up()
            run_kernels()
            return
        if spark.is_wanted(relay_log_space(self._channel)):
            spark.pipeline.begin_beside(self._woken.set)
        else:  # an unusable Java is reported now
            find_java(self._config.java_home, self._channel.run_folder / "java")
        warm_up()

    def _open_target(self) -> Target:
        """Return the object for the target, which the first call creates.

        All connections to the target use this object, because it can release the lock that an earlier connection took
        (D4).
        """
        if self._target is None:
            self._target = open_target(self._config.target_url)
        return self._target

    def _open_spark(self) -> SparkContext:
        """Return the Spark context, which serves all connections to the target.

        If the cluster has ended the context, open another one.
        """
        with self._opening:  # the thread of an earlier connection may still be opening the context
            if self._context is None or is_over(self._context):
                self._context = self._spark.open()
            return self._context

    def _cluster(self, run: Run, master: MasterInfo) -> Cluster | None:
        if is_on_this_machine(self._config.spark_master):
            return None
        archive = Path(master.master_binlog_dir) if master.master_binlog_dir else None
        return Cluster(self._channel.run_folder, given_settings(self._config), run.report.spark_waits, archive)

    def _open_position_store(self, run: Run, target: Target) -> PositionStore:
        terminate_predecessor(self._channel, target.engine)
        if self._is_fenced:
            _ = target.connection  # a new connection takes the channel's lock in the target first
        else:
            target.fence(self._channel.name)
            self._is_fenced = True
        refuse_unfit(self._config, self._channel, lambda: target.engine)  # another target may answer after an outage
        create_own_tables(target.engine)
        store = open_position_store(self._config, self._channel, target.engine)
        run.report.status.commit_mode = shown_mode(self._config, store)
        return store

    def _leave(self, run: Run) -> None:
        """Write the status, and end the process as a crash would.

        If the process serves other channels, end only this channel's work.
        """
        if self._spark.serves_others():
            return self.abort()
        log.info("STOP interrupted work that does not end: the process ends without waiting for it")
        run.skips.keep_rest()
        run.report.stopped()
        logging.shutdown()
        os._exit(0)

    def _run_until_stopped(self, run: Run, connection: Connection) -> None:
        target, store, work = connection.target, connection.store, connection.work
        loop: Loop | None = None
        is_cut_off = False  # True if the target is unreachable: as after a crash, nothing more is written
        try:
            try:
                loop = Loop(run, connection)
                with lock_waits_shown(target, run.report, lambda: work.info):
                    loop.follow()
                _report_temporary_tables(run, work)
            except TargetError as error:
                is_cut_off = is_away(error)
                raise
            finally:
                if not is_cut_off:
                    self._spark.end()  # this also ends the Spark jobs of the next batches
                if loop is not None:
                    loop.close()
                work.close()
        except Stopped:
            when = "while the target was unreachable" if run.report.is_away else "during a batch: it was rolled back"
            log.info("STOP came %s; the next start applies the batch again", when)
            if run.report.is_away:
                return  # the target cannot answer
            if not target.is_idle():
                log.warning("the target still rolls back the batch; the next start may wait for the rollback")
                return  # as after a crash, the next start reconciles the repository
        except BaseException:
            if not is_cut_off:
                store.close(work.info)
            raise
        store.close(work.info)


def _report_temporary_tables(run: Run, work: BatchApplier) -> None:
    """Report the source's temporary tables that the target loses at this stop, in the log and in `history`."""
    if names := work.temporary_tables:
        text = f"the target loses the source's temporary tables at this stop: {', '.join(names)}"
        log.warning("%s; statements that read them will stop the channel with error 1146", text)
        at = str(work.info.exec_position)
        note_event(run.config.datadir, run.channel.name, "temporary-tables", text, thread="applier", position=at)


def _retried(run: Run, work: BatchApplier, error: TargetError) -> None:
    run.report.counted(work.retried, work.passed_over)
    if is_away(error):
        run.report.target_is_away(error, RETRY_PAUSE_SECONDS, run.patience.options.retry_count)
