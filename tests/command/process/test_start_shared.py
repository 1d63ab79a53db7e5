"""Several channels, one applier process, one Spark (`start --shared-session`): each is on its own in it."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from rplctl.command.process.start_request import StartRequest
from rplctl.command.process.start_shared import start_shared
from rplctl.command.show_status import SlaveStatus, show_status
from rplctl.config import Config, load_config
from rplctl.errors import NotConfigured
from tests.kit.replica import Replica, assert_same_tables, wait_until
from tests.kit.servers import MariadbServer

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]
NAMES = ("a", "b", "c")
START = ("start", "--shared-session", "--channel", "a", "--channel", "b", "--channel", "c")


class Channels:
    """a, b and c of one instance: each follows one database of the source."""

    def __init__(self, folder: Path, source: MariadbServer) -> None:
        self.source = source
        self.of = {name: Replica(folder, name) for name in NAMES}
        self.run = self.of["a"].run
        self.run("init")
        log_name, position = source.master_status()
        where = ("--master-log-file", log_name, "--master-log-pos", str(position))
        for name in NAMES:
            source.sql(f"DROP DATABASE IF EXISTS {name}; CREATE DATABASE {name}")
            source.sql("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))", name)
            self.of[name].change_master(source, "--channel", name, *where)
            self.run("change-filter", "--channel", name, "--replicate-do-db", name)

    def pids(self) -> dict[str, int | None]:
        return {name: replica.pid("applier") for name, replica in self.of.items()}

    def status(self, name: str) -> SlaveStatus:
        return show_status(load_config(self.of[name].datadir, name), name)

    def insert(self, number: int, *names: str) -> None:
        for name in names:
            self.source.sql(f"INSERT INTO {name}.t VALUES ({number}, 'from {name}')")

    def wait_for_same(self, *names: str) -> None:
        log_name, position = self.source.master_status()
        for name in names:
            self.run("wait", "--channel", name, "--pos", f"{log_name}:{position}", "--timeout", "240")
            assert_same_tables(self.source, self.of[name], name)


@pytest.fixture
def channels(tmp_path: Path, mariadb: MariadbServer) -> Iterator[Channels]:
    made = Channels(tmp_path, mariadb)
    yield made
    for replica in made.of.values():
        replica.close()


def javas(datadir: Path) -> list[Path]:
    """Of processes that write below it."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = path.read_bytes()
            found += [path] * (b"java" in words.partition(b"\0")[0] and os.fsencode(datadir) in words)
    return found


def children(pid: int) -> list[str]:
    """What this process has started, by name."""
    numbers = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    names = []
    for number in numbers:
        with suppress(OSError):  # it has ended meanwhile
            names.append(Path(f"/proc/{number}/comm").read_text().strip())
    return names


def exists(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


@pytest.mark.long("tests/command/test_serve.py has several channels in make test.")
def test_one_process_serves_several_channels_each_for_itself(channels: Channels) -> None:
    said = channels.run(*START).stdout
    assert said.splitlines() == [f"channel '{name}': receiver and applier started" for name in NAMES]
    pid = channels.pids()["a"]
    assert pid and set(channels.pids().values()) == {pid}, "one process"
    receivers = {replica.pid("receiver") for replica in channels.of.values()}
    assert len(receivers) == 1 and receivers != {pid}, "and one of the receivers"
    channels.insert(1, *NAMES)
    channels.wait_for_same(*NAMES)
    wait_until(lambda: children(pid).count("java") == 1)  # one Spark, which starts while the first rows are applied
    assert all("applier 'a':" in line for line in channels.of["a"].channel.log_path("applier").read_text().splitlines())

    with closing(sqlite3.connect(channels.of["a"].datadir / "target.db", isolation_level=None)) as busy:
        busy.execute("BEGIN IMMEDIATE")
        channels.insert(9, "a")
        wait_until(lambda: channels.status("a").Slave_SQL_Running_State.startswith("Reading event"))
        stopped = channels.run("stop", "--applier", "--channel", "a", "--timeout", "1000")
        assert "killed" not in stopped.stderr, "what waits for a lock is cut off as in a process of its own"
        assert channels.pids() == {"a": None, "b": pid, "c": pid}, "STOP is for one channel"
    assert [channels.status(name).Slave_SQL_Running for name in NAMES] == ["No", "Yes", "Yes"]
    channels.insert(2, *NAMES)
    channels.wait_for_same("b", "c")

    channels.source.sql("SET sql_log_bin=0; DELETE FROM c.t WHERE id=1; SET sql_log_bin=1")
    channels.insert(1, "c")  # a duplicate in the target
    wait_until(lambda: channels.status("c").Last_SQL_Errno == 1062)
    channels.insert(3, "b")
    channels.wait_for_same("b")
    wait_until(lambda: channels.pids()["c"] is None)
    assert channels.pids() == {"a": None, "b": pid, "c": None}, "an error is for one channel"
    assert "Duplicate entry" in channels.status("c").Last_SQL_Error

    channels.run("skip", "--channel", "c", "--yes")
    channels.of["b"].kill("applier")
    wait_until(lambda: set(channels.pids().values()) == {None})  # a crash is for all
    wait_until(lambda: not javas(channels.of["a"].datadir))  # the next start sweeps what it leaves
    assert [channels.status(name).Slave_SQL_Running for name in NAMES] == ["No"] * 3
    channels.insert(4, *NAMES)
    again = channels.run("start", "--shared-session")
    assert again.stdout.splitlines() == [f"channel '{name}': applier started" for name in NAMES]
    assert again.stderr.count("Note 3083") == 3, "the receivers went on"
    assert {replica.pid("receiver") for replica in channels.of.values()} == receivers
    channels.wait_for_same(*NAMES)
    second = channels.pids()["a"]
    assert second and set(channels.pids().values()) == {second} and second != pid
    folders = list((channels.of["a"].datadir / "run").glob("shared-*"))
    assert len(folders) == 2, "the receivers' and the appliers'; what the killed process left is gone"
    os.kill(second, signal.SIGTERM)
    wait_until(lambda: not exists(second))
    assert [channels.status(name).Last_SQL_Errno for name in NAMES] == [0, 0, 0], "a stop of all"


def test_as_many_descriptors_are_allowed_as_the_system_lets_a_process_have(tmp_path: Path) -> None:
    """Six for each channel of the process: with 256 more than the usual limit of 1024."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before[1] - 1, before[1]))
        outcome = start_shared(lambda _: Config(tmp_path), ["a"], StartRequest())
        assert isinstance(outcome["a"], NotConfigured)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (before[1], before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
