"""What a command asks a target for all the channels that it looks at: the same question once.

Invariant: an answer counts within the block `asked_once` that it was given in, and a question that failed is asked
again. Outside of such a block each question is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from sqlalchemy import Engine

T = TypeVar("T")
_answers: ContextVar[dict[tuple[Engine, str], Any] | None] = ContextVar("_answers", default=None)


@contextmanager
def asked_once() -> Iterator[None]:
    """For one look at many channels, seconds long: what is asked must not hang on the channel."""
    token = _answers.set({})
    try:
        yield
    finally:
        _answers.reset(token)


def answer(engine: Engine, question: str, ask: Callable[[], T]) -> T:
    """What `ask` returns, or has returned to that question about that target. Raises what it raises."""
    known = _answers.get()
    if known is None:
        return ask()
    if (engine, question) not in known:
        known[engine, question] = ask()
    found: T = known[engine, question]
    return found
