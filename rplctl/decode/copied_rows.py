"""Decode packets of a chunk file, which contain rows of a SELECT, into rows that a target inserts.

Invariant: a row larger than IN_MEMORY is in a mapped file without a name. Its text is created while the row is sent or
written, so the memory has only a few parts of the text at a time. The rows of a copy are encoded by the same code as
rows of the binary log.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from rplctl.decode.net_changes import inserted_chunk
from rplctl.decode.row_stream import TableRows
from rplctl.event.images import Images
from rplctl.event.jit import ByteArray
from rplctl.event.rows import NO_FOREIGN_KEY_CHECKS, RowsEvents
from rplctl.plain_file import open_plain
from rplctl.receive_buffer import Room
from rplctl.result_set.columns import SelectedColumn, selected_columns
from rplctl.result_set.rows import read_images
from rplctl.schema.model import Column, TableModel
from rplctl.target.base import BulkRows, TableChunk

IN_MEMORY: Final = 16 << 20  # bytes of a batch that may be in memory; a larger row is in a file


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyPiece:
    """A part of a chunk file: the packets from byte `start` to byte `end`, which contain `rows` rows.

    `inode` is the inode of the file, because another file may get the same name. `columns` are the columns of the
    source, and `model` is the table of the target. The other fields state the form of rows that the target reads.
    """

    path: str
    inode: int
    start: int
    end: int
    rows: int
    columns: tuple[Column, ...]
    wire_types: tuple[int, ...]
    model: TableModel
    target_kind: str
    takes_numbers: bool  # True if the target takes ENUM and SET as numbers (selected_columns)
    bulk_rows: int = 0
    length_prefixed: bool = False  # True if the target takes length-prefixed rows
    spool_folder: str = ""


def copied_chunk(piece: CopyPiece) -> TableChunk:
    """Decode the rows of the piece, and return them as inserts.

    Raises FileNotFoundError if the chunk file does not exist any more, and BinlogFormatError if a row is damaged.
    Raises RelayLogError 1595 if a large row cannot be written to a file. This error is transient if the disk is full.
    """
    columns = selected_columns(piece.columns, takes_numbers=piece.takes_numbers)
    folder = Path(piece.path).parent

    def room(size: int) -> ByteArray:
        found = Room(size, folder, IN_MEMORY)
        found.extend(size)
        return found.buffer

    packets, size = _file_of(piece)[piece.start : piece.end], piece.end - piece.start
    (images,) = read_images(packets, columns, piece.wire_types, batch_bytes=size, allocate=room)
    return inserted_images(
        images, columns, piece.model, piece.target_kind, piece.bulk_rows, length_prefixed=piece.length_prefixed
    )


def decode_here(pieces: Iterable[CopyPiece]) -> Iterator[TableChunk]:
    """Decode the pieces in this process, each when the caller requests its chunk."""
    return (with_whole_frames(copied_chunk(piece)) for piece in pieces)


def with_whole_frames(chunk: TableChunk) -> TableChunk:
    """Return the chunk with its length-prefixed rows joined to one text.

    The target finds the values of a row by the lengths in the text. It can only do so if the text is one `bytes`
    object.
    """
    if chunk.bulk is None or not chunk.bulk.inserts.length_prefixed:
        return chunk
    parts = (replace(part, text=b"".join(part.pieces)) for part in chunk.bulk.parts)
    return replace(chunk, bulk=BulkRows(*parts))


def inserted_images(  # noqa: PLR0913 - the wishes of a target
    images: Images,
    columns: Sequence[SelectedColumn],
    model: TableModel,
    kind: str,
    bulk_rows: int,
    *,
    length_prefixed: bool,
) -> TableChunk:
    """Return the rows that a SELECT returned as a chunk of inserts for a target of this kind.

    `bulk_rows` and `length_prefixed` are explained in `net_changes.net_chunks`.
    """
    rows = TableRows(model, tuple(c.format for c in columns), images, unlogged_events(images), kind)
    return inserted_chunk(rows, bulk_rows, length_prefixed=length_prefixed)


def unlogged_events(images: Images) -> RowsEvents:
    """Return a set of no rows events, with which rows that a SELECT returned can be decoded like logged rows.

    The set has the flag that switches foreign key checks off, because the parent tables are copied separately.
    """
    none = np.zeros(0, np.int64)
    flags = np.array([NO_FOREIGN_KEY_CHECKS], np.uint16)
    return RowsEvents(
        data=images.data,
        event_start=none,
        kind=none.astype(np.uint8),
        table_id=none,
        flags=flags,
        column_count=none,
        before_bitmap=none,
        after_bitmap=none,
        data_start=none,
        data_end=none,
        partial_json=none.astype(np.bool_),
    )


def _file_of(piece: CopyPiece) -> ByteArray:
    with os.fdopen(open_plain(Path(piece.path), follow=False), "rb") as file:
        if os.fstat(file.fileno()).st_ino != piece.inode:
            raise FileNotFoundError(piece.path)
        return np.memmap(file, np.uint8, "r")
