"""The objects that one run of an applier uses, from its start to its stop.

`Run` has the objects for the whole run, and `Connection` those for one connection to the target.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from rplctl.applier.apply.batch import BatchApplier
from rplctl.applier.feed.batch_size import CommitGroupSize
from rplctl.applier.feed.relay_watch import RelayWatch
from rplctl.applier.feed.skip import SkipList
from rplctl.applier.options import StartOptions
from rplctl.applier.outage import TargetPatience
from rplctl.applier.report import LOCKED, Report
from rplctl.applier.spark_start import SparkStart
from rplctl.channel import Channel
from rplctl.commit.step import PositionStore
from rplctl.config import Config
from rplctl.history import note_event
from rplctl.info import MasterInfo
from rplctl.locks import RwLock, read_lock
from rplctl.repository.base import InfoRepository
from rplctl.target.base import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The objects of one run of an applier.

    `stop`: an event that is set when a stop is requested. `woken`: an event that is set at a stop, and when the relay
    logs have grown. `read_lock`: the lock that FLUSH TABLES WITH READ LOCK takes.
    """

    config: Config
    channel: Channel
    options: StartOptions
    report: Report
    patience: TargetPatience
    skips: SkipList
    commit_group: CommitGroupSize
    watch: RelayWatch
    woken: threading.Event
    stop: threading.Event
    read_lock: RwLock

    @classmethod
    def open(
        cls, config: Config, channel: Channel, options: StartOptions, watch: RelayWatch, stop: threading.Event
    ) -> Run:
        """Return the objects of a new run.

        Write the first status of the run, and read the list of transactions to skip.
        """
        report = Report.open(channel, options.until, config)
        skips = SkipList(
            channel.run_folder,
            lambda text, at: note_event(config.datadir, channel.name, "skip", text, thread="applier", position=at),
        )
        skips.open()
        report.to_skip(skips.count)
        return cls(
            config=config,
            channel=channel,
            options=options,
            report=report,
            patience=TargetPatience(stop=stop, report=report, quick_attempts=config.replica_transaction_retries),
            skips=skips,
            commit_group=CommitGroupSize.from_config(config),
            watch=watch,
            woken=watch.woken(channel.relay_log_base),
            stop=stop,
            read_lock=read_lock(config.datadir),
        )

    def held_up(self) -> bool:
        """Report that the applier waits for FLUSH TABLES WITH READ LOCK. True if a stop was requested.

        The applier calls this repeatedly while another process holds that lock.
        """
        self.report.state(LOCKED)
        return self.stop.is_set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """The objects of one connection to the target. `work`: applies the batches. `store`: stores the position."""

    target: Target
    store: PositionStore
    master_info: InfoRepository[MasterInfo]
    work: BatchApplier
    spark: SparkStart
