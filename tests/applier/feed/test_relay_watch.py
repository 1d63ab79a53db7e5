"""An applier is woken by what is written for its channel, and by nothing else; without inotify it looks by itself."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from rplctl.applier.feed import relay_watch
from rplctl.applier.feed.relay_watch import RelayWatch, written
from rplctl.durable import replace_file

PATIENCE_S = 10.0


def test_writes_and_new_files_wake_the_channel_whose_they_are(tmp_path: Path) -> None:
    watch = RelayWatch(tmp_path)
    mine, other = watch.woken("relay-bin-a"), watch.woken("relay-bin-b")
    log = (tmp_path / "relay-bin-a.000001").open("ab", buffering=0)
    watch.start()
    watch.start()
    for change in (lambda: log.write(b"x"), lambda: replace_file(tmp_path / "relay-bin-a.index", b"x"), log.truncate):
        change()
        assert mine.wait(PATIENCE_S)
        mine.clear()
    log.close()
    (tmp_path / "master-a.info").write_text("x")
    assert not mine.wait(0.2) and not other.is_set()
    assert watch.look_s == relay_watch.IDLE_LOOK_S


def test_what_the_kernel_lost_wakes_all() -> None:
    def event(mask: int, name: bytes = b"") -> bytes:
        return struct.pack("iIII", 1, mask, 0, len(name)) + name  # inotify(7)

    assert written(event(2, b"relay-bin.000001\0\0") + event(2, b"x.index\0") + event(0x4000)) == {
        "relay-bin",
        "x",
        None,
    }


def test_without_inotify_it_looks_by_itself_and_less_often_for_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    watch = RelayWatch(tmp_path / "none")
    watch.woken("a")
    watch.start()
    assert watch.look_s == relay_watch.POLL_S
    for number in range(100):
        watch.woken(f"c{number}")
    assert watch.look_s > 0.1 and f"no inotify ({os.strerror(2)})" in caplog.text


def test_a_wait_tells_when_it_is_more_than_a_pause(tmp_path: Path) -> None:
    watch = RelayWatch(tmp_path)
    woken, told = watch.woken("a"), watch.woken("told")
    woken.set()
    watch.wait(woken, told.set)
    assert not told.is_set()
    woken.clear()
    watch.wait(woken, told.set)
    assert told.is_set()
