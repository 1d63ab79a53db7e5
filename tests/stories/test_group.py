"""A group of channels in two processes: fair, each with its own errors, moved to another machine, and fenced there."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rplctl.option_file import store_options
from rplctl.relay_log.index import RelayLogIndex
from tests.kit.replica import Replica, stands_still, wait_until
from tests.kit.servers import MariadbServer

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.mariadb, pytest.mark.timeout(900)]
BACKLOG = 400_000
DAMAGED = (1594, 1743)
SCHEMA = "SELECT 1"


class Group:
    """Channels of one instance, each with a database of its own name."""

    def __init__(self, folder: Path, target: MariadbServer, sources: dict[str, MariadbServer], *, spark: bool) -> None:
        self.target, self.sources = target, sources
        self.of = {name: Replica(folder, name, spark=spark) for name in sources}
        self.run = next(iter(self.of.values())).run
        self.run("init", *next(iter(self.of.values())).into(target))
        for name, source in sources.items():
            source.sql(f"DROP DATABASE IF EXISTS {name}")
            log_name, position = source.master_status()
            source.sql(f"CREATE DATABASE {name}")
            source.sql("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(100))", name)  # its default: filters go by it
            where = ("--master-log-file", log_name, "--master-log-pos", str(position))
            self.of[name].change_master(source, "--channel", name, *where)
            self.run("change-filter", "--channel", name, "--replicate-do-db", name)
            store_options(self.of[name].datadir, name, {"channel_group": "west"})

    def insert(self, name: str, number: int) -> None:
        self.sources[name].sql(f"INSERT INTO {name}.t VALUES ({number}, 'x')")

    def count(self, name: str) -> int:
        there = f"SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = '{name}' AND table_name = 't'"
        return int(self.target.sql(f"SELECT COUNT(*) FROM {name}.t")[0][0]) if self.target.sql(there)[0][0] else -1

    def pids(self, role: str = "applier") -> dict[str, int | None]:
        return {name: replica.pid(role) for name, replica in self.of.items()}

    def error(self, name: str) -> tuple[int, str]:
        status = self.of[name].status()
        return status["Last_SQL_Errno"], status["Last_SQL_Error"]

    def close(self) -> None:
        for replica in self.of.values():
            replica.close()


Made = Callable[..., Group]


@pytest.fixture
def group(tmp_path: Path, mariadb_factory: Callable[..., MariadbServer]) -> Iterator[Made]:
    made: list[Group] = []
    target = mariadb_factory()

    def make(sources: dict[str, MariadbServer], *, spark: bool) -> Group:
        made.append(Group(tmp_path, target, sources, spark=spark))
        return made[-1]

    yield make
    for one in made:
        one.close()


def damage(replica: Replica) -> None:
    """One bit in the middle of what it has received."""
    path = RelayLogIndex(replica.channel).path(RelayLogIndex(replica.channel).names()[-1])
    with path.open("r+b") as file:
        file.seek(path.stat().st_size - 300)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 0x10]))


@pytest.mark.torture
def test_a_backlog_starves_nobody_and_bad_sql_and_a_damaged_log_stop_their_own_channels(
    group: Made, source: MariadbServer, mariadb_factory: Callable[..., MariadbServer]
) -> None:
    made = group({"big": mariadb_factory(), "small": source, "bad": source, "torn": source}, spark=True)
    for first in range(1, BACKLOG, 20_000):
        made.sources["big"].sql(
            f"INSERT INTO t SELECT seq, REPEAT(MD5(seq), 3) FROM seq_{first}_to_{first + 19_999}", "big"
        )
    for number in range(20):
        made.insert("torn", number)
    made.run("start", "--group", "west", "--receiver")
    end = source.master_status()
    wait_until(lambda: made.of["torn"].status()["Read_Master_Log_Pos"] == end[1])
    damage(made.of["torn"])
    made.target.sql("CREATE DATABASE bad")

    made.run("start", "--group", "west", "--applier", expect=None)
    wait_until(lambda: made.count("small") == 0)
    seen = []
    for number in range(5):
        made.insert("small", number)
        wait_until(lambda: made.count("small") == number + 1)  # noqa: B023
        seen.append(made.count("big"))
    assert seen[-1] < BACKLOG, f"each of five came while the backlog was still applied: {seen}"
    wait_until(lambda: made.pids()["bad"] is None and made.pids()["torn"] is None)
    assert made.error("bad")[0] == 1007 and made.error("torn")[0] in DAMAGED
    wait_until(lambda: made.count("big") == BACKLOG)
    made.insert("small", 5)
    wait_until(lambda: made.count("small") == 6)
    pids = made.pids()
    assert pids["big"] == pids["small"] and pids["big"]

    made.target.sql("DROP DATABASE bad")
    alone = made.run("start", "--channel", "bad")
    assert "run: rplctl stop --group west; rplctl start --group west" in alone.stderr
    assert made.pids()["bad"] not in (None, pids["big"])
    assert "applier stopped" in made.run("stop", "--group", "west").stdout
    assert set(made.pids().values()) | set(made.pids("receiver").values()) == {None}


@pytest.mark.long("A moved volume is rare; tests/stories/test_fencing.py holds the fence for one channel.")
def test_a_group_is_moved_and_whoever_goes_on_with_the_old_copy_is_fenced(
    group: Made, source: MariadbServer, tmp_path: Path
) -> None:
    """A volume is moved twice: in order, and away from a machine that seemed dead."""
    made = group({"a": source, "b": source}, spark=False)
    for name in made.of:
        made.insert(name, 1)
    made.run("start", "--group", "west")
    wait_until(lambda: [made.count("a"), made.count("b")] == [1, 1])
    made.run("stop", "--group", "west")
    here = tmp_path / "machine2"
    here.mkdir()
    shutil.move(made.of["a"].datadir, here)
    second = {name: Replica(here, name, spark=False) for name in made.of}
    made.insert("a", 2)
    second["a"].run("start", "--group", "west")
    wait_until(lambda: made.count("a") == 2)

    there, passing = tmp_path / "machine3", shutil.ignore_patterns("*.lock", "shared-*", "*.tmp*", "*~rec~")
    with frozen(second["a"]):
        shutil.copytree(second["a"].datadir, there / "replica", ignore=passing)
    third = {name: Replica(there, name, spark=False) for name in made.of}
    try:
        third["a"].run("start", "--group", "west", "--applier", expect=None)
        wait_until(lambda: third["a"].status()["Last_SQL_Error"])
        assert "another applier" in third["a"].status()["Last_SQL_Error"], "the old one lives"
        with frozen(second["a"]):
            cut_off(made.target)
            made.insert("a", 3)
            made.insert("b", 3)
            third["a"].run("start", "--group", "west", expect=None)
            wait_until(lambda: [made.count("a"), made.count("b")] == [3, 2])
        made.insert("a", 4)
        made.insert("b", 4)
        wait_until(lambda: second["a"].pid("applier") is None and second["b"].pid("applier") is None)
        assert "another applier" in second["a"].status()["Last_SQL_Error"]
        second["a"].kill("receiver")
        wait_until(lambda: [made.count("a"), made.count("b")] == [4, 3])
        assert third["a"].pid("applier") and third["b"].pid("applier")
    finally:
        for replica in (*second.values(), *third.values()):
            replica.close()


@contextmanager
def frozen(replica: Replica) -> Iterator[None]:
    """Both processes stand still: on a machine that hangs, or while the snapshot of a volume is made."""
    pids = [replica.pid(role) for role in ("applier", "receiver")]
    assert all(pids)
    for pid in pids:
        os.kill(pid or 0, signal.SIGSTOP)
    wait_until(lambda: all(stands_still(pid or 0) for pid in pids))
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid or 0, signal.SIGCONT)


def cut_off(target: MariadbServer) -> None:
    """Every connection of an applier ends, as the network of a lost machine ends them."""
    theirs = "user = 'rpl' AND id <> CONNECTION_ID()"
    found: list[Any] = target.sql(f"SELECT id FROM information_schema.processlist WHERE {theirs}")
    for (number,) in found:
        target.sql(f"KILL {number}")


def restore(target: MariadbServer, dump: str) -> None:
    where = [f"--socket={target.socket}", "--user=rpl", "--password=rpl"]
    subprocess.run(["mariadb", "--no-defaults", *where], input=dump, check=True, text=True, capture_output=True)


def dumped(target: MariadbServer, *databases: str) -> str:
    where = [f"--socket={target.socket}", "--user=rpl", "--password=rpl"]
    command = ["mariadb-dump", "--no-defaults", *where, "--single-transaction", "--databases", *databases]
    return subprocess.run(command, check=True, text=True, capture_output=True).stdout


@pytest.mark.long("tests/stories/test_restored_target.py restores the target of one channel.")
def test_a_dump_of_one_channel_put_over_a_group_leads_to_equal_rows(group: Made, source: MariadbServer) -> None:
    """The rows of the other channel are ahead of its marker: it stops, and what its hint says ends with equal rows."""
    made = group({"a": source, "b": source}, spark=False)
    for number in (1, 2):
        made.insert("a", number)
        made.insert("b", number)
        made.run("start", "--group", "west")
        wait_until(lambda: [made.count("a"), made.count("b")] == [number, number])  # noqa: B023
        made.run("stop", "--group", "west")
        if number == 1:
            dump = dumped(made.target, "rplctl", "a")
            source.sql("UPDATE b.t SET v = 'y'")
    restore(made.target, dump)
    assert [made.count("a"), made.count("b")] == [1, 2]
    assert made.run("check", "--json", expect=2).stdout.count('"target_gone_back"') == 2

    made.run("start", "--group", "west")
    wait_until(lambda: made.pids()["b"] is None)
    errno, error = made.error("b")
    assert errno == 1062 and made.pids()["a"], error
    hint = made.of["b"].status()["Last_SQL_Hint"]
    for command in hint.partition("run: ")[2].partition("\n")[0].split("; "):
        words = command.split()
        at = words.index("rplctl")
        variables = dict(word.split("=", 1) for word in words[:at])
        done = made.run(*words[at + 1 :], expect=None, environment=variables or None)
    assert done.returncode == 0 and made.pids()["b"], done
    for name in made.of:
        made.insert(name, 3)
        wait_until(lambda: made.count(name) == 3)  # noqa: B023
        assert made.target.sql(f"SELECT * FROM {name}.t ORDER BY id") == source.sql(f"SELECT * FROM {name}.t")
        made.run("verify", "--channel", name)


@pytest.mark.long("tests/command/process/test_unfit_target.py takes over the target of one channel.")
def test_one_channel_of_a_group_that_is_taken_over_leaves_the_others(
    group: Made, source: MariadbServer, tmp_path: Path
) -> None:
    made = group({"a": source, "b": source}, spark=False)
    made.run("start", "--group", "west")
    wait_until(lambda: [made.count("a"), made.count("b")] == [0, 0])
    made.run("stop", "--group", "west")
    (tmp_path / "other").mkdir()
    other = Replica(tmp_path / "other", "b", spark=False)
    other.run("init", *other.into(made.target))
    log_name, position = source.master_status()
    other.change_master(source, "--channel", "b", "--master-log-file", log_name, "--master-log-pos", str(position))
    other.run("change-filter", "--channel", "b", "--replicate-do-db", "b")
    try:
        refused = other.run("start", "--channel", "b", expect=7)
        for folder in (other.datadir, made.of["b"].datadir):
            assert str(folder) in refused.stderr
        other.run(*refused.stderr.partition("run: rplctl ")[2].splitlines()[0].split())
        shut_out = made.run("start", "--group", "west", expect=7)
        assert "ERROR 1872" in shut_out.stderr and "channel: 'b'" in shut_out.stderr
        for name in made.of:
            made.insert(name, 1)
            wait_until(lambda: made.count(name) == 1)  # noqa: B023
        assert made.pids()["a"] and not made.pids()["b"]
    finally:
        other.close()


@pytest.mark.long("tests/command/process/test_start_shared.py starts and stops a group.")
def test_a_group_in_the_foreground_ends_with_sigterm_and_with_a_process_of_its_own(
    group: Made, source: MariadbServer
) -> None:
    """As systemd and Kubernetes have it."""
    made = group({"a": source}, spark=False)
    made.insert("a", 1)
    environment = {**os.environ, **made.of["a"].variables}
    command = [sys.executable, "-m", "rplctl", "--datadir", str(made.of["a"].datadir), "start"]
    command += ["--group", "west", "--foreground"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as staying:
        wait_until(lambda: made.count("a") == 1)
        staying.send_signal(signal.SIGTERM)
        assert staying.wait(60) == 0
    assert set(made.pids().values()) | set(made.pids("receiver").values()) == {None}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as staying:
        wait_until(lambda: made.pids()["a"])
        made.of["a"].kill("applier")
        assert "SIGKILL" in staying.communicate(timeout=60)[1] and staying.returncode != 0
    assert made.pids("receiver") == {"a": None}
