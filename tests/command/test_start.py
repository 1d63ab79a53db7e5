"""Java starts before the channel of an applier is prepared, and ends if the channel cannot be prepared."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from rplctl import demo
from rplctl.applier.options import OPTIONS_FOLLOW
from rplctl.channel import Channel
from rplctl.command.change_master import change_master
from rplctl.command.channel.change_options import MasterChanges
from rplctl.command.channel.context import running
from rplctl.config import Config
from tests.applier.test_killed_parts import JAVA, children_of
from tests.kit.replica import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def channel(tmp_path: Path) -> Channel:
    """Configure a channel that has never been started."""
    change_master(Config(tmp_path), "", MasterChanges(master_binlog_dir=os.fspath(demo.BINLOG_FOLDER)))
    return Channel("", tmp_path)


def starting(channel: Channel) -> subprocess.Popen[bytes]:
    """Run `start --applier` as a program of its own."""
    command = [sys.executable, "-m", "rplctl", "--datadir", str(channel.datadir), "start", "--applier"]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def early_java(command: subprocess.Popen[bytes]) -> Callable[[], list[int]]:
    """Return a function that finds the early applier and its Java."""

    def found() -> list[int]:
        early = children_of(command.pid, OPTIONS_FOLLOW.encode())
        java = [pid for applier in early for pid in children_of(applier, JAVA)]
        return early + java if java else []

    return found


def exist(pids: list[int]) -> bool:
    return any(Path("/proc", str(pid)).exists() for pid in pids)


@pytest.mark.long("It is about when Java starts; each story of make test starts one.")
@pytest.mark.parametrize("how", ["the command is killed", "the start is refused"])
def test_java_starts_before_the_channel_is_prepared_and_ends_if_it_cannot_be(channel: Channel, how: str) -> None:
    with closing(sqlite3.connect(channel.datadir / "target.db")) as other:
        other.execute("CREATE TABLE rplctl_commit_marker (n INT)")
        other.execute("BEGIN EXCLUSIVE")
        with starting(channel) as command:
            wait_until(early_java(command))
            processes = early_java(command)()
            assert not running(channel), "the applier may not begin before its channel is prepared"
            if how == "the command is killed":
                command.kill()
            else:
                (channel.datadir / "relay-log.info").unlink()
                (channel.datadir / "master.info").unlink()
                other.rollback()
            assert command.wait() != 0
            wait_until(lambda: not exist(processes))
    assert not running(channel)


@pytest.mark.long("A folder that goes while Java starts is rare; each story of make test ends a Java in order.")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_java_ends_with_its_applier_if_its_folder_goes_while_it_starts(channel: Channel, how: signal.Signals) -> None:
    """SIGTERM is a start that was refused; after SIGKILL, the next applier removes the folder."""
    with closing(sqlite3.connect(channel.datadir / "target.db")) as other:
        other.execute("CREATE TABLE rplctl_commit_marker (n INT)")
        other.execute("BEGIN EXCLUSIVE")
        with starting(channel) as command:
            wait_until(early_java(command), pause_s=0.001)
            applier, *java = early_java(command)()
            os.kill(applier, how)
            shutil.rmtree(channel.run_folder / "spark", ignore_errors=True)
            wait_until(lambda: not exist(java), 60)
            command.terminate()
