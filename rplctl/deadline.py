"""One deadline for all queries of a command to sources and targets, and for the first answer of each.

A driver waits in C code, for a socket or a name resolution, with its own timeouts or without any. So each query runs in
a thread, which is abandoned when the time is over. Invariant: only queries that change nothing run here, so an
abandoned query has no effect; what it would print, it prints only while somebody waits for it (`is_abandoned`).

The time to load modules for a query (`own_work`) does not count for the peer. On a busy machine, loading takes seconds,
and the server would seem to be silent although it answers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from threading import Thread
from typing import Any, Final, TypeVar

from rplctl import mysql_errors as er
from rplctl.errors import RplError

T = TypeVar("T")
DEADLINE_S: Final = 10.0  # for a read-only command: a monitoring system does not wait longer
LEAST_S: Final = 1.0  # for each query; a query within this time does not reduce the deadline

_of_command: ContextVar[Deadline | None] = ContextVar("_of_command", default=None)
_is_question: ContextVar[bool] = ContextVar("_is_question", default=False)
_LEAST_WAIT_S: Final = 0.01


class _OwnWork:
    """The seconds of a query in which this program itself works, and whether the command still waits for the query."""

    def __init__(self) -> None:
        self.is_abandoned = False
        self._done = 0.0
        self._since: float | None = None

    @property
    def seconds(self) -> float:
        since = self._since
        return self._done + (0.0 if since is None else time.monotonic() - since)

    @contextmanager
    def counted(self) -> Iterator[None]:
        if self._since is not None:  # the outer block counts already
            yield
            return
        self._since = time.monotonic()
        try:
            yield
        finally:
            self._done, self._since = self.seconds, None


_own_work: ContextVar[_OwnWork | None] = ContextVar("_own_work", default=None)


class Deadline:
    """The seconds that a command waits for peers that do not answer.

    A late peer is not queried again before its answer arrives: at most one thread waits for each peer.
    """

    def __init__(self, seconds: float | None = None) -> None:
        """Set the deadline; None = DEADLINE_S."""
        self._seconds = self._left = DEADLINE_S if seconds is None else seconds
        self._late: dict[str, tuple[Future[Any], RplError]] = {}

    def begin(self) -> None:
        """Restart the deadline, for a program that polls repeatedly."""
        self._left = self._seconds

    def ask(self, peer: str, error: type[RplError], question: Callable[[], T]) -> T:
        """Return the result of the query. Raises the query's errors, and `error` if `peer` is late.

        `peer` is the name in the message: `the source db1:3306`.
        """
        if peer in self._late and not self._late[peer][0].done():
            raise self._late[peer][1]
        answer: Future[T] = Future()
        context, own = copy_context(), _OwnWork()

        def work() -> None:
            context.run(_is_question.set, True)
            context.run(_own_work.set, own)
            try:
                answer.set_result(context.run(question))
            except BaseException as failure:  # noqa: BLE001 - the caller gets every error
                answer.set_exception(failure)

        patience, began = max(LEAST_S, self._left), time.monotonic()
        Thread(target=work, name=f"question to {peer}", daemon=True).start()
        while not answer.done() and (left := began + patience + own.seconds - time.monotonic()) > 0:
            wait([answer], max(left, _LEAST_WAIT_S))
        is_answered = answer.done()
        taken = time.monotonic() - began - own.seconds
        self._left -= taken if taken > LEAST_S else 0.0
        if is_answered:
            return answer.result()
        late = error(
            f"{peer} did not answer within {self._seconds:g} s",
            errno=er.CR_SERVER_LOST,
            transient=True,
            hint="to check the connections, run: rplctl doctor",
        )
        own.is_abandoned = True
        self._late[peer] = answer, late
        raise late


@contextmanager
def own_work() -> Iterator[None]:
    """Load modules in the block, within a query, without using the peer's time."""
    own = _own_work.get()
    with nullcontext() if own is None else own.counted():
        yield


def is_abandoned() -> bool:
    """True in a query that the command no longer waits for."""
    own = _own_work.get()
    return own is not None and own.is_abandoned


@contextmanager
def one_deadline() -> Iterator[None]:
    """Share one deadline among the first answers of all sources and targets within the block."""
    token = _of_command.set(Deadline())
    try:
        yield
    finally:
        _of_command.reset(token)


def first_answer(peer: str, error: type[RplError], question: Callable[[], T]) -> T:
    """Return the result of the first query to a server. Raises as `Deadline.ask` does.

    A query within another query uses the other query's deadline.
    """
    if _is_question.get():
        return question()
    return (_of_command.get() or Deadline()).ask(peer, error, question)
