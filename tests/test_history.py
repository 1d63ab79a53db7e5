"""The history: one line for each event, private, bounded, whole again behind a torn line, and no reason to fail."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import rplctl.history
from rplctl.history import HISTORY, note_event, read_history
from rplctl.locks import flock


def texts(folder: Path) -> list[str]:
    return [event.Info for event in read_history(folder)]


def test_an_event_says_when_what_and_who_and_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "anna")
    os.umask(old := os.umask(0))
    try:
        note_event(tmp_path, "", "stop", "receiver\nand a surrogate \udc80, password='C4nary'")
        note_event(tmp_path, "c", "error", "gone", thread="applier", errno=1032, position="b.000001:4")
        note_event(tmp_path, None, "backup", "/backup")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / HISTORY).stat().st_mode) == 0o600
    assert b"C4nary" not in (tmp_path / HISTORY).read_bytes()
    stopped, failed, saved = read_history(tmp_path)
    assert (stopped.Channel_Name, stopped.Event, stopped.Process) == ("", "stop", os.getpid())
    assert stopped.Info == "receiver\nand a surrogate \udc80, password=<secret>"
    assert "(sudo by anna) from " in stopped.Done_By and stopped.Time.endswith("Z")
    assert (failed.Thread, failed.Errno, failed.Position, failed.Done_By) == ("applier", 1032, "b.000001:4", "")
    assert saved.Channel_Name is None


def test_a_torn_line_is_passed_over_and_the_next_one_is_whole(tmp_path: Path) -> None:
    note_event(tmp_path, "", "start", "1")
    for torn in (
        b'{"Time": "2026',
        b"\0\0\0",
        b"[" * 100_000,
        b'{"Time": 1}',
        b'{"Time": "x", "Errno": "y", "Info": "2"}',
    ):
        with (tmp_path / HISTORY).open("ab") as file:
            file.write(torn)
        note_event(tmp_path, "", "start", "3")
    assert texts(tmp_path) == ["1", "3", "3", "3", "3", "2", "3"]


def test_it_keeps_the_last_events_of_two_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rplctl.history, "LARGEST", 2000)
    for number in range(100):
        note_event(tmp_path, "", "start", str(number))
    found = texts(tmp_path)
    assert found == [str(number) for number in range(100 - len(found), 100)] and len(found) > 10
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 5000


def test_writers_at_the_same_time_lose_no_event_of_each_other(tmp_path: Path) -> None:
    program = (
        "import sys, rplctl.history as h; from pathlib import Path; h.LARGEST = 30000\n"
        "for n in range(100): h.note_event(Path(sys.argv[1]), sys.argv[2], 'start', str(n))"
    )
    writers = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path), name]) for name in "abc"]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    for name in "abc":
        found = [int(event.Info) for event in read_history(tmp_path) if event.Channel_Name == name]
        assert found == [*range(100 - len(found), 100)] and len(found) > 95, "two files hold all but the very first"


def test_one_that_cannot_be_written_is_told_and_holds_up_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / HISTORY).symlink_to(tmp_path / "elsewhere")
    note_event(tmp_path, "", "start", "x")
    note_event(tmp_path / "none", "", "start", "x")
    assert [HISTORY in record.message for record in caplog.records] == [True, True]
    assert not (tmp_path / "elsewhere").exists()


def test_a_frozen_process_that_holds_the_lock_holds_up_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rplctl.history.PATIENCE_S", 0.05)
    note_event(tmp_path, "", "start", "")
    with (tmp_path / HISTORY).open("rb") as held:
        flock(held.fileno())
        note_event(tmp_path, "", "stop", "")
    assert "another process holds its lock" in caplog.text
    note_event(tmp_path, "", "start", "again")
    assert [event.Info for event in read_history(tmp_path)] == ["", "again"]
