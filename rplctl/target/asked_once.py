"""What a command asks for all the channels that it looks at, a target or a folder: the same question once.

Invariant: an answer counts within the block `asked_once` that it was given in, and a question that failed is asked
again. Outside of such a block each question is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Engine

T = TypeVar("T")
_answers: ContextVar[dict[tuple[Engine | Path, str], Any] | None] = ContextVar("_answers", default=None)


@contextmanager
def asked_once() -> Iterator[None]:
    """For one look at many channels, seconds long: what is asked must not hang on the channel."""
    token = _answers.set({})
    try:
        yield
    finally:
        _answers.reset(token)


def answer(of: Engine | Path, question: str, ask: Callable[[], T]) -> T:
    """What `ask` returns, or has returned to that question about that target or folder. Raises what it raises."""
    known = _answers.get()
    if known is None:
        return ask()
    if (of, question) not in known:
        known[of, question] = ask()
    found: T = known[of, question]
    return found


def is_answered(of: Engine | Path, question: str, by: object) -> bool:
    """Whether that was the answer in this block; False where it was not asked yet."""
    return (of, question) in (known := _answers.get() or {}) and known[of, question] == by
