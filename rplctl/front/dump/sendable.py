"""Finds the sendable part of each log file, which ends after the last complete and synced position record.

The applier writes a position record to the log after each commit. All dumps of a channel share one SendableLog, so
twenty replicas need only one check and one fsync.

Invariants:

* The end of the sendable part only grows. The applier may truncate and rewrite the bytes after the last record. So each
  check begins at the end that the last check found.
* The fsync uses a descriptor that was opened before the bytes were read. It returns before a caller sees the new end.
  If the fsync fails, the check raises an error, and the end does not change.
* Files are read, and never mapped into memory, because a process is killed if it reads a mapping of a truncated file.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rplctl import mysql_errors as er
from rplctl.applied_log.files import BinaryLogFiles, existing_names
from rplctl.applied_log.record import PositionRecord, parse_record
from rplctl.durable import sync
from rplctl.errors import RplError
from rplctl.event.checksum_trailer import has_valid_checksum
from rplctl.event.format_description import FormatDescription, parse_format_description
from rplctl.event.header import HEADER_LENGTH, check_magic, parse_header
from rplctl.event.jit import byte_view
from rplctl.event.scan import event_offsets
from rplctl.event.types import EventType
from rplctl.plain_file import open_plain
from rplctl.position import FIRST_EVENT_POSITION
from rplctl.relay_log.index import RelayLogIndex
from rplctl.relay_log.log_file import intact_lengths_end

POLL_S: Final = 0.01  # seconds between two checks of the same log
CHUNK: Final = 1 << 20  # bytes per read


@dataclass(frozen=True, slots=True, kw_only=True)
class Sendable:
    """The sendable part of one log file, up to the offset `end`."""

    name: str
    end: int
    following: str  # the next log; '' if there is none yet
    record: PositionRecord | None  # the last record in the sendable part


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStart:
    """The first events of one log file, with the format of the file and the GTIDs of all earlier transactions."""

    event: bytes  # FORMAT_DESCRIPTION
    description: FormatDescription
    executed: str  # the GTIDs of all transactions before the file

    @property
    def first_end(self) -> int:
        return FIRST_EVENT_POSITION + len(self.event)


class SendableLog:
    """The binary log of one channel: its files, and the sendable part of each. All dumps share one such object."""

    def __init__(self, files: BinaryLogFiles) -> None:
        self.files = files
        self._index = RelayLogIndex(files)
        self._lock = threading.Lock()
        self._open: dict[str, int] = {}  # descriptors of logs that may still grow
        self._known: dict[str, tuple[float, Sendable]] = {}  # with the time of the next check, as time.monotonic()
        self._starts: dict[str, LogStart] = {}

    def names(self) -> list[str]:
        """Return the names of the log files, oldest first."""
        return existing_names(self.files)

    def close(self) -> None:
        with self._lock:
            while self._open:
                os.close(self._open.popitem()[1])

    def start(self, name: str) -> LogStart:
        """Return the first events of the log file `name`.

        Raises RplError 1236 if the events are damaged, and OSError if the file cannot be read.
        """
        found = self._starts.get(name)
        if found is None:
            descriptor = open_plain(self._index.path(name), follow=False)
            try:
                found = self._starts[name] = _log_start(os.pread(descriptor, CHUNK, 0), name)
            finally:
                os.close(descriptor)
        return found

    def look(self, name: str) -> Sendable:
        """Return the sendable part of the log file `name`.

        The file is checked again only after POLL_S seconds, or later if the last check took long. Raises RplError 1236
        if the file is purged or damaged, and OSError if it cannot be read.
        """
        with self._lock:
            due, known = self._known.get(name, (0.0, None))
            if known is not None and (known.following or time.monotonic() < due):
                return known
            began = time.monotonic()
            names = self.names()
            if name not in names:
                raise purged(name)
            at = names.index(name)
            following = names[at + 1] if at + 1 < len(names) else ""
            found = self._looked(name, following, known)
            took = time.monotonic() - began  # after a long check, for a large transaction, the next check is later
            for gone in self._known.keys() - set(names):
                del self._known[gone]
                self._starts.pop(gone, None)
            self._known[name] = time.monotonic() + max(POLL_S, 4 * took), found
            return found

    def executed(self) -> str:
        """Return the GTIDs of all transactions that may be sent, and of all transactions before the first log file."""
        names = self.names()
        record = self.look(names[-1]).record if names else None
        return record.after.gtid_executed if record else ""

    def _looked(self, name: str, following: str, known: Sendable | None) -> Sendable:
        start = self.start(name)
        if name not in self._open:
            self._open[name] = open_plain(self._index.path(name), follow=False)
        descriptor = self._open[name]
        known = known or Sendable(name=name, end=start.first_end, following="", record=None)
        size = os.fstat(descriptor).st_size
        found = _scanned(descriptor, known, size, start, is_whole=bool(following))
        if found.end > known.end:
            sync(descriptor, name)
        if following:
            os.close(self._open.pop(name))
        return replace(found, following=following)


def _scanned(descriptor: int, known: Sendable, size: int, start: LogStart, *, is_whole: bool) -> Sendable:
    """Search the log file for position records from `known.end` on, and return its new sendable part.

    `is_whole`: True if another log follows, so that the file is complete and ends with a ROTATE event. A power failure
    may leave invalid bytes after the last record of the last log, which the applier truncates when it starts. Raises
    RplError 1236 if another log than the last one has such bytes.
    """
    offset, end, record = known.end, known.end, known.record
    while size - offset >= HEADER_LENGTH:
        data = byte_view(os.pread(descriptor, min(CHUNK, size - offset), offset))
        offsets, types = event_offsets(data[: intact_lengths_end(data, 0)])
        if not len(types):
            length = int.from_bytes(data[9:13].tobytes(), "little")
            if not HEADER_LENGTH <= length <= size - offset or len(data) < HEADER_LENGTH:
                break
            offset += length  # a position record is never larger than a chunk
            continue
        for number in np.flatnonzero(types == EventType.IGNORABLE).tolist():
            event = data[offsets[number] : offsets[number + 1]].tobytes()
            if start.description.checksum_length and not has_valid_checksum(event):
                break
            if found := parse_record(event, start.description.checksum_length):
                record, end = found, offset + int(offsets[number + 1])
        offset += int(offsets[-1])
    if is_whole and offset < size:
        raise fatal(f"{known.name} is damaged at {offset}: no event begins there")
    return Sendable(name=known.name, end=max(end, offset) if is_whole else end, following="", record=record)


def _log_start(head: bytes, name: str) -> LogStart:
    check_magic(head[:FIRST_EVENT_POSITION])
    offset, events = FIRST_EVENT_POSITION, list[bytes]()
    while len(events) < 3:  # FORMAT_DESCRIPTION, the event with the earlier GTIDs, the record with these GTIDs
        length = parse_header(head, offset).event_length
        if offset + length > len(head):
            break
        events.append(head[offset : offset + length])
        offset += length
    description = parse_format_description(events[0]) if events else None
    record = parse_record(events[2], description.checksum_length) if description and len(events) == 3 else None
    if description is None or record is None:
        raise fatal(f"{name} does not begin like a binary log of rplctl")
    return LogStart(event=events[0], description=description, executed=record.after.gtid_executed)


def fatal(text: str) -> RplError:
    """Return error 1236, which makes the receiver of a replica stop without a retry."""
    return RplError(text, errno=er.MASTER_FATAL_ERROR_READING_BINLOG)


def purged(name: str) -> RplError:
    return fatal(f"could not find first log file name {name} in the binary log index: it was purged or never existed")
