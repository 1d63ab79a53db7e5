"""An applier's working parts on a SQLite target, without the process around them and without Spark: tasks run in this
one.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rplctl.applier.apply.batch import BatchApplier
from rplctl.applier.apply.in_order import OrderedRange, OrderedResult
from rplctl.applier.feed.plan import plan_batches
from rplctl.applier.interrupt import Interrupter
from rplctl.applier.spark.in_process import InProcessPipeline
from rplctl.channel import Channel
from rplctl.commit.position_store import open_position_store
from rplctl.config import Config
from rplctl.decode.row_stream import IS_ROWS, EventRun
from rplctl.event.types import GTIDS
from rplctl.info import RelayLogInfo
from rplctl.own_tables.tables import create_own_tables
from rplctl.relay_log.reader import RelayGroups
from rplctl.repository import create_tables, open_relay_log_info
from rplctl.target import dialect_of, open_target, target_kind
from rplctl.target.registry import DEFAULT_KIND
from tests.applier.demo_log import demo_groups


class Instance:
    """On an empty target, about to apply `first` (the demo's log)."""

    def __init__(self, folder: Path, first: RelayGroups | None = None, **options: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        is_held = dialect_of(target_kind(options.get("target") or DEFAULT_KIND)).is_held
        kept = "FILE" if is_held else "TABLE"
        self.config = replace(Config(datadir=folder, relay_log_info_repository=kept), **options)
        self.channel = Channel("", folder)
        self.target = open_target(self.config.target_url)
        create_own_tables(self.target.engine)
        if not is_held:
            create_tables(self.target.engine, "")
        groups = first or demo_groups()
        start = RelayLogInfo().at(groups.start, groups.start_source)
        open_relay_log_info(self.config, self.channel, lambda: self.target.engine).flush(start, force=True)
        self.pipeline = InProcessPipeline()
        self.stop = threading.Event()
        self.applier = self.reopen()

    def reopen(self) -> BatchApplier:
        self.store = store = open_position_store(self.config, self.channel, self.target.engine)
        interrupter = Interrupter(self.stop, (self.target.interrupt,))
        parts = (self.config, self.channel, self.target, store, self.pipeline, interrupter)
        return BatchApplier.open(*parts)

    def apply(self, groups: RelayGroups, stop: int | None = None) -> int:
        """All batches of the groups; the number of row changes."""
        batches = plan_batches(groups, len(groups.scan) if stop is None else stop)
        return sum(self.applier.apply(batch) for batch in batches)

    def apply_from(self, groups: RelayGroups, first: int) -> int:
        """As `apply`, without the groups before `first`."""
        batches = (b for b in plan_batches(groups, len(groups.scan)) if b.last > first)
        return sum(self.applier.apply(replace(b, first=max(b.first, first))) for b in batches)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with self.target.engine.connect() as connection:
            return [tuple(row) for row in connection.exec_driver_sql(sql)]

    def execute(self, sql: str) -> None:
        with self.target.engine.begin() as connection:
            connection.exec_driver_sql(sql)


def transactions_in_order(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many transactions with rows each range has that is carried out event by event, from here on."""
    found: list[int] = []
    apply = OrderedRange.apply

    def noted(ordered: OrderedRange, run: EventRun) -> OrderedResult:
        if IS_ROWS[run.types].any():
            found.append(int(np.isin(run.types, list(GTIDS)).sum()))
        return apply(ordered, run)

    monkeypatch.setattr(OrderedRange, "apply", noted)
    return found
