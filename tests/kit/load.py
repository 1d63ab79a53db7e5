"""What a source is written with while a test looks at its replicas."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import closing

from tests.kit.servers import MariadbServer


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
