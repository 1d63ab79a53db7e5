"""Loads a chunk file into the target, piece by piece. A decoder turns each range of the file's packets into rows.

The decoder is a Spark task of the pool or, with spark=auto, this process (Pipeline.copy). Invariant: at most AT_ONCE
bytes of packets, or one larger row, are decoded at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, cast

from rplctl import mysql_errors as er
from rplctl.applier.apply.clone_pieces import copy_again
from rplctl.clone.changed_keys import key_columns
from rplctl.clone.chunk_file import ChunkFile, Key
from rplctl.decode.copied_rows import CopyPiece, inserted_images, with_whole_frames
from rplctl.errors import TargetError, another_way
from rplctl.event.images import Images
from rplctl.result_set.columns import SelectedColumn
from rplctl.result_set.rows import row_ranges
from rplctl.schema.model import Column, TableModel
from rplctl.schema.statement import TableName
from rplctl.sql_run import run
from rplctl.sql_text import written
from rplctl.target import statement_target
from rplctl.target.base import ChangeKind, KeylessMismatch, RowChange, RowSet, TableChunk, Target

AT_ONCE: Final = 32 << 20
_PIECE: Final = written("rplctl_piece")
Decode = Callable[[Sequence[CopyPiece]], Iterable[TableChunk]]


@dataclass(frozen=True, slots=True)
class DecodedRows:
    """The rows of one piece of a chunk file, in the form for bulk loading.

    `one_by_one`: decodes the same rows again, in the form in which they are inserted one by one.
    """

    chunk: TableChunk
    one_by_one: Callable[[], RowSet]


def decoded(  # noqa: PLR0913 - where rows come from and where they go
    file: ChunkFile, columns: Sequence[Column], model: TableModel, target: Target, spool_folder: Path, decode: Decode
) -> Iterator[DecodedRows]:
    """Yield the rows of a chunk file, piece by piece, in the form that the target loads.

    `columns`: the columns that the source has sent. `decode`: decodes several pieces, in order. Raises the errors of
    `copied_chunk`, for example BinlogFormatError for a damaged row.
    """

    def one_by_one(piece: CopyPiece) -> RowSet:
        (chunk,) = decode([replace(piece, bulk_rows=0, length_prefixed=False)])
        return chunk.inserts[0]

    for batch in _batches(pieces_of_file(file, columns, model, target, spool_folder)):
        for piece, chunk in zip(batch, decode(batch), strict=True):
            yield DecodedRows(chunk, partial(one_by_one, piece))
            del chunk  # frees the memory before the next chunk is decoded


def pieces_of_file(
    file: ChunkFile, columns: Sequence[Column], model: TableModel, target: Target, spool_folder: Path
) -> Iterator[CopyPiece]:
    """Divide the packets of a chunk file into pieces of complete rows.

    Raises BinlogFormatError for an incomplete packet.
    """
    for start, end, rows in row_ranges(file.packets):
        yield CopyPiece(
            path=str(file.path),
            inode=file.inode,
            start=file.offset + start,
            end=file.offset + end,
            rows=rows,
            columns=tuple(columns),
            wire_types=file.head.wire_types,
            model=model,
            target_kind=target.kind,
            takes_numbers=statement_target(target) is not None,
            bulk_rows=target.bulk_rows,
            length_prefixed=target.takes_length_prefixed,
            spool_folder=str(spool_folder),
        )


def _batches(pieces: Iterable[CopyPiece]) -> Iterator[list[CopyPiece]]:
    batch: list[CopyPiece] = []
    for piece in pieces:
        if batch and piece.end - batch[0].start > AT_ONCE:
            yield batch
            batch = []
        batch.append(piece)
    if batch:
        yield batch


def load_rows(pieces: Iterable[DecodedRows], model: TableModel, target: Target) -> int:
    """Load the rows within the target's open transaction, and return how many of them Spark tasks decoded.

    If the target refuses the rows of a piece in bulk, they are inserted one by one. Raises TargetError with the row
    that the target refuses. Raises CountMismatch if a table that cannot be rolled back has unexpected rows, and the
    errors of `decoded`.
    """
    by_spark = 0
    server = statement_target(target)
    kept = server if server is not None and server.is_transactional(model) else None
    for piece in pieces:
        if kept is not None:
            run(kept.connection, written("SAVEPOINT {}", _PIECE))
        try:
            target.apply_chunks([piece.chunk], {(model.database, model.name): model})
        except (TargetError, KeylessMismatch) as error:
            if isinstance(error, TargetError) and error.transient:
                raise
            if kept is not None:
                kept.roll_back_to(_PIECE)  # the server may accept rows one by one that its strict mode refuses in bulk
            elif isinstance(error, KeylessMismatch):
                raise
            else:
                target.rollback()
                target.begin(foreign_keys=False)
            refused = _refused(piece.one_by_one(), model, target)
            if refused is None and kept is None:
                refused = cast(TargetError, error)
            if refused is not None:
                raise _refusal(refused, model) from error
        by_spark += piece.chunk.change_count * piece.chunk.by_spark
        del piece  # frees the memory before the next piece is decoded
    return by_spark


def _refused(rows: RowSet, model: TableModel, target: Target) -> TargetError | None:
    """Insert the rows one by one, and return the target's error for the first row that it refuses.

    Return None if the target accepts all rows.
    """
    for row in rows.rows:
        try:
            target.apply_change(
                RowChange(kind=ChangeKind.INSERT, before=None, after=RowSet(rows.columns, [row])), model
            )
        except TargetError as found:
            return found
    return None


def _refusal(error: TargetError, model: TableModel) -> TargetError:
    where = f" (row {error.position})" if error.position else ""
    again = copy_again(model.database, model.name)
    # a hint with `rplctl skip` would be wrong, because this command skips transactions of the source
    hint = f"{error.hint}{another_way(again)}" if "rplctl start" in error.hint else again
    return TargetError(
        f"{model.database}.{model.name} is not copied: {error.message}{where}", errno=error.errno, hint=hint
    )


def delete_rows(target: Target, model: TableModel, keys: Iterable[Key]) -> int:
    """Delete the rows with these keys, and return how many of them existed."""
    columns, count = key_columns(model), 0
    for key in keys:
        before = RowSet(columns, [key])
        try:
            target.apply_change(RowChange(kind=ChangeKind.DELETE, before=before, after=None), model)
        except TargetError as error:
            if error.errno != er.KEY_NOT_FOUND:
                raise
        else:
            count += 1
    return count


def foreign_rows(name: TableName) -> TargetError:
    return TargetError(
        f"{'.'.join(name)} has rows that are not from the copy: another program writes to the table",
        errno=er.DUP_ENTRY,
        hint="to copy the table again after you have stopped the other program and dropped the target's table, run: "
        "rplctl start",
    )


@contextmanager
def reporting_foreign_rows(name: TableName) -> Iterator[None]:
    """Replace a duplicate key error of the block by an error that names the cause.

    The source's own rows have no duplicate keys, so the table has rows of another program.
    """
    try:
        yield
    except TargetError as error:
        if error.errno != er.DUP_ENTRY:
            raise
        raise foreign_rows(name) from error


def chunk_of_rows(images: Images, columns: Sequence[SelectedColumn], model: TableModel, target: Target) -> TableChunk:
    """Return the rows that a SELECT on the source returned, as a chunk of inserts for the target."""
    chunk = inserted_images(
        images, columns, model, target.kind, target.bulk_rows, length_prefixed=target.takes_length_prefixed
    )
    return with_whole_frames(chunk)


def rows_of_images(images: Images, columns: Sequence[SelectedColumn], model: TableModel, kind: str) -> RowSet:
    """Return the rows that a SELECT returned, in the form in which a target of this kind inserts single rows."""
    return inserted_images(images, columns, model, kind, 0, length_prefixed=False).inserts[0]
