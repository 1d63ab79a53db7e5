"""Writes and reads chunk files, which have the rows of a part of a table, and their position in the source's log.

    8       magic
    4       length of the head, little-endian
    …       head, JSON: table, epoch, chunk, bounds, digest of the definition, wire types, L, keys to delete
    …       packets of the rows, as the source sent them
    …       tail, JSON: H, number of rows
    4       length of the tail
    8       length of the packets
    4       CRC32 of all bytes before this field
    8       magic of the end

L and H are the positions in the source's log between which the rows were read. With a snapshot, both are the position
of the snapshot. Invariant: a file with a changed or missing byte is refused, and never loaded in part. The types of the
values are checked even if the checksum is valid. A killed process leaves no incomplete file, but a power failure may
leave an incomplete file. Files are not synced, because most of them are loaded and removed before they reach the disk.
Rows are written piece by piece, so only one piece is in memory.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from isal.isal_zlib import crc32

from rplctl import mysql_errors as er
from rplctl.durable import replacing, write_all
from rplctl.errors import RelayLogError
from rplctl.event.jit import ByteArray, byte_view
from rplctl.plain_file import closing_descriptor, open_plain, parsed_json
from rplctl.schema.bounds import Bound

T = TypeVar("T")
Key = tuple[int | float | str | bytes, ...]
FORMAT: Final = 2
_MAGIC: Final = b"rplchunk"
_END: Final = b"knuhclpr"
_HEX: Final = "hex"  # the key in JSON under which bytes are stored as hex digits
_LENGTH: Final = struct.Struct("<I")
_LAST: Final = struct.Struct("<IQI8s")


@dataclass(frozen=True, slots=True)
class SnapshotPosition:
    """A position in the source's log, as FILE:POS and as the GTIDs before it, each '' if unknown."""

    position: str = ""
    gtids: str = ""

    @classmethod
    def from_json(cls, stored: Any) -> Self:
        """Return the position from its parsed JSON object. Raises TypeError if the object has another form."""
        found = cls(**stored)
        all_of(str, (found.position, found.gtids))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkHead:
    """The head of a chunk file: the table, the part of the table, and the position of the rows.

    `epoch`: the number of the snapshot. `chunk`: the number of the chunk in the table. `after`, `upto`: the keys after
    which and up to which rows were read; None for the ends of the table. `digest`: the digest of the table's definition
    (`digest_of`). `wire_types`: the type code of each column in the packets. `low`: L, the position in the source's log
    before the rows were read. `gone`: the keys of rows that are deleted before these rows are inserted.
    """

    database: str
    table: str
    epoch: int
    chunk: int
    after: Bound | None
    upto: Bound | None
    digest: str
    wire_types: tuple[int, ...]
    low: SnapshotPosition
    gone: tuple[Key, ...] = ()
    format: int = FORMAT

    @classmethod
    def from_json(cls, text: bytes) -> Self:
        """Return the head from its JSON text. Raises ValueError, KeyError or TypeError if the text is not a head."""
        found = parsed_json(text)
        if found["format"] != FORMAT:
            raise ValueError(f"format {found['format']}")
        bounds = {name: None if found[name] is None else all_of(str, found[name]) for name in ("after", "upto")}
        all_of(str, (found["database"], found["table"], found["digest"]))
        all_of(int, (found["epoch"], found["chunk"]))
        wire_types = all_of(int, found["wire_types"])
        if not all(0 <= code <= 0xFF for code in wire_types):
            raise ValueError("invalid wire types")
        return cls(**{**found, **bounds, "wire_types": wire_types, "low": SnapshotPosition.from_json(found["low"]),
                      "gone": tuple(tuple(map(_from_json, key)) for key in found["gone"])})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkFile:
    """A complete chunk file, with its head and its rows.

    `high`: H, the position in the source's log after the rows were read. `rows`: the number of rows. `packets`: the
    packets of the rows, mapped from the file. They stay valid if the file is removed. `offset`: the offset of the
    packets in the file.
    """

    head: ChunkHead
    high: SnapshotPosition
    rows: int
    packets: ByteArray = field(repr=False)
    path: Path = Path()
    inode: int = 0
    offset: int = 0


class ChunkWriter:
    """The writer of one chunk file. Call `add` for each piece of packets, set `high` and `rows`, then call `end`."""

    def __init__(self, descriptor: int, head: ChunkHead) -> None:
        self._descriptor = descriptor
        self._checksum = 0
        self.packet_bytes = 0
        self.high: SnapshotPosition | None = None
        self.rows = 0
        text = json.dumps(asdict(head), default=lambda raw: {_HEX: raw.hex()}).encode()
        self._write(_MAGIC + _LENGTH.pack(len(text)) + text)

    def add(self, piece: ByteArray) -> None:
        self.packet_bytes += len(piece)
        self._write(piece.data)

    def end(self) -> None:
        if self.high is None:
            raise ValueError("a chunk without H")
        text = json.dumps({"high": asdict(self.high), "rows": self.rows}).encode()
        self._write(text + _LAST.pack(len(text), self.packet_bytes, 0, _END)[:12])
        self._write(_LENGTH.pack(self._checksum) + _END)

    def _write(self, data: bytes | memoryview) -> None:
        self._checksum = crc32(data, self._checksum)
        write_all(self._descriptor, data)


@contextmanager
def write_chunk(path: Path, head: ChunkHead) -> Iterator[ChunkWriter]:
    """Write a chunk file with the head, and with the pieces that the `with` block adds to the yielded writer.

    The block also sets the writer's `high` and `rows`. If it ends without an error, the file gets its name. Raises
    OSError if the file cannot be written.
    """
    with replacing(path) as descriptor:
        writer = ChunkWriter(descriptor, head)
        yield writer
        writer.end()


def read_chunk(path: Path) -> ChunkFile:
    """Return the chunk file at `path`, after checking it completely.

    Raises RelayLogError 1594 if the file is damaged, OSError if it cannot be read, and UnfitFile if it is not a regular
    file.
    """
    with closing_descriptor(open_plain(path)) as descriptor:
        size, inode = os.fstat(descriptor).st_size, os.fstat(descriptor).st_ino
        view = byte_view(memoryview(mmap.mmap(descriptor, size, prot=mmap.PROT_READ)) if size else b"")
    try:
        return replace(_parsed(view), path=path, inode=inode)
    except (ValueError, KeyError, TypeError, AttributeError, struct.error) as error:
        raise RelayLogError(
            f"the chunk file {path} is damaged: {error}",
            errno=er.SLAVE_RELAY_LOG_READ_FAILURE,
            hint="the copy reads the chunk's rows again by itself. To see its state, run: rplctl show-clone",
        ) from error


def _parsed(view: ByteArray) -> ChunkFile:
    last = len(view) - _LAST.size
    if last < len(_MAGIC) + _LENGTH.size or view[: len(_MAGIC)].tobytes() != _MAGIC:
        raise ValueError("it does not begin with the magic")
    tail_length, packet_length, checksum, end = _LAST.unpack(view[last:].tobytes())
    if end != _END or crc32(view[: last + 12].data) != checksum:
        raise ValueError("its checksum is wrong")
    begin = len(_MAGIC) + _LENGTH.size
    (head_length,) = _LENGTH.unpack(view[len(_MAGIC) : begin].tobytes())
    packets = begin + head_length
    if packets + packet_length + tail_length != last:
        raise ValueError("its lengths do not match its size")
    head = ChunkHead.from_json(view[begin:packets].tobytes())
    tail = parsed_json(view[last - tail_length : last].tobytes())
    (rows,) = all_of(int, (tail["rows"],))
    body = view[packets : packets + packet_length]
    return ChunkFile(head=head, high=SnapshotPosition.from_json(tail["high"]), rows=rows, packets=body, offset=packets)


def all_of(kind: type[T], values: Any) -> tuple[T, ...]:
    """Return a list of values from JSON as a tuple. Raises TypeError if a value has another type than `kind`."""
    if not isinstance(values, list | tuple) or not all(type(value) is kind for value in values):
        raise TypeError(f"{str(values)[:100]} instead of values of type {kind.__name__}")
    return tuple(values)


def _from_json(value: Any) -> Any:
    if isinstance(value, dict):
        return bytes.fromhex(value[_HEX])
    if not isinstance(value, int | float | str):
        raise TypeError(f"a key with {value!r}")
    return value


def digest_of(create_table: str) -> str:
    """Return a digest of the text of SHOW CREATE TABLE, which changes if the table's definition changes.

    The next AUTO_INCREMENT value is ignored, because every insert changes it.
    """
    plain = re.sub(r"(?m)^(\).*?) AUTO_INCREMENT=\d+", r"\1", create_table)
    return hashlib.sha256(plain.encode()).hexdigest()
