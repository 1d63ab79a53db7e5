"""Caches answers for a command that checks many channels, so that no target or folder gets the same question twice.

Invariant: a cached answer is valid until the end of its `asked_once` block. A question that failed is asked again.
Outside of an `asked_once` block, nothing is cached.
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
    """Cache the answers that `answer` returns in this `with` block. A command uses the block to check many channels
    within seconds. A cached answer must not depend on the channel.
    """
    token = _answers.set({})
    try:
        yield
    finally:
        _answers.reset(token)


def answer(of: Engine | Path, question: str, ask: Callable[[], T]) -> T:
    """Return the answer to a question about a target or a folder (`of`). The answer comes from the cache of the
    `asked_once` block, else from `ask()`. Raises the errors of `ask`.
    """
    known = _answers.get()
    if known is None:
        return ask()
    if (of, question) not in known:
        known[of, question] = ask()
    found: T = known[of, question]
    return found


def is_answered(of: Engine | Path, question: str, by: object) -> bool:
    """True if the `asked_once` block has cached an answer to the question, and this answer equals `by`."""
    return (of, question) in (known := _answers.get() or {}) and known[of, question] == by
