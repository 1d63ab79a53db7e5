"""A COMMIT whose answer is lost while the target is away: asked for until the target is back (design D3).

Invariant: nobody goes on with a guess. Either the target answered, or what is in work ends with InDoubt, which no
attempt at the same batch may follow: whoever goes on reads the stored position first, as a start does.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TypeVar

from rplctl.errors import TargetError

ASKED_FOR_S: Final = 50.0
PAUSE_S: Final = 0.5

Answer = TypeVar("Answer")
log = logging.getLogger(__name__)


class InDoubt(TargetError):
    """The target went away in COMMIT, and what became of it could not be read. Never transient."""


_is_stopping: ContextVar[Callable[[], bool]] = ContextVar("_is_stopping", default=lambda: False)


@contextmanager
def honouring_stop(is_stopping: Callable[[], bool]) -> Iterator[None]:
    """STOP ends the asking in the block: what is in doubt stays so until the next start."""
    token = _is_stopping.set(is_stopping)
    try:
        yield
    finally:
        _is_stopping.reset(token)


def until_answered(ask: Callable[[], Answer]) -> Answer:
    """The target's answer, however often it must be asked. Raises InDoubt."""
    deadline = time.monotonic() + ASKED_FOR_S
    while True:
        try:
            return ask()
        except TargetError as error:
            if not error.transient or _is_stopping.get()() or time.monotonic() > deadline:
                raise InDoubt(
                    f"the target went away in COMMIT, and whether it is durable could not be read: {error.message}",
                    errno=error.errno,
                    hint="when the target answers again, run: rplctl start",
                ) from None
            log.warning("the target went away in COMMIT and is asked again: %s", error.message)
        time.sleep(PAUSE_S)
