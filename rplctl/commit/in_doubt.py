"""A COMMIT whose answer is lost while the target is away: asked for until the target is back (design D3).

Invariant: nobody goes on with a guess. Either the target answered, or the channel stops with an error that another
attempt of this process must not follow: the next start reads the stored position first.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final, TypeVar

from rplctl.errors import TargetError

ASKED_FOR_S: Final = 50.0  # STOP waits for a COMMIT, and 60 s are its patience
PAUSE_S: Final = 0.5

Answer = TypeVar("Answer")
log = logging.getLogger(__name__)


def until_answered(ask: Callable[[], Answer]) -> Answer:
    """The target's answer, however often it must be asked. Raises TargetError, never a transient one."""
    deadline = time.monotonic() + ASKED_FOR_S
    while True:
        try:
            return ask()
        except TargetError as error:
            if not error.transient or time.monotonic() > deadline:
                raise _in_doubt(error) from None
            log.warning("the target went away in COMMIT and is asked again: %s", error.message)
        time.sleep(PAUSE_S)


def _in_doubt(error: TargetError) -> TargetError:
    return TargetError(
        f"the target went away in COMMIT, and whether it is durable could not be read: {error.message}",
        errno=error.errno,
        hint="rplctl start, once the target answers: it goes on from the position that is stored there",
    )
