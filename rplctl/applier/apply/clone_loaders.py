"""Runs the threads that load a copy's chunks, each on its own connection.

Several connections are faster, because a server uses only one core for each. Invariant: no thread loads any more when
`run` returns. The connections do not lock the channel on the target (*fence*). The tables are protected by the check of
the clone state in each transaction (own_tables/clones.py).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait

from rplctl.target import dialect_of
from rplctl.target.base import Target


class Loaders:
    """The connections that load a copy. If the target permits only one writer, `target` is the only connection."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._is_alone = dialect_of(target.kind).loads_alone
        self._others: list[Target] = []
        self._threads: ThreadPoolExecutor | None = None

    def run(self, work: Callable[[Target], None], count: int) -> None:
        """Run `work` in `count` threads, each with a connection, and return when all threads have ended.

        If threads fail, the error of one thread is raised.
        """
        if self._is_alone:
            return work(self._target)
        if self._threads is None or len(self._others) != count:
            self.close()
            self._threads = ThreadPoolExecutor(count, "rplctl-load")
            dialect = dialect_of(self._target.kind)
            self._others = [dialect.open_target(self._target.engine) for _ in range(count)]
        begun = [self._threads.submit(work, target) for target in self._others]
        wait(begun)
        for ended in begun:
            ended.result()
        return None

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown()
        for target in self._others:
            target.reconnect()
        self._threads, self._others = None, []
