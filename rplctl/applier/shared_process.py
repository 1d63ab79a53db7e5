"""Runs the appliers of several channels in one process with one Spark (`start --shared-session`).

Each channel has a thread, and its own applier, connection to the target, lock, status and log. The channels share only
Spark and the watch of the relay logs. SIGTERM stops the channels whose `stop_path` file names this process. If no such
file names the process, SIGTERM stops all channels.

Invariant: the end of one channel ends no other channel. A stop cancels only the channel's own Spark jobs. After an
error, only the channel with the error ends. If the process itself is killed, all its channels have crashed. The process
ends when its last channel ends.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rplctl.applier.feed.relay_watch import RelayWatch
from rplctl.applier.job import Applier
from rplctl.applier.options import StartOptions, Until
from rplctl.applier.report import Report, log_error
from rplctl.applier.spark.pool import ChannelPool, Pool
from rplctl.applier.spark.session import JavaLife, close_session, keeps_tasks, open_session
from rplctl.channel import STOP_NOW, Channel, SignalsOfChannels
from rplctl.config import Config, load_config
from rplctl.errors import RplError
from rplctl.log_file import log_by_thread, logging_as

if TYPE_CHECKING:
    from pyspark import SparkContext


class SharedSpark:
    """One channel's access to the Spark of a shared process (see spark.session.ChannelSpark).

    The channel's Spark jobs have a job group and a scheduler pool of their own. Spark divides the cores among these
    pools. `opened`: the context, as soon as Spark runs. `working`: the names of the channels whose applier has not
    ended.
    """

    def __init__(
        self,
        opened: Future[SparkContext],
        channel: str,
        working: set[str],
        life: JavaLife,
        pool: Callable[[], ChannelPool | None] = lambda: None,
    ) -> None:
        self._opened, self._life, self._pool_of_process = opened, life, pool
        self._channel, self._working = channel, working
        self._group = f"channel '{channel}'"

    def open(self) -> SparkContext:
        return self._opened.result()

    def before_job(self) -> None:
        context = self._opened.result()
        context.setJobGroup(self._group, self._group)
        context.setLocalProperty("spark.scheduler.pool", self._group)

    def pool(self) -> ChannelPool | None:
        return self._pool_of_process()

    def end(self) -> None:
        if (mine := self.pool()) is not None:
            mine.pool.cancel(self._channel)
        from py4j.protocol import Py4JError

        if self._opened.done() and not self._opened.exception():
            with contextlib.suppress(Py4JError):  # a JVM that has ended runs no job
                self._opened.result().cancelJobGroup(self._group)

    def serves_others(self) -> bool:
        return bool(self._working - {self._channel})

    def death(self) -> str:
        return self._life.death()


class SharedProcess:
    """The process for the appliers of several channels.

    `channels`: for each channel's name, the JSON of its start options. `folder`: a folder that no other process uses.
    """

    def __init__(self, datadir: Path, folder: Path, channels: dict[str, str]) -> None:
        self._name, self._folder = f"{len(channels)} channels", folder  # no other process uses the folder
        self._opened: Future[SparkContext] = Future()
        self._life = JavaLife()
        self.session_config = Config(datadir=datadir)  # replaced by the configuration of the first channel
        self._appliers: dict[str, Applier] = {}
        self._watch = RelayWatch(datadir)
        self._working: set[str] = set()  # channels whose applier has not ended
        self._exit_codes: list[int] = []
        self._pool: Pool | None = None  # the pool of all channels, if one of them has spark=always
        self._signals = SignalsOfChannels("applier")
        log_by_thread("applier", {name: Channel(name, datadir).log_path("applier") for name in channels})
        for name, text in channels.items():
            with logging_as(name):
                try:
                    self._appliers[name] = self._made(name, datadir, StartOptions.from_json(text))
                except RplError as error:
                    self._exit_codes.append(log_error(error))
                    report = Report.open(Channel(name, datadir), Until())
                    report.failed(error)
                    report.stopped()

    def _made(self, name: str, datadir: Path, options: StartOptions) -> Applier:
        config = options.on(load_config(datadir, name))
        if not self._appliers:
            self.session_config = config
        elif config.spark == "auto":  # its batches are Spark jobs, after which Spark's own cleaner must run
            self.session_config = replace(self.session_config, spark="auto")
        channel = Channel(name, config.datadir)
        channel.stop_path.unlink(missing_ok=True)
        takes_all = keeps_tasks(replace(config, spark_master=self.session_config.spark_master))
        if takes_all and self._pool is None:
            self._pool = Pool(self._folder, self._name)

        def pool() -> ChannelPool | None:
            return ChannelPool(self._pool, name, takes_all) if self._pool is not None else None

        spark = SharedSpark(self._opened, name, self._working, self._life, pool)
        return Applier(config, channel, options, spark, self._watch)

    def run(self) -> int:
        """Run the appliers until the last one has ended.

        Return the exit code of the first channel that ended with an error, or 0. Raises the error with which Spark
        failed to start, after each channel has reported this error.
        """
        self._working.update(self._appliers)
        threads = [threading.Thread(target=self._serve, args=(name,), name=name) for name in self._appliers]
        for thread in threads:
            thread.start()
        try:
            context = open_session(self.session_config, self._name, self._folder)
            self._life.begins()
            self._opened.set_result(context)
        except Exception as error:
            self._opened.set_exception(error)
            raise
        finally:
            for thread in threads:
                thread.join()
            if self._pool is not None:
                self._pool.close()
        close_session(self._opened.result(), self._folder)
        return next(iter(self._exit_codes), 0)

    def stop(self) -> None:
        """Stop the channels that a SIGTERM addresses: those whose `stop_path` file names this process, or all channels.

        Any thread may call this method, more than once.
        """
        for channel, words in self._signals.meant(
            Channel(name, self.session_config.datadir) for name in self._appliers
        ).items():
            self._appliers[channel.name].end()
            if words == [str(os.getpid()), STOP_NOW]:
                self._appliers[channel.name].abort()

    def _serve(self, name: str) -> None:
        with logging_as(name):
            try:
                self._appliers[name].run()
            except RplError as error:
                self._exit_codes.append(log_error(error))
            finally:
                self._working.discard(name)
