"""Finds and repairs the end of a binary log: the offset after the last complete and intact position record (record.py).

Invariant: `find_end` only reads. `repair_end` makes the files and the index agree with the end that was found. It may
be killed at any point and repeated. A file is durable before the index lists it, so only the last listed file can be
torn.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rplctl.applied_log.files import BinaryLogFiles, existing_names
from rplctl.applied_log.record import PositionRecord, parse_record
from rplctl.errors import BinlogFormatError
from rplctl.event.format_description import CHECKSUM_OFF, FormatDescription, parse_format_description
from rplctl.event.header import check_magic
from rplctl.event.jit import ByteArray
from rplctl.event.types import EventType
from rplctl.position import FIRST_EVENT_POSITION, log_number
from rplctl.relay_log.index import RelayLogIndex
from rplctl.relay_log.log_file import cut_file, event_at, intact_end, mapped_file, scanned
from rplctl.relay_log.purge import finish_purge, purge_names


@dataclass(frozen=True, slots=True)
class LogEnd:
    """The end of the last binary log. `size` is the offset after the last position record, and after a ROTATE that
    follows it.
    """

    name: str
    size: int
    record: PositionRecord
    description: FormatDescription
    is_rotated: bool  # True if a ROTATE to the next log follows the record


def find_end(files: BinaryLogFiles) -> LogEnd | None:
    """Return the end of the last binary log, or None if there is no log.

    Raises BinlogFormatError if the log has no position record, because the log is damaged, or another program wrote it.
    """
    names = existing_names(files)
    return _examine(RelayLogIndex(files).path(names[-1])) if names else None


def logged_record(files: BinaryLogFiles | None) -> PositionRecord | None:
    """Return the last position record of the binary log, or None if there is no log. This changes nothing."""
    end = find_end(files) if files is not None else None
    return end.record if end else None


def repair_end(files: BinaryLogFiles) -> LogEnd | None:
    """Complete the work that a crash interrupted, and return the end of the last binary log, or None if there is no
    log.

    The work can be a purge, a log that the index does not list yet, or events without their position record, which are
    cut off.
    """
    index = RelayLogIndex(files)
    with index.lock():
        finish_purge(files)
        listed, names = index.names(), existing_names(files)
        if listed and names != listed:
            index.replace(names)
        elif not listed and index.files():  # the index file is lost
            index.replace(index.files())
            names = index.files()
        last = log_number(names[-1]) if names else 0
        unlisted = [name for name in index.files() if log_number(name) > last]
        if unlisted:
            purge_names(files, unlisted)
        end = find_end(files)
        if end is not None and index.path(end.name).stat().st_size > end.size:
            cut_file(index.path(end.name), end.size)
    return end


def _examine(path: Path) -> LogEnd:
    with mapped_file(path) as data:
        check_magic(data[:FIRST_EVENT_POSITION].tobytes())
        description = parse_format_description(event_at(data, FIRST_EVENT_POSITION))
        sound = data[: intact_end(data, FIRST_EVENT_POSITION, CHECKSUM_OFF)]
        at = _last_record(sound)
        event = event_at(sound, at) if at else b""
        record = parse_record(event, description.checksum_length) if event else None
        if record is None:
            raise BinlogFormatError(
                f"{path} has no position record: rplctl did not write it, or it is damaged",
                hint=f"move the logs and their index from {path.parent} to another folder, then run: rplctl start",
            )
        size = at + len(event)
        is_rotated = size + 5 <= len(sound) and sound[size + 4] == EventType.ROTATE
        if is_rotated:
            size += len(event_at(sound, size))
        return LogEnd(path.name, size, record, description, is_rotated)


def _last_record(data: ByteArray) -> int:
    """Return the offset of the last event of type IGNORABLE, or 0 if there is none."""
    found = 0
    for index in scanned(data, FIRST_EVENT_POSITION, len(data)):
        numbers = np.flatnonzero(index.type_codes == EventType.IGNORABLE)
        if len(numbers):
            found = int(index.offsets[numbers[-1]])
    return found
