"""Reads the position of SQLite's write-ahead log (WAL) for log-status (WL#9452), and copies the database in this state.

    LSN              the number of committed frames in the WAL (mxFrame)
    LSN_checkpoint   the number of these frames that are also in the database file (nBackfill)
    WAL_salt         the id of the WAL; if the WAL begins again, the id changes, and LSN begins at 0
    data_version     the result of PRAGMA data_version on this module's connection

The first three are in the wal-index `FILE-shm`, in native byte order (sqlite.org/walformat.html):

    offset   0  u32 version      8  u32 change counter    12  u8 initialised    16  u32 mxFrame
            32  u32[2] salt     48  a second copy of these fields; both copies are equal, except during a change
            96  u32 nBackfill

Invariant: `lock` opens a read transaction, whose snapshot stays the same until `unlock`. The copy has exactly this
snapshot, and no writer waits for `unlock`. A database without a WAL (another journal mode) has only data_version. The
wal-index is read through a descriptor that stays open. Closing it would release all fcntl locks that SQLite has on the
file in this process.
"""

from __future__ import annotations

import os
import sqlite3
import struct
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import Engine

from rplctl.errors import TargetError
from rplctl.target.engine_log import Figures, access_denied

_HEADER_BYTES = 48
_INDEX_BYTES = 2 * _HEADER_BYTES + 4
_BUSY_S = 2.0
_open_indexes: dict[tuple[int, int], int] = {}  # (device, inode) → descriptor


def open_sqlite_log(engine: Engine) -> SqliteLog | None:
    """Open the write-ahead log of the engine's file. Return None if the file does not exist, because a connection would
    create the file. Raises TargetError if this account cannot read and write the file.
    """
    path = Path(str(engine.url.database))
    if not path.exists():
        return None
    if not os.access(path, os.R_OK | os.W_OK):
        raise access_denied(f"run the command as the owner of {path}")
    return SqliteLog(path)


class SqliteLog:
    """The log of a SQLite file, which is read over a connection of its own."""

    name = "SQLite"

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._mapped_errors():
            self._connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)
        self.lock()  # raises now if the file cannot be read
        self.unlock()

    def lock(self) -> None:
        """Open a snapshot of the database. In SQLite, the first SELECT after BEGIN opens it."""
        with self._mapped_errors():
            self._connection.execute("BEGIN")
            self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()

    def unlock(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def collect(self) -> Figures:
        figures: Figures = dict(_wal_figures(self._path.with_name(f"{self._path.name}-shm")))
        with self._mapped_errors():
            figures["data_version"] = int(self._connection.execute("PRAGMA data_version").fetchone()[0])
        return figures

    def copy_to(self, path: Path) -> bool:
        """Write the snapshot that `lock` opened to a new database file with mode 0600, and return True.

        Raises TargetError if SQLite reports an error.
        """
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        try:
            with closing(sqlite3.connect(path)) as copy:
                self._connection.backup(copy)
                copy.execute("PRAGMA journal_mode=DELETE")  # so that the copy needs no other file
        except sqlite3.Error as error:
            raise TargetError(f"cannot copy {self._path}: {error}") from None
        return True

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _mapped_errors(self) -> Iterator[None]:
        """Convert errors of SQLite in the `with` block to TargetError, for example if the path is a folder."""
        try:
            yield
        except sqlite3.Error as error:
            raise TargetError(f"{self._path}: {error}") from None


def _index_descriptor(index: Path) -> int | None:
    """Return an open descriptor of the wal-index (FILE-shm), or None if the file cannot be opened.

    The descriptors stay open for later calls. A descriptor of a file that SQLite has removed is closed, because no
    connection can lock this file any more.
    """
    for key, descriptor in list(_open_indexes.items()):
        if os.fstat(descriptor).st_nlink == 0:
            os.close(_open_indexes.pop(key))
    try:
        status = os.stat(index)
        key = (status.st_dev, status.st_ino)
        if key not in _open_indexes:
            _open_indexes[key] = os.open(index, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    return _open_indexes[key]


def _wal_figures(index: Path) -> dict[str, int]:
    """Return LSN, LSN_checkpoint and WAL_salt from the wal-index (see the module).

    The result is {} if no wal-index exists. It is also {} if the wal-index changes for 20 ms, so that its two copies of
    the fields always differ.
    """
    descriptor = _index_descriptor(index)
    if descriptor is None:
        return {}
    deadline = time.monotonic() + 0.02
    while True:
        data = os.pread(descriptor, _INDEX_BYTES, 0)
        if len(data) == _INDEX_BYTES and data[:_HEADER_BYTES] == data[_HEADER_BYTES : 2 * _HEADER_BYTES]:
            break
        if time.monotonic() > deadline:
            return {}
    frames = int(struct.unpack_from("=I", data, 16)[0])
    salt = int(struct.unpack_from("=I", data, 32)[0])
    backfilled = int(struct.unpack_from("=I", data, 2 * _HEADER_BYTES)[0])
    return {"LSN": frames, "LSN_checkpoint": min(backfilled, frames), "WAL_salt": salt}
