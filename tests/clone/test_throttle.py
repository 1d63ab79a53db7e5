"""A copy waits for the source: as long as it is busy, and as its rate asks; an operator may change both meanwhile."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from rplctl.channel import Channel
from rplctl.clone.throttle import HistoryGrows, SourceLimits, Throttle, orders_seen, read_limits, write_limits

pytestmark = pytest.mark.slow


def no_lag(address: str) -> int | None:
    raise AssertionError(address)


def test_limits_stay_until_they_are_given_again_and_each_order_is_seen(tmp_path: Path) -> None:
    channel = Channel("", tmp_path)
    channel.run_folder.mkdir(parents=True)
    assert (read_limits(channel), orders_seen(channel)) == (SourceLimits(max_load=25, max_rate=0.0), (0, 0))
    write_limits(channel, max_load=None, max_rate=2.5)
    write_limits(channel, max_load=7)
    write_limits(channel, load_threads=5)
    assert read_limits(channel) == SourceLimits(max_load=7, max_rate=2.5, load_threads=5)
    seen = orders_seen(channel)
    write_limits(channel)
    assert orders_seen(channel) != seen and read_limits(channel) == SourceLimits(
        max_load=7, max_rate=2.5, load_threads=5
    )
    for junk in (b'{"max_load": null', b"[]", b"7", b'{"max_load": 1e999, "max_rate": 1}'):
        channel.clone_orders_path.write_bytes(junk)
        assert read_limits(channel) == SourceLimits()


@pytest.mark.long("The other limits of this file stay in make test.")
def test_a_busy_source_is_waited_for_until_it_is_not_or_the_limit_is_taken_away(tmp_path: Path) -> None:
    channel, said = Channel("", tmp_path), list[str]()
    channel.run_folder.mkdir(parents=True)
    write_limits(channel, max_load=5)
    answers = [9, 6, 5]
    throttle = Throttle(channel, threading.Event(), said.append)
    throttle.wait(lambda sql, *_: [("Threads_running", answers.pop(0))], no_lag, holds_snapshot=True)
    assert answers == [] and [text[:27] for text in said] == ["Waiting: Threads_running is"] * 2 + [""]

    def ask(sql: str, *more: str) -> list[tuple[object, ...]]:
        write_limits(channel, max_load=0)
        return [("Threads_running", 99)]

    throttle.wait(ask, no_lag, holds_snapshot=True)


def test_the_rate_is_kept_and_stop_ends_a_wait(tmp_path: Path) -> None:
    channel, stop = Channel("", tmp_path), threading.Event()
    channel.run_folder.mkdir(parents=True)
    write_limits(channel, max_load=0, max_rate=1)
    throttle = Throttle(channel, stop, lambda text: None)
    began = time.monotonic()
    for _ in range(2):
        throttle.wait(lambda sql, *_: [], no_lag, holds_snapshot=True)
        throttle.took(900_000)  # with a second of nothing before: 0.8 s are left to wait
    throttle.wait(lambda sql, *_: [], no_lag, holds_snapshot=True)
    assert 0.7 < time.monotonic() - began < 5
    throttle.took(1 << 40)
    threading.Timer(0.1, stop.set).start()
    throttle.wait(lambda sql, *_: [], no_lag, holds_snapshot=True)
    assert time.monotonic() - began < 10


def test_the_slowest_replica_is_waited_for_and_none_is_asked_at_each_chunk(tmp_path: Path) -> None:
    channel, said, asked = Channel("", tmp_path), list[str](), list[str]()
    channel.run_folder.mkdir(parents=True)
    write_limits(channel, max_load=0, lag_of="a,b:7", max_lag=3)
    lags: dict[str, list[int | None]] = {"a": [3, 0, 1], "b:7": [None, 4, 3]}

    def lag(address: str) -> int | None:
        asked.append(address)
        return lags[address].pop(0)

    throttle = Throttle(channel, threading.Event(), said.append)
    throttle.wait(lambda sql, *_: [], lag, holds_snapshot=True)
    assert said == [
        "Waiting: the replica b:7 does not replicate, or cannot be asked",
        "Waiting: the replica b:7 is 4 s behind, --max-lag 3",
        "",
    ]
    throttle.wait(lambda sql, *_: [], lag, holds_snapshot=True)  # at once
    assert asked == ["a", "b:7"] * 3
    write_limits(channel, lag_of="c")  # another question
    with pytest.raises(KeyError, match="c"):
        throttle.wait(lambda sql, *_: [], lag, holds_snapshot=True)


def test_a_snapshot_is_given_up_when_history_grows_and_rows_under_lock_are_not(tmp_path: Path) -> None:
    channel = Channel("", tmp_path)
    channel.run_folder.mkdir(parents=True)
    write_limits(channel, max_load=0, max_history=10)
    throttle = Throttle(channel, threading.Event(), lambda text: None)

    def ask(sql: str, *more: str) -> list[tuple[object, ...]]:
        return [] if sql.startswith("SHOW") else [(11,)]  # as MySQL answers

    with pytest.raises(HistoryGrows, match="11 old versions, --max-history 10"):
        throttle.wait(ask, no_lag, holds_snapshot=True)
    assert throttle.has_history(ask)
    throttle.wait(ask, no_lag, holds_snapshot=False)
    write_limits(channel, max_history=11)
    throttle.wait(ask, no_lag, holds_snapshot=True)
    assert not throttle.has_history(ask)
