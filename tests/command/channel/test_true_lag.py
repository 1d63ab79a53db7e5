"""Lag by the source's clock: from heartbeats, from looks at the source, never negative, never from old news."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rplctl.command.channel.true_lag import TrueLag, heartbeats, purge_moment, true_lag
from rplctl.command.process.thread_report import ThreadReport, Threads
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.status import ThreadStatus

NOW = 1000.0
MASTER = MasterInfo(host="h", master_log_name="b.000001", master_log_pos=500, master_server_id=7)
RELAY = RelayLogInfo(master_log_name="b.000001", master_log_pos=500)
RECEIVER = ThreadStatus(connected=True, source_seen=NOW - 10, source_log_name="b.000001", source_log_pos=500,
                        read_timestamp=NOW - 4, clock_difference=3.0)  # fmt: skip


def lag(
    receiver: ThreadStatus = RECEIVER, applier: ThreadStatus | None = None, *, runs: bool = True, at: int = 500
) -> TrueLag:
    threads = Threads(
        ThreadReport(role="receiver", pid=1 if runs else None, status=receiver, has_run=True),
        ThreadReport(role="applier", pid=2 if runs else None, status=applier or ThreadStatus(), has_run=True),
    )
    return true_lag(MASTER, replace(RELAY, master_log_pos=at), threads, NOW)


def test_the_row_of_the_channels_source_counts_else_the_newest_also_of_a_channel_that_stopped() -> None:
    assert lag(applier=ThreadStatus(heartbeats="7:990.5,9:1001")) == TrueLag(12.5, "heartbeat")
    assert lag(applier=ThreadStatus(heartbeats="3:900,9:1001")) == TrueLag(2.0, "heartbeat")
    assert lag(applier=ThreadStatus(heartbeats="7:990.5"), runs=False) == TrueLag(12.5, "heartbeat")


def test_a_clock_that_is_ahead_makes_no_lag_negative() -> None:
    assert lag(applier=ThreadStatus(heartbeats="7:2000")) == TrueLag(0.0, "heartbeat")


def test_without_heartbeats_the_last_look_at_the_source_counts_while_it_is_fresh() -> None:
    assert lag() == TrueLag(0.0, "source")
    assert lag(applier=ThreadStatus(last_event_timestamp=998), at=400) == TrueLag(5.0, "source")
    assert lag(replace(RECEIVER, source_log_pos=900)) == TrueLag(7.0, "source"), "the receiver does not keep up"
    assert lag(replace(RECEIVER, transfer_timestamp=990), at=400) == TrueLag(13.0, "source"), "in transfer"
    assert lag(replace(RECEIVER, source_log_pos=900, read_timestamp=NOW - 3.55)) == TrueLag(6.0, "source")
    for unknown in (replace(RECEIVER, source_seen=NOW - 500), replace(RECEIVER, connected=False)):
        assert lag(unknown) == TrueLag(None, "")
    assert lag(runs=False) == TrueLag(None, "")


@pytest.mark.parametrize("text", ["", "x", "7", "7:x", "a:1", ",,", "7:1e9"])
def test_a_damaged_status_has_no_heartbeat(text: str) -> None:
    assert heartbeats(text) == {}


def test_a_receiver_that_is_away_knows_the_earliest_moment_at_which_its_log_goes() -> None:
    status = replace(RECEIVER, source_keeps_s=100.0, source_purge_at=5.0)
    assert purge_moment(ThreadReport(role="receiver", pid=1, status=status, has_run=True)) == 5.0
    assert purge_moment(ThreadReport(role="receiver", pid=None, status=status, has_run=True)) == NOW - 4 - 3 + 100
    assert purge_moment(ThreadReport(role="receiver", pid=None, status=ThreadStatus(), has_run=True)) == 0.0
