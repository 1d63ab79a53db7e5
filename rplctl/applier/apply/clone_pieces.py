"""Gives the pieces of a snapshot to threads, which commit the pieces of each table in order.

A piece is a chunk file, or the late keys of a table: keys that are created after the rows are loaded. Invariant: each
chunk is loaded once, and the late keys of a table are added after all its chunks are committed. After a failure, no
more pieces are given out, and pieces that wait for an earlier piece are not loaded.
"""

from __future__ import annotations

import logging
import shlex
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Final

from rplctl import mysql_errors as er
from rplctl.clone.folder import StoredSnapshot
from rplctl.errors import RelayLogError
from rplctl.schema.statement import TableName

_CANCEL: Final = "rplctl stop; rplctl clone --cancel --yes"  # `clone --cancel` fails while a thread runs
MOST_TRIES: Final = 3  # attempts at a chunk that fails in the same way each time
KEYS: Final = -1  # the chunk number of a piece that adds the table's late keys
Piece = tuple[int, int]  # (number of the table, number of the chunk)
_SECONDS: Final = 2.0  # pieces are given out for so long, and then the applier's loop continues
_POLL_S: Final = 0.01

log = logging.getLogger(__name__)


class GivenUp(Exception):
    """The error for a piece that was not loaded, because another piece has failed."""


class DuePieces:
    """The pieces of a snapshot that can be loaded now.

    `loaded`: the number of loaded chunks of each table. `keyed`: the indexes of the tables that have all their keys.
    `stop`: returns True if no more pieces should be loaded.
    """

    def __init__(
        self, found: StoredSnapshot, loaded: Sequence[int], keyed: Collection[int], stop: Callable[[], bool]
    ) -> None:
        self._found, self._stop = found, stop
        self._counts = found.chunk_counts()
        self._given, self._committed = list(loaded), list(loaded)
        self._keyed = set(keyed)
        self._in_work = 0
        self._changed = threading.Condition()
        self._deadline = time.monotonic() + _SECONDS
        self.failure: BaseException | None = None
        self.failed: Piece | None = None
        self.done: list[Piece] = []

    def next(self) -> Piece | None:
        """Return the next piece to load, or None if the calling thread should stop for now.

        If no piece is due, but other threads are loading pieces, wait until a piece is due.
        """
        with self._changed:
            while self.failure is None and not self._stop() and time.monotonic() < self._deadline:
                if (piece := self._due()) is not None:
                    self._in_work += 1
                    return piece
                if not self._in_work:
                    return None
                self._changed.wait(_POLL_S)
        return None

    def _due(self) -> Piece | None:
        for number in range(len(self._given)):
            is_read = self._is_read(number)  # checked before the next chunk, which may appear in between
            chunk = self._given[number]
            if self._found.chunk_path(number, chunk).exists():
                self._given[number] += 1
                return number, chunk
            if is_read and self._committed[number] == chunk and number not in self._keyed:
                self._keyed.add(number)
                return number, KEYS
            if not is_read and not chunk:
                return None  # the cloner reads one table after the other
        return None

    def _is_read(self, number: int) -> bool:
        """True if the cloner has written all chunk files of the table with the index `number`, loaded or not."""
        if self._counts is None and self._found.counts:
            parts = self._found.parts()
            return number < len(parts) and parts[number].is_whole
        if self._counts is None and number + 1 < len(self._given):
            return self._given[number + 1] > 0 or self._found.chunk_path(number + 1, 0).exists()
        self._counts = self._counts or self._found.chunk_counts()
        return self._counts is not None

    def await_turn(self, piece: Piece) -> None:
        """Wait until all earlier chunks of the table are committed. Raises GivenUp if another piece has failed."""
        number, chunk = piece
        with self._changed:
            while self.failure is None and self._committed[number] < chunk:
                self._changed.wait(_POLL_S)
            if self.failure is not None:
                raise GivenUp

    def end(self, piece: Piece, failure: BaseException | None = None) -> None:
        """Record that the piece is committed or, with `failure`, that it has failed with this error."""
        with self._changed:
            self._in_work -= 1
            if failure is None:
                self.done.append(piece)
                self._committed[piece[0]] += piece[1] != KEYS
            elif self.failure is None and not isinstance(failure, GivenUp):
                self.failure, self.failed = failure, piece
            self._changed.notify_all()


class Tries:
    """Counts the failures of each chunk, and ends the attempts after MOST_TRIES equal failures.

    If a chunk fails in the same way every time, the source itself sends the damaged bytes. More attempts do not help.
    """

    def __init__(self) -> None:
        self._counts: Counter[tuple[TableName, int, int]] = Counter()  # (table, chunk, error number) → failures

    def again(self, names: Sequence[TableName], piece: Piece | None, error: RelayLogError) -> str:
        """Count a failure, and return a text about it for the status.

        `names`: the tables of the snapshot. Raises RelayLogError if no more attempts are permitted.
        """
        number, chunk = piece or (0, 0)
        name = names[number]
        self._counts[failure := (name, chunk, error.errno)] += 1
        tries, table = self._counts[failure], ".".join(name)
        text = f"chunk {chunk} of {table} is read again ({tries} of {MOST_TRIES}): {error.message}"
        if tries < MOST_TRIES:
            log.warning("%s", text)
            return text
        raise RelayLogError(
            f"{table} is not copied: chunk {chunk} could not be used {tries} times: {error.message}",
            errno=error.errno or er.SLAVE_RELAY_LOG_READ_FAILURE,
            position=error.position,
            hint=copy_again(*name),
        ) from error


def copy_again(database: str, table: str) -> str:
    """Return the hint for a row of this table that cannot be copied."""
    return (
        f"to copy the table again after you have corrected the row on the source, run: {_CANCEL}; rplctl clone; "
        "rplctl start\n"
        f"To exclude the table, which then receives no changes, run: {_CANCEL}; "
        f"rplctl change-filter --replicate-ignore-table {shlex.quote(f'{database}.{table}')}; rplctl clone; "
        "rplctl start"
    )
