"""Finds out the outcome of a COMMIT whose answer was lost: it queries the target until the target answers (design D3).

Invariant: rplctl never continues with a guess. If the target does not answer in time, the batch ends with the error
InDoubt. The applier then reads the stored position, as at a start, before it tries the batch again.
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
    """The error if the target became unreachable during a COMMIT, and rplctl could not read the outcome.

    This error is never transient, so the applier does not repeat the batch before it has read the stored position.
    """


_is_stopping: ContextVar[Callable[[], bool]] = ContextVar("_is_stopping", default=lambda: False)


@contextmanager
def honouring_stop(is_stopping: Callable[[], bool]) -> Iterator[None]:
    """Let `until_answered` give up inside the `with` block if `is_stopping` returns True, so that STOP is not delayed.

    The outcome of the COMMIT is then unknown until the next start.
    """
    token = _is_stopping.set(is_stopping)
    try:
        yield
    finally:
        _is_stopping.reset(token)


def until_answered(ask: Callable[[], Answer]) -> Answer:
    """Call `ask`, which queries the target, until the call raises no transient error, and return the result of `ask`.

    Raises InDoubt if `ask` raises a permanent error, if the applier is to stop, or after `ASKED_FOR_S` seconds.
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
