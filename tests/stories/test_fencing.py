"""One committer per channel (design D4): races of several appliers, and one that was stopped, replaced and continued.

Two hosts are two instance folders with the same channel and target. Each transaction writes its number into a table
with a primary key, so the oracle is exact: the numbers are 1 to N once each, and N is the stored position.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect

from rplctl.channel import Channel, hold_lock
from rplctl.commit.position_store import open_position_store
from rplctl.commit.step import CommitStep, PositionStore
from rplctl.commit.transaction import commit_group
from rplctl.config import Config
from rplctl.errors import LockBusy, RplError, TargetError
from rplctl.info import RelayLogInfo
from rplctl.instance_id import INSTANCE_ID_FILE
from rplctl.own_tables.tables import create_own_tables
from rplctl.repository import create_tables, open_relay_log_info
from rplctl.target import open_target
from rplctl.target.base import Target
from rplctl.target.mysql import fence as mysql_fence
from rplctl.target.postgresql import target as postgresql
from tests.commit import xa_probe
from tests.commit.xa_probe import at
from tests.kit.torture_page import count_torture, walk

LONG = pytest.mark.long(
    "The cases of one kind stay; the others repeat them on other targets and repositories.",
    keeps=r"mariadb-(transaction|marker)|sqlite-one host",
)

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),  # fork with threads, Python ≥ 3.12
]
SERVERS = [pytest.param("mariadb", marks=pytest.mark.mariadb), pytest.param("postgresql", marks=pytest.mark.postgresql)]
KILL = {"mariadb": "KILL {}", "postgresql": "SELECT pg_terminate_backend({})"}
CONNECTION_ID = {"mariadb": "SELECT CONNECTION_ID()", "postgresql": "SELECT pg_backend_pid()", "sqlite": "SELECT 0"}


@dataclass
class Place:
    """A target, and hosts that share it."""

    kind: str
    server: Any
    folder: Path
    options: dict[str, Any]

    def host(self, name: str) -> Config:
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        (folder / INSTANCE_ID_FILE).write_text("0123456789abcdef\n")  # one instance, wherever it runs
        url = self.server.url() if self.server else f"sqlite:///{self.folder / 'target.db'}"
        return Config(folder, target=url, **self.options)

    @property
    def table(self) -> str:
        return xa_probe.TABLE if self.server else "probe"

    def prepare(self, *hosts: Config) -> None:
        """The table of numbers, and every host's channel at number 0."""
        target = open_target(hosts[0].target_url)
        there = inspect(target.engine)
        tables = ((xa_probe.DATABASE, "probe"), ("rplctl", "rplctl_commit_marker"), ("rplctl", "slave_relay_log_info"))
        if self.server and not all(there.has_table(name, schema) for schema, name in tables):
            xa_probe.prepare(hosts[0])
        elif not self.server:
            create_own_tables(target.engine)
            create_tables(target.engine, "")
        with target.engine.begin() as connection:
            connection.exec_driver_sql(f"CREATE TABLE IF NOT EXISTS {self.table} (seq INTEGER PRIMARY KEY)")
            schema = "rplctl." if self.server else ""
            for name in (self.table, f"{schema}rplctl_commit_marker", f"{schema}slave_relay_log_info"):
                connection.exec_driver_sql(f"DELETE FROM {name}")
        for config in hosts:
            open_relay_log_info(config, Channel("", config.datadir), lambda: target.engine).flush(at(0), force=True)
        target.close()

    def numbers(self, config: Config) -> list[int]:
        target = open_target(config.target_url)
        with target.engine.connect() as connection:
            found = [row[0] for row in connection.exec_driver_sql(f"SELECT seq FROM {self.table} ORDER BY 1")]
        target.close()
        return found


def place_of(kind: str, request: pytest.FixtureRequest, folder: Path, options: dict[str, Any]) -> Place:
    if kind == "sqlite":
        return Place(kind, None, folder, options)
    if kind == "postgresql" and "commit_mode" in options:
        return Place(kind, request.getfixturevalue("prepared_postgresql"), folder, options)
    return Place(kind, request.getfixturevalue(kind), folder, options)


@pytest.fixture(scope="module")
def prepared_postgresql(postgresql_factory: Callable[..., Any]) -> Any:
    return postgresql_factory("-c", "max_prepared_transactions=10")


@dataclass
class Applier:
    place: Place
    config: Config
    target: Target
    store: PositionStore
    info: RelayLogInfo

    @classmethod
    def start(cls, place: Place, config: Config) -> Applier:
        target = open_target(config.target_url)
        try:
            target.fence("")
            store = open_position_store(config, Channel("", config.datadir), target.engine)
            return cls(place, config, target, store, store.open())
        except BaseException:
            target.close()
            raise

    def commit_next(self, meanwhile: Callable[[], None] = lambda: None) -> int:
        number = self.info.master_log_pos + 1

        def apply() -> None:
            self.target.connection.exec_driver_sql(f"INSERT INTO {self.place.table} VALUES ({number})")
            meanwhile()

        commit_group(self.target, self.store, CommitStep(self.info, at(number)), apply)
        self.info = replace(at(number), channel_name=self.info.channel_name)
        return number

    def stop(self) -> None:
        self.store.close(self.info)
        self.target.close()


class ChildProcess:
    """A fork that tells us things line by line."""

    def __init__(self, work: Callable[[Callable[[Any], None]], None]) -> None:
        reading, writing = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os.close(reading)
            mysql_fence.LOCK_WAIT_SECONDS, postgresql.LOCK_WAIT = 0, "100ms"

            def say(value: Any) -> None:
                os.write(writing, json.dumps(value).encode() + b"\n")

            try:
                work(say)
            except BaseException as error:
                say(f"{type(error).__name__}: {error}")
                raise
            finally:
                os._exit(0)
        os.close(writing)
        self._file = os.fdopen(reading)

    def heard(self) -> Any:
        line = self._file.readline()
        return json.loads(line) if line else None

    def heard_all(self) -> list[Any]:
        found = [json.loads(line) for line in self._file]
        self._file.close()
        os.waitpid(self.pid, 0)
        return found


def outcome(work: Callable[[], object]) -> str:
    try:
        work()
    except RplError as error:
        return f"{type(error).__name__} {error.exit_code}"
    return "committed"


def zombie(place: Place, config: Config, is_within: bool, say: Callable[[Any], None]) -> None:
    """Stopped within or before its transaction; continued, it tries on as the applier does after a lost connection."""
    applier = Applier.start(place, config)
    identifier = applier.target.connection.exec_driver_sql(CONNECTION_ID[place.kind]).scalar()
    applier.target.connection.rollback()

    def sleep() -> None:
        say(identifier)
        os.kill(os.getpid(), signal.SIGSTOP)

    if not is_within:
        sleep()
    say(outcome(lambda: applier.commit_next(sleep if is_within else lambda: None)))
    applier.target.reconnect()
    say(outcome(applier.commit_next))
    os.kill(os.getpid(), signal.SIGSTOP)  # until its successor has stopped
    applier.target.reconnect()
    say(outcome(applier.commit_next))


TABLE, FILE = {"relay_log_info_repository": "TABLE"}, {"relay_log_info_repository": "FILE"}
XA = {**FILE, "commit_mode": "xa"}


ZOMBIES = {"transaction": (TABLE, True), "marker": (FILE, True), "xa": (XA, True), "between two": (XA, False)}


@pytest.mark.long("One commit mode stays.", keeps=r"^mariadb-transaction$")
@LONG
@pytest.mark.slow
@pytest.mark.parametrize(("options", "is_within"), ZOMBIES.values(), ids=ZOMBIES.keys())
@pytest.mark.parametrize("kind", SERVERS)
def test_one_that_was_stopped_and_replaced_writes_nothing_when_it_goes_on(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, options: dict[str, Any], is_within: bool
) -> None:
    """SIGSTOP; its connection and lock are lost; another host takes over; SIGCONT (B07, G02)."""
    place = place_of(kind, request, tmp_path, options)
    first, second = place.host("first"), place.host("second")
    place.prepare(first, second)
    old = ChildProcess(lambda say: zombie(place, first, is_within, say))
    identifier = old.heard()
    assert os.WIFSTOPPED(os.waitpid(old.pid, os.WUNTRACED)[1])
    place.server.sql(KILL[kind].format(identifier))
    new = Applier.start(place, second)
    assert [new.commit_next() for _ in range(3)] == [1, 2, 3]
    os.kill(old.pid, signal.SIGCONT)
    tried = [old.heard(), old.heard()]
    assert tried[0] in ("LockBusy 75", "TargetError 7") and tried[1] == "LockBusy 75"
    assert new.commit_next() == 4
    new.stop()
    assert os.WIFSTOPPED(os.waitpid(old.pid, os.WUNTRACED)[1])
    if "commit_mode" in options:  # its file on that host is all there is to compare with: the lock is its only fence
        os.kill(old.pid, signal.SIGKILL)
    else:
        os.kill(old.pid, signal.SIGCONT)
    assert old.heard_all() == ([] if "commit_mode" in options else ["LockBusy 75"])
    assert place.numbers(second) == [1, 2, 3, 4]
    again = Applier.start(place, second)
    assert again.info.exec_position == at(4).exec_position
    again.stop()
    count_torture("fencing", f"zombie on {kind}", 0)


@pytest.mark.parametrize("options", [TABLE, FILE], ids=["transaction", "marker"])
def test_on_sqlite_the_position_alone_shuts_out_the_one_that_was_stopped(
    request: pytest.FixtureRequest, tmp_path: Path, options: dict[str, Any]
) -> None:
    place = place_of("sqlite", request, tmp_path, options)
    first, second = place.host("first"), place.host("second")
    place.prepare(first, second)
    old = ChildProcess(lambda say: zombie(place, first, False, say))
    old.heard()
    os.waitpid(old.pid, os.WUNTRACED)
    new = Applier.start(place, second)
    assert [new.commit_next() for _ in range(2)] == [1, 2]
    os.kill(old.pid, signal.SIGCONT)
    assert [old.heard(), old.heard()] == ["LockBusy 75", "LockBusy 75"]
    os.kill(old.pid, signal.SIGKILL)
    old.heard_all()
    new.stop()
    assert place.numbers(second) == [1, 2]


@LONG
@pytest.mark.parametrize("options", [TABLE, FILE, XA], ids=["transaction", "marker", "xa"])
@pytest.mark.parametrize("kind", SERVERS)
def test_a_lock_that_an_operator_killed_is_taken_again_and_nothing_is_lost_or_written_twice(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """KILL of the applier's connection, which holds the lock, within a transaction and between two (G03)."""

    def wait(seconds: int) -> None:  # a server takes a moment to free the lock of a connection that was killed
        monkeypatch.setattr(mysql_fence, "LOCK_WAIT_SECONDS", seconds)
        monkeypatch.setattr(postgresql, "LOCK_WAIT", f"{seconds * 1000 + 1}ms")

    place = place_of(kind, request, tmp_path, options)
    first, second = place.host("first"), place.host("second")
    place.prepare(first, second)
    applier = Applier.start(place, first)

    def kill() -> None:
        place.server.sql(KILL[kind].format(identifier))

    for is_within in (True, False):
        identifier = applier.target.connection.exec_driver_sql(CONNECTION_ID[kind]).scalar()
        applier.target.connection.rollback()
        if not is_within:
            kill()
        with pytest.raises(TargetError) as lost:
            applier.commit_next(kill if is_within else lambda: None)
        assert lost.value.transient, lost.value
        applier.target.reconnect()  # as the applier does before it tries again
        wait(300)
        assert applier.commit_next() == (1 if is_within else 2)
        wait(0)
        with pytest.raises(LockBusy):
            Applier.start(place, second)
    assert applier.commit_next() == 3
    applier.stop()
    assert place.numbers(first) == [1, 2, 3]


def contender(
    place: Place, config: Config, goal: int, is_one_host: bool, gate: Barrier, say: Callable[[Any], None]
) -> None:
    """Starts again and again until the goal is reached by whomever; says what it committed and what refused it."""
    number = 0
    gate.wait(300)
    while number < goal:
        held: AbstractContextManager[None] = nullcontext()
        if is_one_host:
            held = hold_lock(Channel("", config.datadir), "applier")
        try:
            with held:
                applier = Applier.start(place, config)
                try:
                    number = applier.info.master_log_pos
                    for _ in range(min(3, goal - number)):
                        number = applier.commit_next()
                        say(number)
                finally:
                    applier.stop() if is_one_host else applier.target.close()
        except LockBusy:
            say("busy")
        except TargetError as error:
            assert error.transient, error
            say("tried again")


def races(place: Place, rounds: int, is_one_host: bool) -> Iterator[list[list[Any]]]:
    """What each side said."""
    for number in range(rounds):
        hosts = [place.host(f"{number}-{0 if is_one_host else n}") for n in range(3)]
        place.prepare(*dict.fromkeys(hosts))
        gate = multiprocessing.Barrier(len(hosts))
        children = [
            ChildProcess(lambda say, config=config: contender(place, config, 12, is_one_host, gate, say))  # type: ignore[misc] # noqa: B023
            for config in hosts
        ]
        heard = [child.heard_all() for child in children]
        said = [value for side in heard for value in side]
        assert sorted(value for value in said if isinstance(value, int)) == list(range(1, 13)), said
        assert set(map(str, said)) - {"busy", "tried again"} == set(map(str, range(1, 13))), said
        assert place.numbers(hosts[0]) == list(range(1, 13))
        yield heard
        if not place.server:
            (place.folder / "target.db").unlink()


@LONG
@pytest.mark.slow
@pytest.mark.parametrize("rounds", [1, pytest.param(100, marks=pytest.mark.torture)])
@pytest.mark.parametrize("is_one_host", [True, False], ids=["one host", "three hosts"])
@pytest.mark.parametrize("kind", ["sqlite", *SERVERS])
def test_of_appliers_that_start_at_once_one_wins_and_nothing_is_written_twice(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, is_one_host: bool, rounds: int
) -> None:
    """One host: the lock of its folder. Several: the target's lock, and the position in the transaction (G01)."""
    place = place_of(kind, request, tmp_path, FILE if is_one_host else TABLE)
    where = f"race on {kind}, {'one host' if is_one_host else 'three hosts'}"
    if rounds > 1:
        rounds = len(walk("fencing", where, range(rounds)))
    contended = 0
    for heard in races(place, rounds, is_one_host):
        committed = sum(any(isinstance(value, int) for value in side) for side in heard)
        contended += committed > 1 or any("busy" in side for side in heard)  # on one host they wait for each other
        count_torture("fencing", where, 0)
    assert contended or rounds == 1


def test_without_the_comparison_a_number_is_written_twice(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proof that the oracle can fail: an `advance` that looks at nothing."""
    place = place_of("sqlite", request, tmp_path, TABLE)
    host = place.host("first")
    place.prepare(host)
    monkeypatch.setattr("rplctl.commit.position_store.TablePositionStore.advance", lambda *_: None)
    applier = Applier.start(place, host)
    other = Applier.start(place, host)
    assert applier.commit_next() == 1
    applier.target.close()
    with pytest.raises(Exception, match="UNIQUE constraint"):
        other.commit_next()
    other.target.close()
