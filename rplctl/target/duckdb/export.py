"""Copies the DuckDB file for readers (`export_to`), because no other process can read a file that rplctl has open.

A thread of this process copies the committed rows while the applier continues. After a copy, the thread sleeps nine
times as long as the copy took, and at least one second. So copies take at most a tenth of the time. After the last
commit, one more copy is made. Invariant: the path `export_to` always refers to one complete copy, with the rows and the
position of one moment between two commits. A new copy is written to another file, synced and renamed, so readers of the
previous copy can continue. A failed copy is logged and repeated, and does not stop a channel.
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

_REST: Final = 9  # the pause after a copy, as a multiple of the copy's duration
_SHORTEST_REST_S: Final = 1.0
_COPY: Final = "rplctl copy"  # catalog name of the copy while it is written
log = logging.getLogger(__name__)


class Export:
    """Makes copies of one DuckDB file. All channels of this process that commit to the file share this object. `path`:
    the path of the copy. `connect`: opens the original file.
    """

    def __init__(self, path: Path, connect: Callable[[], DriverConnection]) -> None:
        self.path = path
        self._new = path.with_name(f".{path.name}.tmp")
        self._connect = connect
        self._copying = threading.Lock()
        self._due = threading.Event()
        self._thread: threading.Thread | None = None

    def committed(self) -> None:
        """Request a new export of the database file for its readers, because a commit may have changed the file."""
        self._due.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._copies, name="rplctl-export", daemon=True)
            self._thread.start()
            atexit.register(self._copying.acquire)  # a copy at the interpreter's end would abort the process

    def finish(self) -> None:
        """Make a requested copy now, with all commits. Do nothing if no copy is requested. An error is only logged."""
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
                log.warning("cannot create the copy for readers %s: %s", self.path, " ".join(str(error).split()))

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
            shutil.copymode(self.path, self._new)  # so that the same users can read the new copy
        crash_point("crash_export_before_rename")
        put_in_place(self._new, self.path)
        crash_point("crash_export_after_rename")

    def _remove_new(self) -> None:
        """Remove the unfinished copy of a process that was killed, together with the write-ahead log of this copy."""
        for path in (self._new, self._new.with_name(f"{self._new.name}.wal")):
            with suppress(FileNotFoundError):
                path.unlink()
