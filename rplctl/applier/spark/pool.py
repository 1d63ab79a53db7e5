"""The *pool*: one Spark job for the life of an applier process, whose tasks get ranges of the log from the driver (D1).

Each task of the job connects to a private Unix socket (mode 0600, in a folder of mode 0700). The driver serves only
peers of its own user that send the pool's token. The thread that needs rows gives its ranges to idle tasks itself. So a
small range costs one round trip, and no Spark job. Invariants: an answer counts only for its own attempt, on the
connection of that attempt (answer.py). If a task dies, freezes or answers wrongly, its range is given to a task again,
at most ATTEMPTS times. If several channels wait, the channel with the fewest tasks gets the next task. No thread holds
a lock while it waits.
"""

from __future__ import annotations

import itertools
import logging
import os
import pickle
import secrets
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from hmac import compare_digest
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rplctl.applier.spark.answer import (
    HEADER_LENGTH,
    Answer,
    Attempt,
    RangePiece,
    WrongAnswer,
    body_length,
    read_answer,
)
from rplctl.applier.spark.failure import TasksFailed, await_end_of_java, words_of
from rplctl.applier.spark.pool_task import LENGTH, PoolAddress, TaskRequest, TaskWork, peer_of
from rplctl.applier.spark.split_task import SplitResult, chunks_of
from rplctl.decode.copied_rows import CopyPiece
from rplctl.decode.ordered_rows import OrderedPiece
from rplctl.durable import PRIVATE_FILE, private_folder
from rplctl.failpoint import is_due
from rplctl.schema.plan import Catalog
from rplctl.target.base import TableChunk

if TYPE_CHECKING:
    from pyspark import SparkContext

ATTEMPTS: Final = 4  # attempts at one range, and at the job if no task answers
FROZEN_S: Final = 10.0  # a task that sends no byte and uses no processor time for so long is frozen
_LOOK_S: Final = 1.0
_SEND_S: Final = 10.0
_HELLO_S: Final = 2.0
_END_S: Final = 5.0  # idle tasks end within this time, even on a busy machine
_TOKEN_LENGTH: Final = 32
_BLOCK: Final = 1 << 20  # bytes
_WORKER_DIED: Final = "Python worker exited unexpectedly"  # Spark's text (failure.py)

log = logging.getLogger(__name__)


class Worker:
    """The driver's connection to one task of the pool. Only one thread uses it at a time."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.pid = peer_of(connection)[0]
        self._catalogs: dict[str, Catalog] = {}  # channel → the catalog that the task has

    def give(self, attempt: Attempt, catalog: Catalog, pickled: PickledCatalog) -> None:
        """Send the attempt, and the part of the catalog that the task lacks. Raises OSError if the task has died."""
        known = self._catalogs.get(attempt.channel)
        if known is catalog:
            request = TaskRequest(attempt)
        else:
            changes = known.changes_to(catalog) if known is not None else ({}, {})
            if known is not None and len(changes[0]) + len(changes[1]) <= len(known.tables) // 100:
                request = TaskRequest(attempt, changes=changes)
            else:
                request = TaskRequest(attempt, catalog=pickled.of(catalog))
        self._catalogs[attempt.channel] = catalog
        if is_due("crash_task_with_range"):
            request = replace(request, dies=True)
        frame = pickle.dumps(request, pickle.HIGHEST_PROTOCOL)
        self.connection.settimeout(_SEND_S)
        self.connection.sendall(LENGTH.pack(len(frame)) + frame)
        self.connection.setblocking(False)

    def has_ended(self) -> bool:
        """True if the task has closed its connection. The caller checks only idle tasks, which send nothing."""
        try:
            return not self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def processor_time(self) -> str:
        """Return a text that changes while the task's process works, or '' if it waits for a disk or has ended."""
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return ""
        return "" if fields[0] == "D" else f"{fields[11]} {fields[12]}"


class PickledCatalog:
    """The bytes of a catalog, which is pickled once for all tasks that need it."""

    def __init__(self) -> None:
        self._made: bytes | None = None

    def of(self, catalog: Catalog) -> bytes:
        self._made = self._made or pickle.dumps(catalog, pickle.HIGHEST_PROTOCOL)
        return self._made


class _Held:
    """A task that decodes an attempt, and the part of its answer that has been received."""

    def __init__(self, worker: Worker, attempt: Attempt, index: int) -> None:
        self.worker, self.attempt, self.index = worker, attempt, index
        self._answer = bytearray()
        self._length: int | None = None
        self._seen, self._since = "", time.monotonic()
        self._looked = self._since

    def receive(self) -> bytes | None:
        """Return the answer, or None until it is complete. Raises WrongAnswer, or OSError if the task has died."""
        while True:
            wanted = (HEADER_LENGTH if self._length is None else self._length) - len(self._answer)
            if wanted > 0:
                try:
                    found = self.worker.connection.recv(min(wanted, _BLOCK))
                except BlockingIOError:
                    return None
                if not found:
                    raise ConnectionResetError(_WORKER_DIED)
                self._answer += found
                self._since = time.monotonic()
            elif self._length is None:
                self._length = HEADER_LENGTH + body_length(self._answer)
            else:
                return bytes(self._answer)

    def is_frozen(self) -> bool:
        """True if the task has sent nothing and used no processor time for FROZEN_S seconds."""
        now = time.monotonic()
        if now - self._looked < _LOOK_S:
            return False
        self._looked = now
        if (seen := self.worker.processor_time()) != self._seen or not seen:
            self._seen, self._since = seen, now
        return now - self._since > FROZEN_S


class _Turn:
    """A caller that waits for idle tasks or for answers. `wake` ends the wait, and may be called by any thread."""

    def __init__(self, channel: str) -> None:
        self.channel = channel
        self.held: dict[int, _Held] = {}  # file descriptor → worker
        self.given: deque[Worker] = deque()
        self.is_cancelled = False
        self._event = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def wake(self) -> None:
        os.eventfd_write(self._event, 1)

    def wait(self) -> list[_Held]:
        """Wait for _LOOK_S seconds at most, and return the tasks that have sent something."""
        poll = select.poll()
        for descriptor in (self._event, *self.held):
            poll.register(descriptor, select.POLLIN)
        ready = [descriptor for descriptor, _ in poll.poll(1000 * _LOOK_S)]
        if self._event in ready:
            with suppress(BlockingIOError):
                os.eventfd_read(self._event)
        return [self.held[descriptor] for descriptor in ready if descriptor in self.held]

    def close(self) -> None:
        os.close(self._event)


class Pool:
    """The driver's side of the pool: it accepts the tasks' connections, and gives them ranges to decode.

    `name`: a part of the Spark job's name. `folder`: a private folder for the socket, which opens before Spark starts.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.job_name = f"rplctl pool of {name}"
        self.verified = TaskWork()  # of the answers that were verified
        self.failures = 0  # attempts without a verified answer
        self.workers_wanted = 0
        self._lock = threading.Lock()
        self._turns: list[_Turn] = []
        self._waiting: list[_Turn] = []  # those of `_turns` that wait for a task, in order of arrival
        self._idle: list[Worker] = []
        self._connected: set[Worker] = set()
        self._numbers = itertools.count(1)
        self._end: Future[None] = Future()  # has the error with which the job ended
        self._has_ended = threading.Event()
        self.counted: TaskWork | None = None  # the counts of Spark's accumulators after an orderly end of the job
        self._is_closed = False
        token = secrets.token_bytes(_TOKEN_LENGTH)
        self._path = private_folder(folder) / "pool.sock"
        self._path.unlink(missing_ok=True)  # a killed applier may have left the file
        self._folder = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        short = f"/proc/{os.getpid()}/fd/{self._folder}/pool.sock"  # a socket's path has at most 107 bytes
        self.door = PoolAddress(short, token)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        self._listener.bind(short)
        os.chmod(self._path, PRIVATE_FILE)  # before another user can connect
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True, name="rplctl-pool-accept").start()

    @property
    def workers(self) -> int:
        """The number of connected tasks."""
        return len(self._connected)

    @property
    def waiting(self) -> int:
        """The number of callers that wait for an idle task."""
        return len(self._waiting)

    def begin(self, context: SparkContext) -> None:
        """Start the Spark job with one task per core, and return at once. A second call has no effect."""
        with self._lock:
            if self.workers_wanted or self._is_closed:
                return
            self.workers_wanted = context.defaultParallelism
        threading.Thread(target=self._run_job, args=(context,), daemon=True, name="rplctl-pool-job").start()

    def _run_job(self, context: SparkContext) -> None:
        try:
            self._run_jobs(context)
        finally:
            self._has_ended.set()

    def _run_jobs(self, context: SparkContext) -> None:
        """Run the job, and run it again when it ends. Give up if it ends ATTEMPTS times without any answer between."""
        from py4j.protocol import Py4JJavaError

        ends = 0
        while not self._is_closed:
            before = self.verified.ranges
            try:
                context.setJobGroup(self.job_name, self.job_name)
                context.setLocalProperty("spark.scheduler.pool", self.job_name)
                places = context.parallelize(range(self.workers_wanted), self.workers_wanted)
                counted = [context.accumulator(0) for _ in fields(TaskWork)]
                places.mapPartitionsWithIndex(partial(self.door.serve, counted=counted)).collect()
                self.counted = TaskWork(*(counter.value for counter in counted))
                if context.getConf().get("spark.eventLog.enabled") == "true":  # the JVM is killed after this
                    context._jsc.sc().listenerBus().waitUntilEmpty(int(_END_S * 1000))
                words = "the tasks of the pool ended by themselves"
            except Exception as error:  # noqa: BLE001 - the thread boundary: callers that wait for a task raise it
                await_end_of_java(error)
                words = words_of(error)
                if context._jsc is None or not isinstance(error, Py4JJavaError):  # the JVM has ended
                    self._end.set_exception(TasksFailed(words))
                    return self._wake_all()
            ends = 1 if self.verified.ranges > before else ends + 1
            if ends >= ATTEMPTS:
                self._end.set_exception(TasksFailed(words))
                return self._wake_all()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                if self._is_closed:
                    return
                time.sleep(_LOOK_S)  # the process has no free descriptor, so the task must wait
                continue
            if self._is_ours(connection):
                self._drop_dead()
                worker = Worker(connection)
                with self._lock:
                    self._connected.add(worker)
                self._release(worker)
            else:
                connection.close()

    def _is_ours(self, connection: socket.socket) -> bool:
        """True if the process at the other end of the connection runs as this user and has the token."""
        connection.settimeout(_HELLO_S)
        try:
            if peer_of(connection)[1] != os.geteuid():
                return False
            said = connection.recv(_TOKEN_LENGTH, socket.MSG_WAITALL)
            connection.setblocking(False)  # with a timeout, `has_ended` would wait for it
        except OSError:
            return False
        return compare_digest(said, self.door.token)

    def _drop_dead(self) -> None:
        """Forget tasks that ended while they were idle, because tasks with new connections replace them."""
        with self._lock:
            dead = [worker for worker in self._idle if worker.has_ended()]
            self._idle = [worker for worker in self._idle if worker not in dead]
        for worker in dead:
            self._drop(worker)

    def run(self, channel: str, pieces: Sequence[RangePiece], catalog: Catalog) -> list[Answer]:
        """Let tasks decode the pieces, and return the answers in order. Raises TasksFailed after ATTEMPTS failures."""
        turn, pickled = _Turn(channel), PickledCatalog()
        todo, found = deque(range(len(pieces))), dict[int, Answer]()
        failures: list[list[str]] = [[] for _ in pieces]
        with self._lock:
            self._turns.append(turn)
        try:
            while len(found) < len(pieces):
                while todo and (worker := self._take(turn)) is not None:
                    attempt = Attempt(channel, next(self._numbers), pieces[todo[0]])
                    try:
                        worker.give(attempt, catalog, pickled)
                    except OSError:  # the task died while it was idle, so the range is not the cause
                        self._drop(worker)
                    else:
                        turn.held[worker.connection.fileno()] = _Held(worker, attempt, todo.popleft())
                self._check(turn)
                for held in self._answered(turn, catalog, found, failures):
                    self._check_failures(held, failures[held.index])
                    todo.appendleft(held.index)
        finally:
            self._leave(turn)
        return [found[number] for number in range(len(pieces))]

    def _answered(
        self, turn: _Turn, catalog: Catalog, found: dict[int, Answer], failures: list[list[str]]
    ) -> list[_Held]:
        """Wait for answers, and store them in `found`. Return the tasks whose attempt failed."""
        failed = []
        ready = turn.wait()
        for held in list(turn.held.values()):
            words = ""
            try:
                if held in ready:
                    if (data := held.receive()) is None:
                        continue
                    answer = found[held.index] = read_answer(held.attempt, data, catalog)
                elif held.is_frozen():
                    words = f"a Python worker (pid {held.worker.pid}) did nothing for {FROZEN_S:g} s"
                else:
                    continue
            except (WrongAnswer, OSError) as error:
                words = str(error) or _WORKER_DIED
            if words:
                del turn.held[held.worker.connection.fileno()]
                failures[held.index].append(words)
                self.failures += 1
                self._give_up(held)
                failed.append(held)
            else:
                with self._lock:
                    self.verified.add(answer.rows, held.attempt.size)
                self._release(held.worker)  # while this turn still counts the task, so that other turns come first
                del turn.held[held.worker.connection.fileno()]
        return failed

    def _check_failures(self, held: _Held, failures: list[str]) -> None:
        if len(failures) >= ATTEMPTS:
            words = f"{failures[-1]} (range {held.attempt.range_name}, {len(failures)} attempts)"
            raise TasksFailed(words)

    def _give_up(self, held: _Held) -> None:
        """Close the connection to the task, so that the rest of its answer is ignored, and remove its spool file."""
        self._drop(held.worker)
        if (path := held.attempt.spool_file) is not None:
            path.unlink(missing_ok=True)

    def _take(self, turn: _Turn) -> Worker | None:
        """Return an idle task, or None. In this case, the caller `turn` is queued, and woken when it gets a task."""
        with self._lock:
            if turn.given:
                return turn.given.popleft()
            if self._idle:
                return self._idle.pop()
            if turn not in self._waiting and not self._is_closed:
                self._waiting.append(turn)
            return None

    def _release(self, worker: Worker) -> None:
        with self._lock:
            if self._is_closed:
                worker.connection.close()
                return
            if not self._waiting:
                self._idle.append(worker)
                return
            turn = min(self._waiting, key=lambda waiting: len(waiting.held))
            self._waiting.remove(turn)
            turn.given.append(worker)
            turn.wake()

    def _drop(self, worker: Worker) -> None:
        with self._lock:
            self._connected.discard(worker)
        worker.connection.close()

    def _leave(self, turn: _Turn) -> None:
        """Remove the caller `turn` without waiting for answers. Its tasks lose their connection, and connect again."""
        with self._lock:
            self._turns.remove(turn)
            if turn in self._waiting:
                self._waiting.remove(turn)
            turn.close()
        for held in turn.held.values():
            self._give_up(held)
        for worker in turn.given:
            self._release(worker)

    def _check(self, turn: _Turn) -> None:
        if self._end.done():
            self._end.result()
        if self._is_closed or turn.is_cancelled:
            raise TasksFailed("the pool of Spark's tasks has ended")

    def await_task(self) -> None:
        """Wait until a task is connected. Raises the error with which the job ended."""
        turn = _Turn("")
        with self._lock:
            self._turns.append(turn)
        try:
            while (worker := self._take(turn)) is None:
                self._check(turn)
                turn.wait()
            self._release(worker)
        finally:
            self._leave(turn)

    def cancel(self, channel: str) -> None:
        """Raise TasksFailed in all threads that wait for rows of the channel. Any thread may call this method."""
        with self._lock:
            for turn in self._turns:
                if turn.channel == channel:
                    turn.is_cancelled = True
                    turn.wake()

    def _wake_all(self) -> None:
        with self._lock:
            for turn in self._turns:
                turn.wake()

    def close(self) -> None:
        """End all waits, serve no task any more, and log the work of each task. A second call has no effect."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            for turn in self._turns:
                turn.wake()
            for worker in self._connected:
                with suppress(OSError):
                    worker.connection.shutdown(socket.SHUT_RDWR)
            for worker in self._idle:  # the other workers belong to the threads that wait for them
                worker.connection.close()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._path.unlink(missing_ok=True)
        os.close(self._folder)
        if self.workers_wanted and self._has_ended.wait(_END_S) and (counted := self.counted) is not None:
            log.info("Spark's tasks counted %s; the driver has verified %s", counted.shown, self.verified.shown)


@dataclass(frozen=True, slots=True)
class ChannelPool:
    """The pool, as one channel uses it. `takes_all`: True if its tasks also decode small ranges of the channel."""

    pool: Pool
    channel: str
    takes_all: bool

    def run(self, pieces: Sequence[RangePiece], catalog: Catalog) -> list[Answer]:
        """Let tasks decode the pieces of this channel, as `Pool.run` does."""
        return self.pool.run(self.channel, pieces, catalog)

    def chunks(self, pieces: Sequence[CopyPiece] | Sequence[OrderedPiece], catalog: Catalog) -> list[TableChunk]:
        """Let tasks decode the pieces, and return the chunks of decoded rows in order.

        Raises the errors of the tasks, and FileNotFoundError if the file of a piece is missing.
        """
        results = [answer.split or SplitResult() for answer in self.run(pieces, catalog)]
        if any(result.is_unseen for result in results):
            raise FileNotFoundError(pieces[0].path)
        return [chunk for result in results for chunk in chunks_of(result)]
