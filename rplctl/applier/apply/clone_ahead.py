"""A chunk that is made ready while the target commits the one before it, where one connection loads a copy.

A commit waits for the disk and leaves the interpreter to others; a statement for many rows takes it back for each of
them, so beside one a thread of ours would cost more than it gives. Invariant: nothing is made ready while statements
run, as `take` waits for it, and `begin` is the last thing before a commit.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Generic, TypeVar

T = TypeVar("T")


class Ahead(Generic[T]):
    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None
        self._begun: tuple[object, Future[T]] | None = None

    def begin(self, key: object, work: Callable[[], T]) -> None:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(1, "rplctl-ahead")
        self._begun = key, self._threads.submit(work)

    def take(self, key: object) -> T | None:
        """What was begun last, when it has that key; None otherwise. Raises what its work raised."""
        begun, self._begun = self._begun, None
        if begun is None:
            return None
        wait([begun[1]])
        return begun[1].result() if begun[0] == key else None

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown()
