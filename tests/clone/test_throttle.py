"""A copy waits for the source: as long as it is busy, and as its rate asks; an operator may change both meanwhile."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from rplctl.channel import Channel
from rplctl.clone.throttle import Limits, Throttle, orders_seen, read_limits, write_limits

pytestmark = pytest.mark.slow


def test_limits_stay_until_they_are_given_again_and_each_order_is_seen(tmp_path: Path) -> None:
    channel = Channel("", tmp_path)
    channel.run_folder.mkdir(parents=True)
    assert (read_limits(channel), orders_seen(channel)) == (Limits(25, 0.0), (0, 0))
    write_limits(channel, None, 2.5)
    write_limits(channel, 7, None)
    write_limits(channel, load_threads=5)
    assert read_limits(channel) == Limits(7, 2.5, 5)
    seen = orders_seen(channel)
    write_limits(channel)
    assert orders_seen(channel) != seen and read_limits(channel) == Limits(7, 2.5, 5)
    for junk in (b'{"max_load": null', b"[]", b"7", b'{"max_load": 1e999, "max_rate": 1}'):
        channel.clone_orders_path.write_bytes(junk)
        assert read_limits(channel) == Limits()


def test_a_busy_source_is_waited_for_until_it_is_not_or_the_limit_is_taken_away(tmp_path: Path) -> None:
    channel, said = Channel("", tmp_path), list[str]()
    channel.run_folder.mkdir(parents=True)
    write_limits(channel, 5, None)
    answers = [9, 6, 5]
    throttle = Throttle(channel, threading.Event(), said.append)
    throttle.wait(lambda sql: [("Threads_running", answers.pop(0))])
    assert answers == [] and [text[:27] for text in said] == ["Waiting: Threads_running is"] * 2 + [""]

    def ask(sql: str) -> list[tuple[object, ...]]:
        write_limits(channel, 0, None)
        return [("Threads_running", 99)]

    throttle.wait(ask)


def test_the_rate_is_kept_and_stop_ends_a_wait(tmp_path: Path) -> None:
    channel, stop = Channel("", tmp_path), threading.Event()
    channel.run_folder.mkdir(parents=True)
    write_limits(channel, 0, 1)
    throttle = Throttle(channel, stop, lambda text: None)
    began = time.monotonic()
    for _ in range(2):
        throttle.wait(lambda sql: [])
        throttle.took(900_000)  # with a second of nothing before: 0.8 s are left to wait
    throttle.wait(lambda sql: [])
    assert 0.7 < time.monotonic() - began < 5
    throttle.took(1 << 40)
    threading.Timer(0.1, stop.set).start()
    throttle.wait(lambda sql: [])
    assert time.monotonic() - began < 10
