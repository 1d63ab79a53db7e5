"""Provides the bytes of a split to an executor that cannot see the relay log.

The driver sends these bytes with the task, or the executor reads them from the archive. The archive is the folder of
the source's logs, from which the relay log was made. Invariant: the task decodes exactly the bytes of the relay log.
Bytes of the archive are used only if their length and CRC32 are equal to those of the relay log. Otherwise, and if no
executor sees the archive, the driver sends the bytes.
"""

from __future__ import annotations

import mmap
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rplctl.event.header import HEADER_LENGTH, parse_header
from rplctl.event.mapped import mapped_to
from rplctl.plain_file import UnfitFile, open_plain
from rplctl.position import BinlogPosition, is_log_name

Bytes = NDArray[np.uint8]
_MAP_NORESERVE = 0x4000  # Linux, mmap(2): with this flag, pages that are never written take no memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """A range of a file in the archive that has the same bytes as a range of the relay log, with the bytes' CRC32."""

    path: str
    offset: int
    length: int
    crc32: int

    def read(self) -> bytes | None:
        """Return the bytes from the archive, or None if the file is missing or too short, or has other bytes."""
        try:
            descriptor = open_plain(Path(self.path))
        except (OSError, UnfitFile):
            return None
        with os.fdopen(descriptor, "rb") as file:
            file.seek(self.offset)
            found = file.read(self.length)
        return found if len(found) == self.length and zlib.crc32(found) == self.crc32 else None


Piece = tuple[int, bytes | Archived]  # (offset in the relay log, bytes)


def table_maps(path: str, offsets: Sequence[int], before: int) -> tuple[Piece, ...]:
    """Return the table maps of the relay log at `offsets`, if they are before the split.

    The split's rows events need these table maps. `before`: the offset of the split. A table map at a later offset is
    in the split itself.
    """
    data = mapped_to(path, before)
    return tuple((at, _event_at(data, at)) for at in offsets if at < before)


def carried(path: str, start: int, end: int) -> bytes:
    return mapped_to(path, end)[start:].tobytes()


def archived(path: str, start: int, end: int, archive: Path, source: BinlogPosition) -> Archived | None:
    """Return the range of the archive that has the bytes from `start` to `end` of the relay log `path`.

    `archive`: the folder of the source's logs. `source`: the position in the source's log at `start`. Return None if
    this position is unknown.
    """
    if not is_log_name(source.log_name):
        return None
    crc32 = zlib.crc32(mapped_to(path, end)[start:].data)
    return Archived(path=str(archive / source.log_name), offset=source.log_pos, length=end - start, crc32=crc32)


def as_file(pieces: Sequence[Piece], end: int) -> Bytes | None:
    """Return an array that looks like the relay log up to `end`, but contains only these pieces.

    So the offsets of events stay the same. Return None if this machine cannot read the bytes of a piece.
    """
    room = mmap.mmap(-1, end, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE)
    for at, piece in pieces:
        found = piece.read() if isinstance(piece, Archived) else piece
        if found is None:
            return None
        room[at : at + len(found)] = found
    return np.frombuffer(room, np.uint8)


def _event_at(data: Bytes, offset: int) -> bytes:
    length = parse_header(data[offset : offset + HEADER_LENGTH].tobytes()).event_length
    return data[offset : offset + length].tobytes()
