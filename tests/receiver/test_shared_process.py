"""Receivers that share a process: STOP, FLUSH LOGS, errors and logs of one are not those of another."""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from rplctl.channel import Channel
from rplctl.demo import BINLOG_FOLDER
from rplctl.option_file import store_options
from rplctl.relay_log.index import RelayLogIndex
from rplctl.status import read_status
from tests.kit.replica import Replica, wait_until

NAMES = ("a", "b", "c")
ONCE = ("--master-connect-retry", "1", "--master-retry-count", "1")


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[dict[str, Replica]]:
    """a, b and c read folders of binary logs; that of c is gone before it begins."""
    made = {name: Replica(tmp_path, name, spark=False) for name in NAMES}
    made["a"].run("init")
    for name in NAMES:
        folder = tmp_path / f"logs-{name}"
        shutil.copytree(BINLOG_FOLDER, folder)
        made["a"].run("change-master", "--channel", name, "--master-binlog-dir", str(folder), *ONCE)
    shutil.rmtree(tmp_path / "logs-c")
    yield made
    for replica in made.values():
        replica.close()


def receivers(replicas: dict[str, Replica]) -> list[int | None]:
    return [replica.pid("receiver") for replica in replicas.values()]


def received(channel: Channel) -> int:
    return read_status(channel.status_path("receiver")).read_log_pos


@pytest.mark.long("Receivers of several channels in one process are tried by tests/command/test_serve.py.")
@pytest.mark.slow
def test_flush_stop_start_and_crash_of_receivers_in_one_process(replicas: dict[str, Replica]) -> None:
    run = replicas["a"].run
    a, b, c = (replicas[name].channel for name in NAMES)
    failed = run("start", "--receiver", "--shared-session", expect=None)
    assert "channel 'a': receiver started" in failed.stdout and "channel 'b': receiver started" in failed.stdout
    wait_until(lambda: replicas["c"].pid("receiver") is None and read_status(c.status_path("receiver")).last_errno, 60)
    pid = replicas["a"].pid("receiver")
    assert pid and receivers(replicas) == [pid, pid, None], "an error is for one channel"
    assert all("receiver 'a':" in line for line in a.log_path("receiver").read_text().splitlines())
    wait_until(lambda: received(a) and received(b) and received(a) == received(b))

    before = RelayLogIndex(a).names(), RelayLogIndex(b).names()
    run("flush-relay-logs", "--channel", "a")
    wait_until(lambda: len(RelayLogIndex(a).names()) == len(before[0]) + 1)
    assert RelayLogIndex(b).names() == before[1], "FLUSH LOGS is for one channel"

    run("stop", "--receiver", "--channel", "a")
    assert receivers(replicas) == [None, pid, None], "STOP is for one channel"
    run("start", "--receiver", "--channel", "a")
    assert replicas["a"].pid("receiver") not in (None, pid)
    run("stop", "--receiver", "--channel", "a")

    replicas["b"].kill("receiver")
    assert "no channel has channel_group = 'west'" in run("start", "--group", "west", expect=2).stderr
    for channel in (a, b):
        store_options(channel.datadir, channel.name, {"channel_group": "west"})
    run("start", "--receiver", "--group", "west")
    again = receivers(replicas)
    assert again[0] and again == [again[0], again[0], None], "a crash of the process is one of all its channels"
    run("stop", "--receiver", "--all", expect=None)
    assert receivers(replicas) == [None, None, None]


@pytest.mark.slow
def test_stop_does_not_wait_for_sources_that_do_not_answer(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, full() as deaf:
        made = {name: Replica(tmp_path, name, spark=False) for name in ("silent", "deaf")}
        run = made["silent"].run
        run("init")
        for name, port in (("silent", silent.getsockname()[1]), ("deaf", deaf)):
            run("change-master", "--channel", name, "--master-host", "127.0.0.1", "--master-port", str(port),
                "--master-user", "rpl")  # fmt: skip
        run("start", "--receiver", "--shared-session")
        paths = [replica.channel.status_path("receiver") for replica in made.values()]
        wait_until(lambda: all(read_status(path).state == "Connecting to master" for path in paths))
        time.sleep(1)  # into the connecting
        began = time.monotonic()
        run("stop", "--receiver", "--all")
        assert receivers(made) == [None, None] and time.monotonic() - began < 10
        assert not any(read_status(path).last_errno for path in paths)


@contextmanager
def full() -> Iterator[int]:
    """The port of one whose queue is full: what connects gets no answer at all."""
    with socket.socket() as listener, ExitStack() as opened:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            one = opened.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]
