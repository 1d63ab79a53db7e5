"""Status files: whole or absent, readable by older and newer programs."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rplctl import status
from rplctl.applier.options import Until
from rplctl.applier.report import Report
from rplctl.channel import Channel
from rplctl.durable import private_folder
from rplctl.errors import RplError
from rplctl.receiver.reporter import Reporter
from rplctl.status import PULSE_S, StatusFile, ThreadStatus, read_status
from tests.kit.replica import wait_until
from tests.kit.small_disk import fill, release, small_disk

pytestmark = pytest.mark.slow


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "applier.status.json"
    ThreadStatus(state="Reading", last_errno=1062, last_error="x: 'Zoë'", remaining_delay=3).write(path)
    found = read_status(path)
    assert (found.state, found.last_errno, found.last_error, found.remaining_delay) == ("Reading", 1062, "x: 'Zoë'", 3)


@pytest.mark.parametrize("content", [None, b"", b"{", b"\xff\xfe"])
def test_no_status_is_an_empty_status(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "s.json"
    if content is not None:
        path.write_bytes(content)
    assert read_status(path).state == ""


def test_fields_of_a_newer_program_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"state": "x", "invented_later": 1}))
    assert read_status(path).state == "x"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path, 1) as folder:
        yield folder


@pytest.fixture
def threads(disk: Path) -> tuple[Channel, Report, Reporter]:
    """A channel on it, and what its applier and its receiver say of themselves with."""
    channel = Channel("", disk)
    private_folder(channel.run_folder)
    return channel, Report.open(channel, Until()), Reporter(channel)


def test_on_a_full_disk_both_threads_go_on_and_what_they_say_is_true(
    disk: Path, threads: tuple[Channel, Report, Reporter], caplog: pytest.LogCaptureFixture
) -> None:
    channel, applier, receiver = threads
    receiver.state("Connecting to master")
    fill(disk)
    applier.state("Reading")
    applier.failed(RplError("disk full", errno=1021))
    applier.stopped()
    receiver.retrying(RplError("away", errno=2003))
    found = [read_status(channel.status_path(role)) for role in ("applier", "receiver")]
    assert [status.last_errno for status in found] == [1021, 2003]
    assert found[0].last_error == "disk full" and "rplctl start" in found[0].last_hint and found[1].last_error == "away"
    assert list(channel.run_folder.glob(".*.tmp*")) == []
    applier.status.executed_gtid_set = "0-1-1," * 2000  # does not fit where the old one was
    applier.write()
    applier.write()
    assert read_status(channel.status_path("applier")).last_errno == 1021
    said = [record.getMessage() for record in caplog.records if record.name == "rplctl.status"]
    assert [text.count("out of date: No space left") for text in said] == [1]
    release(disk)
    applier.write()
    assert read_status(channel.status_path("applier")).executed_gtid_set == applier.status.executed_gtid_set


def test_on_a_read_only_disk_both_threads_go_on_and_the_log_says_what_show_status_cannot(
    disk: Path, threads: tuple[Channel, Report, Reporter], caplog: pytest.LogCaptureFixture
) -> None:
    channel, applier, receiver = threads
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    for _ in range(2):
        applier.write()
        receiver.state("Connecting to master")
    assert [r.getMessage().partition(", ")[2] for r in caplog.records] == [
        "so show-status is out of date: Read-only file system"
    ] * 2
    subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
    receiver.state("Waiting")
    assert read_status(channel.status_path("receiver")).state == "Waiting"


def test_the_pulse_gives_the_file_a_new_time_and_writes_only_what_others_changed(tmp_path: Path) -> None:
    file = StatusFile(tmp_path / "s.json", ThreadStatus(state="Reading"))
    file.write()
    first = file.path.stat()
    os.utime(file.path, (1000.0, 1000.0))
    with file.pulse():
        wait_until(lambda: file.path.stat().st_mtime > 1000.0)
        assert file.path.stat().st_ino == first.st_ino, "the content is the same"
        before = read_status(file.path)
        assert before.updated > before.worked, "the thread itself said nothing"
        file.status.heartbeats = "1:5"  # by another thread
        wait_until(lambda: read_status(file.path).heartbeats == "1:5")
        assert read_status(file.path).worked == before.worked
        assert not file.write_if_older(60) and file.write_if_older(0)
    assert read_status(file.path).worked > before.worked
    os.utime(file.path, (1000.0, 1000.0))
    time.sleep(2 * PULSE_S)
    assert file.path.stat().st_mtime == 1000.0, "behind the block nothing beats"


def test_the_pulse_of_a_thread_that_waits_ends_with_its_own_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that is busy for long keeps its pulse; of one that is to come by each second, silence is seen."""
    monkeypatch.setattr(status, "PULSE_S", 0.0)
    ages = {}
    for is_waiting in (True, False):
        path = tmp_path / f"{is_waiting}.json"
        file = StatusFile(path, ThreadStatus(state="x", is_waiting=is_waiting), patience_s=0.0)
        file.write()
        os.utime(path, (1, 1))
        file.beat()
        ages[is_waiting] = path.stat().st_mtime
    assert ages[True] == 1 and ages[False] > 1
