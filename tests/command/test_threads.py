"""start, stop, wait, reset with real processes: a receiver on a folder of binary logs, once the applier too."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from rplctl import demo
from rplctl.channel import Channel, lock_holder
from rplctl.command.change_master import change_master
from rplctl.command.channel.change_options import MasterChanges
from rplctl.command.channel.context import engine_of, running
from rplctl.command.check.folder_end import folder_end
from rplctl.command.demo import demo as run_demo
from rplctl.command.flush_relay_logs import flush_relay_logs
from rplctl.command.process.start_request import StartRequest
from rplctl.command.purge_relay_logs import purge_relay_logs
from rplctl.command.reset import reset
from rplctl.command.show_relaylog_events import show_relaylog_events
from rplctl.command.show_status import show_status
from rplctl.command.start import start
from rplctl.command.stop import stop
from rplctl.command.wait import wait
from rplctl.config import Config
from rplctl.errors import NotConfigured, NotRunning, SourceError, UsageError, WaitTimeout
from rplctl.position import BinlogPosition
from rplctl.repository import list_channels

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("children_forked")]

RECEIVER = StartRequest(roles=("receiver",))
END = BinlogPosition(demo.source_state().end_log, demo.source_state().end_position)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    config = Config(tmp_path)
    change_master(config, "", MasterChanges(master_binlog_dir=os.fspath(demo.BINLOG_FOLDER)))
    return config


@pytest.fixture
def receiving(config: Config) -> Config:
    start(config, "", RECEIVER)
    deadline = time.monotonic() + 180
    while show_status(config, "").Read_Master_Log_Pos != END.log_pos and time.monotonic() < deadline:
        time.sleep(0.1)
    return config


def test_the_end_of_a_folder_is_the_end_of_its_last_transaction() -> None:
    assert folder_end(demo.BINLOG_FOLDER) == END


def test_a_receiver_starts_reports_and_stops(receiving: Config) -> None:
    pid = running(Channel("", receiving.datadir))["receiver"]
    assert os.getsid(pid) == pid  # a session of its own: the terminal's Ctrl-C and hang-up do not reach it
    status = show_status(receiving, "")
    assert (status.Slave_IO_Running, status.Slave_SQL_Running) == ("Yes", "No")
    assert (status.Master_Log_File, status.Read_Master_Log_Pos) == (END.log_name, END.log_pos)
    again = start(receiving, "", RECEIVER)
    assert (again.started, again.already_running, again.notes[0].errno) == ((), ("receiver",), 3083)
    with pytest.raises(UsageError) as refused:
        reset(receiving, "")
    assert refused.value.errno == 3081
    events = list(show_relaylog_events(receiving, ""))
    assert [e.Event_type for e in events[:3]] == ["Format_desc", "Rotate", "Format_desc"]
    assert {"Query", "Table_map", "Xid"} <= {e.Event_type for e in events}
    assert flush_relay_logs(receiving, "").asked_receiver
    stopped = stop(receiving, "")
    assert (stopped.stopped, stopped.killed) == (("receiver",), ())
    assert stop(receiving, "").notes[0].errno == 3084
    status = show_status(receiving, "")
    assert (status.Slave_IO_Running, status.Slave_IO_State, status.Last_IO_Errno) == ("No", "", 0)
    assert purge_relay_logs(receiving, "").removed == ()  # nothing is applied yet


def test_a_killed_receiver_is_seen_as_stopped_and_starts_again(receiving: Config) -> None:
    os.kill(running(Channel("", receiving.datadir))["receiver"], signal.SIGKILL)
    deadline = time.monotonic() + 180
    while lock_holder(Channel("", receiving.datadir), "receiver") and time.monotonic() < deadline:
        time.sleep(0.02)
    assert show_status(receiving, "").Slave_IO_Running == "No"
    assert start(receiving, "", RECEIVER).started == ("receiver",)
    stop(receiving, "")


def test_reset_forgets_the_position_and_reset_all_the_channel(receiving: Config) -> None:
    stop(receiving, "")
    result = reset(receiving, "")
    assert result.removed_relay_logs and not list(receiving.datadir.glob("relay-bin.0*"))
    status = show_status(receiving, "")
    assert (status.Master_Log_File, status.Read_Master_Log_Pos) == ("", 4)
    assert status.Master_Binlog_Dir == os.fspath(demo.BINLOG_FOLDER)
    start(receiving, "", RECEIVER)  # from the first log there is
    stop(receiving, "")
    reset(receiving, "", everything=True)
    with pytest.raises(NotConfigured):
        show_status(receiving, "")
    assert not list(receiving.datadir.glob("*.info"))


@pytest.mark.long("test_a_receiver_starts_reports_and_stops has one channel; tests/command/test_serve.py has several.")
def test_channels_come_and_go_while_the_others_run(config: Config) -> None:
    """The first and the last of four in the order of names, taken away and made; those between go on untouched."""
    folder = MasterChanges(master_binlog_dir=os.fspath(demo.BINLOG_FOLDER))
    names = ["a", "m", "n", "z"]
    for name in names:
        change_master(config, name, folder)
        start(config, name, RECEIVER)
    stay = {name: running(Channel(name, config.datadir)) for name in ("m", "n")}
    for gone, new in (("a", "0"), ("z", "zz")):
        stop(config, gone)
        reset(config, gone, everything=True)
        with pytest.raises(NotConfigured):
            show_status(config, gone)
        assert not list(config.datadir.glob(f"*-{gone}.*"))
        change_master(config, new, folder)
        start(config, new, RECEIVER)
    there = ["0", "m", "n", "zz"]
    assert [name for name in list_channels(config, engine_of) if name] == there
    deadline = time.monotonic() + 180
    for name in there:
        while show_status(config, name).Read_Master_Log_Pos != END.log_pos and time.monotonic() < deadline:
            time.sleep(0.05)
        status = show_status(config, name)
        assert (status.Master_Log_File, status.Slave_IO_Running) == (END.log_name, "Yes"), name
    assert {name: running(Channel(name, config.datadir)) for name in stay} == stay
    for name in there:
        stop(config, name)


def test_waiting_for_what_cannot_come_fails_at_once(config: Config) -> None:
    with pytest.raises(NotRunning):
        wait(config, "", position=END)
    with pytest.raises(WaitTimeout) as late:
        wait(config, "", state="running", timeout_s=0.2)
    assert late.value.exit_code == 9
    wait(config, "", state="stopped", timeout_s=1)


def test_a_source_that_is_away_fails_until_synced_at_once_and_starts_nothing(tmp_path: Path) -> None:
    config = Config(tmp_path)
    change_master(config, "", MasterChanges(master_host="127.0.0.1", master_port=1, master_user="u"))
    with pytest.raises(SourceError) as caught:
        start(config, "", StartRequest(until_synced=True))
    assert (caught.value.errno, caught.value.exit_code) == (2003, 6)
    assert not running(Channel("", tmp_path))


def test_an_error_of_a_thread_becomes_the_error_of_start_and_of_show_status(tmp_path: Path) -> None:
    config = Config(tmp_path)
    change = MasterChanges(
        master_binlog_dir=os.fspath(demo.BINLOG_FOLDER), master_log_file="binlog.000099", master_log_pos=4
    )
    change_master(config, "", change)
    with pytest.raises(SourceError) as caught:
        start(config, "", StartRequest(roles=("receiver",), foreground=True, max_time_s=280))
    assert caught.value.errno == 1236
    status = show_status(config, "")
    assert (status.Slave_IO_Running, status.Last_IO_Errno) == ("No", 1236)
    assert "Could not find first log file name" in status.Last_IO_Error and status.Last_IO_Error_Timestamp


@pytest.mark.long("tests/demo/test_demo.py holds the parts of the demo in make test.")
@pytest.mark.spark
@pytest.mark.slow
def test_the_demo_ends_with_equal_tables_and_nothing_running(tmp_path: Path) -> None:
    seen: list[BinlogPosition] = []
    result = run_demo(tmp_path / "new", lambda executed, wanted: seen.append(wanted))
    assert result.is_equal and len(result.tables) == 4
    assert (result.status.Relay_Master_Log_File, result.status.Exec_Master_Log_Pos) == (END.log_name, END.log_pos)
    assert not running(Channel("", result.datadir)) and set(seen) == {END}
    with pytest.raises(UsageError, match="not empty"):
        run_demo(tmp_path / "new")
