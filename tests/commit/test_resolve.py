"""What a crash left between two phases: decided → committed, everything else of ours → rolled back, twice the same."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from rplctl.applied_log.record import PositionRecord
from rplctl.channel import Channel
from rplctl.commit.participants.choice import logged_path, pages_path
from rplctl.commit.participants.line import LinePosition
from rplctl.commit.participants.page import PagePosition
from rplctl.commit.resolve import finish_prepared, open_two_phase, resolve_prepared, terminate_predecessor
from rplctl.commit.two_phase import XaPositionStore
from rplctl.commit.xid import INSTANCE_FILE, xid_of, xid_prefix
from rplctl.config import Config
from rplctl.errors import ConfigError, TargetError
from rplctl.own_tables.tables import create_own_tables
from rplctl.repository.file import FileRepository
from rplctl.repository.record import RELAY_LOG_INFO
from rplctl.target import open_engine
from tests.commit.two_phase_server import TwoPhaseServer
from tests.commit.xa_probe import at

PREFIX = "rplctl:0:0:"
A, B, FOREIGN = f"{PREFIX}aa", f"{PREFIX}bb", "rplctl:1:0:cc"

CASES = list(product([None, A, B], [None, A, B], [(), (A,), (B,), (A, B)]))


class Decided:
    """A participant that holds the decision about one transaction, or none."""

    def __init__(self, xid: str | None) -> None:
        self.xid, self.moved = xid, False

    def recover(self) -> str | None:
        return self.xid

    def commit_by_xid(self, xid: str) -> None:
        assert xid == self.xid
        self.moved, self.xid = True, None

    def rollback_by_xid(self, xid: str) -> None:
        assert xid == self.xid
        self.xid = None


def left_by(*xids: str) -> Any:
    server = TwoPhaseServer()
    server.prepared = {xid: [number] for number, xid in enumerate(xids)}
    return server


@pytest.mark.parametrize(("decision", "logged", "still"), CASES)
def test_what_is_decided_is_committed_and_nothing_else(
    decision: str | None, logged: str | None, still: tuple[str, ...]
) -> None:
    """A decision of the position that the log does not have goes back, unless the target has committed it."""
    server, position = left_by(*still, FOREIGN), Decided(decision)
    resolve_prepared([position, Decided(None)], server, PREFIX, server, logged)  # type: ignore[list-item]
    goes_back = logged is not None and decision in still and decision != logged
    committed = {xid for xid in still if xid == logged or (xid == decision and not goes_back)}
    assert set(server.said) == {
        *(f"commit_prepared {xid}" for xid in committed),
        *(f"rollback_prepared {xid}" for xid in still if xid not in committed),
    }
    assert list(server.prepared) == [FOREIGN]
    assert (position.xid, position.moved) == (None, decision is not None and not goes_back)


def test_a_decision_is_forgotten_last() -> None:
    """Cut off before the target has it all, it is found again."""
    server, position = left_by(A), Decided(A)
    server.failures = {"commit_prepared": [TargetError("Lost connection", errno=2013)]}
    with pytest.raises(TargetError):
        resolve_prepared([position], server, PREFIX, server)  # type: ignore[list-item]
    assert (position.xid, list(server.prepared)) == (A, [A])
    resolve_prepared([position], server, PREFIX, server)  # type: ignore[list-item]
    assert (position.moved, server.rows) == (True, [0])


class Start:
    """A channel whose position is in a FILE, on a target that can prepare."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.channel = Channel("", folder)
        self.engine = open_engine(f"sqlite:///{folder / 'target.db'}")
        create_own_tables(self.engine)
        self.server: Any = left_by()
        self.repository = FileRepository(RELAY_LOG_INFO, self.channel, 0)
        self.repository.flush(at(0), force=True)
        self.verbs: Any = self.server
        monkeypatch.setattr("rplctl.commit.resolve.two_phase_verbs", lambda _: self.verbs)

    def config(self, mode: str, **options: Any) -> Config:
        return Config(self.channel.datadir, commit_mode=mode, **options)

    def open(self, mode: str, **options: Any) -> XaPositionStore | None:
        return open_two_phase(self.config(mode, **options), self.channel, self.engine, self.repository)


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    return Start(tmp_path, monkeypatch)


def test_a_target_that_cannot_prepare_is_told_only_where_it_is_to(start: Start) -> None:
    start.verbs = None
    assert start.open("auto") is None
    with pytest.raises(ConfigError, match="commit_mode=xa: a target of kind sqlite cannot prepare a transaction"):
        start.open("xa")


def test_another_mode_asks_nothing_as_long_as_there_never_was_this_one(start: Start) -> None:
    start.server.prepared = {xid_prefix(start.channel) + "aa": [1]}
    (start.channel.datadir / INSTANCE_FILE).unlink()
    assert (start.open("auto"), start.server.said) == (None, [])
    terminate_predecessor(start.channel, start.engine)
    finish_prepared(start.config("auto"), start.channel, lambda: pytest.fail("asked"))
    assert start.server.said == []


@pytest.mark.parametrize("mode", ["auto", "xa"])
def test_every_mode_resolves_what_this_one_left(start: Start, mode: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    prefix = xid_prefix(start.channel)
    decided, other = xid_of(prefix, at(1)), f"{prefix}bb"
    LinePosition(start.repository).prepare(decided, at(0), at(1))
    start.server.prepared = {decided: [1], other: [2]}
    start.server.check = lambda *_: ["a weakness"]
    store = start.open(mode)
    assert (store is None) == (mode == "auto")
    assert (start.repository.read(), start.server.rows, start.server.prepared) == (at(1), [1], {})
    assert caplog.messages == [
        f"prepared transaction {decided} was decided and is committed",
        f"prepared transaction {other} was not decided and is rolled back",
        *(["commit_mode=xa: a weakness"] if mode == "xa" else []),
    ]
    terminate_predecessor(start.channel, start.engine)
    assert start.server.said[-1] == f"evict {prefix}"


@pytest.mark.parametrize("chosen", ["line", "pages"])
def test_pages_that_are_no_more_chosen_go_into_the_file(start: Start, chosen: str) -> None:
    prefix = xid_prefix(start.channel)
    pages = PagePosition(start.repository, pages_path(start.channel))
    pages.open()
    pages.prepare(xid_of(prefix, at(1)), at(0), at(1))
    start.server.prepared = {xid_of(prefix, at(1)): [1]}
    store = start.open("xa", prepared_position=chosen)
    opened = replace(at(1), left_at=at(1).place)  # from here on the target needs the owner's row
    assert store is not None and store.open() == opened
    assert (start.repository.read(), start.server.rows) == (opened, [1])
    assert pages_path(start.channel).exists() == (chosen == "pages")
    finish_prepared(start.config("xa"), start.channel, lambda: start.engine)
    assert not pages_path(start.channel).exists() and start.repository.read() == opened


def test_a_log_that_decided_and_is_no_longer_named_is_asked_for(start: Start) -> None:
    xid_prefix(start.channel)
    logged_path(start.channel).touch()
    with pytest.raises(ConfigError, match="its position was in a binary log that log_bin no longer names"):
        start.open("auto")
    logged_path(start.channel).unlink()
    with pytest.raises(ConfigError, match="prepared_position=binlog requires log_bin"):
        start.open("xa", prepared_position="binlog")


def test_before_the_position_moves_elsewhere_it_is_what_was_decided(start: Start) -> None:
    xid = xid_of(xid_prefix(start.channel), at(1))
    LinePosition(start.repository).prepare(xid, at(0), at(1))
    start.server.prepared = {xid: [1]}
    finish_prepared(start.config("xa"), start.channel, lambda: start.engine)
    assert (start.repository.read(), start.server.rows) == (at(1), [1])


@pytest.mark.parametrize("position", ["line", "binlog"])
def test_what_the_binary_log_says_goes_into_the_repository_when_it_is_no_more_chosen(
    start: Start, monkeypatch: pytest.MonkeyPatch, position: str
) -> None:
    xid = xid_of(xid_prefix(start.channel), at(1))
    logged_path(start.channel).touch()
    for place in ("resolve", "participants.log"):
        monkeypatch.setattr(
            f"rplctl.commit.{place}.logged_record", lambda _: PositionRecord(before=at(0), after=at(1), xid=xid)
        )
    start.server.prepared = {xid: [1]}
    store = start.open("xa", log_bin="binlog", prepared_position=position)
    assert store is not None and start.server.rows == [1]
    assert start.repository.read().is_at(at(1))
    assert logged_path(start.channel).exists() == (position == "binlog")
    finish_prepared(start.config("xa", log_bin="binlog"), start.channel, lambda: start.engine)
    assert not logged_path(start.channel).exists() and start.repository.read().is_at(at(1))
