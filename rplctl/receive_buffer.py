"""A buffer for received bytes, which is in memory or, for a very large event, in a temporary file that is mapped.

Invariant: rplctl reserves disk space for a part of the file before it writes this part. A write to a mapped file on a
full disk would kill the process. The file takes little more disk space than the received bytes.
"""

from __future__ import annotations

import errno
import mmap
import os
import shlex
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
    """A buffer of `size` bytes, of which the caller may write the first `usable` bytes.

    `folder`: the folder of the temporary file. `most_in_memory`: the largest size of a buffer in memory; 0 means
    MOST_IN_MEMORY. The array `buffer` remains valid as long as a reference to it exists.
    """

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
        """Reserve disk space, so that at least `needed` bytes are usable.

        Raises RelayLogError 1595 if the file cannot grow. The error is transient if the disk is full.
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
        hint=f"to see the free space, run: df -h {shlex.quote(str(folder))}\n"
        "Free disk space; the channel then continues by itself"
        if full
        else "to continue after you have checked the disk of the relay logs, run: rplctl start",
        transient=full,
    )
