"""The binary log as coordinator of two-phase commit: in the log → commit, not in it → roll back (WL#5125 8)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from rplctl.applied_log.binary_log import BinaryLog, LoggedEvents, no_events
from rplctl.applied_log.end import logged_record
from rplctl.applied_log.files import binary_log_files
from rplctl.channel import Channel
from rplctl.commit.participants.choice import logged_path
from rplctl.commit.position_store import open_position_store
from rplctl.commit.step import CommitStep
from rplctl.commit.transaction import commit_group
from rplctl.config import Config
from rplctl.durable import sync_count
from rplctl.errors import ConfigError, RelayLogError
from rplctl.event.format_description import build_format_description, parse_format_description
from rplctl.target import open_engine, open_target
from rplctl.target.base import Target
from tests.commit.xa_probe import at, config_of, insert, killed_at, numbers, prepare
from tests.kit.servers import MariadbServer, PostgresqlServer

OUTCOMES = {  # WL#3970: whether the transaction is there after the next start
    "crash_commit_before": False,
    "crash_commit_after_prepare": False,
    "crash_commit_after_log": True,
    "crash_commit_between_engines": True,
    "crash_commit_before_unlog": True,
    "crash_commit_after": True,
}
DESCRIPTION = parse_format_description(build_format_description(1, 0, 1, "8.0.40"))
EVENTS = LoggedEvents(DESCRIPTION, 0, True, no_events)

pytestmark = [pytest.mark.slow, pytest.mark.mariadb]


@pytest.fixture(scope="module")
def target(mariadb_factory: Callable[..., MariadbServer]) -> MariadbServer:
    return mariadb_factory("--skip-log-bin", "--skip-log-slave-updates")


def apply_next(config: Config, apply: Callable[[Target, int], None] = insert) -> int:
    """Start, apply one more transaction, stop; its number."""
    opened = open_target(config.target_url)
    try:
        opened.fence("")
        store = open_position_store(config, Channel("", config.datadir), opened.engine)
        info = store.open()
        assert store.log is not None
        number = info.master_log_pos + 1
        store.log.open()
        store.log.stage(EVENTS, info)
        commit_group(opened, store, CommitStep(info, at(number)), lambda: apply(opened, number))
        store.log.close()
        store.close(at(number))
    finally:
        opened.close()
    return number


def logged(config: Config) -> int:
    """The number that the log ends with."""
    record = logged_record(binary_log_files(config, Channel("", config.datadir)))
    return record.after.master_log_pos if record else 0


def start(config: Config) -> int:
    """What recovery makes of it: the position."""
    engine = open_engine(config.target_url)
    try:
        store = open_position_store(config, Channel("", config.datadir), engine)
        return store.open().master_log_pos
    finally:
        engine.dispose()


@pytest.mark.long("One crash point stays; `crash-test` walks the others.", keeps=r"^crash_commit_after_log-line$")
@pytest.mark.parametrize(
    ("point", "prepared_position"),
    [
        *((point, kept) for point in OUTCOMES for kept in ("line", "binlog")),
        ("crash_commit_after_prepare", "pages"),
        ("crash_commit_after_log", "pages"),
    ],
)
def test_the_log_decides_at_every_crash_point(
    tmp_path: Path, target: MariadbServer, point: str, prepared_position: str
) -> None:
    config = config_of(tmp_path, target.url(), log_bin="binlog", prepared_position=prepared_position)
    prepare(config)
    assert [apply_next(config), apply_next(config)] == [1, 2]
    killed_at(point, lambda: apply_next(config))
    expected = 3 if OUTCOMES[point] else 2
    assert logged(config) == expected, "the log said so before anything was recovered"
    assert start(config) == expected
    assert numbers(config) == list(range(1, expected + 1))
    assert target.sql("XA RECOVER") == []
    assert apply_next(config) == expected + 1
    assert numbers(config) == list(range(1, expected + 2)) and logged(config) == expected + 1


@pytest.mark.long("test_the_log_decides_at_every_crash_point takes the same steps on SQLite.")
@pytest.mark.postgresql
@pytest.mark.parametrize("point", ["crash_commit_after_prepare", "crash_commit_after_log", "crash_commit_before_unlog"])
def test_on_postgresql(tmp_path: Path, postgresql: PostgresqlServer, point: str) -> None:
    config = config_of(tmp_path, postgresql.url(), log_bin="binlog", prepared_position="binlog")
    prepare(config)
    apply_next(config)
    killed_at(point, lambda: apply_next(config))
    expected = 2 if OUTCOMES[point] else 1
    assert start(config) == expected == logged(config)
    assert numbers(config) == list(range(1, expected + 1))


def test_a_torn_record_is_no_decision(tmp_path: Path, target: MariadbServer) -> None:
    config = config_of(tmp_path, target.url(), log_bin="binlog")
    prepare(config)
    apply_next(config)
    killed_at("crash_commit_after_log", lambda: apply_next(config))
    log = tmp_path / "binlog.000001"
    log.write_bytes(log.read_bytes()[:-1])
    assert start(config) == 1 and numbers(config) == [1]
    assert target.sql("XA RECOVER") == []


def test_what_was_prepared_before_the_log_was_switched_on_is_carried_out(tmp_path: Path, target: MariadbServer) -> None:
    config = config_of(tmp_path, target.url(), log_bin="binlog")
    prepare(config)
    without = config_of(tmp_path, target.url())
    from tests.commit import xa_probe

    assert xa_probe.apply_next(without) == 1
    killed_at("crash_commit_after_log", lambda: xa_probe.apply_next(without))
    assert start(config) == 2 and numbers(config) == [1, 2]


def test_the_log_cannot_be_switched_off_while_it_alone_knows(tmp_path: Path, target: MariadbServer) -> None:
    config = config_of(tmp_path, target.url(), log_bin="binlog", prepared_position="binlog")
    prepare(config)
    apply_next(config)
    assert not logged_path(Channel("", tmp_path)).exists(), "an orderly stop"
    killed_at("crash_commit_between_engines", lambda: apply_next(config))
    without = config_of(tmp_path, target.url())
    with pytest.raises(ConfigError, match="log_bin no longer names"):
        start(without)
    assert start(config) == 2


def test_a_log_that_cannot_be_written_rolls_the_transaction_back(
    tmp_path: Path, target: MariadbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_of(tmp_path, target.url(), log_bin="binlog")
    prepare(config)
    apply_next(config)

    def broken(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("rplctl.applied_log.writer.write_all", broken)
    with pytest.raises(RelayLogError, match="Input/output error"):
        apply_next(config)
    monkeypatch.undo()
    assert target.sql("XA RECOVER") == []
    assert start(config) == 1 == logged(config) and numbers(config) == [1]
    assert apply_next(config) == 2


def test_the_record_is_the_positions_only_fsync(tmp_path: Path, target: MariadbServer) -> None:
    """WL#5125 variant 1: of the two, one is the engine's."""
    config = config_of(tmp_path, target.url(), log_bin="binlog", prepared_position="binlog")
    prepare(config)
    opened = open_target(config.target_url)
    store = open_position_store(config, Channel("", tmp_path), opened.engine)
    info, log = store.open(), store.log
    assert isinstance(log, BinaryLog)
    log.stage(EVENTS, info)
    before = sync_count.total()
    for number in range(1, 6):
        log.stage(EVENTS, at(number - 1))
        step = CommitStep(at(number - 1), at(number))
        commit_group(opened, store, step, partial(insert, opened, number))
    assert sync_count.total() - before == 5
    opened.close()
