"""Does work in advance: it reads and decodes the next piece of the log while the target applies the current piece.

Invariant: this work applies nothing. A result is used only if the caller then requests exactly this work. Otherwise,
and after an expected error, the caller does the work again, and reports its errors.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

T = TypeVar("T")


class Prefetch(Generic[T]):
    """A thread that does up to two pieces of work in advance.

    These are the next job of the current batch, and the first job of the next batch. `expected`: the errors after which
    the caller does the work again.
    """

    def __init__(self, *expected: type[Exception]) -> None:
        self._expected = expected
        self._thread = ThreadPoolExecutor(1, "rplctl-ahead")
        self._begun: deque[tuple[object, Future[T]]] = deque(maxlen=2)

    def begin(self, what: object, work: Callable[[], T]) -> None:
        """Start `work` in the thread. `what`: the key with which the caller later requests the result.

        Only the last two pieces of work are kept.
        """
        self._begun.append((what, self._thread.submit(work)))

    def take(self, what: object) -> T | None:
        """Wait for the work with the key `what`, and return its result, or None if it was not started or has failed."""
        found = next((entry for entry in list(self._begun) if entry[0] == what), None)
        if found is None:
            return None
        self._begun.remove(found)
        try:
            return found[1].result()
        except self._expected:
            return None

    def close(self) -> None:
        """Wait for the work in progress, and discard the work that has not begun."""
        self._thread.shutdown(cancel_futures=True)
