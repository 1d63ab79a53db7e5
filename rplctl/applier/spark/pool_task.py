"""The loop of one long-running task of the pool: get a range from the driver, decode it, send the answer.

The task connects to the driver's private socket, and proves by a token that it belongs to the pool. It also checks that
the driver runs as the same user. The task has no secret of source or target, and writes only spool files and the files
of a lake. It counts its work in Spark accumulators, which the driver gets when the task ends. The driver closes the
connection of a task that does not answer. The task then connects again. It ends when the driver no longer listens.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import struct
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import astuple, dataclass, field, replace
from typing import Final, Protocol

from rplctl.applier.spark.answer import Attempt, answer_of, failure_of
from rplctl.applier.spark.copy_task import run_copy, run_ordered
from rplctl.applier.spark.lake_piece import LakeFiles
from rplctl.applier.spark.split_task import Split, SplitResult, run_split
from rplctl.decode.copied_rows import CopyPiece
from rplctl.decode.ordered_rows import OrderedPiece
from rplctl.schema.plan import Catalog, Changes

LENGTH: Final = struct.Struct("<Q")  # the length before each request
_PEER: Final = struct.Struct("iII")  # Linux: process, user, group
_MOST_WORDS: Final = 500  # characters


@dataclass(frozen=True, slots=True)
class TaskRequest:
    """The driver's request to decode the range of one attempt.

    The task keeps a catalog (table models) for each channel. `catalog`: a pickled catalog that replaces the channel's
    catalog, or None to keep the channel's catalog. `changes`: changes that the task then makes to it. `dies`: True if
    the task's process must kill itself before it answers (crash point crash_task_with_range).
    """

    attempt: Attempt
    catalog: bytes | None = None
    changes: Changes = field(default_factory=lambda: ({}, {}))
    dies: bool = False


class Counter(Protocol):
    """The part of the interface of Spark's accumulators that a task uses."""

    def add(self, term: int) -> None: ...


@dataclass(slots=True)
class TaskWork:
    """The numbers of rows and ranges that one task has decoded. `bytes`: the total length of these ranges."""

    rows: int = 0
    ranges: int = 0
    bytes: int = 0

    def add(self, rows: int, size: int) -> None:
        """Count one range of `size` bytes with so many row changes."""
        self.rows, self.ranges, self.bytes = self.rows + rows, self.ranges + 1, self.bytes + size

    @property
    def shown(self) -> str:
        """The three numbers in words, for the log."""
        return f"{self.rows} rows in {self.ranges} ranges of {self.bytes} bytes"


@dataclass(frozen=True, slots=True)
class PoolAddress:
    """The address of the driver's socket. `token`: proves to the driver that a task belongs to the pool."""

    path: str
    token: bytes

    def serve(self, _: int, __: Iterable[int], *, counted: Sequence[Counter] = ()) -> Iterator[int]:
        """Serve the driver until it no longer listens. This generator is the body of the Spark task.

        Yield once, at the end, the number of row changes in all answers. `counted`: accumulators for the fields of
        TaskWork, in their order.
        """
        rows = 0
        while (connection := self._connected()) is not None:
            with connection:
                work = serve_one(connection)
            rows += work.rows
            for counter, more in zip(counted, astuple(work), strict=False):
                counter.add(more)
        yield rows

    def _connected(self) -> socket.socket | None:
        """Return a connection to the driver, after sending the token.

        Return None if no process listens on the driver's socket, or if a process of another user listens on it.
        """
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            connection.connect(self.path)
            if peer_of(connection)[1] == os.geteuid():
                connection.sendall(self.token)
                return connection
        except OSError:
            pass
        connection.close()
        return None


def peer_of(connection: socket.socket) -> tuple[int, int]:
    """Return the process id and the user id of the other end of the connection, as the kernel knows them."""
    process, user, _ = _PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    return process, user


def serve_one(connection: socket.socket) -> TaskWork:
    """Answer the driver's requests on one connection until it ends, and return the counts of all answers."""
    catalogs: dict[str, Catalog] = {}
    work = TaskWork()
    try:
        while (frame := _received(connection)) is not None:
            request: TaskRequest = pickle.loads(frame)
            answer = Future[tuple[int, list[bytes]]]()
            try:
                answer.set_result(_answer(request, catalogs))
            except Exception as error:  # noqa: BLE001 - the process boundary: the driver counts it and tries again
                answer.set_exception(error)
            if (failure := answer.exception()) is None:
                rows, parts = answer.result()
                work.add(rows, request.attempt.size)
            else:
                parts = failure_of(request.attempt, f"{type(failure).__name__}: {failure}"[:_MOST_WORDS])
            _send(connection, request.attempt, parts)
    except OSError:  # the driver has ended, or has closed the connection to this task
        pass
    return work


def _send(connection: socket.socket, attempt: Attempt, parts: Iterable[bytes]) -> None:
    """Send the parts of an answer. If the connection fails, remove the answer's spool file, and raise OSError."""
    try:
        for part in parts:
            connection.sendall(part)
    except OSError:
        if (path := attempt.spool_file) is not None:
            path.unlink(missing_ok=True)
        raise


def _answer(request: TaskRequest, catalogs: dict[str, Catalog]) -> tuple[int, list[bytes]]:
    """Decode the range of a request. Return the number of row changes, and the bytes of the answer in parts.

    `catalogs`: the task's catalog for each channel, which is updated as the request says.
    """
    attempt = request.attempt
    known = catalogs.get(attempt.channel, Catalog())
    catalog: Catalog = known if request.catalog is None else pickle.loads(request.catalog)
    if any(request.changes):
        catalog = catalog.changed(*request.changes)
    catalogs[attempt.channel] = catalog
    result = _result(attempt, catalog)
    if request.dies:  # a large result is in its spool file by now
        os.kill(os.getpid(), signal.SIGKILL)
    return result.rows, answer_of(attempt, result)


def _result(attempt: Attempt, catalog: Catalog) -> SplitResult | LakeFiles:
    piece = attempt.piece
    spool_name = path.name if (path := attempt.spool_file) else ""
    if isinstance(piece, Split):
        return run_split(replace(piece, spool_name=spool_name), catalog)
    if isinstance(piece, CopyPiece):
        return run_copy(piece, spool_name)
    if isinstance(piece, OrderedPiece):
        return run_ordered(piece, catalog, spool_name)
    from rplctl.applier.spark.lake_task import write_changes  # loads the libraries of a lake

    return write_changes(piece, catalog)


def _received(connection: socket.socket) -> bytearray | None:
    """Return the next request, or None at the end of the connection."""
    head = _exactly(connection, LENGTH.size)
    return head and _exactly(connection, LENGTH.unpack(head)[0])


def _exactly(connection: socket.socket, length: int) -> bytearray | None:
    found = bytearray(length)
    view = memoryview(found)
    while view:
        count = connection.recv_into(view)
        if not count:
            return None
        view = view[count:]
    return found
