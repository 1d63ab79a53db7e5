"""The bytes with which a task of the pool answers the driver, and the driver's checks before it uses an answer.

An answer is a header (HEADER_LENGTH bytes), a body and, for a large result, a spool file. The header names the channel,
the attempt and the range. The checksum of the header covers all other bytes of header and body. Invariant: an answer is
used only if every field matches the driver's request. The driver chooses the name of the spool file, so an answer
cannot point to another file. Loading an answer runs no code from it.
"""

from __future__ import annotations

import hashlib
import marshal
import mmap
import os
import secrets
import zlib
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, field
from enum import IntEnum
from pathlib import Path
from struct import Struct, error as StructError
from typing import Any, Final

from rplctl.applier.spark.lake_piece import LakeFiles, LakePiece
from rplctl.applier.spark.split_task import ERRORS, Split, SplitResult, decode_chunks
from rplctl.decode.copied_rows import CopyPiece
from rplctl.decode.ordered_rows import OrderedPiece
from rplctl.plain_file import UnfitFile, open_plain
from rplctl.schema.plan import Catalog
from rplctl.target.base import ChangeKind, RowSet, TableChunk
from rplctl.target.lake import WrittenFile

_MAGIC: Final = b"RPA1"
# magic, digest of the channel, token and number of the attempt, kind, rows, bytes of the body; the checksum follows
_FIELDS: Final = Struct("<4s8s16sQBQQ")
_CHECKSUM: Final = Struct("<I")
_SPOOLED: Final = Struct("<QI")  # bytes of the spool file, its checksum
_SMALL: Final = 1 << 16  # bytes of the largest body that is sent together with the header
HEADER_LENGTH: Final = _FIELDS.size + _CHECKSUM.size
LARGEST_BODY: Final = 256 << 20  # bytes; results of rows above 1 MB are in spool files, unless the disk is full


class AnswerKind(IntEnum):
    CHUNKS = 1
    SPOOLED = 2  # chunks, in the attempt's spool file
    ERROR = 3  # an RplError's fields, and the tables that the catalog lacks
    INCONSISTENT = 4
    FILES = 5  # files of a lake
    FAILED = 6  # the text of an error that is not an RplError
    UNSEEN = 7  # the chunk file of a copy no longer exists


RangePiece = Split | LakePiece | CopyPiece | OrderedPiece
_UNREADABLE: Final = (
    *(ValueError, TypeError, LookupError, AttributeError, OverflowError, EOFError),
    *(StructError, OSError, UnfitFile),
)


class WrongAnswer(Exception):
    """The error for an answer that does not match the driver's request, or that reports a failed task."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of a task to decode one range. `piece`: the input of the task. `token`: identifies the answer."""

    channel: str
    number: int  # unique during the life of a pool
    piece: RangePiece
    token: bytes = field(default_factory=lambda: secrets.token_bytes(16))

    @property
    def spool_file(self) -> Path | None:
        """The path of the only file that this attempt's task may write, or None if the piece has no spool folder."""
        folder = "" if isinstance(self.piece, LakePiece) else self.piece.spool_folder
        return Path(folder, f"{self.token.hex()}.chunks") if folder else None

    @property
    def size(self) -> int:
        """The number of bytes in the range that this attempt decodes."""
        piece = self.piece.piece if isinstance(self.piece, LakePiece) else self.piece
        return piece.end - piece.start

    @property
    def range_name(self) -> str:
        """The range in the relay log or chunk file, as a text for messages."""
        piece = self.piece.piece if isinstance(self.piece, LakePiece) else self.piece
        return f"{Path(piece.path).name}:{piece.start}-{piece.end}"


@dataclass(frozen=True, slots=True)
class Answer:
    """The checked result of an attempt, with the number of row changes in `rows`.

    `split`: the result for a range of the relay log, or for a part of a copy. `files`: the result for a lake.
    """

    rows: int
    split: SplitResult | None = None
    files: LakeFiles | None = None


def answer_of(attempt: Attempt, result: SplitResult | LakeFiles) -> list[bytes]:
    """Return an answer with this result, as byte strings that the task sends one after the other."""
    if isinstance(result, LakeFiles):
        body = marshal.dumps(([astuple(file) for file in result.files], result.error))
        return _message(attempt, AnswerKind.FILES, result.rows, body)
    if result.error is not None:
        return _message(attempt, AnswerKind.ERROR, 0, marshal.dumps((result.error, list(result.unknown))))
    if result.spooled is not None:
        with open(result.spooled, "rb") as file, _mapped(file.fileno()) as data:
            return _message(attempt, AnswerKind.SPOOLED, result.rows, _SPOOLED.pack(len(data), zlib.crc32(data)))
    if result.inline is not None:
        return _message(attempt, AnswerKind.CHUNKS, result.rows, result.inline)
    return _message(attempt, AnswerKind.UNSEEN if result.is_unseen else AnswerKind.INCONSISTENT, 0, b"")


def failure_of(attempt: Attempt, words: str) -> list[bytes]:
    return _message(attempt, AnswerKind.FAILED, 0, words.encode(errors="replace"))


def _message(attempt: Attempt, kind: AnswerKind, rows: int, body: bytes) -> list[bytes]:
    fields = _FIELDS.pack(_MAGIC, _digest(attempt.channel), attempt.token, attempt.number, kind, rows, len(body))
    header = fields + _CHECKSUM.pack(zlib.crc32(body, zlib.crc32(fields)))
    return [header + body] if len(body) <= _SMALL else [header, body]


def body_length(header: bytes | bytearray) -> int:
    """Return the length of the body that follows the header. Raises WrongAnswer if `header` is not a header."""
    magic, *_, length = _FIELDS.unpack_from(header)
    if magic != _MAGIC or length > LARGEST_BODY:
        raise WrongAnswer("bytes that do not begin an answer")
    return int(length)


def read_answer(attempt: Attempt, data: bytes, catalog: Catalog) -> Answer:
    """Check the bytes of an answer against the attempt, and return the result.

    `catalog`: the catalog that the task has used. Raises WrongAnswer if the bytes do not match the attempt. If the task
    failed, WrongAnswer has the task's text.
    """
    _, channel, token, number, kind, rows, length = _FIELDS.unpack_from(data)
    body = memoryview(data)[HEADER_LENGTH:]
    (checksum,) = _CHECKSUM.unpack_from(data, _FIELDS.size)
    if len(body) != length or zlib.crc32(body, zlib.crc32(data[: _FIELDS.size])) != checksum:
        raise WrongAnswer("an answer whose checksum is wrong")
    if (channel, token, number) != (_digest(attempt.channel), attempt.token, attempt.number):
        raise WrongAnswer("an answer to another attempt")
    if kind == AnswerKind.FAILED:
        raise WrongAnswer(body.tobytes().decode(errors="replace"))
    try:
        return _READERS[kind](attempt, rows, body, catalog)
    except WrongAnswer:
        raise
    except _UNREADABLE as error:
        raise WrongAnswer(f"an answer that cannot be read: {error}") from error


def _chunks(attempt: Attempt, rows: int, body: memoryview | mmap.mmap, catalog: Catalog) -> Answer:
    piece = attempt.piece
    if isinstance(piece, LakePiece):
        raise WrongAnswer("rows in place of files")
    chunks = decode_chunks(body)
    if isinstance(piece, CopyPiece):
        _check_copy(piece, chunks)
    elif isinstance(piece, OrderedPiece):
        _check_ordered(piece, chunks)
    if sum(chunk.change_count for chunk in chunks) != rows:
        raise WrongAnswer("an answer with another number of row changes than it says")
    if isinstance(piece, Split) and not all((chunk.database, chunk.table) in catalog.tables for chunk in chunks):
        raise WrongAnswer("an answer with rows of a table that is not replicated")
    return Answer(rows, SplitResult(chunks=chunks, rows=rows, by_spark=True))


def _check_copy(piece: CopyPiece, chunks: list[TableChunk]) -> None:
    """Raise WrongAnswer if an answer for a copy does anything other than insert the rows of the piece into its table.

    The number of rows must be the number that the cloner has counted.
    """
    for chunk in chunks:
        sets = [*chunk.inserts, *(chunk.bulk.parts if chunk.bulk is not None else ())]
        count = sum(len(rows.rows) if isinstance(rows, RowSet) else rows.count for rows in sets)
        others = chunk.bulk.parts[:3] if chunk.bulk is not None else ()
        if chunk.absent or chunk.deletes or chunk.updates or chunk.ordered or any(rows.count for rows in others):
            raise WrongAnswer("an answer that does more than insert the rows of a copy")
        if (chunk.database, chunk.table) != (piece.model.database, piece.model.name):
            raise WrongAnswer("an answer with rows of another table than is copied")
        if not count == chunk.change_count == piece.rows:
            raise WrongAnswer("an answer with another number of rows than the packets have")
    if len(chunks) != 1:
        raise WrongAnswer("an answer that has not the rows of one table")


def _check_ordered(piece: OrderedPiece, chunks: list[TableChunk]) -> None:
    """Raise WrongAnswer if an answer for ordered events has changes that do not match the events.

    Each chunk must have changes of its event's kind and table. A chunk without a table means that the driver must
    decode the event.
    """
    for chunk, table, kind in zip(chunks, piece.tables, piece.kinds, strict=True):
        if chunk.absent or chunk.deletes or chunk.updates or chunk.inserts or chunk.bulk is not None:
            raise WrongAnswer("an answer that does more than to list the changes of events")
        if not chunk.table and not chunk.ordered:
            continue  # the driver decodes this event
        if (chunk.database, chunk.table) != table:
            raise WrongAnswer("an answer with changes of another table than the event's")
        is_of_kind = all(
            change.kind is kind
            and (change.before is None) == (kind is ChangeKind.INSERT)
            and (change.after is None) == (kind is ChangeKind.DELETE)
            for change in chunk.ordered
        )
        if not is_of_kind or len(chunk.ordered) != chunk.change_count:
            raise WrongAnswer("an answer with changes of another kind than the event's")


def _spooled(attempt: Attempt, rows: int, body: memoryview, catalog: Catalog) -> Answer:
    """Read an answer from its spool file.

    The file's name is removed at once. The kernel keeps the file's contents while a text in them is in use.
    """
    length, checksum = _SPOOLED.unpack(body)
    path = attempt.spool_file
    if path is None:
        raise WrongAnswer("a spool file that was not asked for")
    descriptor = open_plain(path, follow=False)
    try:
        data = _mapped(descriptor)
    finally:
        os.close(descriptor)
        path.unlink(missing_ok=True)
    if len(data) != length or zlib.crc32(data) != checksum:
        raise WrongAnswer("a spool file whose checksum is wrong")
    return _chunks(attempt, rows, data, catalog)


def _error(attempt: Attempt, rows: int, body: memoryview, catalog: Catalog) -> Answer:
    fields, unknown = marshal.loads(body)
    _check_error(fields)
    if not isinstance(attempt.piece, Split | CopyPiece) or rows or fields["kind"] not in ERRORS:
        raise WrongAnswer("an error of another kind of work")
    return Answer(0, SplitResult(error=fields, unknown=tuple((str(base), str(table)) for base, table in unknown)))


def _inconsistent(attempt: Attempt, rows: int, body: memoryview, catalog: Catalog) -> Answer:
    if not isinstance(attempt.piece, Split) or rows or len(body):
        raise WrongAnswer("an answer without a result")
    return Answer(0, SplitResult())


def _unseen(attempt: Attempt, rows: int, body: memoryview, catalog: Catalog) -> Answer:
    if not isinstance(attempt.piece, CopyPiece) or rows or len(body):
        raise WrongAnswer("an answer without a result")
    return Answer(0, SplitResult(is_unseen=True))


def _files(attempt: Attempt, rows: int, body: memoryview, catalog: Catalog) -> Answer:
    found, error = marshal.loads(body)
    if not isinstance(attempt.piece, LakePiece):
        raise WrongAnswer("files in place of rows")
    if error is not None:
        _check_error(error)
    files = tuple(WrittenFile(*fields) for fields in found)
    for file in files:
        is_asked_for = attempt.piece.folders.get((file.database, file.table)) == file.folder
        if not is_asked_for or Path(file.path).is_absolute() or ".." in Path(file.path).parts:
            raise WrongAnswer("a file in a folder that was not asked for")
    result = LakeFiles(files, error)
    if result.rows != rows:
        raise WrongAnswer("an answer with another number of row changes than it says")
    return Answer(rows, files=result)


_READERS: Final[Mapping[int, Callable[[Attempt, int, memoryview, Catalog], Answer]]] = {
    AnswerKind.CHUNKS: _chunks,
    AnswerKind.SPOOLED: _spooled,
    AnswerKind.ERROR: _error,
    AnswerKind.INCONSISTENT: _inconsistent,
    AnswerKind.FILES: _files,
    AnswerKind.UNSEEN: _unseen,
}


def _check_error(fields: Any) -> None:
    if not isinstance(fields, dict) or not {"message", "errno", "position", "hint"} <= fields.keys():
        raise WrongAnswer("an error without words")


def _mapped(descriptor: int) -> mmap.mmap:
    return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)


def _digest(channel: str) -> bytes:
    return hashlib.blake2b(channel.encode(), digest_size=8).digest()
