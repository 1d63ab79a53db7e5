"""`python -m tests.bench.drain DATADIR FILE:POS…`: apply the relay log phase by phase and tell the seconds.

As START SLAVE SQL_THREAD with its relay logs on disk: Spark and the target's connection are up before the clock starts.
Prints one JSON list of seconds. Run as a process of its own, so that nothing of the benchmark is in its memory.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rplctl.applier.apply.batch import BatchApplier
from rplctl.applier.feed.relay_watch import RelayWatch
from rplctl.applier.interrupt import Interrupter
from rplctl.applier.loop import Loop
from rplctl.applier.options import StartOptions, Until
from rplctl.applier.run import Connection, Run
from rplctl.applier.spark.pipeline import Pipeline
from rplctl.applier.spark.session import OwnSpark
from rplctl.applier.spark_start import SparkStart
from rplctl.channel import Channel
from rplctl.commit.position_store import open_position_store
from rplctl.config import load_config
from rplctl.event.warm_up import warm_up
from rplctl.own_tables.tables import create_own_tables
from rplctl.repository import open_master_info
from rplctl.target import open_target


@contextmanager
def applying(folder: Path) -> Iterator[Callable[[str], float]]:
    """Of an instance that has its relay logs: what applies them up to FILE:POS, and tells the seconds."""
    config, channel = load_config(folder), Channel("", folder)
    target = open_target(config.target_url)
    target.fence("")
    create_own_tables(target.engine)
    warm_up()
    own_spark = OwnSpark(config, channel)
    own_spark.begin()
    pipeline = Pipeline(own_spark.open, open_pool=own_spark.pool)
    pipeline.begin()

    def apply(end: str) -> float:
        file, _, position = end.partition(":")
        stop = threading.Event()
        run = Run.open(
            config,
            channel,
            StartOptions(until=Until(kind="master_pos", log_name=file, log_pos=int(position))),
            RelayWatch(config.datadir),
            stop,
        )
        store = open_position_store(config, channel, target.engine)
        with Interrupter(stop) as interrupter:
            work = BatchApplier.open(config, channel, target, store, pipeline, interrupter)
            spark = SparkStart(config, own_spark, pipeline, interrupter, run.woken.set)
            began = time.perf_counter()
            records = open_master_info(config, channel, lambda: target.engine)
            parts = Connection(target=target, store=store, master_info=records, work=work, spark=spark)
            loop = Loop(run, parts)
            loop.follow()
            seconds = time.perf_counter() - began
            loop.close()
            work.close()
            store.close(work.info)
        return seconds

    yield apply
    own_spark.end()
    target.close()


def main(folder: str, *ends: str) -> None:
    with applying(Path(folder)) as apply:
        print(json.dumps([apply(end) for end in ends]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
