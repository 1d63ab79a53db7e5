"""What systemd hears of `start --foreground`; the test plays systemd (on a real one it was seen by hand)."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rplctl import demo
from rplctl.channel import Channel, lock_holder
from rplctl.history import read_history
from tests.kit.replica import wait_until

pytestmark = pytest.mark.slow

INFOS = ("master_info", "relay_log_info")
Listening = Callable[[], list[str]]


@contextmanager
def under_systemd(datadir: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], Listening]]:
    """The program, and what it said since the last call."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0rplctl-{os.getpid()}")
        manager.setblocking(False)
        environment = {**os.environ, "NOTIFY_SOCKET": f"@rplctl-{os.getpid()}", "WATCHDOG_USEC": "1000000"}
        command = [sys.executable, "-m", "rplctl", "--datadir", str(datadir), *arguments]
        running = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def said() -> list[str]:
            lines: list[str] = []
            while True:
                try:
                    lines += manager.recv(65536).decode().splitlines()
                except BlockingIOError:
                    return lines

        try:
            yield running, said
        finally:
            running.kill()
            running.wait()


def heard_by_now(heard: list[str], said: Listening) -> list[str]:
    heard += said()
    return heard


def rplctl(datadir: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "rplctl", "-q", "--datadir", str(datadir), *arguments]
    subprocess.run(command, check=True, capture_output=True)


@pytest.mark.long("It waits for two periods of systemd's watchdog, which few use.")
def test_the_watchdog_is_fed_only_while_the_threads_live(tmp_path: Path) -> None:
    rplctl(tmp_path, "change-master", "--master-binlog-dir", os.fspath(demo.BINLOG_FOLDER))
    with under_systemd(tmp_path, "start", "--foreground", "--receiver") as (running, said):
        heard: list[str] = []
        end = f"STATUS=read to binlog.000003:{demo.source_state().end_position}"
        wait_until(lambda: end in heard_by_now(heard, said), 120)
        assert heard[0] == "READY=1" and "WATCHDOG=1" in heard
        receiver = lock_holder(Channel("", tmp_path), "receiver")
        assert receiver
        os.kill(receiver, signal.SIGSTOP)
        silence = "STATUS=no report of the receiver"
        try:
            wait_until(lambda: silence in said(), 30)
            time.sleep(1)
            assert {*said()} == {silence}, "no WATCHDOG"
        finally:
            os.kill(receiver, signal.SIGCONT)
        wait_until(lambda: "WATCHDOG=1" in said(), 30)
        running.terminate()
        assert running.wait(60) == 0
        assert said()[-1] == "STOPPING=1"
    assert [(event.Event, event.Info) for event in read_history(tmp_path)][-1] == ("stop", "SIGTERM")


@pytest.mark.long("tests/stories/test_target_outage.py holds the wait.")
def test_a_target_that_comes_up_later_is_waited_for(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]  # nobody answers there once it is closed
    options = f'target = "mysql://u@127.0.0.1:{port}/"', *(f'{name}_repository = "TABLE"' for name in INFOS)
    (tmp_path / "rplctl.toml").write_text("\n".join(options))
    (tmp_path / "rplctl.toml").chmod(0o600)
    with under_systemd(tmp_path, "start", "--foreground", "--channel", "") as (running, said):
        heard: list[str] = []
        wait_until(lambda: heard_by_now(heard, said).count("WATCHDOG=1") > 1, 60)
        assert heard[0] == "READY=1" and heard[1].startswith("STATUS=waits for the target: ")
        running.terminate()
        assert running.wait(30) == 10
