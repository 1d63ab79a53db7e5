"""The one transaction: whole or not at all at every crash point and for every error, also an ambiguous COMMIT."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from rplctl.channel import Channel
from rplctl.command.selftest.crash_run import in_child
from rplctl.commit import transaction
from rplctl.commit.position_store import open_position_store
from rplctl.commit.step import CommitStep
from rplctl.commit.transaction import commit_after, commit_group
from rplctl.config import Config
from rplctl.errors import TargetError
from rplctl.info import RelayLogInfo
from rplctl.own_tables.tables import create_own_tables
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.repository import create_tables, open_relay_log_info
from rplctl.target import open_target
from rplctl.target.base import Target

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # fork with threads, Python ≥ 3.12
BEFORE_COMMIT = (
    "crash_before_update_pos",
    "crash_after_update_pos_before_apply",
    "crash_after_apply",
    "crash_commit_before",
)
AFTER_COMMIT = ("crash_commit_after", "crash_after_commit_before_update_pos", "crash_after_commit_and_update_pos")


def at(number: int) -> RelayLogInfo:
    return RelayLogInfo().at(RelayLogPosition("relay-bin.000001", 10 * number), BinlogPosition("bin.000001", number))


def prepare(folder: Path, kind: str) -> Config:
    config = Config(datadir=folder, relay_log_info_repository=kind)
    target = open_target(config.target_url)
    create_own_tables(target.engine)
    create_tables(target.engine, "")
    open_relay_log_info(config, Channel("", folder), lambda: target.engine).flush(at(0), force=True)
    with target.engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE probe (seq INTEGER PRIMARY KEY)")
    target.close()
    return config


def insert_probe(target: Target, number: int) -> None:
    target.connection.exec_driver_sql(f"INSERT INTO probe VALUES ({number})")


def apply_next(config: Config) -> int:
    """Apply one more transaction that writes its number, the way the applier does; the number."""
    target = open_target(config.target_url)
    store = open_position_store(config, Channel("", config.datadir), target.engine)
    info = store.open()
    number = info.master_log_pos + 1
    commit_group(
        target,
        store,
        CommitStep(info, at(number)),
        lambda: insert_probe(target, number),
    )
    target.close()
    return number


def probe(config: Config) -> list[int]:
    with sqlite3.connect(config.datadir / "target.db") as connection:
        found = [row[0] for row in connection.execute("SELECT seq FROM probe ORDER BY 1")]
    connection.close()
    return found


@pytest.mark.long("Positions in a table stay; tests/command/test_crash_test.py kills at each point.", keeps=r"TABLE$")
@pytest.mark.parametrize("kind", ["FILE", "TABLE"])
@pytest.mark.parametrize("point", BEFORE_COMMIT + AFTER_COMMIT)
def test_a_kill_leaves_data_and_position_together(tmp_path: Path, kind: str, point: str) -> None:
    config = prepare(tmp_path, kind)
    apply_next(config)
    assert in_child(lambda say: say(apply_next(config)), f"{point}=kill").killed
    assert probe(config) == ([1] if point in BEFORE_COMMIT else [1, 2])
    next_number = apply_next(config)
    assert probe(config) == list(range(1, next_number + 1))


def test_an_error_while_applying_rolls_the_position_back(tmp_path: Path) -> None:
    config = prepare(tmp_path, "TABLE")
    target = open_target(config.target_url)
    store = open_position_store(config, Channel("", config.datadir), target.engine)
    info = store.open()

    def fail() -> None:
        target.connection.exec_driver_sql("INSERT INTO probe VALUES (1)")
        raise TargetError("no", errno=1062)

    with pytest.raises(TargetError):
        commit_group(target, store, CommitStep(info, at(1)), fail)
    target.close()
    assert probe(config) == []
    assert apply_next(config) == 1


@pytest.mark.parametrize("durable", [True, False], ids=["it was durable", "it was not"])
def test_a_commit_that_fails_is_decided_by_the_stored_position(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durable: bool
) -> None:
    config = prepare(tmp_path, "TABLE")
    target = open_target(config.target_url)
    store = open_position_store(config, Channel("", config.datadir), target.engine)
    info = store.open()
    really_commit = target.commit

    def commit_and_lose_the_answer() -> None:
        if durable:
            really_commit()
        raise TargetError("Lost connection to server during query", errno=2013, transient=True)

    monkeypatch.setattr(target, "commit", commit_and_lose_the_answer)

    def write() -> None:
        target.connection.exec_driver_sql("INSERT INTO probe VALUES (1)")

    if durable:
        commit_group(target, store, CommitStep(info, at(1)), write)
    else:
        with pytest.raises(TargetError):
            commit_group(target, store, CommitStep(info, at(1)), write)
    target.close()
    assert probe(config) == ([1] if durable else [])


@pytest.mark.parametrize("commit", [commit_group, commit_after])
def test_the_log_of_what_was_applied_is_told_of_the_step_before_and_after_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commit: Callable[..., None]
) -> None:
    config = prepare(tmp_path, "TABLE")
    target = open_target(config.target_url)
    store = open_position_store(config, Channel("", config.datadir), target.engine)
    step = CommitStep(store.open(), at(1))
    told: list[Any] = []
    store.log = Mock()
    store.log.before_commit.side_effect = lambda *step: told.append(("before", *step))
    store.log.after_commit.side_effect = lambda *step: told.append(("after", *step))
    really_commit = target.commit

    def tell_and_commit() -> None:
        told.append("commit")
        really_commit()

    monkeypatch.setattr(target, "commit", tell_and_commit)
    commit(target, store, step, lambda: insert_probe(target, 1))
    target.close()
    assert (told, probe(config)) == ([("before", *step), "commit", ("after", *step)], [1])


@pytest.mark.parametrize("failing", ["apply", "prepare"])
def test_no_branch_stays_open_when_one_fails(failing: str) -> None:
    said: list[str] = []

    def prepare() -> None:
        said.append("prepare")
        raise TargetError("no")

    def apply() -> None:
        if failing == "apply":
            raise TargetError("no")

    branches = SimpleNamespace(
        begin=lambda *, foreign_keys: said.append("begin"),
        prepare=prepare,
        roll_back=lambda: said.append("roll back"),
        decide=lambda: said.append("decide"),
    )
    store: Any = SimpleNamespace(branches=branches, log=None, advance=lambda *_: None)
    target: Any = SimpleNamespace(connection=None)
    with pytest.raises(TargetError):
        transaction.commit_in_branches(target, store, CommitStep(at(1), at(2)), apply)
    assert said == ["begin", *(["prepare"] if failing == "prepare" else []), "roll back"]
