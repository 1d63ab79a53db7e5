"""Groups that may commit by themselves: the position follows, and a crash in between repeats them (REQ-5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from rplctl.channel import Channel
from rplctl.commit.position_store import open_position_store
from rplctl.commit.step import CommitStep, PositionStore
from rplctl.commit.transaction import commit_after, commit_group
from rplctl.config import Config
from rplctl.errors import LockBusy, TargetError
from rplctl.info import RelayLogInfo
from rplctl.own_tables.tables import create_own_tables
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.repository import create_tables, open_relay_log_info
from rplctl.target import open_target
from rplctl.target.base import Target


def at(number: int) -> RelayLogInfo:
    return RelayLogInfo().at(RelayLogPosition("relay-bin.000001", 10 * number), BinlogPosition("bin.000001", number))


@pytest.fixture(params=["TABLE", "FILE"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Target, PositionStore]:
    config = Config(datadir=tmp_path, relay_log_info_repository=request.param)
    target = open_target(config.target_url)
    create_own_tables(target.engine)
    create_tables(target.engine, "")
    channel = Channel("", tmp_path)
    open_relay_log_info(config, channel, lambda: target.engine).flush(at(0), force=True)
    store = open_position_store(config, channel, target.engine)
    store.open()
    return target, store


def stored(target: Target, store: PositionStore) -> int:
    found = store.stored(target.connection)
    target.rollback()
    assert found is not None
    return found.master_log_pos


def test_the_position_moves_after_the_change(opened: tuple[Target, PositionStore]) -> None:
    target, store = opened
    seen: list[int] = []

    def apply() -> None:
        found = store.stored(target.connection)
        assert found is not None
        seen.append(found.master_log_pos)

    commit_after(target, store, CommitStep(at(0), at(1)), apply)
    assert (seen, stored(target, store)) == ([0], 1)
    target.close()


def test_an_error_leaves_the_position_where_it_was(opened: tuple[Target, PositionStore]) -> None:
    target, store = opened

    def fail() -> None:
        raise TargetError("no", errno=1050)

    with pytest.raises(TargetError):
        commit_after(target, store, CommitStep(at(0), at(1)), fail)
    assert stored(target, store) == 0
    target.close()


def test_nothing_is_applied_when_somebody_else_moved_the_position(opened: tuple[Target, PositionStore]) -> None:
    target, store = opened
    commit_group(target, store, CommitStep(at(0), at(5)), lambda: None)
    with pytest.raises(LockBusy):
        commit_after(target, store, CommitStep(at(0), at(1)), lambda: pytest.fail("applied"))
    assert stored(target, store) == 5
    target.close()
