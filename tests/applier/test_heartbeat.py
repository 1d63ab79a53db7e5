"""The rows of pt-heartbeat, read once for all appliers of a process."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path

import pytest

from rplctl.applier import heartbeat
from rplctl.applier.heartbeat import reading_heartbeats
from rplctl.config import Config
from rplctl.status import ThreadStatus
from tests.kit.replica import wait_until


def readers() -> int:
    return sum(thread.name == "rplctl-heartbeat" for thread in threading.enumerate())


def test_the_appliers_of_a_process_have_one_reader_and_each_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "FIRST_S", 0.01)
    monkeypatch.setattr(heartbeat, "READ_S", 0.05)
    path = tmp_path / "target.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE heartbeat__heartbeat (ts TEXT, server_id INTEGER)")
        connection.execute("INSERT INTO heartbeat__heartbeat VALUES ('1970-01-01T00:01:40', 7)")
    connection.close()
    config = Config(datadir=tmp_path, target=f"sqlite:///{path}")
    first, second = ThreadStatus(), ThreadStatus()
    with reading_heartbeats(config, first):
        with reading_heartbeats(config, second):
            assert readers() == 1
            wait_until(lambda: [first.heartbeats, second.heartbeats] == ["7:100.000000"] * 2)
        first.heartbeats = second.heartbeats = ""
        wait_until(lambda: first.heartbeats)
        time.sleep(0.1)
        assert second.heartbeats == "", "it has ended"
    assert readers() == 0
