"""Logs stay small while their processes run, however many of them turn one over."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from rplctl import log_file
from rplctl.log_file import keep_small, turn_over
from tests.kit.replica import wait_until


def test_what_is_in_a_large_log_is_kept_once_more_and_the_log_begins_anew(tmp_path: Path) -> None:
    log, before = tmp_path / "applier.log", tmp_path / "applier.log.1"
    log.write_bytes(b"first\n" * 10)
    assert not turn_over(log, 60)
    assert turn_over(log, 59)
    assert (log.read_bytes(), before.stat().st_mode & 0o777) == (b"", 0o600)
    assert before.read_bytes() == b"first\n" * 9, "bounded, from the beginning of a line"
    log.write_bytes(b"second\n" * 10)
    assert turn_over(log, 69)
    assert before.read_bytes() == b"second\n" * 9


def test_two_processes_that_turn_over_and_write_leave_whole_lines_within_bounds(tmp_path: Path) -> None:
    log = tmp_path / "applier.log"
    log.touch()
    program = (
        "import os, sys; from pathlib import Path; from rplctl.log_file import turn_over; p = Path(sys.argv[1])\n"
        "fd = os.open(p, os.O_WRONLY | os.O_APPEND)\n"
        "for n in range(3000):\n"
        "    os.write(fd, b'%04d of %s\\n' % (n, sys.argv[2].encode()))\n"
        "    n % 50 or turn_over(p, 20000)\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, str(log), name]) for name in ("one", "two")]
    assert [process.wait(120) for process in running] == [0, 0]
    for path in (log, tmp_path / "applier.log.1"):
        lines = path.read_text().splitlines()
        assert path.stat().st_size <= 40_000
        assert all(line[4:] in (" of one", " of two") for line in lines), "no hole, no half line"


def test_a_running_process_keeps_its_log_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(turn_over, "__defaults__", (1000,))
    log = tmp_path / "receiver.log"
    with open(log, "ab", buffering=0) as file:
        keep_small([log])
        for _ in range(100):
            file.write(b"a line\n" * 10)
        wait_until(lambda: log.stat().st_size == 0, 60)
        file.write(b"goes on\n")
    assert log.read_bytes() == b"goes on\n", "at its start: no hole of zeros"
    assert any(thread.name == "rplctl-log" for thread in threading.enumerate())


@pytest.mark.parametrize("kind", ["symlink", "fifo", "folder"])
def test_what_is_no_log_is_not_touched(kind: str, tmp_path: Path) -> None:
    log, other = tmp_path / "applier.log", tmp_path / "other"
    other.write_bytes(b"x" * 100)
    if kind == "symlink":
        log.symlink_to(other)
    elif kind == "fifo":
        os.mkfifo(log)
    else:
        log.mkdir()
    try:
        turn_over(log, 10)
    except OSError:
        pass
    assert other.read_bytes() == b"x" * 100
