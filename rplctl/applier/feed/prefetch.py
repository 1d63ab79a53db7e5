"""Work done before its turn: the next piece of log is read and decoded while the target is busy with the one before.

Invariant: nothing is applied by it. What was prepared is used only if it is exactly what its turn asks for; otherwise,
and after an expected error, the work is simply done again in its turn, where errors belong.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

T = TypeVar("T")


class Prefetch(Generic[T]):
    """Up to two pieces of work, one after the other on a thread of their own: the next job of a large transaction, and
    the first of what comes behind it.
    """

    def __init__(self, *expected: type[Exception]) -> None:
        self._expected = expected
        self._thread = ThreadPoolExecutor(1, "rplctl-ahead")
        self._begun: deque[tuple[object, Future[T]]] = deque(maxlen=2)

    def begin(self, what: object, work: Callable[[], T]) -> None:
        """Do `work`, which is known by `what`; one that two others came after is given up."""
        self._begun.append((what, self._thread.submit(work)))

    def take(self, what: object) -> T | None:
        """The result, waited for if need be; None when it was not begun, or failed as expected."""
        found = next((entry for entry in list(self._begun) if entry[0] == what), None)
        if found is None:
            return None
        self._begun.remove(found)
        try:
            return found[1].result()
        except self._expected:
            return None

    def close(self) -> None:
        """Wait for what runs, forget the rest."""
        self._thread.shutdown(cancel_futures=True)
