"""Caches answers that the channels of one command share, so that no question to a target or a folder is repeated.

Invariant: an answer is valid until the end of its `asked_once` block. A question that failed is asked again. Outside of
such a block, every question is asked.
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
    """Cache the answers in this block, in which a command checks many channels within seconds. A cached answer must not
    depend on the channel.
    """
    token = _answers.set({})
    try:
        yield
    finally:
        _answers.reset(token)


def answer(of: Engine | Path, question: str, ask: Callable[[], T]) -> T:
    """Return the result of `ask`, or the cached result for the same question about the same target or folder. Raises
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
    """True if the answer that this block has cached for the question is `by`; False if there is none."""
    return (of, question) in (known := _answers.get() or {}) and known[of, question] == by
