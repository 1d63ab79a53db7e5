"""What a source is written with while a test looks at its replicas."""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from tests.kit.servers import MariadbServer

Work = Callable[[Any], object]  # of a cursor


@contextmanager
def working(
    source: MariadbServer, database: str, works: Sequence[Work], *, harmless: Container[int], pause_s: float = 0.002
) -> Iterator[None]:
    """Each `work(cursor)` again and again, on a session of its own. What these errors end is rolled back; others are
    errors of the block.
    """
    stop = threading.Event()
    failed: list[BaseException] = []

    def run(work: Work) -> None:
        with closing(source.connect(database)) as connection, connection.cursor() as cursor:
            while not stop.wait(pause_s):
                try:
                    work(cursor)
                except Exception as error:  # noqa: BLE001 - deadlocks and duplicates are a writer's life
                    cursor.execute("ROLLBACK")
                    if getattr(error, "args", (0,))[0] not in harmless:
                        failed.append(error)
                        return

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failed, failed


class Load(threading.Thread):
    """These transactions, all of them after each pause, until it is told to stop."""

    def __init__(
        self, server: MariadbServer, transactions: Sequence[str], *, pause_s: float, database: str | None = None
    ) -> None:
        super().__init__(daemon=True)
        self._server, self._transactions, self._pause_s, self._database = server, transactions, pause_s, database
        self._stop_wanted = threading.Event()
        self.start()

    def run(self) -> None:
        with closing(self._server.connect(self._database)) as connection, connection.cursor() as cursor:
            while not self._stop_wanted.wait(self._pause_s):
                for transaction in self._transactions:
                    cursor.execute(transaction)
                    while cursor.nextset():
                        pass

    def finish(self) -> None:
        self._stop_wanted.set()
        self.join()
