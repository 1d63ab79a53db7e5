"""Does work in advance: the next piece of the log is read and decoded while the target applies the one before.

Invariant: this work applies nothing. A result is used only if it is exactly the work that the caller requests next.
Otherwise, and after an expected error, the caller does the work again, and reports the errors.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

T = TypeVar("T")


class Prefetch(Generic[T]):
    """A thread with up to two pieces of work: the next job of a transaction, and the first one of the next batch."""

    def __init__(self, *expected: type[Exception]) -> None:
        self._expected = expected
        self._thread = ThreadPoolExecutor(1, "rplctl-ahead")
        self._begun: deque[tuple[object, Future[T]]] = deque(maxlen=2)

    def begin(self, what: object, work: Callable[[], T]) -> None:
        """Start `work` in the thread under the key `what`. Only the last two pieces of work are kept."""
        self._begun.append((what, self._thread.submit(work)))

    def take(self, what: object) -> T | None:
        """Wait for the work with this key, and return its result; None if it was not started or failed."""
        found = next((entry for entry in list(self._begun) if entry[0] == what), None)
        if found is None:
            return None
        self._begun.remove(found)
        try:
            return found[1].result()
        except self._expected:
            return None

    def close(self) -> None:
        """Wait for the running work, and discard the rest."""
        self._thread.shutdown(cancel_futures=True)
