"""The bytes of a batch's events: in the relay log or, for a large compressed transaction, unpacked in a file.

Some compressed transactions declare more bytes than a batch may have. Each of them is a batch of its own. It is
unpacked piece by piece into a file of the channel's spool folder, and read from this file as from a relay log.
Compressed events are TRANSACTION_PAYLOAD, and MariaDB's compressed rows and queries (`event.payload`). Invariant: the
file is removed with the batch, and is never larger than MAX_UNPACKED.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from rplctl.applier.feed.plan import Batch
from rplctl.decode.row_stream import intact_events
from rplctl.durable import PRIVATE_FILE, private_folder
from rplctl.event.checksum_trailer import without_checksum
from rplctl.event.format_description import CHECKSUM_OFF, FormatDescription
from rplctl.event.inflate import plain_sizes
from rplctl.event.jit import ByteArray
from rplctl.event.payload import payload_size, unpack_event, unpack_payload
from rplctl.event.rows import Ints
from rplctl.event.scan import event_offsets
from rplctl.event.types import MARIADB_COMPRESSED, EventType
from rplctl.position import BinlogPosition

MAX_UNPACKED = 64 << 30  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRange:
    """A part of a file that consists of whole events: data[start:end].

    `source`: the position in the source's log at `start`. It is ('', 0) if the file is not a relay log.
    """

    path: Path
    data: ByteArray
    start: int
    end: int
    description: FormatDescription
    groups: Ints  # the offset of each group in the file; 0 for an unpacked group
    source: BinlogPosition = BinlogPosition("", 0)


def split_by_unpacked_size(batch: Batch, limit_bytes: int) -> list[Batch]:
    """Split the batch, if necessary. Each part unpacks to at most `limit_bytes`, or has only one group."""
    if not batch.unpacks:
        return [batch]
    ends = batch.scan.end[batch.first : batch.last]
    sizes = ends - batch.scan.start[batch.first : batch.last]
    starts, unpacked = _unpacked(batch)
    np.add.at(sizes, np.searchsorted(ends, starts, side="right"), unpacked)
    cuts, held = [batch.first], 0
    for number, size in enumerate(sizes.tolist(), batch.first):
        if held and held + size > limit_bytes:
            cuts.append(number)
            held = 0
        held += size
    cuts.append(batch.last)
    return [replace(batch, first=a, last=b) for a, b in zip(cuts, cuts[1:], strict=False)]


@contextmanager
def event_range(batch: Batch, limit_bytes: int, spool_folder: Path) -> Iterator[EventRange]:
    """Yield the range of the batch's events: in the relay log, or in a file with the unpacked events.

    The file is written if the batch is one group that unpacks to more than `limit_bytes`. Raises BinlogFormatError 1743
    for a wrong checksum, and for an event that does not unpack to its declared size.
    """
    stored_range = relay_log_range(batch)
    if batch.last - batch.first != 1 or not batch.unpacks or int(_unpacked(batch)[1].sum()) <= limit_bytes:
        yield stored_range
        return
    with spool_file(spool_folder) as path:
        with path.open("wb") as file:
            _unpack(stored_range, file)
        data = np.memmap(path, np.uint8, "r")
        plain = replace(batch.description, checksum_algorithm=CHECKSUM_OFF)
        yield EventRange(path=path, data=data, start=0, end=len(data), description=plain, groups=np.zeros(1, np.int64))


@contextmanager
def spool_file(folder: Path) -> Iterator[Path]:
    """Create an empty file that only this user can read, and remove it at the end of the block."""
    path = private_folder(folder) / f"{uuid.uuid4().hex}.events"
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE))
        yield path
    finally:
        path.unlink(missing_ok=True)


def relay_log_range(batch: Batch) -> EventRange:
    """Return the range of the batch's events in the relay log, still compressed if the source has compressed them."""
    scan, first = batch.scan, batch.first
    source = scan.source_position(first - 1) if first else scan.first_source
    starts = scan.start[first : batch.last]
    return EventRange(
        path=batch.groups.path,
        data=batch.groups.data,
        start=batch.start,
        end=batch.end,
        description=batch.description,
        groups=starts,
        source=source,
    )


def _unpacked(batch: Batch) -> tuple[Ints, Ints]:
    """Return the offset of each event of the batch in the relay log, and the size of its unpacked content.

    A compressed event declares this size. It is 0 for an event that is not compressed.
    """
    data = batch.groups.data
    offsets, types = event_offsets(data[batch.start : batch.end])
    offsets += batch.start
    sizes = plain_sizes(data, offsets, types)
    for number in np.flatnonzero(types == EventType.TRANSACTION_PAYLOAD).tolist():
        sizes[number] = payload_size(data[offsets[number] : offsets[number + 1]], batch.description)
    return offsets[:-1], sizes


def _unpack(events: EventRange, file: BinaryIO) -> None:
    offsets, types = intact_events(events.data, events.start, events.end, events.description.checksum_algorithm)
    for number, code in enumerate(types.tolist()):
        event = events.data[offsets[number] : offsets[number + 1]]
        if code == EventType.TRANSACTION_PAYLOAD:
            unpack_payload(event, events.description, file, MAX_UNPACKED)
            continue
        if code in MARIADB_COMPRESSED:
            unpack_event(event, events.description, file)
            continue
        file.write(without_checksum(event.tobytes(), events.description.checksum_length))
