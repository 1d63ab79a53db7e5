"""SQLite's write-ahead log for log-status (WL#9452), and a copy of the database as it was then.

    LSN              frames of the WAL that are committed (mxFrame)
    LSN_checkpoint   frames of them that are in the database file, too (nBackfill)
    WAL_salt         which WAL: it changes when the WAL begins again, and LSN with it begins at 0
    data_version     what PRAGMA data_version says on our connection

The first three are in the wal-index `FILE-shm`, native byte order (sqlite.org/walformat.html):

    offset   0  u32 version      8  u32 change counter    12  u8 initialised    16  u32 mxFrame
            32  u32[2] salt     48  a second copy of all; equal to the first when nobody is writing it
            96  u32 nBackfill

Invariant: `lock` opens a read transaction, which keeps its snapshot until `unlock` and holds nobody up (WAL); the copy
is of exactly that snapshot. A database without a WAL (another journal mode) has data_version only.
The wal-index is read through a descriptor that stays open: closing one would drop every fcntl lock that SQLite holds on
the file in this process.
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
    """None while there is no file: asking would make it. Raises TargetError."""
    path = Path(str(engine.url.database))
    if not path.exists():
        return None
    if not os.access(path, os.R_OK | os.W_OK):
        raise access_denied(f"run as the owner of {path}")
    return SqliteLog(path)


class SqliteLog:
    """One connection of its own."""

    name = "SQLite"

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._mapped_errors():
            self._connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)
        self.lock()  # finds out now whether it can be read
        self.unlock()

    def lock(self) -> None:
        """The snapshot is taken by the first read, not by BEGIN."""
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
        """The locked snapshot as a database file of its own, 0600. Raises TargetError."""
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        try:
            with closing(sqlite3.connect(path)) as copy:
                self._connection.backup(copy)
                copy.execute("PRAGMA journal_mode=DELETE")  # one file, whole
        except sqlite3.Error as error:
            raise TargetError(f"{self._path} cannot be copied: {error}") from None
        return True

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _mapped_errors(self) -> Iterator[None]:
        """Raise errors of SQLite as TargetError: a folder or a pipe in the file's place fails when it is opened."""
        try:
            yield
        except sqlite3.Error as error:
            raise TargetError(f"{self._path}: {error}") from None


def _index_descriptor(index: Path) -> int | None:
    """Return the descriptor of the wal-index. Descriptors of indexes that SQLite has removed are closed, because nobody
    can lock those indexes any more.
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
    """Return the figures of the wal-index; {} when there is none, or when it is written for longer than a moment."""
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
