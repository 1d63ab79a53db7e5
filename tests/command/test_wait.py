"""`wait` never waits in vain: (goal × what befell the channel) → told at once, waited for, or there.

A thread is what the program takes it for: a lock that is held, and a status file that was written some time ago; one
that is suspended is a real process.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from rplctl.channel import Channel, hold_lock
from rplctl.command.change_master import change_master
from rplctl.command.channel.change_options import MasterChanges
from rplctl.command.wait import wait
from rplctl.config import Config
from rplctl.durable import private_folder
from rplctl.errors import NotRunning, RplError, WaitTimeout
from rplctl.position import BinlogPosition
from rplctl.receiver.reporter import QUEUEING, REQUESTING, WAITING as RECEIVING
from rplctl.status import AWAY, ThreadStatus
from tests.kit.replica import wait_until

pytestmark = pytest.mark.slow

AT, LATER = BinlogPosition("bin.000001", 500), BinlogPosition("bin.000001", 900)
UNREACHED = BinlogPosition("bin.000002", 4)
ERROR = {"last_errno": 1062, "last_error": "Duplicate entry", "last_hint": "rplctl skip", "last_error_timestamp": 1.0}
HOLD = "import sys; from pathlib import Path; from rplctl.channel import Channel, hold_lock; import time\n" + (
    "with hold_lock(Channel('', Path(sys.argv[1])), sys.argv[2]): print(flush=True); time.sleep(600)"
)
GOALS: dict[str, dict[str, Any]] = {
    "running": {"state": "running"},
    "synced": {"state": "synced"},
    "received": {"position": LATER},
    "unreceived": {"position": UNREACHED},
    "stopped": {"state": "stopped"},
}


class Place:
    """A channel that has received up to LATER and applied up to AT."""

    def __init__(self, folder: Path) -> None:
        self.config = Config(folder)
        self.channel = Channel("", folder)
        source = MasterChanges(master_host="db1", master_log_file=AT.log_name, master_log_pos=AT.log_pos)
        change_master(self.config, "", source)
        self.held = ExitStack()

    def says(self, role: str, *, heard: float = 0.0, **status: Any) -> None:
        usual: dict[str, Any] = {"read_log_name": LATER.log_name, "read_log_pos": LATER.log_pos}
        said = ThreadStatus(**{"updated": time.time() - heard, "worked": time.time() - heard, **usual, **status})
        self.channel.status_path(role).write_text(json.dumps(asdict(said)))
        os.utime(self.channel.status_path(role), (said.updated, said.updated))

    def runs(self, role: str, **status: Any) -> None:
        private_folder(self.channel.run_folder)
        usual = {"state": RECEIVING, "connected": True} if role == "receiver" else {"state": "Reading event"}
        self.says(role, **{**usual, **status})
        self.held.enter_context(hold_lock(self.channel, role))

    def suspended(self, role: str) -> None:
        """A process that holds the lock and is stopped by SIGSTOP, silent for a minute."""
        private_folder(self.channel.run_folder)
        command = [sys.executable, "-c", HOLD, str(self.config.datadir), role]
        process = self.held.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
        self.held.callback(process.kill)
        assert process.stdout is not None and process.stdout.readline()
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T", 30)
        past = time.time() - 60
        os.utime(self.channel.lock_path(role), (past, past))
        self.says(role, heard=60.0, state=RECEIVING, connected=True)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    with made.held:
        yield made


def befall(place: Place, what: str) -> None:
    role, _, how = what.partition(" ")
    other = {"receiver": "applier", "applier": "receiver"}[role]
    place.runs(other)
    if how == "failed":
        place.says(role, heard=20.0, **ERROR)
    elif how == "killed":
        place.says(role, heard=20.0, state="Reading event", connected=True)
    elif how == "stopped":
        place.says(role, heard=20.0)
    elif how == "suspended":
        place.suspended(role)
    elif how == "away":
        reason = {"last_errno": 2003, "last_error": "nobody listens", "last_error_timestamp": time.time()}
        state = AWAY if role == "applier" else "Connecting to master"
        place.runs(role, state=state, connected=False, **reason)


def outcome(place: Place, goal: str) -> RplError | None:
    with patch("rplctl.command.wait.time", wraps=time) as clock:
        try:
            wait(place.config, "", timeout_s=0.3, **GOALS[goal])
        except (NotRunning, WaitTimeout) as error:
            if isinstance(error, NotRunning):
                assert not clock.sleep.called, "told at once"
            return error
    return None


VAIN = {  # what befell → goals that cannot be reached any more
    "receiver failed": ("running", "synced", "unreceived"),
    "receiver killed": ("running", "synced", "unreceived"),
    "receiver stopped": ("synced", "unreceived"),
    "receiver suspended": ("running", "synced", "unreceived"),
    "receiver away": (),
    "applier failed": ("running", "synced", "received", "unreceived"),
    "applier killed": ("running", "synced", "received", "unreceived"),
    "applier stopped": ("synced", "received", "unreceived"),
    "applier suspended": ("running", "synced", "received", "unreceived"),
    "applier away": (),
}


@pytest.mark.long("The applier stays; the receiver is asked for in the same way.", keeps=r"^applier")
@pytest.mark.parametrize("what", VAIN)
def test_what_cannot_come_is_told_at_once_and_what_may_come_is_waited_for(place: Place, what: str) -> None:
    befall(place, what)
    role, _, how = what.partition(" ")
    for goal in GOALS:
        error = outcome(place, goal)
        if goal == "running" and what == "applier away":
            assert error is None, "it runs, as a replica that waits for a lock does"
        elif goal in VAIN[what]:
            assert isinstance(error, NotRunning), (goal, error)
            assert role in error.message or how == "stopped"
            assert error.hint, (goal, error.message)
            assert how != "failed" or (error.errno == 1062 and "Duplicate entry" in error.message)
            assert how != "suspended" or "kill -CONT" in error.hint
        else:
            assert isinstance(error, WaitTimeout) and error.exit_code == 9, (goal, error)
            assert how != "away" or "nobody listens" in error.message, (goal, error.message)


def test_a_target_that_holds_the_record_and_is_away_is_waited_for_and_named(tmp_path: Path) -> None:
    config = Config(
        tmp_path,
        target="mysql+pymysql://u@127.0.0.1:1/",
        master_info_repository="TABLE",
        relay_log_info_repository="TABLE",
    )
    channel = Channel("", tmp_path)
    private_folder(channel.run_folder)
    with hold_lock(channel, "receiver"), hold_lock(channel, "applier"), pytest.raises(WaitTimeout) as late:
        wait(config, "", state="synced", timeout_s=0.3)
    assert "the target:" in late.value.message and "127.0.0.1" in late.value.message


def test_once_it_is_there_all_is_well(place: Place) -> None:
    place.runs("receiver", read_log_name=AT.log_name, read_log_pos=AT.log_pos)
    place.runs("applier")
    for goal in ({"state": "running"}, {"state": "synced"}, {"position": AT}):
        assert wait(place.config, "", timeout_s=5, **goal).executed == AT


@pytest.mark.parametrize(
    "state", [REQUESTING, QUEUEING, "Waiting for the slave SQL thread to free enough relay log space"]
)
def test_a_channel_whose_receiver_is_still_reading_is_not_synced(place: Place, state: str) -> None:
    """After it has connected, it reports the position of the last connection for a moment."""
    place.runs("receiver", state=state, read_log_name=AT.log_name, read_log_pos=AT.log_pos)
    place.runs("applier")
    assert isinstance(outcome(place, "synced"), WaitTimeout)
