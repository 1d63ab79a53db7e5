"""The order of two-phase commit, and its errors, on a target in memory and a real file: what is decided is finished."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from rplctl.channel import Channel
from rplctl.commit.marker import MarkerPositionStore, read_marker
from rplctl.commit.participants.line import LinePosition
from rplctl.commit.step import CommitStep
from rplctl.commit.transaction import commit_after, commit_group
from rplctl.commit.two_phase import XaPositionStore
from rplctl.commit.xid import xid_of
from rplctl.durable import sync_count
from rplctl.errors import LockBusy, TargetError
from rplctl.info import RelayLogInfo
from rplctl.own_tables.tables import create_own_tables
from rplctl.repository.file import FileRepository
from rplctl.repository.record import RELAY_LOG_INFO
from rplctl.target import open_engine
from tests.commit.two_phase_server import AWAY, TwoPhaseServer
from tests.commit.xa_probe import at

PREFIX = "rplctl:0:0:"
FIRST, SECOND = CommitStep(at(0), at(1)), CommitStep(at(1), at(2))
XID = xid_of(PREFIX, at(1))


class Bench:
    """A channel at position 0; `commit` inserts the row that its step leads to."""

    def __init__(self, folder: Path) -> None:
        self.repository = FileRepository(RELAY_LOG_INFO, Channel("", folder), 0)
        self.repository.flush(at(0), force=True)
        self.server: Any = TwoPhaseServer()
        self.position = LinePosition(self.repository)
        self.store = XaPositionStore(self.repository, self.position, self.server.engine, PREFIX, self.server)

    def commit(self, step: CommitStep, **options: Any) -> None:
        number = step.after.exec_position.log_pos
        commit_group(self.server, self.store, step, lambda: self.server.insert(number), **options)

    @property
    def state(self) -> tuple[list[int], RelayLogInfo, list[str], str]:
        """(rows, position with what is prepared there, prepared transactions, what is decided and not finished)."""
        return self.server.rows, self.repository.read(), list(self.server.prepared), self.store.decided


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def seen(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the server was asked, with the crash points and the guard in between."""
    said: list[str] = bench.server.said

    @contextmanager
    def guard() -> Iterator[None]:
        said.append("guard {")
        yield
        said.append("}")

    bench.store.guard = guard
    monkeypatch.setattr("rplctl.commit.two_phase.crash_point", lambda name: said.append(f"* {name}"))
    return said


def test_the_position_decides_between_prepare_and_commit(bench: Bench, seen: list[str]) -> None:
    bench.commit(FIRST, foreign_keys=False)
    assert seen == [
        *(f"claim {PREFIX}", f"begin {XID} False", "* crash_before_update_pos", "insert 1", "* crash_after_apply"),
        *("* crash_commit_before", "prepare", "* crash_commit_after_prepare", "* crash_commit_after_log", "guard {"),
        *("commit", "* crash_commit_between_engines", "* crash_commit_before_unlog", "}", "* crash_commit_after"),
    ]
    assert bench.state == ([1], at(1), [], "")


def test_with_a_log_nobody_sees_it_ahead_of_the_target(bench: Bench, seen: list[str]) -> None:
    bench.store.log = Mock()
    bench.store.log.decide.side_effect = lambda *_: seen.append("decide")
    bench.commit(FIRST)
    assert [word for word in seen if word in ("prepare", "guard {", "decide", "commit", "}")] == [
        *("prepare", "guard {", "decide", "commit", "}"),
    ]
    bench.store.log.decide.assert_called_once_with(XID, *FIRST)


def test_a_connection_is_marked_once_and_what_the_last_one_left_is_rolled_back(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    bench.commit(FIRST)
    bench.commit(SECOND)
    assert bench.server.said.count(f"claim {PREFIX}") == 1
    bench.server.prepared = {f"{PREFIX}aa": [9], "someone-else": [8]}
    bench.server.reconnect()
    bench.commit(CommitStep(at(2), at(3)))
    assert bench.server.said.count(f"claim {PREFIX}") == 2
    assert (bench.server.rows, list(bench.server.prepared)) == ([1, 2, 3], ["someone-else"])
    assert caplog.messages == [f"prepared transaction {PREFIX}aa was not decided and is rolled back"]


@pytest.mark.parametrize("where", ["insert", "prepare"])
@pytest.mark.parametrize("has_ended", [False, True], ids=["", "a deadlock has ended the branch"])
def test_before_the_decision_an_error_undoes_all(bench: Bench, where: str, has_ended: bool) -> None:
    bench.server.failures = {where: [AWAY]} | (
        {"rollback": [TargetError("no branch", errno=1397)]} if has_ended else {}
    )
    with pytest.raises(TargetError, match="Lost connection"):
        bench.commit(FIRST)
    assert ("reconnect" in bench.server.said) == has_ended
    assert bench.state == ([], at(0), [], "")
    bench.commit(FIRST)
    assert bench.state == ([1], at(1), [], "")


def failing(really: Callable[..., None], *, done: bool) -> Callable[..., None]:
    def fail(*given: Any, **options: Any) -> None:
        if done:
            really(*given, **options)
        raise OSError("no space left")

    return fail


@pytest.mark.parametrize("done", [False, True], ids=["nothing written", "written all the same"])
def test_a_position_that_cannot_be_prepared_is_taken_back_and_the_target_too(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, done: bool
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(bench.position, "prepare", failing(bench.position.prepare, done=done))
        with pytest.raises(OSError, match="no space"):
            bench.commit(FIRST)
    assert bench.state == ([], at(0), [], "")
    bench.commit(FIRST)
    assert bench.state == ([1], at(1), [], "")


def test_what_may_be_decided_is_left_prepared_then_finished_and_not_applied_again(
    bench: Bench, seen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(bench.position, "prepare", failing(bench.position.prepare, done=True))
        patched.setattr(bench.position, "rollback_by_xid", failing(bench.position.rollback_by_xid, done=False))
        with pytest.raises(OSError, match="no space"):
            bench.commit(FIRST)
    assert "rollback" not in seen and "reconnect" in seen
    assert (list(bench.server.prepared), bench.store.decided) == ([XID], XID)
    with pytest.raises(TargetError, match="is decided and not finished") as refused:
        bench.commit(SECOND)
    assert refused.value.hint == "to finish it, run: rplctl start"
    del seen[:]
    bench.commit(FIRST)
    assert seen == ["guard {", f"commit_prepared {XID}", "}"]
    assert bench.state == ([1], at(1), [], "")


@pytest.mark.parametrize("is_written", [False, True])
def test_a_log_that_fails_decides_by_what_is_in_it(bench: Bench, is_written: bool) -> None:
    bench.store.log = Mock()
    bench.store.log.decide.side_effect = OSError("no space left")
    bench.store.log.has.side_effect = lambda xid: is_written and xid == XID
    with pytest.raises(OSError, match="no space"):
        bench.commit(FIRST)
    assert (list(bench.server.prepared), bench.store.decided) == (([XID], XID) if is_written else ([], ""))
    bench.store.log = None
    bench.commit(FIRST)
    assert bench.server.rows == [1] and bench.server.said.count("insert 1") == (1 if is_written else 2)
    assert bench.state == ([1], at(1), [], "")


def test_a_commit_without_an_answer_is_finished_on_another_connection(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rplctl.commit.ambiguous_commit.PAUSE_S", 0)
    bench.server.failures = {"commit": [AWAY], "commit_prepared": [AWAY, AWAY]}
    bench.commit(FIRST)
    assert bench.server.said[-5:] == ["commit", "reconnect", *[f"commit_prepared {XID}"] * 3]
    assert bench.state == ([1], at(1), [], "")


def test_a_group_without_a_prepare_moves_only_from_where_the_position_is(bench: Bench) -> None:
    bench.server.prepared[""] = []  # not in two phases: commit() of the server in memory takes that branch
    commit_after(bench.server, bench.store, FIRST, lambda: bench.server.insert(1))
    assert bench.repository.read() == at(1)
    for moved in (FIRST, CommitStep(at(2), at(3))):
        with pytest.raises(LockBusy):
            commit_after(bench.server, bench.store, moved, lambda: pytest.fail("applied"))
        with pytest.raises(LockBusy):
            bench.store.advance(bench.server.connection, *moved)
    bench.repository.remove()
    assert bench.store.stored(bench.server.connection) is None


def test_a_stop_writes_the_last_record_durably(bench: Bench) -> None:
    before = sync_count.total()
    bench.store.close(at(3))
    assert bench.repository.read() == at(3) and sync_count.total() > before


@pytest.mark.parametrize("number", [None, 0, 2], ids=["no marker", "one in step", "one that is ahead"])
def test_a_marker_that_another_mode_left_counts_once(bench: Bench, tmp_path: Path, number: int | None) -> None:
    engine = open_engine(f"sqlite:///{tmp_path / 'target.db'}")
    create_own_tables(engine)
    if number is not None:
        marker = MarkerPositionStore(bench.repository, "", engine)
        info = marker.open()
        with engine.begin() as connection:
            marker.advance(connection, info, at(number))
    store = XaPositionStore(bench.repository, bench.position, engine, PREFIX, bench.server)
    for _ in range(2):
        assert store.open().is_at(at(number or 0))
        assert bench.repository.read().is_at(at(number or 0))
        with engine.connect() as connection:
            assert read_marker(connection, "") == (None, False)
