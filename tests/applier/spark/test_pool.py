"""Who gets a range of the pool, and whose answer counts: nothing of a task that lies, freezes or dies is used."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from rplctl.applier.spark import pool as pool_module, split_task
from rplctl.applier.spark.answer import Attempt, answer_of
from rplctl.applier.spark.failure import TasksFailed
from rplctl.applier.spark.pool import ATTEMPTS, Pool
from rplctl.applier.spark.pool_task import LENGTH, TaskRequest, serve_one
from rplctl.applier.spark.split_task import Split, SplitResult, chunks_of, encode_chunks, pieces_of, run_split
from rplctl.schema.plan import Catalog
from rplctl.target.base import TableChunk
from tests.decode.test_net_changes import BULK, CATALOG
from tests.kit.replica import wait_until

Lie = Callable[[Attempt], list[bytes]]


def rows_of_the_demo(spool_folder: str = "") -> Split:
    return Split(
        path=str(BULK.groups.path),
        start=BULK.start,
        end=BULK.end,
        table_maps=(),
        description=BULK.description,
        spool_folder=spool_folder,
    )


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    pool = Pool(tmp_path / ("of a long name, " * 8), "channel ''")
    yield pool
    pool.close()


@pytest.fixture
def split(tmp_path: Path) -> Split:
    return rows_of_the_demo(str(tmp_path / "spool"))


def begin(target: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    return thread


def serve(pool: Pool) -> threading.Thread:
    """An honest task."""
    return begin(lambda: list(pool.door.serve(0, ())))


class Liar:
    """A task of the test: it has the token, and answers what it is given."""

    def __init__(self, pool: Pool) -> None:
        self.connection = socket.socket(socket.AF_UNIX)
        self.connection.connect(pool.door.path)
        self.connection.sendall(pool.door.token)

    def attempt(self) -> Attempt:
        (length,) = LENGTH.unpack(self.connection.recv(LENGTH.size, socket.MSG_WAITALL))
        request: TaskRequest = pickle.loads(self.connection.recv(length, socket.MSG_WAITALL))
        return request.attempt

    def answer(self, lie: Lie) -> None:
        self.connection.sendall(b"".join(lie(self.attempt())))

    def close(self) -> None:
        self.connection.close()


@contextmanager
def lying(pool: Pool, lie: Lie) -> Iterator[None]:
    """A liar gets the first range; an honest task comes when it has answered."""
    liar = Liar(pool)

    def answer_and_help() -> None:
        liar.answer(lie)
        serve(pool)

    thread = begin(answer_and_help)
    yield
    thread.join()
    liar.close()


def honest(attempt: Attempt) -> list[bytes]:
    assert isinstance(attempt.piece, Split)
    return answer_of(attempt, run_split(attempt.piece, CATALOG))


FOREIGN = TableChunk(database="mysql", table="user", change_count=1, foreign_keys_off=False)
OTHERS = SplitResult(inline=b"".join(pieces_of(encode_chunks([FOREIGN]))), rows=1)


def broken(parts: list[bytes]) -> list[bytes]:
    data = bytearray(b"".join(parts))
    data[-1] ^= 1
    return [bytes(data)]


def spooled(path: Path) -> SplitResult:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_bytes(b"x" * 100)
    return SplitResult(spooled=str(path), rows=1)


def elsewhere(attempt: Attempt) -> list[bytes]:
    """The checksum of a file that is not the attempt's."""
    assert attempt.spool_file is not None
    return answer_of(attempt, spooled(attempt.spool_file.with_name("mine")))


def half_written(attempt: Attempt) -> list[bytes]:
    assert attempt.spool_file is not None
    parts = answer_of(attempt, spooled(attempt.spool_file))
    attempt.spool_file.write_bytes(b"x" * 50)
    return parts


def linked(attempt: Attempt) -> list[bytes]:
    assert attempt.spool_file is not None
    other = attempt.spool_file.with_name("other")
    parts = answer_of(attempt, spooled(other))
    attempt.spool_file.symlink_to(other)
    return parts


def forged(attempt: Attempt) -> list[bytes]:
    """A body that is no encoded chunks, with a checksum that is right."""
    return answer_of(attempt, SplitResult(inline=b"y" * 100, rows=1))


LIES: dict[str, Lie] = {
    "an answer of an attempt before": lambda a: honest(replace(a, token=bytes(16))),
    "an answer of another range": lambda a: honest(replace(a, number=a.number + 1)),
    "an answer of another channel": lambda a: honest(replace(a, channel="other")),
    "a wrong checksum": lambda a: broken(honest(a)),
    "a wrong number of rows": lambda a: answer_of(a, replace(run_split(rows_of_the_demo(), CATALOG), rows=7777)),
    "rows of a table that is not replicated": lambda a: answer_of(a, OTHERS),
    "bytes that are no rows": forged,
    "bytes that are no answer": lambda a: [b"HTTP/1.1 200 OK\r\n\r\n" + bytes(100)],
    "more bytes than there is room for": lambda a: [
        struct.pack("<4s8s16sQBQQI", b"RPA1", b"", b"", 1, 1, 1, 1 << 60, 0)
    ],
    "a spool file of another name": elsewhere,
    "a spool file that is half written": half_written,
    "a spool file that is a link": linked,
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_is_not_used_and_its_range_is_given_again(pool: Pool, split: Split, name: str) -> None:
    wanted = chunks_of(run_split(split, CATALOG))
    with lying(pool, LIES[name]):
        (answer,) = pool.run("", [split], CATALOG)
    assert answer.split is not None
    assert [replace(chunk, by_spark=False) for chunk in chunks_of(answer.split)] == wanted
    assert answer.rows == pool.verified.rows == sum(chunk.change_count for chunk in wanted) > 0


def test_a_large_result_comes_by_a_private_file_that_is_gone_then(
    pool: Pool, split: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(split_task, "SPOOL_THRESHOLD", 10)
    serve(pool)
    answers = pool.run("", [split, split], CATALOG)
    assert [answer.rows for answer in answers] == [run_split(rows_of_the_demo(), CATALOG).rows] * 2
    assert not list(Path(split.spool_folder).iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a file system of fixed size needs root")
def test_a_large_result_needs_no_room_on_a_full_disk(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(split_task, "SPOOL_THRESHOLD", 10)
    full = tmp_path / "full"
    full.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=0700", "tmpfs", full], check=True)
    try:
        with pytest.raises(OSError, match="No space left"), open(full / "ballast", "wb", buffering=0) as ballast:
            while True:
                ballast.write(bytes(4096))
        serve(pool)
        split = rows_of_the_demo(str(full / "spool"))
        (answer,) = pool.run("", [split], CATALOG)
        assert answer.split is not None and answer.split.chunks
        assert answer.rows == run_split(rows_of_the_demo(), CATALOG).rows
        assert not list(full.glob("spool/*"))
    finally:
        subprocess.run(["umount", "-l", full], check=True)


def test_the_tasks_follow_the_catalog_of_each_channel(pool: Pool, split: Split) -> None:
    serve(pool)
    for channel, catalog in (("a", Catalog()), ("b", CATALOG), ("a", CATALOG), ("b", Catalog()), ("b", CATALOG)):
        (answer,) = pool.run(channel, [split], catalog)
        assert answer.split is not None
        assert (answer.split.error is None) == bool(catalog.tables)
    (answer,) = pool.run("b", [split], Catalog(dict(CATALOG.tables), CATALOG.databases))
    assert answer.rows > 0


def test_a_range_that_fails_in_each_attempt_is_an_error_that_names_it(pool: Pool, split: Split) -> None:
    def fail() -> None:
        for _ in range(ATTEMPTS):
            liar = Liar(pool)
            liar.attempt()
            liar.close()

    thread = begin(fail)
    with pytest.raises(TasksFailed, match=rf"binlog.000001:{split.start}-{split.end}, {ATTEMPTS} attempts"):
        pool.run("", [split], CATALOG)
    thread.join()


def test_an_error_of_a_task_is_told_in_its_words(pool: Pool, split: Split) -> None:
    serve(pool)
    with pytest.raises(TasksFailed, match="FileNotFoundError"):
        pool.run("", [replace(split, path="/nowhere/relay-bin.000001")], CATALOG)


FROZEN = """
import signal, socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
connection.sendall(bytes.fromhex(sys.argv[2]))
connection.recv(1)
print("has it", flush=True)
signal.pause()
"""


def test_a_task_that_freezes_loses_its_range_to_another(
    pool: Pool, split: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "FROZEN_S", 0.5)
    command = [sys.executable, "-S", "-c", FROZEN, pool.door.path, pool.door.token.hex()]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as frozen:

        def freeze() -> None:
            assert frozen.stdout is not None
            frozen.stdout.readline()
            frozen.send_signal(signal.SIGSTOP)
            serve(pool)

        wait_until(lambda: pool.workers == 1)
        thread = begin(freeze)
        (answer,) = pool.run("", [split], CATALOG)
        assert answer.rows > 0
        thread.join()
        frozen.kill()


def test_a_task_removes_the_spool_file_that_nobody_waits_for(split: Split, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver has given the range to another task: it knows no file of this one any more."""
    monkeypatch.setattr(split_task, "SPOOL_THRESHOLD", 10)
    request = pickle.dumps(TaskRequest(Attempt("", 1, split), catalog=pickle.dumps(CATALOG)))
    task, driver = socket.socketpair()
    driver.sendall(LENGTH.pack(len(request)) + request)
    driver.close()
    with task:
        assert serve_one(task).ranges == 1
    assert list(Path(split.spool_folder).iterdir()) == []


def test_a_channel_with_one_range_goes_before_one_with_many(pool: Pool, split: Split) -> None:
    """One task: the second channel waits for no more than the range in work."""
    liar, order = Liar(pool), list[str]()
    threads = [begin(lambda: pool.run("backlog", [split] * 4, CATALOG))]
    first = liar.attempt()
    threads.append(begin(lambda: pool.run("trickle", [split], CATALOG)))
    wait_until(lambda: pool.waiting == 2)
    liar.connection.sendall(b"".join(honest(first)))
    for _ in range(4):
        attempt = liar.attempt()
        order.append(attempt.channel)
        liar.connection.sendall(b"".join(honest(attempt)))
    for thread in threads:
        thread.join()
    assert order[0] == "trickle", order
    liar.close()


def test_whoever_waits_is_told_when_the_pool_or_its_channel_ends(pool: Pool, split: Split) -> None:
    told: list[str] = []

    def wait(channel: str) -> None:
        try:
            pool.run(channel, [split], CATALOG)
        except TasksFailed:
            told.append(channel)

    threads = [begin(lambda: wait("a")), begin(lambda: wait("b"))]
    wait_until(lambda: pool.waiting == 2)
    pool.cancel("a")
    threads[0].join()
    assert told == ["a"]
    pool.close()
    threads[1].join()
    assert told == ["a", "b"]


def test_the_socket_is_private_and_serves_nobody_without_the_token(pool: Pool, tmp_path: Path) -> None:
    path = next(tmp_path.glob("*/pool.sock"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.connect(pool.door.path)
        stranger.sendall(bytes(len(pool.door.token)))
        assert stranger.recv(1) == b""
    assert pool.workers == 0


def test_an_idle_task_stays_connected_when_the_next_one_comes(pool: Pool) -> None:
    with socket.socket(socket.AF_UNIX) as idle:
        idle.connect(pool.door.path)
        idle.sendall(pool.door.token)
        wait_until(lambda: pool.workers == 1)
        serve(pool)
        wait_until(lambda: pool.workers == 2)
        serve(pool)
        wait_until(lambda: pool.workers == 3)
        with pytest.raises(BlockingIOError):  # open, and nothing was sent
            idle.recv(1, socket.MSG_DONTWAIT)


OTHER_USER = """
import os, socket, sys
os.chdir(sys.argv[1])
os.setuid(65534)
with socket.socket(socket.AF_UNIX) as stranger:
    stranger.connect("pool.sock")
    try:
        stranger.sendall(bytes.fromhex(sys.argv[2]))
        print(stranger.recv(1))
    except OSError:
        print(b"")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user: run it as root")
def test_another_user_with_the_token_is_not_served_though_files_let_him(pool: Pool, tmp_path: Path) -> None:
    path = next(tmp_path.glob("*/pool.sock"))
    path.chmod(0o666)
    path.parent.chmod(0o711)
    command = [sys.executable, "-S", "-c", OTHER_USER, str(path.parent), pool.door.token.hex()]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("b''\n", "")
    assert pool.workers == 0
