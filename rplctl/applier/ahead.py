"""Work done before its turn: the next piece of log is read and decoded while the target is busy with the one before.

Invariant: nothing is applied by it. What was prepared is used only if it is exactly what its turn asks for; otherwise,
and after an expected error, the work is simply done again in its turn, where errors belong.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

T = TypeVar("T")


class Ahead(Generic[T]):
    """One piece of work at a time, on a thread of its own."""

    def __init__(self, *expected: type[Exception]) -> None:
        self._expected = expected
        self._thread = ThreadPoolExecutor(1, "rplctl-ahead")
        self._begun: tuple[object, Future[T]] | None = None

    def begin(self, what: object, work: Callable[[], T]) -> None:
        """Do `work`, which is known by `what`; what was begun before is given up."""
        if self._begun is not None:
            self._begun[1].cancel()
        self._begun = (what, self._thread.submit(work))

    def take(self, what: object) -> T | None:
        """The result, waited for if need be; None when something else was begun, or it failed as expected."""
        begun, self._begun = self._begun, None
        if begun is None or begun[0] != what:
            return None
        try:
            return begun[1].result()
        except self._expected:
            return None

    def close(self) -> None:
        """Wait for what runs, forget the rest."""
        self._thread.shutdown(cancel_futures=True)
