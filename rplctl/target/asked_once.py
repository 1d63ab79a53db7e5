"""The answers that a command gets once for all the channels that it looks at: one question to a target or a folder is
not repeated.

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
    """Keep the answers while a command looks at many channels, for some seconds. An answer that is kept must not depend
    on the channel.
    """
    token = _answers.set({})
    try:
        yield
    finally:
        _answers.reset(token)


def answer(of: Engine | Path, question: str, ask: Callable[[], T]) -> T:
    """Return the result of `ask`, or its earlier result for the same question about the same target or folder. Raises
    the errors of `ask`.
    """
    known = _answers.get()
    if known is None:
        return ask()
    if (of, question) not in known:
        known[of, question] = ask()
    found: T = known[of, question]
    return found


def is_answered(of: Engine | Path, question: str, by: object) -> bool:
    """True if `by` is the answer that this block has for the question; False if the question was not asked yet."""
    return (of, question) in (known := _answers.get() or {}) and known[of, question] == by
