"""start, stop, wait, skip, reset as typed: golden answers with a real receiver on a recorded archive."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rplctl import demo
from rplctl.channel import Channel, lock_holder
from rplctl.cli.start import Turns
from rplctl.command.channel.context import one_engine, open_repositories
from rplctl.command.process.start_request import StartRequest
from rplctl.config import load_config
from rplctl.errors import StoppedEarly, WaitTimeout
from rplctl.history import read_history
from tests.cli.program import Program

pytestmark = pytest.mark.slow

ALREADY = "Note 3083: Replication thread(s) for channel '' are already running.\n"


@pytest.fixture
def archive(program: Program) -> Iterator[Program]:
    """Configured to read the recorded shop; nothing runs when the test is over."""
    program("init", "-q")
    assert program("change-master", "--master-binlog-dir", os.fspath(demo.BINLOG_FOLDER)).code == 0
    yield program
    program("stop")


def until_received(program: Program) -> None:
    deadline = time.monotonic() + 180
    end = str(demo.source_state().end_position)
    while program("show-status", "--field", "Read_Master_Log_Pos").out.strip() != end:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_receivers_life_in_the_commands_own_words(archive: Program) -> None:
    assert archive("start", "--receiver").out == "channel '': receiver started\n"
    again = archive("start", "--io-thread")
    assert (again.out, again.err) == ("channel '' is running\n", ALREADY)
    until_received(archive)
    assert archive("flush-relay-logs").out == "channel '': the receiver begins a new relay log\n"
    assert archive("wait", "--state", "stopped", "--timeout", "0").code == 9
    done = archive("change-master", "--master-connect-retry", "5")
    assert done.code == 2 and done.err.startswith("ERROR 3021") and "run: rplctl stop --receiver" in done.err
    assert archive("reset", "--yes").err.startswith("ERROR 3081")
    assert archive("recover").err.startswith("ERROR 3021")
    assert archive("switch-repo", "--to", "table").err.startswith("ERROR 3081")
    assert archive("stop").out == "channel '': receiver stopped\n"
    done = archive("stop")
    assert done.out == "channel '': nothing stopped\n" and "3084" in done.err
    assert archive("wait", "--state", "stopped").out == "channel '' is stopped\n"
    assert archive("flush-relay-logs").out == "channel '': the receiver does not run\n"


@pytest.mark.usefixtures("children_forked")
def test_json_of_start_and_stop_names_what_was_done(archive: Program) -> None:
    done = archive("start", "--receiver", "--json")
    assert json.loads(done.out) == [
        {
            "Channel_Name": "",
            "Started": ["receiver"],
            "Already_Running": [],
            "Synced_To": None,
            "Ended": None,
            "Position": None,
        }
    ]
    assert json.loads(archive("stop", "--json").out) == [{"Channel_Name": "", "Stopped": ["receiver"], "Killed": []}]


@pytest.mark.usefixtures("children_forked")
def test_a_foreground_receiver_stops_by_itself_when_its_time_is_up(archive: Program) -> None:
    begun = time.monotonic()
    done = archive("start", "--receiver", "--foreground", "--max-time", "1")
    assert (done.code, done.out) == (0, "channel '': receiver started\nchannel '': stopped after --max-time\n")
    assert time.monotonic() - begun >= 1
    assert lock_holder(Channel("", archive.datadir), "receiver") is None


def test_a_channel_that_nobody_made_is_not_made_by_starting_it(archive: Program) -> None:
    archive("switch-repo", "--to", "table")  # the target exists from here on
    for line in ("start", "start --until-synced", "switch-repo --to file", "recover", "reset --yes", "skip --yes"):
        done = archive(*line.split(), "--channel", "nope")
        assert done.code == 4 and done.err.startswith("ERROR 3074: Slave channel 'nope' does not exist.")
    assert [row["Channel_Name"] for row in json.loads(archive("show-channels", "--json").out)] == [""]


def test_channels_that_are_synced_in_turn_share_their_time_and_their_end() -> None:
    endless = Turns(StartRequest(until_synced=True))
    assert endless.of("a").max_time_s is None
    with pytest.raises(StoppedEarly), endless.watched():
        raise StoppedEarly("channel 'a' was stopped by rplctl stop before it was at x")
    endless.of("b")  # who stops one channel means that one
    by_signal = StoppedEarly("channel 'b' was stopped before it was at x")
    by_signal.by_signal = True
    with pytest.raises(StoppedEarly), endless.watched():
        raise by_signal
    with pytest.raises(StoppedEarly, match="channel 'c' was not started"):
        endless.of("c")
    short = Turns(StartRequest(until_synced=True, max_time_s=0.05))
    assert 0 < (short.of("a").max_time_s or 0) <= 0.05
    time.sleep(0.1)
    with pytest.raises(WaitTimeout, match="channel 'b' was not started"):
        short.of("b")


def test_start_of_several_channels_wants_one_named_where_it_would_stay(archive: Program) -> None:
    archive("change-master", "--channel", "east", "--master-host", "db2")
    for flags in (["--foreground"], ["--until-sql-after-gtids", "0-1-1"]):
        done = archive("start", *flags)
        assert done.code == 2 and done.err.startswith("ERROR 3079") and "hint: add --channel NAME" in done.err


def test_a_shared_session_stops_at_no_position(archive: Program) -> None:
    for flags in (["--until-synced"], ["--until-sql-after-gtids", "0-1-1"]):
        done = archive("start", "--shared-session", *flags)
        assert (done.code, done.err.splitlines()[0][:22]) == (2, "ERROR 1277: --shared-s")
    done = archive("start", "--shared-session", "--channel", "nope", "--channel", "neither")
    assert done.code == 4 and done.err.count("ERROR 3074") == 2 and "channel: 'neither'" in done.err
    assert archive("start", "--shared-session", "--all", "--channel", "").code == 2


@pytest.mark.usefixtures("children_forked")
def test_a_receiver_that_cannot_be_started_keeps_no_other_of_a_shared_session(archive: Program) -> None:
    done = archive("start", "--shared-session", "--receiver", "--channel", "nope", "--channel", "")
    assert (done.code, done.out) == (4, "channel '': receiver started\n")
    assert "ERROR 3074: Slave channel 'nope' does not exist." in done.err


def test_skip_is_confirmed_shown_and_taken_back(archive: Program) -> None:
    refused = archive("skip", "2")
    assert refused.code == 2 and "2 transactions of channel '' will never be applied." in refused.err
    assert archive("skip", "2", "--yes").out == "channel '' skips 2 transactions at its next start\n"
    assert archive("show-status", "--field", "Skip_Counter").out == "2\n"
    assert archive("skip", "0").out == "channel '' skips 0 transactions at its next start\n"
    assert archive("show-status", "--field", "Skip_Counter").out == "0\n"


@pytest.mark.usefixtures("children_forked")
def test_reset_forgets_and_its_dry_run_only_says_so(archive: Program) -> None:
    archive("start", "--receiver")
    until_received(archive)
    archive("stop")
    done = archive("reset", "--dry-run")
    assert done.out == "channel '' would be reset, 1 relay log would be removed\n"
    assert archive("show-relaylog-events", "--limit", "1").out.count("\n") == 2
    assert archive("reset", "--yes").out == "channel '' reset, 1 relay log removed\n"
    assert archive("show-status", "--field", "Master_Log_File").out == "\n"
    assert archive("reset", "--all", "--yes", "--json").code == 0
    assert archive("show-status").code == 4


def test_a_position_that_is_applied_is_waited_for_no_longer(archive: Program) -> None:
    archive("change-master", "--master-log-file", "binlog.000002", "--master-log-pos", "4")
    assert archive("wait", "--pos", "binlog.000001:500").out == "channel '' is past binlog.000001:500\n"
    row = json.loads(archive("wait", "--pos", "binlog.000002:4", "--json").out)[0]
    assert row["Position"] == "binlog.000002:4" and row["Waited"] < 60


@pytest.mark.long("tests/stories/test_hostile_folder.py runs such a command in make test-long.")
@pytest.mark.usefixtures("children_forked")
def test_on_error_is_called_once_until_the_thread_is_well(program: Program, tmp_path: Path) -> None:
    logs, said = tmp_path / "logs", tmp_path / "said"
    shutil.copytree(demo.BINLOG_FOLDER, logs)
    (logs / "binlog.000002").rename(tmp_path / "away")
    command = f"cat >> {said}; sleep 0.2"
    assert program("init", "--on-error", command, "--on-recovery", command).code == 0
    position = ("--master-log-file", "binlog.000002", "--master-log-pos", "4")
    assert program("change-master", "--master-binlog-dir", str(logs), *position).code == 0
    for _ in range(2):
        assert program("start", "--foreground", "--receiver").code
    error = json.loads(said.read_text())
    assert (error["event"], error["thread"], error["state"], error["channel"]) == ("error", "receiver", "stopped", "")
    assert error["errno"] and "binlog.000002" in error["message"] and error["hint"] and error["version"]
    (tmp_path / "away").rename(logs / "binlog.000002")
    assert program("start", "--foreground", "--receiver", "--max-time", "3").code == 0
    recovery = json.loads(said.read_text().splitlines()[1])
    assert (recovery["event"], recovery["state"], recovery["message"]) == ("recovery", "running", error["message"])
    events = [event.Event for event in read_history(program.datadir)]
    assert events.count("error") == 1 and events[-1] == "well"


def test_gtids_of_the_other_vendor_start_nothing(configured: Program) -> None:
    with one_engine():
        stored = open_repositories(load_config(configured.datadir, ""), "").relay_log_info
        stored.flush(replace(stored.read(), gtid_executed="0-1-5"), force=True)
    done = configured("start", "--until-sql-after-gtids", "00010203-0405-0607-0809-0a0b0c0d0e0f:7")
    assert done.code == 2 and done.err.startswith("ERROR 1277:") and "such as 0-1-5" in done.err
    assert lock_holder(Channel("", configured.datadir), "applier") is None
