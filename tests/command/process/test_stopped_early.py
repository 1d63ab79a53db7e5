"""A start that stays says the truth about its end: reached, stopped before, or out of time; each has its exit code.

Matrix of what it was started for × who ended it, with real processes on a recorded archive that MASTER_DELAY holds
back; the applier runs without Spark.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest

from rplctl import demo
from rplctl.applier.report import DELAYING
from rplctl.channel import Channel
from rplctl.command.channel.context import open_repositories, running
from rplctl.command.check.sync_record import read_sync_record
from rplctl.command.check.verb import CheckLimits, check
from rplctl.command.process.supervise import position_at_end
from rplctl.command.stop import stop
from rplctl.config import load_config
from rplctl.info import RelayLogInfo
from rplctl.status import read_status
from tests.kit import fork_server
from tests.kit.replica import Replica, slowness, wait_until

pytestmark = pytest.mark.slow

END = f"{demo.source_state().end_log}:{demo.source_state().end_position}"
HELD_BACK = ("--master-delay", "2000000000")  # seconds: longer than the archive is old
UNTIL = ("--until-master-log-file", "binlog.000003", "--until-master-log-pos", "15490", "--foreground")


@pytest.fixture
def held_back(replica: Replica) -> Iterator[Replica]:
    replica.run("init")
    replica.run("change-master", "--master-binlog-dir", os.fspath(demo.BINLOG_FOLDER), *HELD_BACK)
    yield replica
    replica.run("stop", expect=None)


@dataclass
class Started:
    """`rplctl start …` that goes on, what it prints, and its channel."""

    replica: Replica
    popen: fork_server.Forked
    streams: tuple[IO[str], IO[str]]

    def until_it_waits(self) -> None:
        status = self.replica.channel.status_path("applier")
        wait_until(lambda: read_status(status).state == DELAYING or self.popen.poll() is not None)
        time.sleep(slowness())  # until the command itself waits, and has replaced the handlers of its signals

    def ends(self) -> tuple[int, str, str]:
        code = self.popen.wait(280)
        said = []
        for stream in self.streams:
            with stream:
                stream.seek(0)
                said.append(stream.read())
        return code, said[0], said[1]


def start(replica: Replica, *arguments: str) -> Started:
    command = ["--datadir", str(replica.datadir), "start", *arguments]
    out, err = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")
    return Started(replica, fork_server.begin(command, {**os.environ, **replica.variables}, (out, err)), (out, err))


SYNCED = ("--until-synced",)
ENDS = {"SIGTERM": 10, "SIGINT": 130, "rplctl stop": 10, "--max-time": 9}
SOME = [(SYNCED, "SIGTERM"), (SYNCED, "SIGINT"), (UNTIL, "rplctl stop"), (SYNCED, "--max-time")]
ALL = list(itertools.product((SYNCED, UNTIL), ENDS))


@pytest.mark.long("The other tests of this file stay, which stop at fewer places.")
@pytest.mark.parametrize("endings", [SOME, pytest.param(ALL, marks=pytest.mark.torture)], ids=["some", "all"])
def test_what_was_not_reached_is_not_said_to_be(held_back: Replica, endings: list[tuple[tuple[str, ...], str]]) -> None:
    for goal, who in endings:
        code = ENDS[who]
        held_back.channel.status_path("applier").unlink(missing_ok=True)
        started = start(held_back, *goal, *(["--max-time", "1"] if who == "--max-time" else []))
        if who != "--max-time":
            started.until_it_waits()
        if who.startswith("SIG"):
            os.kill(started.popen.pid, signal.Signals[who])
        elif who == "rplctl stop":
            stop(load_config(held_back.datadir), "")
        found, out, err = started.ends()
        assert found == code, (goal, who, out, err)
        assert " is at " not in out and err.startswith("ERROR: channel ''") and "to continue from this position" in err
        assert who in err or code == 9
        assert not running(held_back.channel) and read_sync_record(held_back.channel) is None
    assert check(load_config(held_back.datadir), "", CheckLimits(warning_s=60, critical_s=300)).level == 2


def test_a_run_that_ends_before_the_applier_says_a_word_gives_the_position_that_is_stored(held_back: Replica) -> None:
    """The status of an applier that was stopped while it began has no position: never print that as `:0`."""
    config, channel = load_config(held_back.datadir), held_back.channel
    channel.status_path("applier").unlink(missing_ok=True)
    relay = open_repositories(config, "").relay_log_info
    relay.flush(RelayLogInfo(master_log_name="binlog.000003", master_log_pos=4), force=True)
    assert str(read_status(channel.status_path("applier")).exec_position) == ":0"
    assert str(position_at_end(config, channel)) == "binlog.000003:4"


@pytest.mark.long("tests/cli/test_threads.py has a foreground that stops in make test.")
def test_a_foreground_that_is_to_run_is_stopped_by_sigterm_in_good_order(held_back: Replica) -> None:
    started = start(held_back, "--foreground")
    started.until_it_waits()
    os.kill(started.popen.pid, signal.SIGTERM)
    code, out, err = started.ends()
    assert (code, err) == (0, "")
    assert [line.partition(" at ")[0] for line in out.splitlines()] == [
        "channel '': receiver and applier started",
        "channel '': stopped by SIGTERM",
    ]


def test_sigterm_while_it_is_being_started_leaves_nothing_behind(held_back: Replica) -> None:
    started = start(held_back, "--until-synced")
    lock = held_back.channel.lock_path("admin")
    wait_until(lambda: lock.exists() and held_back.pid("admin"))
    wait_until(lambda: b"SigCgt" in Path(f"/proc/{started.popen.pid}/status").read_bytes())
    os.kill(started.popen.pid, signal.SIGTERM)
    code, _, err = started.ends()
    assert code == 10 and "SIGTERM" in err, err
    assert not running(held_back.channel)


@pytest.mark.torture
def test_several_channels_are_synced_one_after_the_other_and_sigterm_ends_all_of_it(held_back: Replica) -> None:
    held_back.run("change-master", "--channel", "b", "--master-binlog-dir", os.fspath(demo.BINLOG_FOLDER))
    done = held_back.run("start", "--until-synced", "--channel", "b", "--json")
    assert [(row["Channel_Name"], row["Synced_To"], row["Ended"]) for row in json.loads(done.stdout)] == [
        ("b", END, "reached")
    ]
    assert held_back.run("check", "--channel", "b").stdout.startswith("RPLCTL OK - 'b' synced ")
    started = start(held_back, "--until-synced")
    started.until_it_waits()
    os.kill(started.popen.pid, signal.SIGTERM)
    code, out, err = started.ends()
    assert code == 10 and out == "", (out, err)
    assert "channel '' was stopped by SIGTERM" in err and "channel 'b' was not started" in err
    assert not running(held_back.channel) and not running(Channel("b", held_back.datadir))


@pytest.mark.long("tests/command/test_wait.py waits for what may come; a receiver that stops at this moment is rare.")
def test_what_nobody_receives_is_not_waited_for(held_back: Replica) -> None:
    held_back.run("change-master", "--master-delay", "0")
    done = held_back.run("start", "--until-synced", "--applier", expect=10, timeout_s=120)
    assert "before it was at" in done.stderr and done.stdout == ""


@pytest.mark.torture
def test_an_until_that_is_reached_is_said_to_be(held_back: Replica) -> None:
    held_back.run("change-master", "--master-delay", "0")
    reached = held_back.run("start", *UNTIL, timeout_s=280)
    assert reached.stdout.endswith(f"channel '': reached its UNTIL and stopped at {END}\n")
    shown = held_back.run("check", expect=2).stdout
    assert "reached its UNTIL" in shown
