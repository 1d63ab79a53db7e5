"""Copies of the file for readers (`export_to`): the file itself is open in one process and readable in no other.

A thread of this process copies what is committed while the applier goes on. It rests nine times as long as a copy took,
and a second at least: a tenth of its time at most goes into copies, and what comes last is copied, too.
Invariant: the name leads to one whole copy, the rows and the position of one moment between two commits. A new one is
made next to it, synced, and takes its name at once; who has the one before open goes on reading that. A copy that fails
is reported in the log and made again; it stops no channel.
"""

from __future__ import annotations

import atexit
import logging
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

import duckdb

from rplctl.durable import put_in_place
from rplctl.errors import RplError
from rplctl.failpoint import crash_point
from rplctl.sql_text import written
from rplctl.target.ddl_parts import quote, text_literal
from rplctl.target.duckdb.ddl_type import CATALOG
from rplctl.target.duckdb.sqlalchemy_dialect import DriverConnection

_REST: Final = 9  # times what a copy took
_SHORTEST_REST_S: Final = 1.0
_COPY: Final = "rplctl copy"  # its name while it is made
log = logging.getLogger(__name__)


class Export:
    """The copies of one file in this process, for all channels that commit to it. `connect` opens the file, which
    exists.
    """

    def __init__(self, path: Path, connect: Callable[[], DriverConnection]) -> None:
        self.path = path
        self._new = path.with_name(f".{path.name}.tmp")
        self._connect = connect
        self._copying = threading.Lock()
        self._due = threading.Event()
        self._thread: threading.Thread | None = None

    def committed(self) -> None:
        """The file has what the copy may not have."""
        self._due.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._copies, name="rplctl-export", daemon=True)
            self._thread.start()
            atexit.register(self._copying.acquire)  # no copy is in work when the interpreter goes: that would abort

    def finish(self) -> None:
        """Return with a copy of all that is committed, or with its error in the log."""
        self._copied()

    def _copies(self) -> None:
        while self._due.wait():
            begun = time.monotonic()
            self._copied()
            time.sleep(max(_SHORTEST_REST_S, _REST * (time.monotonic() - begun)))

    def _copied(self) -> None:
        with self._copying:
            if not self._due.is_set():
                return
            self._due.clear()
            try:
                self._copy()
            except (duckdb.Error, OSError, RplError) as error:
                self._due.set()
                log.warning("the copy for readers %s could not be made: %s", self.path, " ".join(str(error).split()))

    def _copy(self) -> None:
        self._remove_new()
        with closing(self._connect()) as connection:
            driver = connection.driver
            driver.execute(written("ATTACH {} AS {}", text_literal(str(self._new)), quote(_COPY)))
            try:
                driver.execute(written("COPY FROM DATABASE {} TO {}", quote(CATALOG), quote(_COPY)))
            finally:
                driver.execute(written("DETACH {}", quote(_COPY)))
        if self.path.exists():
            shutil.copymode(self.path, self._new)  # who may read the one before may read this one
        crash_point("crash_export_before_rename")
        put_in_place(self._new, self.path)
        crash_point("crash_export_after_rename")

    def _remove_new(self) -> None:
        """Remove the remains of a copy that was killed, and DuckDB's log of it."""
        for path in (self._new, self._new.with_name(f"{self._new.name}.wal")):
            with suppress(FileNotFoundError):
                path.unlink()
