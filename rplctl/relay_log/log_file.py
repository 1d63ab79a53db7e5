"""Reads and cuts one relay log file as bytes: its first events, its transactions, and its intact part.

    offset  content
    0       magic fe 62 69 6e
    4       rplctl's own FORMAT_DESCRIPTION (flag 0x40, rplctl's server id)
    then    artificial ROTATE: the position in the source's log (64-bit) at which the previous file ended
    then    the last FORMAT_DESCRIPTION that the source sent (end_log_pos 0). The very first file may lack this event
            and the ROTATE
    then    another ROTATE if the source continues elsewhere: a dump by GTID, or another source (failover)
    then    events, byte for byte as the source sent them

None of the first events moves the source position by its end_log_pos. rplctl's FORMAT_DESCRIPTION has the relay log
flag. The other first events are artificial, with end_log_pos 0 and `created` 0, as a dump thread sends them in the
middle of a log.

Invariant: a mapped file is never cut while a reader scans it, because the reader would be killed by a SIGBUS. The
reader has a shared flock during the scan, and `cut_file` takes the exclusive one. A complete, intact transaction that
was returned to a reader is never cut.
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np

from rplctl.durable import naming, sync
from rplctl.errors import BinlogFormatError
from rplctl.event.bytes_at import u32
from rplctl.event.checksum import verify_events
from rplctl.event.checksum_trailer import has_valid_checksum
from rplctl.event.events import build_rotate
from rplctl.event.format_description import (
    FormatDescription,
    build_format_description,
    parse_format_description,
    resent,
)
from rplctl.event.header import (
    BINLOG_MAGIC,
    FLAG_ARTIFICIAL,
    FLAG_RELAY_LOG,
    HEADER_LENGTH,
    check_magic,
    format_error,
    parse_header,
)
from rplctl.event.jit import ByteArray, byte_view, kernel
from rplctl.event.scan import EventIndex, GroupScan, scan_events, scan_groups
from rplctl.event.types import EventType
from rplctl.locks import flock, unlock
from rplctl.plain_file import closing_descriptor, open_plain
from rplctl.position import FIRST_EVENT_POSITION, BinlogPosition, can_begin_at, is_log_name

OWN_SERVER_VERSION = "8.0.40-rplctl"
SCAN_BYTES = 64 << 20  # a scan for groups goes in steps of so many bytes, so that the arrays stay small
_ROTATE_FIXED = 8


@dataclass(frozen=True, slots=True)
class Boundary:
    """A position between two transactions of one relay log, as an offset in this file and as a position in the source's
    log.
    """

    offset: int
    source: BinlogPosition
    format_description: bytes = b""  # the FORMAT_DESCRIPTION event in force here; b'' at the start of the file

    @property
    def description(self) -> FormatDescription | None:
        return parse_format_description(self.format_description) if self.format_description else None

    @property
    def source_format_description(self) -> bytes:
        """The source's FORMAT_DESCRIPTION event that applies to the events after this position.

        The value is b'' if the relay log has only rplctl's own FORMAT_DESCRIPTION before this position.
        """
        event = self.format_description
        return b"" if not event or parse_header(event).flags & FLAG_RELAY_LOG else event


def relay_log_header(server_id: int, source: BinlogPosition, description: bytes, checksum_algorithm: int) -> bytes:
    """Return the magic and the first events of a new relay log.

    `source`: the position in the source's log at which the file begins. `description`: the source's FORMAT_DESCRIPTION
    event, or b'' if it is unknown; the checksum algorithm in this event overrides `checksum_algorithm`. Raises
    BinlogFormatError if `description` is not such an event.
    """
    version = OWN_SERVER_VERSION
    if description:
        parsed = parse_format_description(description)
        checksum_algorithm = parsed.checksum_algorithm
        version = parsed.server_version if parsed.is_mariadb else version
    own = build_format_description(server_id, int(time.time()), checksum_algorithm, version)
    rotate = artificial_rotate(server_id, source, checksum_algorithm) if source.log_name else b""
    return BINLOG_MAGIC + own + rotate + (resent(description, flags=FLAG_ARTIFICIAL) if description else b"")


def artificial_rotate(server_id: int, source: BinlogPosition, checksum_algorithm: int) -> bytes:
    """Return a ROTATE event, which tells a reader at which position of the source's log the next events begin."""
    return build_rotate(server_id, source.log_name, source.log_pos, checksum_algorithm)


@contextmanager
def mapped_file(path: Path) -> Iterator[ByteArray]:
    """Map the current bytes of the file into memory, read-only. The file is not cut during the block.

    After the block, only the bytes of complete transactions may be read from the array, because other bytes may be cut
    off. Raises OSError if the file cannot be opened or mapped.
    """
    descriptor = open_plain(path, follow=False)
    try:
        flock(descriptor, shared=True)
        size = os.fstat(descriptor).st_size
        mapping = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ) if size else b""
        yield byte_view(memoryview(mapping))
    finally:
        unlock(descriptor)  # closing would not release the lock, because the mapping has a duplicate of the descriptor
        os.close(descriptor)


def cut_file(path: Path, size: int) -> None:
    """Cut the file to `size` bytes durably, after all readers have finished their scans of the file.

    An OSError names the path.
    """
    with naming(path):
        with closing_descriptor(open_plain(path, os.O_RDWR, follow=False)) as descriptor:
            flock(descriptor)
            os.ftruncate(descriptor, size)
            sync(descriptor, path.name)


def sync_file(path: Path) -> None:
    """Make the content of the file durable. An OSError names the path."""
    with naming(path):
        with closing_descriptor(open_plain(path, follow=False)) as descriptor:
            sync(descriptor, path.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStart:
    """The values that the first events of a relay log contain."""

    source: BinlogPosition  # the position in the artificial ROTATE; ('', 4) if there is no such event
    checksum_algorithm: int  # in rplctl's FORMAT_DESCRIPTION
    first_event_end: int  # offset after rplctl's FORMAT_DESCRIPTION; a file of this size has no events of the source

    @property
    def boundary(self) -> Boundary:
        return Boundary(FIRST_EVENT_POSITION, self.source)


def read_start(data: ByteArray) -> FileStart:
    """Return the values that the first events of the file contain.

    `data`: the mapped file. Raises BinlogFormatError if the magic or rplctl's FORMAT_DESCRIPTION is incomplete or
    damaged.
    """
    head = bytes(data[: 64 << 10])
    check_magic(head)
    first = parse_header(head, FIRST_EVENT_POSITION)
    second_at = FIRST_EVENT_POSITION + first.event_length
    if second_at > len(head):
        raise format_error("FORMAT_DESCRIPTION is cut short", head, FIRST_EVENT_POSITION)
    own = parse_format_description(head[FIRST_EVENT_POSITION:second_at])
    if own.checksum_algorithm and not has_valid_checksum(head[FIRST_EVENT_POSITION:second_at]):
        raise format_error("FORMAT_DESCRIPTION is damaged", head, FIRST_EVENT_POSITION)
    return FileStart(
        source=_first_source(head, second_at, own.checksum_length),
        checksum_algorithm=own.checksum_algorithm,
        first_event_end=second_at,
    )


def _first_source(head: bytes, at: int, checksum_length: int) -> BinlogPosition:
    """Return the position in the source's log at which the previous file ended, from the first ROTATE event.

    Return ('', 4) if there is no intact ROTATE. A dump by GTID continues at the start of a log, perhaps of another
    source. In this case, more ROTATE events follow, which this function does not read.
    """
    if at + HEADER_LENGTH <= len(head):
        header = parse_header(head[at : at + HEADER_LENGTH])
        event = head[at : at + header.event_length]
        is_whole = len(event) == header.event_length > HEADER_LENGTH + _ROTATE_FIXED + checksum_length
        if header.type_code == EventType.ROTATE and header.is_artificial and is_whole:
            name = event[HEADER_LENGTH + _ROTATE_FIXED : len(event) - checksum_length].decode("utf-8", "replace")
            offset = int.from_bytes(event[HEADER_LENGTH : HEADER_LENGTH + _ROTATE_FIXED], "little")
            is_place = is_log_name(name) and can_begin_at(offset)
            if is_place and (not checksum_length or has_valid_checksum(event)):
                return BinlogPosition(name, offset)
    return BinlogPosition("", FIRST_EVENT_POSITION)


def is_of_another_program(intact: ByteArray, start: FileStart) -> bool:
    """True if another program than rplctl wrote the file, because its second event is not a ROTATE.

    The second event of rplctl's files is always a ROTATE. `intact`: the bytes of the file up to the last intact event.
    """
    at = start.first_event_end
    return len(intact) > at and intact[at + 4] != EventType.ROTATE


def start_of(path: Path) -> BinlogPosition | None:
    """Return the position in the source's log at which the file begins.

    Return None if the file or its header is missing or damaged.
    """
    try:
        with mapped_file(path) as data:
            return read_start(data).source
    except (OSError, BinlogFormatError):
        return None


def walk(data: ByteArray, start: Boundary, step_bytes: int = SCAN_BYTES) -> Iterator[tuple[GroupScan, Boundary]]:
    """Yield the complete event groups (transactions and control events) from `start` on, in steps of about `step_bytes`
    bytes.

    Each item is a scan of the groups in one step, with the position after the last of them. Raises BinlogFormatError if
    an event is damaged.
    """
    at = start
    while True:
        scan = scan_groups(data, at.offset, at.source, step_bytes, at.description)
        if scan.complete_end <= at.offset:
            return
        at = boundary_after(data, at, scan)
        yield scan, at


def last_boundary(data: ByteArray, start: Boundary) -> Boundary:
    """Return the boundary (file offset and source position) after the last complete transaction in `data`.

    Raises BinlogFormatError if an event is damaged.
    """
    for _, boundary in walk(data, start):
        start = boundary
    return start


def last_sound_boundary(data: ByteArray, start: Boundary) -> Boundary:
    """Return the boundary (file offset and source position) after the last complete transaction before a damaged event.

    Damage here is an impossible value in an event. Checksums are not verified.
    """
    try:
        return last_boundary(data, start)
    except BinlogFormatError as error:
        return last_boundary(data[: int(error.position)], start)


def boundary_after(data: ByteArray, before: Boundary, scan: GroupScan) -> Boundary:
    """Return the boundary (file offset and source position) at the end of a scan.

    The boundary has the FORMAT_DESCRIPTION that applies to the following events. `before`: the boundary at the start of
    the scan.
    """
    event = before.format_description
    for offset, _ in new_descriptions(scan):
        event = event_at(data, offset)
    return Boundary(scan.complete_end, scan.end_position, event)


def new_descriptions(scan: GroupScan) -> list[tuple[int, FormatDescription]]:
    """Return the offset and the content of every FORMAT_DESCRIPTION event in the scanned part of the file.

    A description that was already in force at the start of the scan is not included.
    """
    return [(offset, description) for offset, description in scan.descriptions if offset >= FIRST_EVENT_POSITION]


def event_at(data: ByteArray, offset: int) -> bytes:
    """Return the bytes of the complete event that begins at this offset."""
    length = parse_header(data[offset : offset + HEADER_LENGTH].tobytes()).event_length
    return data[offset : offset + length].tobytes()


def first_groups(scan: GroupScan, count: int) -> GroupScan:
    """Return a scan that has only the first `count` event groups (transactions) of the given scan."""
    end = int(scan.end[count - 1]) if count else scan.complete_end - int(np.sum(scan.end - scan.start))
    columns = {field.name: getattr(scan, field.name) for field in fields(scan)}
    columns = {name: value[:count] for name, value in columns.items() if isinstance(value, np.ndarray)}
    descriptions = tuple(d for d in scan.descriptions if d[0] < end)
    return replace(scan, **columns, complete_end=end, descriptions=descriptions)


def intact_lengths_end(data: ByteArray, offset: int) -> int:
    """Return the offset after the last complete event with a possible length, starting at `offset`.

    Checksums are not verified.
    """
    return int(_intact_lengths_end(data, offset))


@kernel
def _intact_lengths_end(data: ByteArray, offset: int) -> int:
    size = len(data)
    while size - offset >= 19:
        length = u32(data, offset + 9)
        if length < 19 or length > size - offset or data[offset + 4] == 0:
            break
        offset += length
    return offset


def intact_end(data: ByteArray, offset: int, checksum_algorithm: int) -> int:
    """Return the offset after the last intact event, starting at `offset`. Transactions are not checked.

    An event is intact if its length is possible and all its bytes exist. If the FORMAT_DESCRIPTION in force requires
    CRC32, the checksum must also match. `checksum_algorithm`: the algorithm in force at `offset` (WL#5493).
    """
    end = intact_lengths_end(data, offset)
    for index in scanned(data, offset, end):
        bad = verify_events(data, index.offsets, checksum_algorithm)
        if bad >= 0:
            return int(index.offsets[bad])
        for number in np.flatnonzero(index.type_codes == EventType.FORMAT_DESCRIPTION):
            try:
                description = parse_format_description(event_at(data, int(index.offsets[number])))
            except BinlogFormatError:
                return int(index.offsets[number])
            checksum_algorithm = description.checksum_algorithm
    return end


def scanned(data: ByteArray, offset: int, end: int) -> Iterator[EventIndex]:
    """Yield an index of the complete events in data[offset:end], in steps of at most 64 MB or one event."""
    while offset < end:
        index = scan_events(data[: min(end, offset + SCAN_BYTES)], offset)
        if not len(index):  # the next event is larger than the step
            index = scan_events(data[: offset + len(event_at(data, offset))], offset)
        yield index
        offset = index.end
