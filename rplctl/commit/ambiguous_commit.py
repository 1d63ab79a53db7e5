"""Determines the outcome of a COMMIT whose answer was lost: queries the target until it answers again (design D3).

Invariant: rplctl never continues with a guess. Either the target answers, or the batch ends with InDoubt. After
InDoubt, the batch is not tried again before the stored position is read, as at a start.
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
    """The error if the target became unreachable during a COMMIT, and the outcome of the COMMIT could not be read. It
    is never transient.
    """


_is_stopping: ContextVar[Callable[[], bool]] = ContextVar("_is_stopping", default=lambda: False)


@contextmanager
def honouring_stop(is_stopping: Callable[[], bool]) -> Iterator[None]:
    """Let STOP end the waits of `until_answered` in the block. The outcome of a COMMIT is then unknown until the next
    start.
    """
    token = _is_stopping.set(is_stopping)
    try:
        yield
    finally:
        _is_stopping.reset(token)


def until_answered(ask: Callable[[], Answer]) -> Answer:
    """Call `ask`, which queries the target, again and again until it succeeds, and return its result. Raises InDoubt if
    the error is permanent, if the applier is to stop, or if no answer comes in time.
    """
    deadline = time.monotonic() + ASKED_FOR_S
    while True:
        try:
            return ask()
        except TargetError as error:
            if not error.transient or _is_stopping.get()() or time.monotonic() > deadline:
                raise InDoubt(
                    f"the target became unreachable during COMMIT, and the outcome is unknown: {error.message}",
                    errno=error.errno,
                    hint="when the target answers again, run: rplctl start",
                ) from None
            log.warning("the target became unreachable during COMMIT; its outcome is read again: %s", error.message)
        time.sleep(PAUSE_S)
