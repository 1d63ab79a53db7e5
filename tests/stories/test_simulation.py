"""Receiver, relay log, recovery and repositories over a simulated disk, by seeds (WL#4621, WL#2775 REQ-1 to 6).

One seed is a life of a channel in one thread: a source that grows, a receiver that reads from it in pieces, an applier
that commits a number per transaction, and purge, rotation, switches of repositories, cut connections, killed
processes, failed fsyncs, full disks and power cuts between any two calls, all chosen by the seed's generator and by
nothing else. `SEEDS=17 pytest tests/stories/test_simulation.py` replays seed 17, `SEEDS=0-5000` runs that many.
After each start: the numbers in the target are those of the position and what was acknowledged is among them, the
dump begins where the relay log or the position ends; what is read of the relay log is the source's bytes; at the end
all of the source is in the target and nothing is left over.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from errno import EIO, ENOSPC
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy.exc import SQLAlchemyError

from rplctl import durable
from rplctl.applier.feed.relay_feed import RelayFeed
from rplctl.channel import Channel
from rplctl.commit.position_store import open_position_store
from rplctl.commit.step import CommitStep, PositionStore
from rplctl.commit.transaction import commit_group
from rplctl.config import Config, load_config
from rplctl.errors import RplError
from rplctl.event.header import BINLOG_MAGIC
from rplctl.event.scan import GroupKind
from rplctl.event.types import EventType
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.option_file import store_options
from rplctl.own_tables.tables import create_own_tables
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.receiver.receiver import Receiver
from rplctl.relay_log.index import RelayLogIndex
from rplctl.relay_log.purge import purge_applied, register_path
from rplctl.repository import create_tables, open_master_info, open_relay_log_info
from rplctl.repository.base import RepositoryKind
from rplctl.repository.switch import carry_out, plan_switch, resolve_repositories
from rplctl.source.base import DumpStart, EventBatch, SourceIdentity, lost_connection
from rplctl.source.binlog_folder import FolderStream
from rplctl.target import open_target
from rplctl.target.base import Target
from tests.kit.simulated_disk import PowerCut, SimulatedDisk
from tests.kit.torture_page import count_torture, walk
from tests.relay_log.stream import FakeSource

pytestmark = pytest.mark.long(
    "Random faults in one process; tests/command/test_crash_test.py kills at each point in make test."
)

IN_THE_SUITE, AT_ONCE, TORTURE = 50, 50, 5000
TABLES = ("probe", "rplctl_commit_marker", "rplctl_channel_owner", "slave_relay_log_info", "slave_master_info")


@dataclass
class Archive:
    """The source: a folder of logs that grows."""

    folder: Path
    chance: Random
    source: FakeSource = field(default_factory=FakeSource)
    digests: list[str] = field(default_factory=list)  # of each transaction
    boundaries: set[BinlogPosition] = field(default_factory=set)  # where a dump may begin

    def begin_log(self) -> None:
        """Its FORMAT_DESCRIPTION says where it ends."""
        at = self.source.position
        length = len(self.source.description(0))
        self.source.position = BinlogPosition(at.log_name, 4 + length)
        self._append(BINLOG_MAGIC + self.source.description(end_log_pos=4 + length))
        self.boundaries |= {at, self.source.position}

    def grow(self) -> None:
        if self.chance.random() < 0.1:
            name = f"binlog.{int(self.source.position.log_name[-6:]) + 1:06}"
            self._append(self.source.event(EventType.ROTATE, struct.pack("<Q", 4) + name.encode()))
            self.source.position = BinlogPosition(name, 4)
            self.begin_log()
        for _ in range(self.chance.randint(1, 3)):
            data = self.source.transaction(self.chance.randint(1, 4), self.chance.randint(1, 60))
            self.digests.append(hashlib.sha256(data).hexdigest())
            self.boundaries.add(self.source.position)
            self._append(data)

    def count_to(self, position: BinlogPosition) -> int:
        """Transactions up to this position."""
        return sum(not position.is_before(end) for end in self.source.ends)

    def _append(self, data: bytes) -> None:
        with (self.folder / self.source.position.log_name).open("ab") as file:
            file.write(data)


class Pieces:
    """`SourceStream`: what a folder's brings, a few events at a time; in between, the rest of the world goes on."""

    def __init__(self, world: World, stream: FolderStream) -> None:
        self._world, self._stream = world, stream
        self._batch: EventBatch | None = None
        self._next = 0

    def identity(self) -> SourceIdentity:
        return self._stream.identity()

    def close(self) -> None:
        self._stream.close()

    def read_batch(self, timeout_s: float) -> EventBatch | None:
        del timeout_s
        self._world.go_on()
        if self._batch is None or self._next == len(self._batch):
            self._batch, self._next = self._stream.read_batch(0), 0
        if self._batch is None:
            return None
        first, batch = self._next, self._batch
        self._next = min(len(batch), first + self._world.chance.choice((1, 2, 5, 30)))
        start, end = int(batch.offsets[first]), int(batch.offsets[self._next])
        return EventBatch(batch.data[start:end], batch.offsets[first : self._next + 1] - start)


class World:
    """One seed. `live` is one process, which ends in order, by an error, by SIGKILL or with the power."""

    def __init__(self, seed: int, folder: Path, target: Target) -> None:
        self.chance, self.target, self.folder = Random(seed), target, folder
        self.disk = SimulatedDisk(folder / "0", self.chance, self.is_volatile)
        (folder / "source").mkdir()
        self.archive = Archive(folder / "source", self.chance)
        self.faults = 0  # of the disk, in this life
        self.acknowledged = 0
        self.is_last = False
        self.idle = 0  # steps since anything moved
        self.cuts = 0
        self._store: PositionStore | None = None
        self._info = RelayLogInfo()
        with self.disk.working():
            self._set_up()
        self.disk.calls = 0

    def is_volatile(self, folder: str, name: str) -> bool:
        """Locks and status: nothing is made durable there but the journal of a switch."""
        return f"{folder}/".startswith(f"{self.disk.root}/run/") and not name.startswith(("switch-", ".switch-"))

    @property
    def channel(self) -> Channel:
        return Channel("", self.disk.root)

    def engine(self) -> Any:
        return self.target.engine

    def _set_up(self) -> None:
        with self.target.engine.begin() as connection:
            for name in TABLES:
                connection.exec_driver_sql(f"DELETE FROM {name}")
        self.disk.root.mkdir()
        kinds = {f"{name}_info_repository": self.chance.choice(("FILE", "TABLE")) for name in ("master", "relay_log")}
        store_options(
            self.disk.root,
            "",
            {
                **kinds,
                "target": str(self.target.engine.url),
                "server_id": 2,
                "max_relay_log_size": 4096,
                "sync_relay_log": self.chance.choice((0, 1, 7, 10_000)),
                "sync_master_info": self.chance.choice((0, 1, 7, 10_000)),
                "sync_relay_log_info": self.chance.choice((0, 1, 3, 10_000)),
            },
        )
        self.archive.begin_log()
        self.archive.grow()
        config = load_config(self.disk.root)
        master = MasterInfo(master_binlog_dir=str(self.archive.folder), connect_retry=1)
        start = BinlogPosition("binlog.000001", 4)
        open_master_info(config, self.channel, self.engine).flush(master.with_read_position(start), force=True)
        at = RelayLogInfo().at(RelayLogPosition("relay-bin.000001", 4), start)
        open_relay_log_info(config, self.channel, self.engine).flush(at, force=True)
        durable.sync_folder(self.disk.root)

    def run(self) -> None:
        for _ in range(self.chance.randint(1, 3)):
            self.live()
        self.is_last = True
        self.live()
        self.assert_all_arrived()

    def live(self) -> None:
        """One process."""
        self.faults, self.idle = 0, 0
        is_killed = not self.is_last and self.chance.random() < 0.7
        self.disk.calls_left = self.chance.randint(1, 150) if is_killed else None
        try:
            with self.disk.working():
                config = self._start()
                receiver = self.receiver = Receiver(config, self.channel)
                receiver.run()
                self._close_applier()
        except PowerCut:
            self.target.rollback()
            self.cuts += 1
            if self.chance.random() < 0.7:
                self.disk.cut_power(self.folder / str(self.cuts))
        except RplError as error:
            assert self.faults, f"{error.errno} {error.message}"
        self._store = None
        self.disk.end_process()

    def _start(self) -> Config:
        config = resolve_repositories(load_config(self.disk.root), self.channel, self.engine)
        if not self.is_last and self.chance.random() < 0.3:
            name = self.chance.choice(("master-info", "relay-log-info"))
            wanted = self.chance.choice(list(RepositoryKind))
            if name == "relay-log-info":
                self._open_applier(config)
                self._close_applier()
            config = carry_out(
                plan_switch(config, self.channel, self.engine, name, wanted), config, self.channel, self.engine
            )
        self.config = config
        return config

    def open_source(self, _info: MasterInfo, _secret: str, start: DumpStart, *_: object) -> Pieces:
        """After recovery: what the relay log holds beyond the position is the source's, and the dump goes on there."""
        repository = open_relay_log_info(self.config, self.channel, self.engine)
        executed = repository.read().exec_position
        fetched = self.archive.count_to(start.position)
        assert fetched >= self.archive.count_to(executed)
        assert start.position in self.archive.boundaries
        return Pieces(self, FolderStream(self.archive.folder, self.archive.folder, start))

    def go_on(self) -> None:
        """Anything but the receiver's own next step."""
        if self.is_last:
            self._apply()
            self.idle += 1
            assert self.idle < 500, f"{self._info.exec_position} of {self.archive.source.position}: nothing moves"
            if self._number == len(self.archive.digests):
                self.receiver.stop()
            return
        step = self.chance.choices(
            ("receive", "grow", "apply", "purge", "rotate", "lose", "stop", "reopen", "fault", "close"),
            (30, 15, 20, 4, 2, 3, 2, 2, 1, 1),
        )[0]
        if step == "grow":
            self.archive.grow()
        elif step in ("apply", "purge", "reopen", "close"):
            self._apply_under_faults(step)
        elif step == "rotate":
            self.receiver.flush_logs()
        elif step == "lose":
            raise lost_connection("by chance")
        elif step == "stop":
            self.receiver.stop()
        elif step == "fault":
            self.faults += 1
            self.disk.failing = self.chance.choice((("fsync", EIO), ("write", ENOSPC), ("write", EIO)))

    def _apply_under_faults(self, step: str) -> None:
        try:
            if step == "apply":
                self._apply()
            elif step == "purge" and self._store:
                self._store.committed(self._info, force=True)
                purge_applied(self.channel, self._info.relay_log_position)
            elif step == "close":
                self._close_applier()
            elif step == "reopen":
                self._store = None
        except (RplError, OSError) as error:
            assert self.faults, error
            self._store = None

    @property
    def _number(self) -> int:
        return self.archive.count_to(self._info.exec_position)

    def _open_applier(self, config: Config) -> None:
        self._store = None
        store = open_position_store(config, self.channel, self.target.engine)
        self._info = store.open()
        self._store, self._feed = store, RelayFeed(self.channel, 1e9)
        with self.target.engine.connect() as connection:
            held = [row[0] for row in connection.exec_driver_sql("SELECT seq FROM probe ORDER BY seq")]
        assert held == list(range(1, self._number + 1)), (held, self._info.exec_position)
        assert self._number >= self.acknowledged
        self.acknowledged = self._number

    def _close_applier(self) -> None:
        if self._store is not None:
            self._store.close(self._info)
        self._store = None

    def _apply(self) -> None:
        if self._store is None:
            self._open_applier(self.config)
        store = self._store
        assert store is not None
        groups = self._feed.next(self._info, 1 << 20)
        if groups is None:
            return
        self.idle = 0
        first, count = 0, self.chance.choice((1, 2, 5))
        while first < len(groups.scan) and (first == 0 or self.chance.random() < 0.7):
            last = min(first + count, len(groups.scan)) - 1
            numbers = []
            for n in range(first, last + 1):
                if groups.scan.kind[n] != GroupKind.CONTROL:
                    numbers.append(self.archive.count_to(groups.scan.source_position(n)))
                    data = groups.data[int(groups.scan.start[n]) : int(groups.scan.end[n])].tobytes()
                    assert hashlib.sha256(data).hexdigest() == self.archive.digests[numbers[-1] - 1]
            relay = RelayLogPosition(groups.log_name, int(groups.scan.end[last]))
            new = self._info.at(relay, groups.scan.source_position(last))
            commit_group(self.target, store, CommitStep(self._info, new), lambda numbers=numbers: self._insert(numbers))  # type: ignore[misc]
            self._info, self.acknowledged = new, self.archive.count_to(new.exec_position)
            first = last + 1
        if first < len(groups.scan):
            self._feed.rewind()

    def _insert(self, numbers: list[int]) -> None:
        self.disk.tick()
        for number in numbers:
            self.target.connection.exec_driver_sql(f"INSERT INTO probe VALUES ({number})")
        self.disk.tick()

    def assert_all_arrived(self) -> None:
        with self.target.engine.connect() as connection:
            held = [row[0] for row in connection.exec_driver_sql("SELECT seq FROM probe ORDER BY seq")]
        assert held == list(range(1, len(self.archive.digests) + 1))
        index = RelayLogIndex(self.channel)
        assert index.files() == index.names() and not register_path(self.channel).exists()
        read_to = open_master_info(self.config, self.channel, self.engine).read().read_position
        assert not self.archive.source.position.is_before(read_to)


@pytest.fixture(scope="module")
def memory() -> Iterator[Path]:
    usable = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="rplctl-", dir=usable))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def target(memory: Path) -> Iterator[Target]:
    """Another machine, whose power stays on: what it has committed it holds."""
    opened = open_target(f"sqlite:///{memory / 'target.db'}")
    create_own_tables(opened.engine)
    create_tables(opened.engine, "")
    with opened.engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE probe (seq INTEGER PRIMARY KEY)")
    yield opened
    opened.close()


@pytest.fixture
def simulate(memory: Path, target: Target, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Carries one seed out; its world."""
    current: list[World] = []
    monkeypatch.setattr("rplctl.receiver.receiver.open_source", lambda *a: current[0].open_source(*a))
    monkeypatch.setattr("rplctl.receiver.receiver.is_compiled", lambda: True)
    monkeypatch.setattr("rplctl.receiver.receiver.open_engine", lambda _: target.engine)
    monkeypatch.setattr(Receiver, "pause", lambda *_: None)

    def run(seed: int) -> World:
        folder = memory / f"seed-{seed}"
        folder.mkdir()
        try:
            current[:] = [World(seed, folder, target)]
            current[0].run()
        finally:
            with suppress(Exception):
                target.rollback()
            shutil.rmtree(folder)
        return current[0]

    return run


def seeds() -> list[Any]:
    """Ranges of them, one test each: the suite's and the long version's, or those asked for."""
    if asked := os.environ.get("SEEDS"):
        first, _, last = asked.partition("-")
        return [range(int(first), int(last or first) + 1)]
    suite = [range(first, first + AT_ONCE) for first in range(0, IN_THE_SUITE, AT_ONCE)]
    marks = [pytest.mark.torture, pytest.mark.timeout(7200)]
    return [*suite, pytest.param(range(IN_THE_SUITE, TORTURE), marks=marks)]


@pytest.mark.slow
@pytest.mark.parametrize("some", seeds(), ids=lambda some: f"{some.start}-{some.stop - 1}")
def test_seeds_of_faults_lose_and_repeat_nothing(simulate: Any, some: range, request: pytest.FixtureRequest) -> None:
    cuts = applied = 0
    for seed in walk("simulation", "seeds", some) if request.node.get_closest_marker("torture") else some:
        try:
            world = simulate(seed)
        except BaseException as error:
            error.add_note(f"replay: SEEDS={seed} pytest {__file__}")
            raise
        cuts, applied = cuts + world.cuts, applied + world.acknowledged
        count_torture("simulation", "seed", 0)
    assert cuts > 0 < applied


_commit = commit_group  # as it is


def _unsynced(_descriptor: int, _name: str) -> None:
    """An fsync that is not made."""


def _rolled_forward(target: Target, store: PositionStore, step: Any, apply: Any) -> None:
    """The position in a transaction of its own, before its rows."""
    _commit(target, store, step, lambda: None)
    target.begin(foreign_keys=True)
    try:
        apply()
    except BaseException:
        target.rollback()
        raise
    target.commit()


BROKEN: dict[str, tuple[dict[str, Any], int]] = {  # what takes the place of what, the seed to begin with
    "files that are not synced": ({"rplctl.durable.sync": _unsynced}, 0),
    "a position before its rows": ({"tests.stories.test_simulation.commit_group": _rolled_forward}, 16),
    "torn tails that stay": (
        {
            "rplctl.recovery.cut_file": lambda *_: None,
            "rplctl.recovery.sound_chain": lambda _, kept, *__, **___: (list(kept), ""),  # which cuts them
            "rplctl.relay_log.reader.RelayLogReader.continues": lambda *_: False,  # which passes over them
        },
        11,
    ),
    "a killed receiver's file that is not synced": (
        {
            "rplctl.recovery.sync_file": lambda *_: None,
            "rplctl.recovery.sound_chain": lambda _, kept, *__, **___: (list(kept), ""),  # which fetches it again
        },
        215,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("broken", "first"), BROKEN.values(), ids=BROKEN)
def test_what_is_broken_is_found(
    simulate: Any, monkeypatch: pytest.MonkeyPatch, broken: dict[str, Any], first: int
) -> None:
    """The proof that the checks can fail; without the history, whose calls move the moments of the cuts."""
    monkeypatch.setattr("rplctl.history.append_line", lambda *_: None)
    monkeypatch.setattr("rplctl.incident.Incident.write", lambda *_: None)
    for name, instead in broken.items():
        monkeypatch.setattr(name, instead)
    with pytest.raises((AssertionError, RplError, OSError, SQLAlchemyError)):
        for seed in range(first, 300):
            simulate(seed)
