"""Rows of a result set → rows as a target takes them, by the encoders that row events take.

In threads and not in Spark's tasks: 16 MB (80,000 rows) take 0.1 s here, and 0.2 to 0.3 s as a Spark job (measured on
two busy cores, for a MariaDB target). Invariant: a row larger than IN_MEMORY lies in a nameless file that is mapped,
and its text is made while it is sent, so memory holds a few pieces of it, whatever its size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, cast

import numpy as np

from rplctl.applier.apply.clone_pieces import copy_again
from rplctl.applier.decode.net_changes import inserted_chunk
from rplctl.applier.decode.row_stream import TableRows
from rplctl.clone.chunk_file import ChunkFile
from rplctl.errors import TargetError
from rplctl.event.images import Images
from rplctl.event.jit import ByteArray
from rplctl.event.rows import NO_FOREIGN_KEY_CHECKS, RowsEvents
from rplctl.result_set.columns import SelectedColumn, selected_columns
from rplctl.result_set.rows import read_images
from rplctl.schema.model import Column, TableModel
from rplctl.source.receive_buffer import Room
from rplctl.target import statement_target
from rplctl.target.base import BagMismatch, BulkRows, ChangeKind, RowChange, RowSet, TableChunk, Target

IN_MEMORY: Final = 16 << 20  # bytes of a batch; only one large row has more
_PIECE: Final = "rplctl_piece"


@dataclass(frozen=True, slots=True)
class DecodedRows:
    images: Images
    columns: tuple[SelectedColumn, ...]
    chunk: TableChunk  # of them, to be inserted


def decoded(
    file: ChunkFile, columns: Sequence[Column], model: TableModel, target: Target, folder: Path
) -> Iterator[DecodedRows]:
    """Its rows, piece by piece, as the target takes them. `columns`: the source's; `folder`: has room for a large row.

    Raises BinlogFormatError, RelayLogError 1595, transient when the disk is full.
    """
    selected = tuple(selected_columns(columns, takes_numbers=statement_target(target) is not None))

    def room(size: int) -> ByteArray:
        found = Room(size, folder, IN_MEMORY)
        found.extend(size)
        return found.buffer

    for images in read_images(file.packets, selected, file.head.wire_types, allocate=room):
        yield DecodedRows(images, selected, chunk_of_rows(images, selected, model, target))


def load_rows(pieces: Iterable[DecodedRows], model: TableModel, target: Target) -> None:
    """Within the target's transaction. Raises CountMismatch, TargetError, which tells the row that it is about; what
    `decoded` raises.
    """
    server = statement_target(target)
    kept = server if server is not None and server.is_transactional(model) else None
    for piece in pieces:
        if kept is not None:
            kept.connection.exec_driver_sql(f"SAVEPOINT {_PIECE}")
        try:
            target.apply_chunks([piece.chunk], {(model.database, model.name): model})
        except (TargetError, BagMismatch) as error:
            if isinstance(error, TargetError) and error.transient:
                raise
            if kept is not None:
                kept.roll_back_to(_PIECE)  # rows that strict mode refuses may go in one by one
            elif isinstance(error, BagMismatch):
                raise
            else:
                target.rollback()
                target.begin(foreign_keys=False)
            refused = _refused(rows_of_images(piece.images, piece.columns, model, target.kind), model, target)
            if refused is None and kept is None:
                refused = cast(TargetError, error)
            if refused is not None:
                raise _refusal(refused, model) from error
        del piece  # before the next one is decoded


def _refused(rows: RowSet, model: TableModel, target: Target) -> TargetError | None:
    """Insert row by row: what the target says of the first one that it does not take; None where it takes all."""
    for row in rows.rows:
        try:
            target.apply_change(RowChange(ChangeKind.INSERT, None, RowSet(rows.columns, [row])), model)
        except TargetError as found:
            return found
    return None


def _refusal(error: TargetError, model: TableModel) -> TargetError:
    where = f" (row {error.position})" if error.position else ""
    again = copy_again(model.database, model.name)
    # skip is for transactions of the source
    hint = f"{error.hint}; or {again}" if "rplctl start" in error.hint else again
    return TargetError(
        f"{model.database}.{model.name} is not copied: {error.message}{where}", errno=error.errno, hint=hint
    )


def chunk_of_rows(images: Images, columns: Sequence[SelectedColumn], model: TableModel, target: Target) -> TableChunk:
    """Rows that were selected so, to be inserted."""
    rows = TableRows(model, tuple(c.format for c in columns), images, unlogged_events(images), target.kind)
    chunk = inserted_chunk(rows, target.bulk_rows, framed=target.takes_frames)
    if chunk.bulk is None or not chunk.bulk.inserts.framed:
        return chunk
    parts = (replace(part, text=b"".join(part.pieces)) for part in chunk.bulk.parts)  # frames are looked for in it
    return replace(chunk, bulk=BulkRows(*parts))


def rows_of_images(images: Images, columns: Sequence[SelectedColumn], model: TableModel, kind: str) -> RowSet:
    """As `chunk_of_rows`, as that kind of target takes one by one."""
    rows = TableRows(model, tuple(c.format for c in columns), images, unlogged_events(images), kind)
    return inserted_chunk(rows, 0, framed=False).inserts[0]


def unlogged_events(images: Images) -> RowsEvents:
    """Return events for rows that no event brought: foreign keys rest, as parents and children come one by one."""
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
