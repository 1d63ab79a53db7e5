"""The receiver's process killed with SIGKILL where it hurts: the next start goes on, nothing is lost, nothing twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rplctl import demo
from rplctl.channel import Channel
from rplctl.command.change_master import change_master
from rplctl.command.channel.change_options import MasterChanges
from rplctl.config import load_config
from rplctl.durable import private_folder
from rplctl.failpoint import ENVIRONMENT
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.option_file import store_options
from rplctl.position import BinlogPosition
from rplctl.relay_log.index import RelayLogIndex
from rplctl.relay_log.reader import RelayLogReader
from rplctl.repository import open_master_info
from rplctl.repository.base import InfoRepository
from rplctl.status import read_status
from tests.applier.demo_log import demo_groups
from tests.receiver.running import _no_engine, log_events
from tests.relay_log.stream import read_everything, transactions_of

pytestmark = pytest.mark.long(
    "tests/receiver/test_receiver.py holds a killed receiver; crash-test cuts it at each point."
)

SOURCE = sorted(demo.BINLOG_FOLDER.glob("binlog.0*"))
END = BinlogPosition(demo.source_state().end_log, demo.source_state().end_position)


@pytest.fixture
def channel(tmp_path: Path) -> Channel:
    """Configured to read the recorded shop; small relay logs, so that each run rotates several times."""
    store_options(private_folder(tmp_path / "data"), "", {"max_relay_log_size": 65536})
    config = load_config(tmp_path / "data")
    change_master(config, "", MasterChanges(master_binlog_dir=os.fspath(demo.BINLOG_FOLDER)))
    return Channel("", tmp_path / "data")


def receiver(channel: Channel, failpoints: str = "") -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "rplctl.receiver", str(channel.datadir), channel.name]
    return subprocess.Popen(command, env={**os.environ, ENVIRONMENT: failpoints}, stderr=subprocess.DEVNULL)


def master_info(channel: Channel) -> InfoRepository[MasterInfo]:
    return open_master_info(load_config(channel.datadir), channel, _no_engine)


def killed_at(channel: Channel, failpoints: str) -> None:
    assert receiver(channel, failpoints).wait(180) == -signal.SIGKILL


def run_to_the_end(channel: Channel) -> None:
    process = receiver(channel)
    try:
        deadline = time.monotonic() + 180
        status_path = channel.status_path("receiver")
        while (status := read_status(status_path)).read_log_name != END.log_name or status.read_log_pos != END.log_pos:
            assert process.poll() is None and time.monotonic() < deadline, status
            time.sleep(0.02)
        process.terminate()
        assert process.wait(180) == 0
    finally:
        process.kill()
        process.wait()


def received(channel: Channel) -> list[bytes]:
    index = RelayLogIndex(channel)
    return log_events([index.path(name) for name in index.names()])


@pytest.mark.slow
@pytest.mark.parametrize(
    "failpoints",
    [
        ("crash_before_flush_master_info=kill@1",),  # a new relay log, whose record is not written
        # behind a rotation
        pytest.param(("crash_before_flush_master_info=kill@3",), marks=pytest.mark.torture),
        pytest.param(("crash_after_relay_log_append=kill@1",), marks=pytest.mark.torture),
        pytest.param(("crash_after_relay_log_append=kill@4",), marks=pytest.mark.torture),
        # one after another: what the second start repaired is torn again
        ("crash_after_relay_log_append=kill@2", "crash_before_flush_master_info=kill@2"),
    ],
    ids=" then ".join,
)
def test_a_killed_receiver_goes_on_and_every_transaction_is_there_once(
    channel: Channel, failpoints: tuple[str, ...]
) -> None:
    for point in failpoints:
        killed_at(channel, point)
        behind = master_info(channel).read().read_position
        assert behind != END, "killed too late to show anything"
    run_to_the_end(channel)
    assert received(channel) == log_events(SOURCE)
    reader = RelayLogReader(channel)
    assert reader.open(RelayLogInfo())
    assert transactions_of(read_everything(reader)) == transactions_of([demo_groups(path.name) for path in SOURCE])
    stored = master_info(channel).read()
    assert stored.read_position == END
    newest = RelayLogIndex(channel).names()[-1]
    assert stored.flushed_relay_log_name == newest
    assert stored.flushed_relay_log_pos == (channel.datadir / newest).stat().st_size


@pytest.mark.slow
def test_the_record_never_claims_what_the_relay_log_has_not(channel: Channel) -> None:
    """Invariant: the relay log is synced before MasterInfo says so."""
    killed_at(channel, "crash_before_flush_master_info=kill@5")
    stored = master_info(channel).read()
    path = channel.datadir / stored.flushed_relay_log_name
    assert path.stat().st_size >= stored.flushed_relay_log_pos
    claimed = log_events([source for source in SOURCE if source.name < stored.master_log_name])
    assert claimed and received(channel)[: len(claimed)] == claimed
