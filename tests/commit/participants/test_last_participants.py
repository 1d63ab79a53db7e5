"""Positions that are not prepared: the row, whose writing is the decision, and the repository behind a binary log."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rplctl.applied_log.record import PositionRecord
from rplctl.channel import Channel
from rplctl.commit.participants.log import BinlogParticipant
from rplctl.commit.participants.row import RowPosition
from rplctl.commit.xid import xid_of
from rplctl.durable import sync_count
from rplctl.errors import LockBusy, RplError
from rplctl.repository import create_tables
from rplctl.repository.file import FileRepository
from rplctl.repository.record import RELAY_LOG_INFO
from rplctl.repository.table import TableRepository
from rplctl.target import open_engine
from tests.commit.xa_probe import at

PREFIX = "rplctl:0:0:"
FIRST, SECOND = xid_of(PREFIX, at(1)), xid_of(PREFIX, at(2))


@pytest.fixture
def row(tmp_path: Path) -> RowPosition:
    engine = open_engine(f"sqlite:///{tmp_path / 'target.db'}")
    create_tables(engine)
    repository = TableRepository(RELAY_LOG_INFO, "", lambda: engine, 0)
    repository.flush(at(0), force=True)
    return RowPosition(repository, engine, PREFIX)


def test_a_row_is_decided_once_it_is_written(row: RowPosition) -> None:
    assert row.open().is_at(at(0))
    row.prepare(FIRST, at(0), at(1))
    row.rollback()
    assert (row.open().exec_position, row.recover()) == (at(1).exec_position, FIRST)
    for call in (row.commit, lambda: row.commit_by_xid(FIRST), lambda: row.close(at(0))):
        call()
    assert row.recover() == FIRST


def test_a_row_that_another_moved_is_left(row: RowPosition) -> None:
    with pytest.raises(LockBusy):
        row.prepare(SECOND, at(1), at(2))
    assert row.recover() == xid_of(PREFIX, at(0))
    row.rollback_by_xid(FIRST)
    with pytest.raises(RplError, match=f"has the position of {row.recover()}, which must be committed"):
        row.rollback_by_xid(str(row.recover()))
    row.write(at(2), durable=False)
    assert row.recover() == SECOND


class Behind:
    """A FILE at 0 behind a log that ends with `record`."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.repository = FileRepository(RELAY_LOG_INFO, Channel("", folder), 0)
        self.repository.flush(at(0), force=True)
        self.flag = folder / "relay-log.logged"
        self.record: PositionRecord | None = None
        monkeypatch.setattr("rplctl.commit.participants.log.logged_record", lambda _: self.record)

    def position(self) -> BinlogParticipant:
        return BinlogParticipant(self.repository, SimpleNamespace(), self.flag)  # type: ignore[arg-type]


@pytest.fixture
def behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Behind:
    return Behind(tmp_path, monkeypatch)


def test_the_repository_follows_the_log_while_an_applier_runs(behind: Behind) -> None:
    position = behind.position()
    assert position.open() == at(0) and behind.flag.exists()
    position.prepare(FIRST, at(0), at(1))
    position.rollback()
    assert behind.repository.read() == at(0)
    before = sync_count.total()
    position.commit()
    assert (behind.repository.read(), sync_count.total() - before) == (at(1), 0)
    with pytest.raises(LockBusy):
        position.prepare(SECOND, at(2), at(3))
    position.close(at(0))
    assert behind.flag.exists(), "a transaction is decided: the next start carries it out"
    position.close(at(1))
    assert not behind.flag.exists()


@pytest.mark.parametrize("was_running", [False, True])
def test_a_start_goes_on_from_the_log_after_a_crash_only(behind: Behind, was_running: bool) -> None:
    behind.record = PositionRecord(before=at(0), after=at(1), xid=FIRST)
    if was_running:
        behind.flag.touch()
    position = behind.position()
    assert position.recover() == (FIRST if was_running else None)
    assert position.open().exec_position == (at(1) if was_running else at(0)).exec_position
    assert behind.repository.read().exec_position == (at(1) if was_running else at(0)).exec_position


def test_a_file_that_is_not_behind_the_log_stays(behind: Behind) -> None:
    behind.flag.touch()
    behind.record = PositionRecord(before=at(0), after=at(1), xid=FIRST)
    for number in (1, 2):
        behind.repository.flush(at(number), force=True)
        assert behind.position().open() == at(number)


def test_only_the_logs_last_transaction_is_carried_out_from_where_it_began(behind: Behind) -> None:
    behind.flag.touch()
    behind.record = PositionRecord(before=at(0), after=at(1), xid=FIRST)
    position: Any = behind.position()
    position.commit_by_xid(SECOND)
    assert behind.repository.read() == at(0)
    position.commit_by_xid(FIRST)
    assert behind.repository.read().exec_position == at(1).exec_position
    behind.repository.flush(at(5), force=True)
    position.commit_by_xid(FIRST)
    assert behind.repository.read() == at(5)
    position.rollback_by_xid(SECOND)
    with pytest.raises(RplError, match=f"the binary log contains {FIRST}, which must be committed"):
        position.rollback_by_xid(FIRST)
    behind.record = PositionRecord(before=at(0), after=at(1), xid="")
    assert position.recover() is None
