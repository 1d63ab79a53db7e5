"""Reads a folder of binary logs as a source.

The folder is for example an archive (`mysqlbinlog --raw`), a backup, or the data folder of a stopped server. The stream
has the same events as the dump of a live server (base.py). If a file is missing or truncated, the error is 1236 with
the text of a server. Files may grow, and new files may appear, while the folder is read. At the end of the last file,
`read_batch` returns None. log_folder.py determines the files and their order. No file of the folder is ever written.

Invariants: an event is returned only when the file contains all its bytes. An artificial ROTATE has a checksum if the
events before it have checksums, as on a server. The first ROTATE has a checksum if the oldest log has checksums
(`identity`).
"""

from __future__ import annotations

import os
import shlex
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from rplctl.errors import BinlogFormatError, SourceError
from rplctl.event.events import build_rotate
from rplctl.event.format_description import CHECKSUM_OFF, parse_format_description, resent
from rplctl.event.header import HEADER_LENGTH, parse_header
from rplctl.event.scan import scan_events
from rplctl.event.types import EventType
from rplctl.plain_file import open_plain
from rplctl.position import FIRST_EVENT_POSITION, log_number, numbered_log_name
from rplctl.receive_buffer import Room
from rplctl.source.base import Bytes, DumpStart, EventBatch, SourceIdentity, fatal_reading_binlog
from rplctl.source.gtid_filter import GtidFilter, gtid_filter, has_all_before
from rplctl.source.log_folder import log_names, read_head
from rplctl.source.own_log import ReadableEnd, is_own_log

CHUNK: Final = 4 << 20
POLL_S: Final = 0.1  # between two checks of the open log's size and of the next log
LISTING_S: Final = 1.0  # between two listings of the folder, each of which also reads the index file


@dataclass(slots=True, kw_only=True)
class _OpenLog:
    """The binary log that is read now. `offset`: the offset of the next event to return."""

    name: str
    descriptor: int
    offset: int
    format_description: bytes
    next_name: str = ""  # the name in the ROTATE event at the end of the log; '' before this event is read
    next_listing: float = 0.0  # the folder is listed again after this time (time.monotonic())
    own_end: ReadableEnd = field(default_factory=ReadableEnd)

    @property
    def size(self) -> int:
        return os.fstat(self.descriptor).st_size

    @property
    def expected_next(self) -> str:
        """The name that the next log must have. If the next log has another name, a log is missing."""
        base = self.name.rpartition(".")[0]
        return self.next_name or numbered_log_name(base, log_number(self.name) + 1)

    def readable(self, size: int) -> int:
        """Return the number of bytes, from the beginning of the file, that may be read now.

        `size`: the size of the file. The number is smaller than `size` only for a log that another rplctl writes.
        """
        return self.own_end.advance(self.descriptor, size) if is_own_log(self.format_description) else size


class FolderStream:
    """A `SourceStream` that reads the binary logs in `folder`.

    `datadir`: the folder for temporary files with events that are too large for memory.
    """

    def __init__(self, folder: Path, datadir: Path, start: DumpStart) -> None:
        self._folder = folder
        self._datadir = datadir
        self._start = start
        self._filter: GtidFilter | None = gtid_filter(start)
        self._log: _OpenLog | None = None
        self._pending: list[bytes] = []  # events to return before the events of the file
        self._algorithm: int | None = None  # checksum algorithm of the last returned events; None = unknown

    def identity(self) -> SourceIdentity:
        """Return the identity of the server that wrote the oldest log of the folder.

        Raises SourceError if the folder has no readable log.
        """
        names = log_names(self._folder)
        if not names:
            raise _no_first_log(self._folder)
        event = read_head(self._folder / names[0])
        description = parse_format_description(event)
        if self._log is None:
            self._algorithm = description.checksum_algorithm
        return SourceIdentity(
            server_id=parse_header(event).server_id,
            uuid="",
            version=description.server_version,
            is_mariadb=description.is_mariadb,
            clock_difference=0.0,
            has_checksums=description.checksum_length > 0,
        )

    def read_batch(self, timeout_s: float) -> EventBatch | None:
        deadline = time.monotonic() + timeout_s
        while True:
            batch = self._read_once()
            if batch is not None:
                return batch
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            time.sleep(min(POLL_S, left))

    def close(self) -> None:
        if self._log is not None:
            os.close(self._log.descriptor)
            self._log = None

    def _read_once(self) -> EventBatch | None:
        """Return the next events of the existing files. Return None if there are no new events.

        The function continues with the next log at the end of a log, and skips transactions that the replica has.
        """
        if self._log is None:
            self._open_first()
        while True:
            batch = self._pending_events() or self._file_events()
            if batch is None:
                return None
            kept = self._filter.keep(batch) if self._filter else batch
            if kept is not None:
                return kept

    def _pending_events(self) -> EventBatch | None:
        if not self._pending:
            return None
        events, self._pending = self._pending, []
        lengths = np.cumsum([0, *map(len, events)], dtype=np.int64)
        return EventBatch(np.frombuffer(b"".join(events), np.uint8), lengths)

    def _file_events(self) -> EventBatch | None:
        log = self._log
        assert log is not None
        size = log.size
        if size < log.offset:
            raise _became_shorter(log)
        batch = self._whole_events(log, log.readable(size))
        if batch is None and self._next_log(log, size):
            return self._pending_events() or self._file_events()
        return batch

    def _whole_events(self, log: _OpenLog, size: int) -> EventBatch | None:
        """Return the complete events in the next chunk of the log, or one larger event.

        Return None if no event is complete. `size`: the number of readable bytes of the log.
        """
        length = min(CHUNK, size - log.offset)
        if length < HEADER_LENGTH:
            return None
        data = np.frombuffer(os.pread(log.descriptor, length, log.offset), np.uint8)
        try:
            index = scan_events(data, 0)
            if len(index.offsets) < 2:
                event_length = parse_header(data[:HEADER_LENGTH].tobytes()).event_length
                if event_length > size - log.offset:
                    return None
                data = self._large_event(log, event_length)
                index = scan_events(data, 0)
        except BinlogFormatError as error:
            raise fatal_reading_binlog(
                f"bogus data in log event; {log.name} at {log.offset}: {error.message}"
            ) from error
        end = int(index.offsets[-1])
        last = int(index.offsets[-2])
        if index.type_codes[-1] == EventType.ROTATE:
            event = data[last:end].tobytes()
            name = event[
                HEADER_LENGTH + 8 : len(event) - parse_format_description(log.format_description).checksum_length
            ]
            log.next_name = name.decode("utf-8", "replace")
        log.offset += end
        return EventBatch(data[:end], index.offsets)

    def _large_event(self, log: _OpenLog, length: int) -> Bytes:
        room = Room(length, self._datadir)
        at = 0
        while at < length:
            room.extend(min(at + CHUNK, length))
            count = os.preadv(log.descriptor, [room.buffer[at : room.usable].data], log.offset + at)
            if not count:
                raise _became_shorter(log)
            at += count
        return room.buffer

    def _open_first(self) -> None:
        names = log_names(self._folder)
        wanted = self._start.position
        if not names:
            raise _no_first_log(self._folder)
        if self._start.by_gtid:
            self._open(first_log_for_gtids(self._folder, names, self._start), FIRST_EVENT_POSITION)
        elif not wanted.log_name:
            self._open(names[0], FIRST_EVENT_POSITION)
        elif wanted.log_name not in names:
            raise _no_first_log(self._folder)
        else:
            self._open(wanted.log_name, max(FIRST_EVENT_POSITION, wanted.log_pos))

    def _open(self, name: str, position: int) -> None:
        if self._algorithm is None:
            self.identity()
        path = self._folder / name
        head = read_head(path)
        descriptor = open_plain(path)
        if self._log is not None:
            os.close(self._log.descriptor)
        self._log = _OpenLog(name=name, descriptor=descriptor, offset=position, format_description=head)
        if position > self._log.size:
            raise fatal_reading_binlog(
                "Client requested master to start replication from impossible position; "
                f"the first event '{name}' at {position}, the last byte of '{name}' at {self._log.size}."
            )
        at_start = position == FIRST_EVENT_POSITION
        if not at_start:
            _check_boundary(self._log, position)
        rotate = build_rotate(parse_header(head).server_id, name, position, self._algorithm or CHECKSUM_OFF)
        self._algorithm = parse_format_description(head).checksum_algorithm
        self._pending = [rotate, resent(head, in_place=at_start)]
        if at_start:
            self._log.offset += len(head)

    def _next_log(self, log: _OpenLog, size: int) -> bool:
        """At the end of `log`, open the next log, and return True. Return False if there is no next log yet.

        Also return True if `log` has grown, so that the caller reads it again. `size`: the known size of `log`. Raises
        SourceError 1236 if `log` ends inside an event, or if the next log is missing.
        """
        if not self._is_listing_due(log):
            return False
        later = [name for name in log_names(self._folder) if log_number(name) > log_number(log.name)]
        if not later:
            return False
        if log.size != size:
            return True  # the log has grown before the next log appeared
        following = log.next_name or later[0]
        if log.offset < size:
            raise fatal_reading_binlog(
                "binlog truncated in the middle of event; consider out of disk space on master; "
                f"the last event read from '{log.name}' at {log.offset}, "
                f"the last byte read from '{log.name}' at {size}."
            )
        if following not in later or log_number(following) != log_number(log.name) + 1:
            raise fatal_reading_binlog(
                f"could not find next log; the last event read from '{log.name}' at {log.offset}, the next "
                f"existing log is '{later[0]}'",
                hint=f"to continue after you have put the missing log into {self._folder}, run: rplctl start",
            )
        if os.path.getsize(self._folder / following) < FIRST_EVENT_POSITION + HEADER_LENGTH:
            return False  # just created
        self._open(following, FIRST_EVENT_POSITION)
        return True

    def _is_listing_due(self, log: _OpenLog) -> bool:
        """True if the folder must be listed, because the next log exists or LISTING_S seconds have passed.

        A listing is slower than a check for the next log, but only a listing shows that a log or the folder is missing.
        """
        now = time.monotonic()
        if now < log.next_listing and not os.path.exists(self._folder / log.expected_next):
            return False
        log.next_listing = now + LISTING_S
        return True


def first_log_for_gtids(folder: Path, names: list[str], start: DumpStart) -> str:
    """Return the newest log for which the replica has all transactions of the logs before it.

    `names`: the logs in their order. `start`: the GTIDs of the replica. Raises SourceError 1236 if there is no such
    log.
    """
    for name in reversed(names):
        if has_all_before(folder / name, start):
            return name
    raise fatal_reading_binlog(
        "Could not find GTID state requested by slave in any binlog files. "
        "Probably the slave state is too old and required binlog files have been purged.",
        hint=f"to continue after you have put the older logs into {folder}, run: rplctl start",
    )


def _check_boundary(log: _OpenLog, position: int) -> None:
    """Raise SourceError 1236 if no event of the log begins at `position`.

    The function reads the headers of all events before the position, because bytes inside an event may look like an
    event.
    """
    at = FIRST_EVENT_POSITION
    while at < position:
        data = os.pread(log.descriptor, min(CHUNK, position - at), at)
        try:
            end = scan_events(data, 0).end
        except BinlogFormatError as error:
            raise fatal_reading_binlog(f"bogus data in log event; {log.name}: {error.message}") from error
        if end == 0:
            length = parse_header(data).event_length if len(data) >= HEADER_LENGTH else position
            if at + length > position:
                raise fatal_reading_binlog(
                    f"bogus data in log event; '{log.name}' has no event at {position}, "
                    f"the last one before begins at {at}",
                    hint=f"to list the positions, run in the folder of --master-binlog-dir: mysqlbinlog {log.name}\n"
                    "To begin at the end of the last applied transaction, run: rplctl change-master "
                    "--master-log-pos POSITION; rplctl start",
                )
            end = length
        at += end


def _became_shorter(log: _OpenLog) -> SourceError:
    return fatal_reading_binlog(f"binary log {log.name} became shorter while it was read")


def _no_first_log(folder: Path) -> SourceError:
    return fatal_reading_binlog(
        "Could not find first log file name in binary log index file",
        hint=f"to continue after you have put the missing log into {folder}, run: rplctl start\n"
        f"To see the logs that are there, run: ls {shlex.quote(str(folder))}\n"
        "To begin with one of them, without the changes in the missing ones, run: "
        "rplctl change-master --master-log-file FILE --master-log-pos 4; rplctl start",
    )
