"""Writes the cloner's status file, which show-status, show-clone and check read.

Each thread of a channel has such a file. Invariant: an error stays in the file, with its number and its time, until the
cloner reads rows again. The error is not removed when the cloner ends, so a reader must check its time.
"""

from __future__ import annotations

import time

from rplctl import mysql_errors as er
from rplctl.channel import Channel
from rplctl.errors import RplError
from rplctl.status import StatusFile, ThreadStatus, read_status

ROLE = "cloner"  # the name of its file; the cloner runs in the receiver's process
_INTERVAL_S = 0.5


class CloneReport:
    def __init__(self, channel: Channel) -> None:
        status = read_status(channel.status_path(ROLE))
        self._status = ThreadStatus(
            last_errno=status.last_errno, last_error=status.last_error, last_hint=status.last_hint,
            last_error_timestamp=status.last_error_timestamp, clone_step=status.clone_step,
            clone_moved=status.clone_moved,
        )  # fmt: skip
        self._file = StatusFile(channel.status_path(ROLE), self._status)

    def step(self, words: str) -> None:
        """Record which snapshot method the cloner uses, as text."""
        self._status.clone_step = words

    def state(self, words: str) -> None:
        is_news, self._status.state = words != self._status.state, words
        self._file.write_if_older(0.0 if is_news else _INTERVAL_S)

    def moved(self) -> None:
        """Record that rows have arrived from the source, and remove an earlier error."""
        status = self._status
        status.clone_moved = time.time()
        had_error = bool(status.last_errno)
        status.last_errno, status.last_error, status.last_hint = 0, "", ""
        self._file.write_if_older(0.0 if had_error else _INTERVAL_S)

    def failed(self, error: RplError) -> None:
        """Record an error, after which the cloner pauses and tries again."""
        status = self._status
        status.last_errno = error.errno or er.UNKNOWN_ERROR
        status.last_error, status.last_hint = error.message, error.hint
        status.last_error_timestamp = time.time()
        self._file.write()
