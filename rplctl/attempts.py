"""Repeated attempts within a limited time, to wait for a condition that no event announces.

Invariant: the caller makes at least one attempt, and one last attempt after the time is over.
"""

from __future__ import annotations

import time
from collections.abc import Iterator


def attempts(within_s: float, pause_s: float) -> Iterator[None]:
    """Yield before each attempt, with a pause of `pause_s` seconds between two attempts.

    The caller leaves its `for` loop after a successful attempt. The loop ends by itself if no attempt succeeds within
    `within_s` seconds.
    """
    deadline = time.monotonic() + within_s
    is_last = False
    while not is_last:
        is_last = time.monotonic() > deadline
        yield
        if not is_last:
            time.sleep(pause_s)
