"""One relay log file as bytes: its first events, its transactions, and how to cut its tail.

    offset  content
    0       magic fe 62 69 6e
    4       our own FORMAT_DESCRIPTION (flag 0x40, our server id)
    then    artificial ROTATE: the position in the source's log (64-bit) at which the file before it ended
    then    the source's FORMAT_DESCRIPTION as known then (end_log_pos 0); both may be missing in the very first file
    then    another ROTATE if the source continues elsewhere: a dump by GTID, or another source (failover)
    then    events, byte for byte as the source sent them

None of the first events moves the source position by its end_log_pos: our FORMAT_DESCRIPTION has the relay log flag,
the other two are artificial with end_log_pos 0 and `created` 0, as a dump thread sends them in the middle of a log.

Invariant: a mapped file is never cut while it is read (a SIGBUS): the reader scans a mapping under a shared flock, and
`cut_file` takes the exclusive one. A complete, intact group that was returned to a reader is never cut.
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
SCAN_BYTES = 64 << 20  # groups are found in steps of so many bytes, so that the arrays stay small
_ROTATE_FIXED = 8


@dataclass(frozen=True, slots=True)
class Boundary:
    """A position between two transactions of one relay log, in the relay log and in the source's log."""

    offset: int
    source: BinlogPosition
    format_description: bytes = b""  # the FORMAT_DESCRIPTION event in force; b'' at the start of the file

    @property
    def description(self) -> FormatDescription | None:
        return parse_format_description(self.format_description) if self.format_description else None

    @property
    def source_format_description(self) -> bytes:
        """The FORMAT_DESCRIPTION event in force if it is the source's; b'' if the relay log so far has only rplctl's
        own.
        """
        event = self.format_description
        return b"" if not event or parse_header(event).flags & FLAG_RELAY_LOG else event


def relay_log_header(server_id: int, source: BinlogPosition, description: bytes, checksum_algorithm: int) -> bytes:
    """Return the magic and the first events of a relay log. `description`: the source's FORMAT_DESCRIPTION event, b''
    if unknown.

    The checksum algorithm of this event overrides `checksum_algorithm`. Raises BinlogFormatError if `description` is
    not such an event.
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
    """Return a ROTATE event with the position in the source's log at which the events after it begin."""
    return build_rotate(server_id, source.log_name, source.log_pos, checksum_algorithm)


@contextmanager
def mapped_file(path: Path) -> Iterator[ByteArray]:
    """Map the current bytes of the file, read-only; the file is not cut during the block. Raises OSError if it cannot
    be opened or mapped.

    After the block, the array may still be used, but only for the bytes of complete groups.
    """
    descriptor = open_plain(path, follow=False)
    try:
        flock(descriptor, shared=True)
        size = os.fstat(descriptor).st_size
        mapping = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ) if size else b""
        yield byte_view(memoryview(mapping))
    finally:
        unlock(descriptor)  # closing would not do: the mapping holds a duplicate of the descriptor
        os.close(descriptor)


def cut_file(path: Path, size: int) -> None:
    """Cut the file to `size` bytes durably, after waiting for readers that scan the file. An OSError names the path."""
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
    """The values in the first events of a file."""

    source: BinlogPosition  # in the artificial ROTATE; ('', 4) without one
    checksum_algorithm: int  # in our FORMAT_DESCRIPTION
    first_event_end: int  # offset after our FORMAT_DESCRIPTION: a file of this size has no events of the source

    @property
    def boundary(self) -> Boundary:
        return Boundary(FIRST_EVENT_POSITION, self.source)


def read_start(data: ByteArray) -> FileStart:
    """Return the values in the first events of the file.

    Raises BinlogFormatError if the magic or our FORMAT_DESCRIPTION is incomplete or damaged.
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
    """Return the source position in the first ROTATE, at which the file before this one ended; ('', 4) without an
    intact ROTATE.

    A dump by GTID continues at the start of a log, perhaps of another source. Then more ROTATE events follow.
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
    """True if the second event is not a ROTATE: rplctl's files have one there, those of servers may not.

    `intact`: the file up to its last intact event.
    """
    at = start.first_event_end
    return len(intact) > at and intact[at + 4] != EventType.ROTATE


def start_of(path: Path) -> BinlogPosition | None:
    """Return the source position at which the file begins; None if the file or its header is missing or damaged."""
    try:
        with mapped_file(path) as data:
            return read_start(data).source
    except (OSError, BinlogFormatError):
        return None


def walk(data: ByteArray, start: Boundary, step_bytes: int = SCAN_BYTES) -> Iterator[tuple[GroupScan, Boundary]]:
    """Yield complete groups from `start` on, in steps, each with the boundary after it. Raises BinlogFormatError if an
    event is damaged.
    """
    at = start
    while True:
        scan = scan_groups(data, at.offset, at.source, step_bytes, at.description)
        if scan.complete_end <= at.offset:
            return
        at = boundary_after(data, at, scan)
        yield scan, at


def last_boundary(data: ByteArray, start: Boundary) -> Boundary:
    """Return the boundary after the last complete transaction. Raises BinlogFormatError if an event is damaged."""
    for _, boundary in walk(data, start):
        start = boundary
    return start


def last_sound_boundary(data: ByteArray, start: Boundary) -> Boundary:
    """Return the boundary after the last complete transaction before the first impossible event, which is damage that
    no checksum shows.
    """
    try:
        return last_boundary(data, start)
    except BinlogFormatError as error:
        return last_boundary(data[: int(error.position)], start)


def boundary_after(data: ByteArray, before: Boundary, scan: GroupScan) -> Boundary:
    """Return the boundary at `scan.complete_end`, with the position and format description after the last group."""
    event = before.format_description
    for offset, _ in new_descriptions(scan):
        event = event_at(data, offset)
    return Boundary(scan.complete_end, scan.end_position, event)


def new_descriptions(scan: GroupScan) -> list[tuple[int, FormatDescription]]:
    """Return (offset, description) of every FORMAT_DESCRIPTION in the scan's groups, without the first one in force."""
    return [(offset, description) for offset, description in scan.descriptions if offset >= FIRST_EVENT_POSITION]


def event_at(data: ByteArray, offset: int) -> bytes:
    """Return the complete raw event at this offset."""
    length = parse_header(data[offset : offset + HEADER_LENGTH].tobytes()).event_length
    return data[offset : offset + length].tobytes()


def first_groups(scan: GroupScan, count: int) -> GroupScan:
    """Return a scan of the first `count` groups."""
    end = int(scan.end[count - 1]) if count else scan.complete_end - int(np.sum(scan.end - scan.start))
    columns = {field.name: getattr(scan, field.name) for field in fields(scan)}
    columns = {name: value[:count] for name, value in columns.items() if isinstance(value, np.ndarray)}
    descriptions = tuple(d for d in scan.descriptions if d[0] < end)
    return replace(scan, **columns, complete_end=end, descriptions=descriptions)


def intact_lengths_end(data: ByteArray, offset: int) -> int:
    """Return the offset after the last complete event with a possible length. Checksums are not verified."""
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
    """Return the offset after the last intact event. `checksum_algorithm` is in force at `offset` (WL#5493).

    An event is intact if its length is possible, all its bytes exist and, with CRC32 in the format description in
    force, its checksum matches. Transactions are not checked.
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
    """Yield the complete events of data[offset:end], in steps."""
    while offset < end:
        index = scan_events(data[: min(end, offset + SCAN_BYTES)], offset)
        if not len(index):  # one event larger than the step
            index = scan_events(data[: offset + len(event_at(data, offset))], offset)
        yield index
        offset = index.end
