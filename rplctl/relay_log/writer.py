"""Writes the relay log: creates files, appends events, syncs and rotates. log_file.py shows the bytes of a file.

Invariants:
* A torn event is never permanent. After a failed append, the writer cuts off the new bytes, and refuses to continue
  until recovery has run.
* A file is durable before its name is in the index, and the previous file is durable before that. So recovery needs to
  check only the last file.
* A transaction never spans two files. A rotation moves an unfinished transaction into the new file.
* A failed fsync is never repeated, because the kernel may have dropped the bytes. The writer cuts off everything after
  the last successful fsync.
* A channel has only one writer, the process that holds the receiver lock.
"""

from __future__ import annotations

import contextlib
import errno
import os

from rplctl import mysql_errors as er
from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.durable import sync, write_all
from rplctl.errors import RelayLogError
from rplctl.event.format_description import CHECKSUM_CRC32
from rplctl.event.jit import Buffer, byte_view
from rplctl.failpoint import crash_point
from rplctl.position import FIRST_EVENT_POSITION, BinlogPosition, RelayLogPosition
from rplctl.relay_log.index import RelayLogIndex
from rplctl.relay_log.log_file import Boundary, cut_file, last_boundary, mapped_file, read_start, relay_log_header
from rplctl.relay_log.purge import finish_purge

DEFAULT_MAX_SIZE = 1 << 30
MAX_MOVED_TAIL = 32 << 20  # bytes; a rotation waits for the end of an unfinished transaction that is larger
FULL_STEPS = 16  # a full file grows by this fraction of `max_relay_log_size` before the next check
_FREE_SPACE = "free space on the disk of the relay logs; to see the free space, run: df -h"
_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class RelayLogWriter:
    """The writer of a channel's newest relay log. No file is open before `open_new` or `resume`."""

    what = "Relay log"  # for messages; the writer of the binary log has other texts
    failure = "Relay log write failure: could not queue event from master"
    errno = er.SLAVE_RELAY_LOG_WRITE_FAILURE
    advice = "to continue, run: rplctl start"

    def __init__(self, channel: Channel, config: Config, server_id: int) -> None:
        self._channel = channel
        self._index = RelayLogIndex(channel)
        self._server_id = server_id
        self._sync_period = config.sync_relay_log
        self._max_size = config.max_relay_log_size or DEFAULT_MAX_SIZE
        self._descriptor = -1
        self._broken = ""
        self._name = ""
        self._size = 0
        self._unsynced_events = 0
        self._synced_size = 0
        self._boundary: Boundary | None = None  # the last known transaction end of the open file
        self._next_rotate_check = 0

    @property
    def end(self) -> RelayLogPosition:
        """The position at which the next event will be appended, or the empty position while no file is open."""
        return RelayLogPosition(self._name, self._size)

    def open_new(
        self, source: BinlogPosition, format_description: bytes | None = None, checksum_algorithm: int = CHECKSUM_CRC32
    ) -> RelayLogPosition:
        """Begin the next relay log, for events from the position `source` in the source's log on.

        Return the position of the new relay log's end. The file that was open is first made durable and closed.
        `format_description`: the source's FORMAT_DESCRIPTION event, or None if it is unknown. In this case,
        `checksum_algorithm` must be the algorithm of the source's next event, an artificial ROTATE. Raises
        RelayLogError 1595 if the file cannot be written.
        """
        self._begin(Boundary(0, source, format_description or b""), b"", checksum_algorithm)
        return self.end

    def resume(self, end: RelayLogPosition) -> None:
        """Open an existing relay log to append at `end`, the end of the file, which recovery has determined.

        Raises RelayLogError if the file cannot be opened or has another size.
        """
        self._check_intact()
        self.close()
        path = self._index.path(end.log_name)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError as error:
            raise self._failure(error, end.log_name) from error
        self._adopt(descriptor, end.log_name, os.fstat(descriptor).st_size, None)
        if self._size != end.log_pos:
            size = self._size
            self.close()
            raise RelayLogError(
                f"relay log {end.log_name} has {size} bytes, but {end.log_pos} were expected",
                channel=self._channel.name,
                position=str(end),
                hint="to repair the relay logs, run: rplctl stop; rplctl recover; rplctl start",
            )

    def append(self, data: Buffer, count_events: int) -> RelayLogPosition:
        """Append complete events in their raw form, and return the new end of the file.

        The file is synced after every `sync_relay_log` events. Raises RelayLogError 1595 if the file cannot be written.
        The error is transient if the disk is full. After an error, the new bytes are cut off again.
        """
        self._check_usable()
        view = byte_view(data).data
        try:
            write_all(self._descriptor, view)
        except OSError as error:
            self._fail_and_cut(f"an earlier write to {self._name} failed", self._size)
            raise self._failure(error, self._name) from error
        self._size += len(view)
        crash_point("crash_after_relay_log_append")
        self._unsynced_events += count_events
        if self._sync_period and self._unsynced_events >= self._sync_period:
            self.sync()
        return self.end

    def sync(self) -> None:
        """Make all appended events durable.

        Raises RelayLogError 1595 if fsync fails. After this error, the writer cannot be used any more.
        """
        if self._unsynced_events and self._descriptor >= 0:
            self._check_usable()
            try:
                sync(self._descriptor, self._name)
            except OSError as error:
                self._fail_and_cut(f"fsync of {self._name} failed ({error.strerror})", self._synced_size)
                raise self._failure(error, self._name) from error
            self._unsynced_events = 0
            self._synced_size = self._size

    @property
    def should_rotate(self) -> bool:
        """True if the file has reached `max_relay_log_size`, and the unfinished transaction at its end is small enough
        to move.
        """
        if self._descriptor < 0 or self._size < max(self._max_size, self._next_rotate_check):
            return False
        tail = self._size - self._last_boundary().offset
        self._next_rotate_check = self._size + tail // 4  # do not scan a huge transaction again for each batch
        return tail <= min(MAX_MOVED_TAIL, self._max_size // 2)

    @property
    def can_rotate(self) -> bool:
        """True if the unfinished transaction at the end of the file is small enough to move."""
        return self._descriptor >= 0 and self._size - self._last_boundary().offset <= MAX_MOVED_TAIL

    @property
    def room(self) -> int:
        """The number of bytes that may be appended before the next check of `should_rotate`.

        If the file has reached `max_relay_log_size`, this number is small. `should_rotate` is then checked often, until
        a long transaction at the end of the file is complete.
        """
        return max(self._max_size - self._size, self._max_size // FULL_STEPS)

    def rotate(self) -> RelayLogPosition:
        """Begin the next relay log, and return the position of its end.

        The new file begins at the last transaction end of the old one. If an unfinished transaction follows this end,
        its events are moved into the new file. The caller has asked `should_rotate` or `can_rotate`.
        """
        self._check_usable()
        boundary, old_name, old_size = self._last_boundary(), self._name, self._size
        with mapped_file(self._index.path(old_name)) as data:
            tail = data[boundary.offset : old_size].tobytes()
        self._begin(boundary, tail, CHECKSUM_CRC32)
        if tail:
            self._cut(old_name, boundary.offset)
        return self.end

    def close(self) -> None:
        """Close the file without syncing it. To keep all events, the caller first calls `sync`."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._adopt(-1, "", 0, None)

    def _begin(self, at: Boundary, tail: bytes, checksum_algorithm: int) -> None:
        """Create the next file with the first events and `tail`, make the file durable, and then add it to the index.

        `tail`: the bytes of an unfinished transaction.
        """
        self._check_intact()
        self.sync()
        crash_point("crash_before_rotate_relaylog")
        header = self._header(at, checksum_algorithm)
        with self._index.lock():
            finish_purge(self._channel)
            name = self._index.next_name()
            path = self._index.path(name)
            descriptor = -1
            try:
                flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
                descriptor = os.open(path, flags, 0o600)
                os.fchmod(descriptor, 0o600)
                crash_point("crash_create_non_critical_before_update_index")
                write_all(descriptor, header + tail)
                sync(descriptor, name)
                crash_point("crash_create_critical_before_update_index")
                self._index.append(name)  # also syncs the folder, and with it the new file's name
            except OSError as error:
                if descriptor >= 0:
                    os.close(descriptor)
                    path.unlink(missing_ok=True)
                raise self._failure(error, name) from error
            crash_point("crash_create_after_update_index")
        self.close()
        start = Boundary(FIRST_EVENT_POSITION, at.source)
        self._adopt(descriptor, name, len(header) + len(tail), start)

    def _header(self, at: Boundary, checksum_algorithm: int) -> bytes:
        return relay_log_header(self._server_id, at.source, at.source_format_description, checksum_algorithm)

    def _adopt(self, descriptor: int, name: str, size: int, boundary: Boundary | None) -> None:
        self._descriptor, self._name, self._size, self._boundary = descriptor, name, size, boundary
        self._unsynced_events = 0
        self._synced_size = size
        self._next_rotate_check = 0

    def _last_boundary(self) -> Boundary:
        """Return the last transaction end of the open file.

        Only the events after the result of the previous call are scanned.
        """
        with mapped_file(self._index.path(self._name)) as data:
            self._boundary = last_boundary(data[: self._size], self._boundary or read_start(data).boundary)
        return self._boundary

    def _cut(self, name: str, size: int) -> None:
        try:
            cut_file(self._index.path(name), size)
        except FileNotFoundError:  # the file is no longer the last one: it was applied and purged
            return
        except OSError as error:
            self._broken = f"{name} could not be cut to {size} bytes ({error.strerror})"
            raise self._failure(error, name) from error

    def _fail_and_cut(self, reason: str, size: int) -> None:
        """Cut off the bytes that may be damaged, and forbid any further use of this writer. Recovery must run next."""
        self._broken = reason
        with contextlib.suppress(OSError):
            cut_file(self._index.path(self._name), size)

    def _check_usable(self) -> None:
        self._check_intact()
        if self._descriptor < 0:
            raise RelayLogError(f"no {self.what.lower()} is open", errno=self.errno, channel=self._channel.name)

    def _check_intact(self) -> None:
        if self._broken:
            raise RelayLogError(
                f"{self.what} write failure: {self._broken}",
                errno=self.errno,
                channel=self._channel.name,
                hint=self.advice,
            )

    def _failure(self, error: OSError, name: str) -> RelayLogError:
        """Return MySQL's error 1595 for an error of the operating system.

        The returned error is transient if the disk is full.
        """
        full = error.errno in _DISK_FULL
        return RelayLogError(
            f"{self.failure}; {name}: {error.strerror} ({error.errno})",
            errno=self.errno,
            channel=self._channel.name,
            position=str(self.end),
            hint=_FREE_SPACE if full else "check the disk of the relay logs with dmesg, then run: rplctl start",
            transient=full,
        )
