"""One deadline for all queries of a command to its peers, the sources and targets.

A database driver waits in C code for a socket or a name resolution, and may have no timeout. So each query runs in a
thread. When the time is over, the command abandons the query: it no longer waits for the thread.
Invariant: only queries that change nothing run here, so an abandoned query has no effect. An abandoned query also
prints nothing (`is_abandoned`).

The deadline does not include the time in which a query loads Python modules (`own_work`). On a busy machine, loading
takes seconds, and the peer would seem to be silent although it answers.
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
DEADLINE_S: Final = 10.0  # for a read-only command, because a monitoring system does not wait longer
LEAST_S: Final = 1.0  # each query has at least this time; a query within this time does not reduce the deadline

_of_command: ContextVar[Deadline | None] = ContextVar("_of_command", default=None)
_is_question: ContextVar[bool] = ContextVar("_is_question", default=False)
_LEAST_WAIT_S: Final = 0.01


class _OwnWork:
    """The state of one query: the time that it spends in rplctl itself, and whether the command has abandoned it."""

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
    """The total time that a command waits for peers that do not answer.

    A peer that is late gets no other query before its answer has arrived. So at most one thread waits for each peer.
    """

    def __init__(self, seconds: float | None = None) -> None:
        """Set the total time in seconds. None means DEADLINE_S."""
        self._seconds = self._left = DEADLINE_S if seconds is None else seconds
        self._late: dict[str, tuple[Future[Any], RplError]] = {}

    def begin(self) -> None:
        """Make the whole time available again, for a program that polls its peers repeatedly."""
        self._left = self._seconds

    def ask(self, peer: str, error: type[RplError], question: Callable[[], T]) -> T:
        """Run the query `question` in a thread, and return its result.

        Raises the errors of the query. Raises `error` if `peer` does not answer in time, or is still late with an
        earlier answer. `peer` is the name for the message, for example `the source db1:3306`.
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
    """Exclude the time of the block from the deadline, because a query loads Python modules in it."""
    own = _own_work.get()
    with nullcontext() if own is None else own.counted():
        yield


def is_abandoned() -> bool:
    """True if the calling code runs in a query that the command has abandoned."""
    own = _own_work.get()
    return own is not None and own.is_abandoned


@contextmanager
def one_deadline() -> Iterator[None]:
    """Make all calls of `first_answer` in the block share one deadline."""
    token = _of_command.set(Deadline())
    try:
        yield
    finally:
        _of_command.reset(token)


def first_answer(peer: str, error: type[RplError], question: Callable[[], T]) -> T:
    """Return the result of the first query to a server, with the deadline of `one_deadline` or a new one.

    A query within another query uses the deadline of the outer query. Raises the same errors as `Deadline.ask`.
    """
    if _is_question.get():
        return question()
    return (_of_command.get() or Deadline()).ask(peer, error, question)
