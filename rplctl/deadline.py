"""One deadline for all that a command asks of sources and targets, and for the first answer of each.

A driver waits in C, in a socket or for a name to be resolved, with timeouts of its own or with none. A question is
therefore asked in a thread of its own, and that thread is abandoned when the time is over. Invariant: only questions
are asked here, which change nothing, so an abandoned one has no effect.

Modules that a question loads first (`own_work`) cost the peer nothing: on a busy machine that takes seconds, and would
be reported as the silence of a server that answers.
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
DEADLINE_S: Final = 10.0  # of a command that looks: a monitoring system waits no longer
LEAST_S: Final = 1.0  # that each question gets; those that take no longer cost nothing of the deadline

_of_command: ContextVar[Deadline | None] = ContextVar("_of_command", default=None)
_is_question: ContextVar[bool] = ContextVar("_is_question", default=False)
_LEAST_WAIT_S: Final = 0.01


class _OwnWork:
    """The seconds of a question that are work of this program."""

    def __init__(self) -> None:
        self._done = 0.0
        self._since: float | None = None

    @property
    def seconds(self) -> float:
        since = self._since
        return self._done + (0.0 if since is None else time.monotonic() - since)

    @contextmanager
    def counted(self) -> Iterator[None]:
        if self._since is not None:  # within such work
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

    A peer that was late is not asked again before its answer came: one thread at most waits for it.
    """

    def __init__(self, seconds: float | None = None) -> None:
        """Set the deadline; None means DEADLINE_S."""
        self._seconds = self._left = DEADLINE_S if seconds is None else seconds
        self._late: dict[str, tuple[Future[Any], RplError]] = {}

    def begin(self) -> None:
        """Give all the seconds again, to a program that looks again and again."""
        self._left = self._seconds

    def ask(self, peer: str, error: type[RplError], question: Callable[[], T]) -> T:
        """Return what the question returns. Raises what it raises, and `error` when `peer` is late.

        `peer` is named in the message: `the source db1:3306`.
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
            except BaseException as failure:  # noqa: BLE001 - who asks gets it, whatever it is
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
            hint="rplctl doctor",
        )
        self._late[peer] = answer, late
        raise late


@contextmanager
def own_work() -> Iterator[None]:
    """Load modules within a question without using up the time of the peer."""
    own = _own_work.get()
    with nullcontext() if own is None else own.counted():
        yield


@contextmanager
def one_deadline() -> Iterator[None]:
    """Share one deadline for the first answers of all sources and targets within the block."""
    token = _of_command.set(Deadline())
    try:
        yield
    finally:
        _of_command.reset(token)


def first_answer(peer: str, error: type[RplError], question: Callable[[], T]) -> T:
    """Return what the first question to a server returns. Raises as `Deadline.ask`; a question that is asked within a
    deadline already has no other one.
    """
    if _is_question.get():
        return question()
    return (_of_command.get() or Deadline()).ask(peer, error, question)
