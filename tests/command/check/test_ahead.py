"""What `check` foresees: bounds, levels, and sentences that say how long it takes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rplctl.cli import run
from rplctl.command.check.ahead import check_ahead, judge_purge, judge_skew, rough
from rplctl.command.show_status import status_and_threads
from rplctl.config import load_config

CODES = {"source_purges_soon", "source_purges_now", "relay_disk_filling", "relay_disk_full_soon", "clock_skew",
         "heartbeat_old"}  # fmt: skip


def test_each_code_is_found_in_what_the_threads_said_and_nothing_where_they_said_nothing(tmp_path: Path) -> None:
    assert run(["-q", "--datadir", str(tmp_path), "change-master", "--master-host", "db1"]) == 0
    status, threads = status_and_threads(load_config(tmp_path), "")
    assert not list(check_ahead(status, threads, 300))
    threads.receiver.status.read_timestamp, threads.receiver.status.source_keeps_s = 1.0, 86400.0
    beats = {"True_Lag": 400.0, "True_Lag_From": "heartbeat"}
    told = {
        code: finding
        for change in (
            {"Source_Purge_In": 7200}, {"Source_Purge_In": 60},
            {"Relay_Disk_Full_In": 7200}, {"Relay_Disk_Full_In": 2400},
            {"Clock_Skew": 5.0, "Clock_Skew_Error": 0.1}, {**beats, "Seconds_Behind_Master": 0},
        )
        for finding in check_ahead(replace(status, **change), threads, 300)
        for code in [finding.code]
    }  # fmt: skip
    assert set(told) == CODES and all(finding.repair for finding in told.values())
    assert "full in about 40 min at the rate" in told["relay_disk_full_soon"].text
    for change in ({**beats, "Seconds_Behind_Master": 390}, {**beats, "Seconds_Behind_Master": None}):
        assert not list(check_ahead(replace(status, **change), threads, 300)), "that is the lag's own business"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("left", "keeps", "code"),
    [
        (7 * 3600, 30 * 86400, None), (5 * 3600, 30 * 86400, "source_purges_soon"),
        (1800, 30 * 86400, "source_purges_now"), (0, 0, "source_purges_now"),
        (3000, 3600, None), (1700, 3600, "source_purges_soon"), (800, 3600, "source_purges_now"),
    ],
)  # fmt: skip
def test_how_near_a_purge_is(left: float, keeps: float, code: str | None) -> None:
    assert [finding.code for finding in judge_purge(left, "b.000003", keeps)] == ([code] if code else [])


def test_it_says_which_log_goes_when() -> None:
    (finding,) = judge_purge(3 * 3600, "b.000003", 86400)
    assert "b.000003, which is read next, in about 3 h; the source keeps its logs for 24 h" in finding.text


def test_clocks_that_differ_are_told_beyond_what_the_measurement_can_be_wrong_by() -> None:
    assert not [*judge_skew(None, None), *judge_skew(0.9, 0.0), *judge_skew(-1.4, 0.5)]
    (ahead,), (behind,) = judge_skew(4.0, 0.1), judge_skew(-4.0, None)
    assert "4.0 s ahead of the local clock (measured within 0.100 s)" in ahead.text and "behind" in behind.text


def test_durations_are_rough() -> None:
    assert [rough(s) for s in (3, 90, 2400, 3 * 3600, 86400, 10 * 86400)] == [
        "3 s", "2 min", "40 min", "3 h", "24 h", "10 d"
    ]  # fmt: skip
