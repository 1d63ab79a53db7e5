"""The first transaction of another source, whose position is lower: a crash at any step loses and repeats nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from rplctl.applier.apply.failover_position import enter_new_source
from rplctl.applier.feed.plan import Batch, plan_batches
from rplctl.channel import Channel
from rplctl.commit import transaction
from rplctl.commit.position_store import open_position_store
from rplctl.commit.step import PositionStore
from rplctl.config import Config
from rplctl.info import RelayLogInfo
from rplctl.own_tables.models import load_models, store_models
from rplctl.own_tables.tables import create_own_tables
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.relay_log.log_file import artificial_rotate
from rplctl.relay_log.reader import RelayLogReader
from rplctl.repository import create_tables, open_relay_log_info
from rplctl.schema.plan import Catalog, DatabaseModel
from rplctl.target import open_target
from rplctl.target.base import Target
from tests.relay_log.stream import SOURCE_UUID, FakeSource, new_writer

OLD = BinlogPosition("binlog.000008", 5929)
CATALOG = Catalog({}, {"shop": DatabaseModel(name="shop", charset="utf8mb4")})


class Crash(Exception):
    pass


class Instance:
    def __init__(self, folder: Path, kind: str) -> None:
        folder.mkdir()
        self.config = Config(folder, relay_log_info_repository=kind)
        self.channel = Channel("", folder)
        self.target: Target = open_target(self.config.target_url)
        self.engine: Engine = self.target.engine
        create_own_tables(self.engine)
        create_tables(self.engine, "")
        self.old = RelayLogInfo(gtid_executed=f"{SOURCE_UUID}:1-3").at(RelayLogPosition("relay-bin.000001", 4), OLD)
        open_relay_log_info(self.config, self.channel, lambda: self.engine).flush(self.old, force=True)
        with self.engine.begin() as connection:
            store_models(connection, "", OLD, {}, CATALOG.databases)

    def store(self) -> PositionStore:
        return open_position_store(self.config, self.channel, self.engine)

    def batch(self) -> Batch:
        """A relay log as the receiver begins it for another source, with one transaction."""
        source, writer = FakeSource(BinlogPosition("binlog.000001", 4), sent=3), new_writer(self.channel)
        writer.open_new(OLD)
        writer.append(artificial_rotate(7, source.position, 1), 1)
        writer.append(source.begin() + source.transaction(), 7)
        writer.close()
        reader = RelayLogReader(self.channel, by_gtid=True)
        assert reader.open(self.old)
        groups = reader.groups(1 << 20)
        assert groups is not None
        return next(plan_batches(groups, len(groups.scan)))


@pytest.fixture(params=["FILE", "TABLE"])
def instance(request: pytest.FixtureRequest, tmp_path: Path) -> Instance:
    return Instance(tmp_path / "data", request.param)


POINTS = [
    *("crash_before_update_pos", "crash_after_update_pos_before_apply", "crash_commit_before", "crash_commit_after"),
    *("crash_after_commit_before_update_pos", "crash_after_commit_and_update_pos", "flush", ""),
]


@pytest.mark.long("Positions in a table stay.", keeps=r"TABLE")
@pytest.mark.parametrize("point", POINTS)
def test_a_crash_on_the_way_into_another_source_neither_loses_nor_repeats(
    instance: Instance, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(at: str) -> None:
        if at == point:
            raise Crash

    store = instance.store()
    info = store.open()
    batch = instance.batch()
    monkeypatch.setattr(transaction, "crash_point", crash)
    if point == "flush":
        monkeypatch.setattr(store, "committed", lambda *_, **__: crash("flush"))
    reached: Any = None
    try:
        reached = enter_new_source(info, batch, instance.target, store, CATALOG)
    except Crash:
        instance.target.close()
    monkeypatch.undo()
    assert (reached is not None) == (point == "")
    found = instance.store().open()
    before = BinlogPosition("binlog.000001", 130)
    assert found.gtid_executed == info.gtid_executed
    assert found.exec_position == OLD or (
        found.exec_position.log_name == before.log_name and found.exec_position.is_before(batch.source_position)
    )
    if point == "":
        assert found == reached or found.is_at(reached)
    with instance.engine.connect() as connection:
        assert load_models(connection, "", found.exec_position).databases == CATALOG.databases


def test_behind_it_a_crash_before_the_file_follows_goes_by_the_marker(tmp_path: Path) -> None:
    """Without the step the file, at the old source's higher position, would win, and the transaction come twice."""
    instance = Instance(tmp_path / "data", "FILE")
    store, batch = instance.store(), instance.batch()
    info = enter_new_source(store.open(), batch, instance.target, store, CATALOG)
    new = replace(
        info.at(batch.relay_position, batch.source_position), gtid_executed=info.gtid_executed.replace("1-3", "1-4")
    )
    with instance.engine.begin() as connection:
        store.advance(connection, info, new)
    found = instance.store().open()
    assert found.is_at(new) and found.gtid_executed == new.gtid_executed
    assert enter_new_source(new, batch, instance.target, store, CATALOG) == new
