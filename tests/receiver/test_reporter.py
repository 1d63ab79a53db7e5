"""What show-status can read of a receiver: its states and errors at once, its progress not more often than it must."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import rplctl.status
from rplctl.channel import Channel
from rplctl.errors import RplError, SourceError
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.receiver.reporter import QUEUEING, REQUESTING, WAITING, Reporter
from rplctl.receiver.retrieved_gtids import RetrievedGtids
from rplctl.source import SourceIdentity
from rplctl.status import ThreadStatus, read_status

SOURCE = SourceIdentity(server_id=4711, uuid="a-b-c", version="8.4.3", is_mariadb=False, clock_difference=1.5)
RELAY_END = RelayLogPosition("relay-bin.000001", 4)
AWAY = SourceError("error connecting to master", errno=2003, transient=True)


def gtids(number: int) -> RetrievedGtids:
    return RetrievedGtids(f"{'0' * 8}-0000-0000-0000-{'0' * 12}:1-{number}" if number else "", is_mariadb=False)


def reporter(folder: Path) -> tuple[Reporter, Path]:
    channel = Channel("", folder)
    channel.run_folder.mkdir(parents=True)
    return Reporter(channel), channel.status_path("receiver")


def test_a_change_of_state_is_there_at_once(tmp_path: Path) -> None:
    report, path = reporter(tmp_path)
    report.state("Connecting to master")
    assert (read_status(path).state, read_status(path).connected) == ("Connecting to master", False)
    report.connected(SOURCE)
    status = read_status(path)
    assert (status.state, status.connected, status.master_server_id, status.clock_difference) == (
        REQUESTING, True, 4711, 1.5
    )  # fmt: skip


def test_progress_is_written_a_few_times_a_second_not_for_every_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic()
    clock = SimpleNamespace(monotonic=lambda: now, time=time.time, sleep=time.sleep)
    monkeypatch.setattr(rplctl.status, "time", clock)  # a thousand batches may take longer than the interval
    report, path = reporter(tmp_path)
    report.connected(SOURCE)
    written = path.stat().st_mtime_ns  # an inode's number comes again
    for at in range(1000):
        report.received(BinlogPosition("b.000001", at), gtids(at), at, RELAY_END)
    assert path.stat().st_mtime_ns == written, "the file was replaced within its interval"
    now += 1
    report.received(BinlogPosition("b.000001", 5000), gtids(5000), 0, RELAY_END)
    status = read_status(path)
    assert (status.read_log_pos, status.retrieved_gtid_set) == (5000, gtids(5000).text)
    report.received(BinlogPosition("b.000001", 6000), gtids(6000), 0, RELAY_END)
    assert read_status(path).read_log_pos == 5000
    assert status.state == QUEUEING
    report.silent()
    assert read_status(path).state == WAITING
    assert read_status(path).read_log_pos == 6000, "a source that pauses is shown as far as it was read"


def test_an_error_is_kept_with_its_time_until_a_connection_stands(tmp_path: Path) -> None:
    report, path = reporter(tmp_path)
    report.connecting()
    assert read_status(path).state == "Connecting to master"
    report.connected(SOURCE)
    report.retrying(AWAY)
    status = read_status(path)
    assert (status.last_errno, status.last_error, status.connected) == (2003, "error connecting to master", False)
    assert status.state == "Reconnecting after a failed master event read" and status.last_error_timestamp > 0
    report.connecting()
    assert read_status(path).state == "Reconnecting after a failed master event read", "as long as it tries"
    report.connected(SOURCE)
    status = read_status(path)
    assert (status.last_errno, status.last_error, status.last_error_timestamp) == (0, "", 0.0)


def test_a_failure_outlives_the_process_and_its_successor_shows_it(tmp_path: Path) -> None:
    report, path = reporter(tmp_path)
    report.connected(SOURCE)
    report.failed(RplError("an error without a number"))
    report.stopped()
    status = read_status(path)
    assert (status.state, status.connected) == ("", False)
    assert status.last_errno == 1593  # ER_SLAVE_FATAL_ERROR
    assert status.last_error == "an error without a number" and "rplctl start" in status.last_hint
    successor = Reporter(Channel("", tmp_path))
    successor.begin()
    successor.state("Connecting to master")
    assert read_status(path).last_error == status.last_error


def test_heartbeats_are_counted(tmp_path: Path) -> None:
    report, _ = reporter(tmp_path)
    for _ in range(3):
        report.heartbeat()
    assert report.status.received_heartbeats == ThreadStatus().received_heartbeats + 3


def test_the_last_word_on_a_final_error_is_the_way_out(tmp_path: Path) -> None:
    report, path = reporter(tmp_path)
    report.failed(SourceError("purged", errno=1236, hint="rplctl change-master"))
    report.stopped()
    assert (read_status(path).last_error, read_status(path).last_hint) == ("purged", "rplctl change-master")
