"""A buffer for received bytes: in memory, or, for an event that is too large, in a mapped temporary file.

Invariant: no byte of the file is written before the disk has space for it, because writing to a mapping of a full disk
kills the process. The file takes little more disk space than the received bytes.
"""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
import weakref
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from rplctl import mysql_errors as er
from rplctl.errors import RelayLogError

MOST_IN_MEMORY: Final = 64 << 20
STEP_BYTES: Final = 64 << 20
_DISK_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class Room:
    """A buffer of `size` bytes; the first `usable` bytes may be written. `buffer` is valid as long as it is in use."""

    def __init__(self, size: int, folder: Path, most_in_memory: int = 0) -> None:
        self.usable = size
        if size <= (most_in_memory or MOST_IN_MEMORY):
            self.buffer: npt.NDArray[np.uint8] = np.empty(size, np.uint8)
            return
        self.usable = 0
        try:
            with tempfile.TemporaryFile(dir=folder) as file:
                file.truncate(size)
                self.buffer = np.frombuffer(mmap.mmap(file.fileno(), size), np.uint8)
                self._descriptor = os.dup(file.fileno())
                weakref.finalize(self, os.close, self._descriptor)
        except OSError as error:
            raise _failure(error, folder) from error
        self._folder = folder

    def extend(self, needed: int) -> None:
        """Make at least `needed` bytes usable. Raises RelayLogError 1595 if the file cannot grow; the error is
        transient if the disk is full.
        """
        while self.usable < needed:
            step = min(STEP_BYTES, len(self.buffer) - self.usable)
            try:
                os.posix_fallocate(self._descriptor, self.usable, step)
            except OSError as error:
                raise _failure(error, self._folder) from error
            self.usable += step


def _failure(error: OSError, folder: Path) -> RelayLogError:
    full = error.errno in _DISK_FULL
    return RelayLogError(
        f"Relay log write failure: no space for a large event in {folder}: {error.strerror} ({error.errno})",
        errno=er.SLAVE_RELAY_LOG_WRITE_FAILURE,
        hint="free disk space" if full else "check the disk of the relay logs, then run: rplctl start",
        transient=full,
    )
