"""Repeated attempts within a limited time, for a condition that no event announces.

Invariant: the condition is tried at least once, and once more after the time is over.
"""

from __future__ import annotations

import time
from collections.abc import Iterator


def attempts(within_s: float, pause_s: float) -> Iterator[None]:
    """Yield before each attempt, with a pause between two attempts. The code after the loop runs if all have failed."""
    deadline = time.monotonic() + within_s
    is_last = False
    while not is_last:
        is_last = time.monotonic() > deadline
        yield
        if not is_last:
            time.sleep(pause_s)
