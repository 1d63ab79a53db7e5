"""The position as a participant: each operation of WL#3970, whether a line or a shadow page holds what is prepared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rplctl.channel import Channel
from rplctl.commit.participants.line import LinePosition
from rplctl.commit.participants.page import PagePosition
from rplctl.durable import sync_count
from rplctl.errors import LockBusy, RplError
from rplctl.info import RelayLogInfo
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.repository.file import FileRepository
from rplctl.repository.record import RELAY_LOG_INFO

Position = LinePosition | PagePosition
XID, OTHER = "rplctl:0:0:00000000000000aa", "rplctl:0:0:00000000000000bb"


def at(number: int) -> RelayLogInfo:
    info = RelayLogInfo(gtid_executed=f"0-1-{number}", sql_delay=7)
    return info.at(
        RelayLogPosition(f"relay-bin.{number:06d}", 10 * number), BinlogPosition(f"bin.{number:06d}", 100 * number)
    )


@pytest.fixture(params=["line", "pages"])
def opened(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[], Position]:
    """A participant as another start sees it: nothing in memory."""
    repository = FileRepository(RELAY_LOG_INFO, Channel("", tmp_path), 0)
    repository.flush(at(1), force=True)

    def again() -> Position:
        fresh = FileRepository(RELAY_LOG_INFO, Channel("", tmp_path), 0)
        return LinePosition(fresh) if request.param == "line" else PagePosition(fresh, tmp_path / "relay-log.pages")

    return again


def stored(folder: Path) -> RelayLogInfo:
    return FileRepository(RELAY_LOG_INFO, Channel("", folder), 0).read()


def test_prepare_leaves_the_position_and_commit_moves_name_and_offset(
    opened: Callable[[], Position], tmp_path: Path
) -> None:
    position = opened()
    assert position.open() == at(1)
    position.prepare(XID, at(1), at(2))
    assert replace(stored(tmp_path), prepared=None) == at(1)
    position.commit()
    assert stored(tmp_path) == at(2)
    assert (position.recover(), opened().recover()) == (None, None)
    position.prepare(OTHER, at(2), at(3))
    position.commit()
    position.close(at(3))
    assert opened().open() == at(3)


def test_rollback_forgets_what_was_prepared_and_leaves_the_position(opened: Callable[[], Position]) -> None:
    position = opened()
    position.open()
    position.rollback()
    position.prepare(XID, at(1), at(2))
    position.rollback()
    assert (position.recover(), opened().recover()) == (None, None)
    position.prepare(OTHER, at(1), at(2))
    position.commit()
    assert position.recover() is None


def test_recover_names_what_was_prepared_and_commit_by_xid_moves_the_position(
    opened: Callable[[], Position], tmp_path: Path
) -> None:
    position = opened()
    position.open()
    position.prepare(XID, at(1), at(2))
    after_crash = opened()
    assert after_crash.recover() == XID
    after_crash.commit_by_xid(OTHER)
    assert after_crash.recover() == XID, "another name is ignored"
    for _ in range(2):
        opened().commit_by_xid(XID)
        assert opened().recover() is None
    assert stored(tmp_path) == at(2)
    assert opened().open() == at(2)


def test_rollback_by_xid_removes_what_was_prepared_and_refuses_another_name(
    opened: Callable[[], Position], tmp_path: Path
) -> None:
    position = opened()
    position.open()
    position.prepare(XID, at(1), at(2))
    with pytest.raises(RplError, match=OTHER):
        opened().rollback_by_xid(OTHER)
    assert opened().recover() == XID
    opened().rollback_by_xid(XID)
    assert opened().recover() is None
    assert stored(tmp_path) == at(1)
    with pytest.raises(RplError):
        opened().rollback_by_xid(XID)


def test_another_position_than_expected_is_not_moved(opened: Callable[[], Position], tmp_path: Path) -> None:
    position = opened()
    position.open()
    with pytest.raises(LockBusy):
        position.prepare(XID, at(2), at(3))
    FileRepository(RELAY_LOG_INFO, Channel("", tmp_path), 0).flush(at(9), force=True)
    with pytest.raises(LockBusy):
        position.prepare(XID, at(1), at(2))
    assert opened().recover() is None


def test_a_stop_with_something_decided_keeps_the_decision(opened: Callable[[], Position]) -> None:
    position = opened()
    position.open()
    position.prepare(XID, at(1), at(2))
    position.close(at(1))
    assert opened().recover() == XID


def test_a_stop_leaves_the_last_record_in_the_file_alone(opened: Callable[[], Position], tmp_path: Path) -> None:
    position = opened()
    position.open()
    position.close(at(2))
    assert stored(tmp_path) == at(2) and opened().open() == at(2)


def test_without_a_prepare_the_position_is_written_at_once(opened: Callable[[], Position], tmp_path: Path) -> None:
    position = opened()
    position.open()
    position.write(at(2), durable=True)
    assert stored(tmp_path) == at(2)
    position.prepare(XID, at(2), at(3))
    position.commit()
    assert stored(tmp_path) == at(3)


def test_a_record_that_outgrows_its_page_gets_larger_pages(tmp_path: Path) -> None:
    repository = FileRepository(RELAY_LOG_INFO, Channel("", tmp_path), 0)
    repository.flush(at(1), force=True)
    position = PagePosition(repository, tmp_path / "relay-log.pages")
    position.open()
    long = replace(at(2), gtid_executed=",".join(f"{n}-1-1" for n in range(1000)))
    position.prepare(XID, at(1), long)
    position.commit()
    assert stored(tmp_path) == long


def test_a_line_costs_two_fsyncs_a_transaction_all_in_prepare(tmp_path: Path) -> None:
    """WL#5125 variant 2. Until the next prepare the last durable file and the target's list say the same as commit."""
    repository = FileRepository(RELAY_LOG_INFO, Channel("", tmp_path), 1)
    repository.flush(at(1), force=True)
    position = LinePosition(repository)
    before = sync_count.total()
    position.prepare(XID, at(1), at(2))
    assert sync_count.total() - before == 2
    position.commit()
    assert sync_count.total() - before == 2
    path = tmp_path / "relay-log.info"
    assert b"prepared" not in path.read_bytes()
    path.write_bytes(b"")  # a power cut: the name is there, its data is not
    again = LinePosition(FileRepository(RELAY_LOG_INFO, Channel("", tmp_path), 1))
    assert again.recover() == XID
    again.commit_by_xid(XID)
    assert stored(tmp_path) == at(2)
