"""Apply a source's binary log by several connections, without Spark, from where the position says."""

from __future__ import annotations

import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rplctl.applier.apply import bulk, committer
from rplctl.applier.apply.batch import BatchApplier
from rplctl.applier.feed.plan import plan_batches
from rplctl.applier.interrupt import Interrupter
from rplctl.applier.spark.in_process import InProcessPipeline
from rplctl.channel import Channel
from rplctl.commit.position_store import open_position_store
from rplctl.commit.resolve import terminate_predecessor
from rplctl.commit.transaction import commit_in_branches
from rplctl.config import Config
from rplctl.info import RelayLogInfo
from rplctl.own_tables.tables import create_own_tables
from rplctl.repository import create_tables, open_relay_log_info
from rplctl.target import open_target
from tests.applier.demo_log import groups_of


def apply_log(datadir: Path, log: Path, options: dict[str, Any], stop: int | None = None) -> int:
    """Up to the group `stop`; the number of batches that several connections committed."""
    split: list[object] = []

    def counted(*step: Any, **more: Any) -> None:
        commit_in_branches(*step, **more)
        split.append(step)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(bulk, "WORTH_A_BRANCH", 1)
        patched.setattr(committer, "commit_in_branches", counted)
        _apply(datadir, log, options, stop)
    return len(split)


def _apply(datadir: Path, log: Path, options: dict[str, Any], stop: int | None) -> None:
    config, channel, groups = replace(Config(datadir=datadir), **options), Channel("", datadir), groups_of(log)
    is_new = not datadir.exists()
    datadir.mkdir(exist_ok=True)
    with closing(open_target(config.target_url)) as target:
        terminate_predecessor(channel, target.engine)
        target.fence(channel.name)
        create_own_tables(target.engine)
        if is_new:
            create_tables(target.engine, "")
            begin = RelayLogInfo().at(groups.start, groups.start_source)
            open_relay_log_info(config, channel, lambda: target.engine).flush(begin, force=True)
        store = open_position_store(config, channel, target.engine)
        parts = (target, store, InProcessPipeline(), Interrupter(threading.Event()))
        work = BatchApplier.open(config, channel, *parts)
        with closing(work):
            ends = map(groups.scan.source_position, range(len(groups.scan)))
            done = sum(not work.info.exec_position.is_before(end) for end in ends)
            for planned in plan_batches(groups, len(groups.scan) if stop is None else stop, per_commit=lambda: 2):
                if planned.last > done:
                    work.apply(replace(planned, first=max(planned.first, done)))
        store.close(work.info)
