"""What the applier says of itself: states at once, errors kept after the stop, an earlier lag remembered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import rplctl.status
from rplctl.applier.feed.plan import Batch, plan_batches
from rplctl.applier.options import Until
from rplctl.applier.report import DELAYING, WAITING, Report
from rplctl.channel import Channel
from rplctl.durable import private_folder
from rplctl.errors import TargetError
from rplctl.info import RelayLogInfo
from rplctl.status import read_status
from tests.applier.demo_log import demo_groups


@pytest.fixture
def channel(tmp_path: Path) -> Channel:
    found = Channel("", tmp_path)
    private_folder(found.run_folder)
    return found


def last_batch() -> Batch:
    groups = demo_groups()
    return list(plan_batches(groups, len(groups.scan)))[-1]


def test_a_change_of_state_is_written_at_once_and_an_error_outlives_the_stop(channel: Channel) -> None:
    report = Report.open(channel, Until(kind="master_pos", log_name="b.000001", log_pos=9))
    report.waiting()
    assert read_status(channel.status_path("applier")).state == WAITING
    report.failed(TargetError("Duplicate entry", errno=1062, hint="rplctl skip"))
    report.stopped()
    found = read_status(channel.status_path("applier"))
    assert (found.state, found.last_errno, found.until_condition, found.until_log_pos) == ("", 1062, "Master", 9)
    assert (found.last_error, found.last_hint) == ("Duplicate entry", "rplctl skip")
    assert found.last_error_timestamp > 0


def test_progress_counts_and_the_next_start_clears_the_error_but_keeps_the_time_of_the_last_event(
    channel: Channel,
) -> None:
    batch = last_batch()
    report = Report.open(channel, Until())
    info = RelayLogInfo(gtid_executed="0-1-5").at(batch.relay_position, batch.source_position)
    report.begins(batch)
    assert read_status(channel.status_path("applier")).last_event_timestamp == batch.first_timestamp > 0
    report.applied(info, batch, 12)
    report.failed(TargetError("x", errno=1032))
    report.stopped()
    found = read_status(channel.status_path("applier"))
    assert (found.batches, found.row_changes, found.exec_log_pos) == (1, 12, batch.source_position.log_pos)
    again = Report.open(channel, Until()).status
    assert (again.last_errno, again.last_event_timestamp) == (0, batch.first_timestamp)


def test_to_and_fro_between_small_transactions_is_written_when_it_ends(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 100 transactions a second two files for each were a fifth of the applier's CPU."""
    batch = last_batch()
    report = Report.open(channel, Until())
    report.waiting()
    files: list[bytes] = []
    monkeypatch.setattr(rplctl.status, "replace_file", lambda path, data, *, durable: files.append(data))
    info = RelayLogInfo().at(batch.relay_position, batch.source_position)
    for _ in range(20):
        report.begins(batch)
        report.applied(info, batch, 1)
        report.waiting()
    assert len(files) < 20  # one each 0.2 s, however slow the machine is
    report.rests()
    found = json.loads(files[-1])
    assert (found["state"], found["batches"], found["exec_log_pos"]) == (WAITING, 20, batch.source_position.log_pos)
    files.clear()
    report.rests()
    assert not files


def test_seconds_behind_count_from_what_is_in_work_or_held_back_and_from_nothing_when_all_is_applied(
    channel: Channel,
) -> None:
    report = Report.open(channel, Until())
    report.delaying(1_700_000_000, 7)
    found = read_status(channel.status_path("applier"))
    assert (found.state, found.remaining_delay, found.last_event_timestamp) == (DELAYING, 7, 1_700_000_000)
    report.waiting()
    found = read_status(channel.status_path("applier"))
    assert (found.remaining_delay, found.last_event_timestamp) == (None, 0)
    report.counted(2, 3)
    found = read_status(channel.status_path("applier"))
    assert (found.retried_transactions, found.passed_over_errors) == (2, 3)
