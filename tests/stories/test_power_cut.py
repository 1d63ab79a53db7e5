"""Power cuts: receiver, applier and SQLite target on a file system in an image, copied while they work.

The copy, made between two of their calls, holds what had reached the disk: a write that was not synced is lost in it,
a file without its folder's entry gone. Each copy is mounted and the channel goes on there: rows and position agree,
what was acknowledged is there, the relay log is the source's log byte for byte, and the rest arrives once (WL#4621,
WL#3970).
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rplctl.applier.apply.batch import BatchApplier
from rplctl.applier.feed.plan import plan_batches
from rplctl.applier.feed.relay_feed import RelayFeed
from rplctl.applier.interrupt import Interrupter
from rplctl.applier.spark.in_process import InProcessPipeline
from rplctl.command.selftest.crash_run import Say, channel_of, in_child, received, transactions_of
from rplctl.commit.position_store import open_position_store
from rplctl.config import Config
from rplctl.durable import replace_file
from rplctl.errors import RplError
from rplctl.event.scan import scan_groups
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.instance_id import made_instance_id
from rplctl.own_tables.tables import create_own_tables
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.receiver.receiver import Receiver
from rplctl.relay_log.purge import purge_applied
from rplctl.repository import create_tables, open_master_info, open_relay_log_info
from rplctl.target import open_target
from tests.kit.replica import stands_still, wait_until
from tests.kit.servers import MariadbServer
from tests.kit.torture_page import count_torture, walk

DATABASE, TABLE = "power_cut", "power_cut__probe"
IMAGE_MB, SERVER_ID = 96, 4711
BEHIND = 15  # transactions that a copy must apply beyond what it held

LONG = [pytest.mark.torture, pytest.mark.timeout(3600)]
pytestmark = [pytest.mark.slow, pytest.mark.mariadb]


def mounts() -> str:
    """Why a file system in a file cannot be mounted here; '' when it can."""
    if os.geteuid() != 0:
        return "needs root to mount an image"
    if not Path("/dev/loop-control").exists() or shutil.which("mkfs.ext4") is None:
        return "needs loop devices and mkfs.ext4"
    return ""


needs_mounts = pytest.mark.skipif(bool(mounts()), reason=mounts())


def made_image(path: Path) -> Path:
    with path.open("wb") as file:
        file.truncate(IMAGE_MB << 20)
    subprocess.run(["mkfs.ext4", "-q", str(path)], check=True)
    return path


@dataclass(frozen=True)
class Source:
    server: MariadbServer
    start: BinlogPosition
    before: int  # transactions in the log before the numbered ones

    def log(self) -> list[tuple[str, str]]:
        """(end, digest) of its transactions from the start on."""
        data = np.fromfile(self.server.data / self.start.log_name, np.uint8)
        found = transactions_of(scan_groups(data, 4, BinlogPosition(self.start.log_name, 4), 1 << 40), data.tobytes())
        return [item for item in found if self.start.is_before(BinlogPosition.parse(item[0]))]


@contextlib.contextmanager
def child(work: Callable[[], None]) -> Iterator[int]:
    """A process that does the work until it is killed."""
    pid = os.fork()
    if not pid:
        try:
            work()
        except Exception:  # noqa: BLE001 - pytest's own handling would go on in two processes
            traceback.print_exc()
        finally:
            os._exit(1)
    try:
        yield pid
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


@contextlib.contextmanager
def under_load(mariadb: MariadbServer) -> Iterator[Source]:
    """Numbered transactions, each in the sum of all, from 1 on."""
    mariadb.sql(f"DROP DATABASE IF EXISTS {DATABASE}; FLUSH LOGS")
    name, position = mariadb.master_status()
    mariadb.sql(
        f"CREATE DATABASE {DATABASE}; CREATE TABLE {DATABASE}.probe (seq INT PRIMARY KEY, note VARCHAR(300));"
        f"CREATE TABLE {DATABASE}.total (id INT PRIMARY KEY, sum BIGINT); INSERT INTO {DATABASE}.total VALUES (1, 0)"
    )

    def load() -> None:
        with contextlib.closing(mariadb.connect(DATABASE)) as connection, connection.cursor() as cursor:
            for n in itertools.count(1):
                cursor.execute(
                    f"BEGIN; INSERT INTO probe VALUES ({n}, REPEAT('{n % 10}', {n % 300}));"
                    f"UPDATE total SET sum = sum + {n}; COMMIT"
                )
                while cursor.nextset():
                    pass
                time.sleep(0.01)

    start = BinlogPosition(name, position)
    made = Source(mariadb, start, len(Source(mariadb, start, 0).log()))
    with child(load):
        yield made


@contextlib.contextmanager
def mounted(image: Path, folder: Path) -> Iterator[Path]:
    folder.mkdir(exist_ok=True)
    done = subprocess.run(["mount", "-o", "loop", str(image), str(folder)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"an image cannot be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def configure(config: Config, source: Source, _say: Say) -> None:
    channel = channel_of(config)
    made_instance_id(config.datadir)  # as init does, on a disk that does not lie yet
    target = open_target(config.target_url)
    create_own_tables(target.engine)
    create_tables(target.engine, "")
    server = source.server
    master = MasterInfo(host=server.host, port=server.port, user_name="rpl", user_password="rpl", heartbeat=0.5)
    open_master_info(config, channel, lambda: target.engine).flush(
        replace(master, connect_retry=1).with_read_position(source.start), force=True
    )
    start = RelayLogInfo().at(RelayLogPosition("relay-bin.000001", 4), source.start)
    open_relay_log_info(config, channel, lambda: target.engine).flush(start, force=True)
    target.close()


def replicate(config: Config, told: Callable[[str, str], None], *, until: int | None = None) -> None:
    """Receiver and applier as their processes work, without Spark: purging, rotating, three transactions a commit."""
    channel = channel_of(config)
    target = open_target(config.target_url)
    store = open_position_store(config, channel, target.engine)
    work = BatchApplier.open(config, channel, target, store, InProcessPipeline(), Interrupter(threading.Event()))
    told("start", str(work.info.exec_position))
    receiver = Receiver(config, channel)
    ended: list[RplError] = []

    def receive() -> None:
        try:
            receiver.run()
        except RplError as error:
            ended.append(error)

    thread = threading.Thread(target=receive, daemon=True)
    thread.start()
    feed, purged_to = RelayFeed(channel, 10), work.info.relay_log_name
    deadline, applied = time.monotonic() + 280, 0
    while until is None or applied < until:
        assert thread.is_alive(), ended
        assert until is None or time.monotonic() < deadline
        groups = feed.next(work.info, 1 << 20)
        if groups is None:
            time.sleep(0.005)
            continue
        for batch in plan_batches(groups, len(groups.scan), per_commit=lambda: 3):
            work.apply(batch)
            applied += batch.transaction_count
            told("commit", str(work.info.exec_position))
        if until is None and work.info.relay_log_name != purged_to:
            store.committed(work.info, force=True)
            purge_applied(channel, work.info.relay_log_position)
            purged_to = work.info.relay_log_name
    receiver.stop()
    thread.join(180)
    store.close(work.info)
    work.close()
    target.close()


def lying(config: Config, told: Callable[[str, str], None]) -> None:
    setattr(os, "fsync", lambda _: None)  # noqa: B010 - its parameter has another name
    replicate(config, told)


def rows(config: Config) -> list[int]:
    """(count, greatest number, sum by the source's own account) of what the target holds."""
    with contextlib.closing(sqlite3.connect(config.datadir / "target.db")) as connection:
        both = f"SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('{TABLE}', '{DATABASE}__total')"
        if connection.execute(both).fetchone() != (2,):  # cut while the source's first statements were applied
            return [0, 0, 0]
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        count, last = connection.execute(f"SELECT count(*), coalesce(max(seq), 0) FROM {TABLE}").fetchone()
        total = connection.execute(f"SELECT coalesce(max(sum), 0) FROM {DATABASE}__total").fetchone()
        return [count, last, total[0]]


def after_the_cut(config: Config, say: Say) -> None:
    """Power is back: what is there, then on with it, then what is there."""

    def told(what: str, position: str) -> None:
        if what == "start":
            say([position, rows(config)])
        at.append(position)

    at: list[str] = []
    replicate(config, told, until=BEHIND)
    say([at[-1], rows(config)])
    try:
        fetched = received(config)
    except RplError as hole:  # the cut took the end of a relay log that was applied already: the next begins behind it
        assert f"and {at[0]} in " in hole.message, hole.message
        engine = open_target(config.target_url).engine
        applied = open_relay_log_info(config, channel_of(config), lambda: engine).read().relay_log_position
        assert purge_applied(channel_of(config), applied)
        fetched = received(config)
    say([list(item) for item in fetched])


def has_begun(acked: Path) -> bool:
    return acked.stat().st_size > 0


def has_committed(acked: Path) -> bool:
    """The first line is where it began; one commit may hold no transaction."""
    return acked.read_bytes().count(b"\n") > 2


def assert_agrees(source: Source, position: str, held: list[int]) -> int:
    """The rows are those of the position; its number of transactions."""
    ends = [str(source.start), *(end for end, _ in source.log())]
    assert position in ends, f"{position} is no transaction's end"
    number = max(ends.index(position) - source.before, 0)
    assert held == [number, number, number * (number + 1) // 2], (position, number)
    return ends.index(position)


@needs_mounts
def test_a_copy_holds_what_was_synced_and_nothing_else(tmp_path: Path) -> None:
    """So the copies below are power cuts: what replaced something without fsyncs is gone, or there without its data."""
    image, names = made_image(tmp_path / "disk.img"), ("durable", "not")
    with mounted(image, tmp_path / "disk") as disk:
        for name in names:
            replace_file(disk / name, b"old")
        replace_file(disk / "durable", b"new")
        replace_file(disk / "not", b"new", durable=False)
        (disk / "created").write_bytes(b"new")
        assert [(disk / name).read_bytes() for name in (*names, "created")] == [b"new"] * 3
        shutil.copyfile(image, tmp_path / "copy.img")
    with mounted(tmp_path / "copy.img", tmp_path / "after") as disk:
        assert (disk / "durable").read_bytes() == b"new"
        assert (disk / "not").read_bytes() in (b"old", b"")
        assert not (disk / "created").exists()


@pytest.mark.long("One case stays; the others are of other repositories and seeds.", keeps=r"FILE-False")
@needs_mounts
@pytest.mark.parametrize(
    ("kind", "lies", "images", "moments"),
    [
        ("FILE", False, 1, 3),
        ("TABLE", False, 1, 2),
        ("FILE", True, 1, 2),
        *(pytest.param(*case, 10, 10, marks=LONG) for case in itertools.product(("FILE", "TABLE"), (False, True))),
    ],
)
def test_a_power_cut_at_any_moment_loses_and_repeats_nothing(
    tmp_path: Path, mariadb: MariadbServer, kind: str, lies: bool, images: int, moments: int
) -> None:
    """`lies`: our own fsyncs reach no disk, the target's do; more of the relay log is lost then, and fetched again."""
    options: dict[str, Any] = {
        "master_info_repository": kind,
        "relay_log_info_repository": kind,
        "max_relay_log_size": 8192,
        "server_id": SERVER_ID,
    }
    what = f"{kind}{', fsyncs that lie' * lies}"
    seen = []
    for number in walk("power cuts", f"disks, {what}", range(images)) if images > 1 else (0,):
        at_random = random.Random(f"{what} {images} {number}")
        image, acked = tmp_path / f"{number}.img", tmp_path / f"{number}.acked"
        with under_load(mariadb) as source, mounted(made_image(image), tmp_path / "disk") as disk:
            config = Config(disk / "data", **options)
            config.datadir.mkdir()
            configured = in_child(partial(configure, config, source))
            assert not configured.error, configured.error
            descriptor = os.open(acked, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

            def tell(_what: str, position: str, to: int = descriptor) -> None:
                os.write(to, f"{position}\n".encode())

            with child(partial(lying if lies else replicate, config, tell)) as pid:
                wait_until(partial(has_begun, acked))
                for moment in range(1, moments + 1):
                    time.sleep(at_random.uniform(0.05, 0.6))
                    if moment == moments:
                        wait_until(partial(has_committed, acked))
                    copy = tmp_path / "copy.img"
                    os.kill(pid, signal.SIGSTOP)
                    wait_until(partial(stands_still, pid))
                    shutil.copyfile(image, copy)
                    known = acked.read_text().split()[-1]
                    os.kill(pid, signal.SIGCONT)
                    seen.append(judged(source, copy, tmp_path / "after", options, known))
                    count_torture("power cuts", what, 0)
            os.close(descriptor)
        image.unlink()
    assert any(seen), "nothing had been applied at any of the moments"


def judged(source: Source, image: Path, folder: Path, options: dict[str, Any], known: str) -> int:
    """The transactions that had been applied when the power went."""
    with mounted(image, folder):
        config = Config(folder / "data", **{**options, "server_id": SERVER_ID + 1})  # the other one still runs
        outcome = in_child(partial(after_the_cut, config))
        assert not outcome.error, outcome.error
        (position, held), (last, held_last), fetched = outcome.said
    assert not BinlogPosition.parse(position).is_before(BinlogPosition.parse(known)), f"{known} was acknowledged"
    before = assert_agrees(source, position, held)
    assert assert_agrees(source, last, held_last) >= before + BEHIND
    log = [list(item) for item in source.log()]
    first = log.index(fetched[0])
    assert fetched == log[first : first + len(fetched)]
    return before
