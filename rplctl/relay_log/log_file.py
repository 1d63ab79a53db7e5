"""One relay log file as bytes: how it starts, how to walk it transaction by transaction, how to cut its tail.

    offset  what
    0       magic fe 62 69 6e
    4       our own FORMAT_DESCRIPTION (flag 0x40, our server id)
    then    artificial ROTATE: where in the source's log the file before it ended (64-bit)
    then    the source's FORMAT_DESCRIPTION as known then (end_log_pos 0); both may be missing in the very first file
    then    another ROTATE when the source goes on elsewhere: a dump by GTID, or another source (failover)
    then    events, byte for byte as the source sent them

None of the first events moves the source position by its end_log_pos: our FORMAT_DESCRIPTION carries the relay log
flag, the other two are artificial with end_log_pos 0 and `created` 0, as a dump thread sends them amid a log.

Invariant: a mapped file is not cut under the reader (that would be a SIGBUS): a mapping is scanned under a shared
flock, `cut_file` takes the exclusive one. What was handed out as a complete, intact group is never cut.
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
SCAN_BYTES = 64 << 20  # groups are found in steps, so that their arrays stay small whatever the file's size
_ROTATE_FIXED = 8


@dataclass(frozen=True, slots=True)
class Boundary:
    """A place between two transactions of one file, in both logs."""

    offset: int
    source: BinlogPosition
    format_description: bytes = b""  # the event in force here; b'' at the start of the file

    @property
    def description(self) -> FormatDescription | None:
        return parse_format_description(self.format_description) if self.format_description else None

    @property
    def source_format_description(self) -> bytes:
        """The event in force when it is the source's; b'' while only our own was written."""
        event = self.format_description
        return b"" if not event or parse_header(event).flags & FLAG_RELAY_LOG else event


def relay_log_header(server_id: int, source: BinlogPosition, description: bytes, checksum_algorithm: int) -> bytes:
    """Magic and first events. `description` is the source's FORMAT_DESCRIPTION event, b'' when it is not known yet.

    Its checksum algorithm wins over `checksum_algorithm`. Raises BinlogFormatError when it is no such event.
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
    """A ROTATE event that says: what follows was read at this position of the source's log."""
    return build_rotate(server_id, source.log_name, source.log_pos, checksum_algorithm)


@contextmanager
def mapped_file(path: Path) -> Iterator[ByteArray]:
    """The file's bytes as they are now, read-only, not to be cut for the length of the block. Raises OSError.

    The array may be kept after the block for complete groups; beyond them only inside it.
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
    """Make the file durable at this shorter size, waiting for readers that scan it. Raises OSError with the path."""
    with naming(path):
        with closing_descriptor(open_plain(path, os.O_RDWR, follow=False)) as descriptor:
            flock(descriptor)
            os.ftruncate(descriptor, size)
            sync(descriptor, path.name)


def sync_file(path: Path) -> None:
    """Make durable what is in the file. Raises OSError with the path."""
    with naming(path):
        with closing_descriptor(open_plain(path, follow=False)) as descriptor:
            sync(descriptor, path.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStart:
    """The contents of the first events of a file."""

    source: BinlogPosition  # of the artificial ROTATE; ('', 4) without one
    checksum_algorithm: int  # of our FORMAT_DESCRIPTION
    first_event_end: int  # offset behind it: a file of this size holds nothing

    @property
    def boundary(self) -> Boundary:
        return Boundary(FIRST_EVENT_POSITION, self.source)


def read_start(data: ByteArray) -> FileStart:
    """Where the file begins in the source's log.

    Raises BinlogFormatError when the magic or our FORMAT_DESCRIPTION is not whole and intact.
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
    """Where the file before it ended: the first ROTATE; ('', 4) when nothing says so, or nothing that is intact.

    A dump by GTID goes on from the start of a log, of another source perhaps: further ROTATEs say so.
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
    """True if an event that is no ROTATE follows the first: our own files have it there, those of servers may not.
    `intact`: the file up to the last intact event.
    """
    at = start.first_event_end
    return len(intact) > at and intact[at + 4] != EventType.ROTATE


def start_of(path: Path) -> BinlogPosition | None:
    """Source position at which the file begins; None when the file or its header is missing or damaged."""
    try:
        with mapped_file(path) as data:
            return read_start(data).source
    except (OSError, BinlogFormatError):
        return None


def walk(data: ByteArray, start: Boundary, step_bytes: int = SCAN_BYTES) -> Iterator[tuple[GroupScan, Boundary]]:
    """Complete groups from `start` on, in steps, each with the boundary behind it. Raises BinlogFormatError."""
    at = start
    while True:
        scan = scan_groups(data, at.offset, at.source, step_bytes, at.description)
        if scan.complete_end <= at.offset:
            return
        at = boundary_after(data, at, scan)
        yield scan, at


def last_boundary(data: ByteArray, start: Boundary) -> Boundary:
    """The last transaction end. Raises BinlogFormatError."""
    for _, boundary in walk(data, start):
        start = boundary
    return start


def last_sound_boundary(data: ByteArray, start: Boundary) -> Boundary:
    """The last transaction end before the first event that cannot be where it is (damage that no checksum shows)."""
    try:
        return last_boundary(data, start)
    except BinlogFormatError as error:
        return last_boundary(data[: int(error.position)], start)


def boundary_after(data: ByteArray, before: Boundary, scan: GroupScan) -> Boundary:
    """The boundary at `scan.complete_end`: position and format description as the last group leaves them."""
    event = before.format_description
    for offset, _ in new_descriptions(scan):
        event = event_at(data, offset)
    return Boundary(scan.complete_end, scan.end_position, event)


def new_descriptions(scan: GroupScan) -> list[tuple[int, FormatDescription]]:
    """(offset, description) of every FORMAT_DESCRIPTION inside the scan's groups, without the one it began with."""
    return [(offset, description) for offset, description in scan.descriptions if offset >= FIRST_EVENT_POSITION]


def event_at(data: ByteArray, offset: int) -> bytes:
    """The whole raw event at this offset."""
    length = parse_header(data[offset : offset + HEADER_LENGTH].tobytes()).event_length
    return data[offset : offset + length].tobytes()


def first_groups(scan: GroupScan, count: int) -> GroupScan:
    """The first `count` groups of a scan."""
    end = int(scan.end[count - 1]) if count else scan.complete_end - int(np.sum(scan.end - scan.start))
    columns = {field.name: getattr(scan, field.name) for field in fields(scan)}
    columns = {name: value[:count] for name, value in columns.items() if isinstance(value, np.ndarray)}
    descriptions = tuple(d for d in scan.descriptions if d[0] < end)
    return replace(scan, **columns, complete_end=end, descriptions=descriptions)


def intact_lengths_end(data: ByteArray, offset: int) -> int:
    """Offset behind the last whole event with a possible length, from `offset` on; checksums are not looked at."""
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
    """Offset behind the last intact event from `offset` on; `checksum_algorithm` is in force there (WL#5493).

    An event is intact when its length is possible, it is there to its last byte and, where the format description in
    force says CRC32, its checksum fits. Nothing here looks at transactions.
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
    """The whole events of data[offset:end], some at a time."""
    while offset < end:
        index = scan_events(data[: min(end, offset + SCAN_BYTES)], offset)
        if not len(index):  # one event larger than the step
            index = scan_events(data[: offset + len(event_at(data, offset))], offset)
        yield index
        offset = index.end
