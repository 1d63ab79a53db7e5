"""The Spark task for one split: it reads a range of the relay log and returns encoded net changes (design D1).

Tasks never write to the target, so a task may run twice. A result above SPOOL_THRESHOLD bytes goes to a file of its own
(mode 0600) in the channel's spool folder. The task then returns only the name of the file. If the disk is full, the
task returns the result itself. Errors are returned as values, because an exception would arrive as a Java stack trace.
"""

from __future__ import annotations

import errno
import marshal
import mmap
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rplctl import mysql_errors as er
from rplctl.applier.spark.carried import Piece, as_file
from rplctl.applier.spark.cluster import Versions, VisibilityProbe, look_around, refuse_other_versions
from rplctl.decode.event_filter import filtered
from rplctl.decode.filter_rules import ReplicationFilter
from rplctl.decode.net_changes import Inconsistent, net_chunks
from rplctl.decode.row_stream import read_run, unknown_tables
from rplctl.durable import PRIVATE_FILE, private_folder
from rplctl.errors import BinlogFormatError, RelayLogError, RplError
from rplctl.event.cells import LARGE_CELL
from rplctl.event.format_description import FormatDescription
from rplctl.event.large_text import LargeText
from rplctl.event.mapped import mapped_to
from rplctl.position import BinlogPosition
from rplctl.schema.plan import Catalog
from rplctl.target.base import BulkRows, ChangeKind, EncodedRows, LazyBytes, Row, RowChange, RowSet, TableChunk, Value
from rplctl.target.column_rows import ColumnRows
from rplctl.target.registry import DEFAULT_KIND

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]

SPOOL_THRESHOLD = 1 << 20  # bytes
_FULL = (errno.ENOSPC, errno.EDQUOT)
_LENGTH = 8
ERRORS = {"format": BinlogFormatError, "log": RelayLogError, "error": RplError}


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The input of one task: a range of bytes of a relay log, and all information that is necessary to read it."""

    path: str
    start: int
    end: int
    table_maps: tuple[int, ...]  # offsets of the table maps in force at `start`
    description: FormatDescription
    spool_folder: str
    target_kind: str = DEFAULT_KIND
    rules: ReplicationFilter = ReplicationFilter()
    bulk_rows: int = 0  # Target.bulk_rows
    length_prefixed: bool = False  # Target.takes_length_prefixed
    in_order: frozenset[tuple[str, str]] = frozenset()  # keyless tables whose changes stay separate
    probe: VisibilityProbe | None = None  # an executor that does not see the probe does not see the file either
    source: BinlogPosition = BinlogPosition("", 0)  # the source position at `start`, if no events were skipped
    carried: tuple[Piece, ...] = ()  # the needed bytes, instead of the file
    spool_name: str = ""  # the name of the file for a large result; empty: a random name


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitResult:
    """The result of a task for a split.

    If the changes contradict each other, all of these fields are empty. Otherwise, exactly one of them is set:

    * `inline`: encoded chunks (each has changes of one table)
    * `spooled`: the path of a file with encoded chunks
    * `chunks`: chunks that are not encoded
    * `error`: the fields of an RplError. With error 1146, `unknown` has the tables whose models the catalog lacks.
    * `is_unseen`: True if the file is missing
    """

    inline: bytes | None = None
    spooled: str | None = None
    error: dict[str, Any] | None = None
    unknown: tuple[tuple[str, str], ...] = ()
    is_unseen: bool = False
    rows: int = 0  # row changes in the chunks
    chunks: list[TableChunk] | None = None  # the chunks, not encoded
    by_spark: bool = False  # True if a Spark task decoded the rows


def bytes_of(split: Split) -> Bytes | None:
    """Return the bytes of the split's file up to the split's end.

    Return None if this machine cannot see the file, or if an executor sees only a shorter file.
    """
    if split.carried:
        return as_file(split.carried, split.end)
    if split.probe is not None and not split.probe.is_seen():
        return None
    try:
        data = mapped_to(split.path, split.end)
    except FileNotFoundError:
        if split.probe is None:
            raise
        return None
    return data if split.probe is None or len(data) >= split.end else None


def run_split(split: Split, catalog: Catalog) -> SplitResult:
    """Decode one split, and return the net changes of its tables. Only the split's part of the file is read."""
    data = bytes_of(split)
    if data is None:
        return SplitResult(is_unseen=True)
    try:
        run = read_run(data, split.start, split.end, split.description, split.table_maps)
        run = filtered(run, split.rules)
        chunks = net_chunks(
            run,
            catalog,
            split.target_kind,
            split.bulk_rows,
            length_prefixed=split.length_prefixed,
            in_order=split.in_order,
        )
        rows, parts = sum(chunk.change_count for chunk in chunks), encode_chunks(chunks)
    except Inconsistent:
        return SplitResult()
    except RplError as error:
        unknown = unknown_tables(run, catalog) if error.errno == er.NO_SUCH_TABLE else []
        return SplitResult(error=shown_error(error), unknown=tuple(unknown))
    return packed(parts, rows, split.spool_folder, split.spool_name)


def packed(
    parts: Sequence[bytes | memoryview | LazyBytes], rows: int, spool_folder: str, spool_name: str
) -> SplitResult:
    """Return a result with these encoded chunks, inline or in a spool file.

    The file is used if the chunks are large, and if there is a folder with enough room. A full disk must not end an
    applier, because its next commits make room: they remove relay logs and chunk files.
    """
    if spool_folder and sum(map(len, parts)) > SPOOL_THRESHOLD:
        path = Path(spool_folder, spool_name or f"{uuid.uuid4().hex}.chunks")
        try:
            _write(path, parts)
        except OSError as error:
            path.unlink(missing_ok=True)
            if error.errno not in _FULL:
                raise
        else:
            return SplitResult(spooled=str(path), rows=rows)
    return SplitResult(inline=b"".join(pieces_of(parts)), rows=rows)


def _write(path: Path, parts: Sequence[bytes | memoryview | LazyBytes]) -> None:
    private_folder(path.parent)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE)
    with os.fdopen(descriptor, "wb") as file:
        file.writelines(pieces_of(parts))


def run_on_executor(split: Split, catalog: Catalog, versions: Versions) -> SplitResult:
    """Decode one split on another machine.

    `versions`: the applier's versions. They are compared for each split, because executors come and go.
    """
    try:
        refuse_other_versions([look_around(None)], versions)
    except RplError as error:
        return SplitResult(error=shown_error(error))
    return run_split(split, catalog)


def shown_error(error: RplError) -> dict[str, Any]:
    """Return the error's fields as a dictionary. `chunks_of` creates the error from it again."""
    is_format, is_of_log = isinstance(error, BinlogFormatError), isinstance(error, RelayLogError)
    kind = "format" if is_format else "log" if is_of_log else "error"
    names = ("message", "errno", "position", "hint", "transient")
    return {"kind": kind, **{name: getattr(error, name) for name in names}}


def encode_chunks(chunks: Sequence[TableChunk]) -> list[bytes | memoryview | LazyBytes]:
    """Return the chunks as bytes, in parts, from which `decode_chunks` restores them:

    8 bytes     the length of the next part, little-endian
    …           the chunks as plain tuples in `marshal`'s format, which is fastest for many small values and runs
                no code on loading; an encoded text is represented by its length
    …           the encoded texts and large values, in the tuples' order, so that readers need no copy; such a value
                is represented by a tuple of its length and True if it is text
    """
    texts: list[bytes | memoryview | LazyBytes] = []
    for chunk in chunks:
        if chunk.bulk is not None:
            texts += [rows.text for rows in chunk.bulk.parts]

    def lifted(value: Value) -> Any:
        match value:
            case memoryview() | LargeText():
                texts.append(value)
            case str() if len(value) > LARGE_CELL and (raw := _utf8(value)) is not None:
                texts.append(raw)
            case _:
                return value
        return len(texts[-1]), not isinstance(value, memoryview)

    chunks = [_mapped(chunk, lifted) if chunk.has_views else chunk for chunk in chunks]
    plain = marshal.dumps(
        [
            (
                (c.database, c.table),
                c.absent,
                c.deletes,
                [(s.columns, s.rows) for s in c.updates],
                [(s.columns, *_plain(s.rows)) for s in c.inserts],
                [(int(o.kind), *(r and (r.columns, r.rows) for r in (o.before, o.after))) for o in c.ordered],
                (c.change_count, c.foreign_keys_off, c.cascades_logged),
                c.bulk and [(e.columns, e.count, len(e.text), e.keys, e.length_prefixed) for e in c.bulk.parts],
                (c.width, c.has_views),
            )
            for c in chunks
        ]
    )
    return [len(plain).to_bytes(_LENGTH, "little"), plain, *texts]


def _plain(rows: Sequence[Row]) -> tuple[Sequence[Any], bool]:
    """Return the rows as lists for `marshal`, and True if each list has the values of one column instead of one row."""
    return (rows.columns, True) if isinstance(rows, ColumnRows) else (rows, False)


def _utf8(text: str) -> bytes | None:
    """Return the text as UTF-8, or None if it contains half a surrogate pair, for which UTF-8 has no bytes."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return None


def pieces_of(parts: Sequence[bytes | memoryview | LazyBytes]) -> Iterator[bytes | memoryview]:
    for part in parts:
        yield from (part,) if isinstance(part, bytes | memoryview) else part


def decode_chunks(encoded: bytes | memoryview | mmap.mmap) -> list[TableChunk]:
    """Return the chunks that `encode_chunks` has encoded. Their texts are views of `encoded`, not copies."""
    view = memoryview(encoded)
    at = _LENGTH + int.from_bytes(view[:_LENGTH], "little")
    found = []
    for names, absent, deletes, updates, inserts, ordered, facts, bulk, more in marshal.loads(view[_LENGTH:at]):
        parts = []
        for columns, count, length, row_keys, length_prefixed in bulk or ():
            parts.append(EncodedRows(columns, count, view[at : at + length], row_keys, length_prefixed))
            at += length
        found.append(
            TableChunk(
                database=names[0],
                table=names[1],
                absent=absent,
                deletes=deletes,
                updates=[RowSet(*s) for s in updates],
                inserts=[_row_set(*s) for s in inserts],
                ordered=[
                    RowChange(kind=ChangeKind(kind), before=b and RowSet(*b), after=a and RowSet(*a))
                    for kind, b, a in ordered
                ],
                change_count=facts[0],
                foreign_keys_off=facts[1],
                cascades_logged=facts[2],
                bulk=BulkRows(*parts) if bulk else None,
                width=more[0],
                has_views=more[1],
            )
        )

    def put_back(value: Any) -> Value:
        nonlocal at
        if not isinstance(value, tuple):
            return value  # type: ignore[no-any-return]
        length, is_text = value
        at += length
        raw = view[at - length : at]
        return LargeText(raw, "utf8mb4", length) if is_text else raw

    return [_mapped(chunk, put_back) if chunk.has_views else chunk for chunk in found]


def _row_set(columns: tuple[int, ...], rows: list[Any], is_columns: bool) -> RowSet:
    return RowSet(columns, ColumnRows(rows) if is_columns else rows)


def _mapped(chunk: TableChunk, change: Callable[[Any], Any]) -> TableChunk:
    """Return the chunk with `change` applied to each value that may be large."""

    def row_set(rows: RowSet) -> RowSet:
        return RowSet(rows.columns, [tuple(map(change, row)) for row in rows.rows])

    def row_change(o: RowChange) -> RowChange:
        return RowChange(kind=o.kind, before=o.before and row_set(o.before), after=o.after and row_set(o.after))

    updates, inserts = [*map(row_set, chunk.updates)], [*map(row_set, chunk.inserts)]
    return replace(chunk, updates=updates, inserts=inserts, ordered=[*map(row_change, chunk.ordered)])


def chunks_of(result: SplitResult) -> list[TableChunk]:
    """Return the chunks of a result. Raises RplError or Inconsistent if the task has returned such an error."""
    found = _found_chunks(result)
    return [replace(chunk, by_spark=True) for chunk in found] if result.by_spark else found


def _found_chunks(result: SplitResult) -> list[TableChunk]:
    if result.chunks is not None:
        return result.chunks
    if result.error is not None:
        fields = dict(result.error)
        raise ERRORS[fields.pop("kind")](**fields)
    if result.spooled is not None:  # mapped only while one of its texts is in use, so that rows take no memory
        with open(result.spooled, "rb") as file:
            return decode_chunks(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    if result.inline is None:
        raise Inconsistent("a split")
    return decode_chunks(result.inline)
