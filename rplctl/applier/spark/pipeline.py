"""The Spark job of one batch: splits of the relay log in, encoded chunks out, in split order (design D1).

Tasks are pure and never write to the target; Spark may run one twice. A result above SPOOL_THRESHOLD goes to a 0600
file of its own in the channel's spool folder and only its name travels through the JVM (rows through py4j cost 19
ms/MB). On a machine that does not see the relay log, which a witness file tells, tasks read the archive that it was
made of, or get its bytes (`carried`), and their results come back through Spark. Errors come back as values: an
exception would arrive as a Java stack trace.
"""

from __future__ import annotations

import marshal
import mmap
import os
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import numpy as np

from rplctl import mysql_errors as er
from rplctl.applier.decode.event_filter import filtered
from rplctl.applier.decode.filter_rules import ReplicationFilter
from rplctl.applier.decode.net_changes import Inconsistent, net_chunks
from rplctl.applier.decode.row_stream import read_run, unknown_tables
from rplctl.applier.spark.carried import Archived, Piece, archived, as_file, carried, table_maps
from rplctl.applier.spark.cluster import (
    Cluster,
    Versions,
    Witness,
    is_over,
    look_around,
    own_versions,
    refuse_other_versions,
)
from rplctl.applier.spark.failure import TasksFailed, await_end_of_java, limited_attempts, words_of
from rplctl.durable import PRIVATE_FILE, private_folder
from rplctl.errors import BinlogFormatError, RplError, TargetError
from rplctl.event.cells import LARGE_CELL
from rplctl.event.format_description import FormatDescription
from rplctl.event.large_text import LargeText
from rplctl.position import BinlogPosition
from rplctl.schema.plan import Catalog, Changes
from rplctl.target.base import (
    BulkRows,
    ChangeKind,
    EncodedRows,
    Pieces,
    RowChange,
    RowSet,
    TableChunk,
    Value,
    no_such_table,
)
from rplctl.target.registry import DEFAULT_KIND

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyspark import Broadcast, SparkContext

    Bytes = NDArray[np.uint8]

SPOOL_THRESHOLD = 1 << 20  # bytes
SMALL_JOB = 4 << 20  # bytes of relay log, no more than one task would get: decoded here sooner (bench_crossover)
LARGEST_CARRIED = 64 << 20  # bytes; a message of Spark's has room for 128 MB. What is larger is decoded here.
NO_LIMIT = 1 << 62
CARRIED_JOB = 128 << 20  # bytes of a job whose bytes or results travel: they lie in the driver's JVM, which has 1 GB
_LENGTH = 8
_warm: WeakSet[SparkContext] = WeakSet()  # that have run a job
_warming = threading.Lock()


def is_worth_a_job(size: int) -> bool:
    """`size`: bytes of relay log."""
    return size > SMALL_JOB


@dataclass(frozen=True, slots=True)
class Split:
    """One task: a byte range of a relay log and what is needed to read it."""

    path: str
    start: int
    end: int
    table_maps: tuple[int, ...]  # offsets of the table maps in force at `start`
    description: FormatDescription
    spool_folder: str
    target_kind: str = DEFAULT_KIND
    rules: ReplicationFilter = ReplicationFilter()
    bulk_rows: int = 0  # Target.bulk_rows
    framed: bool = False  # Target.takes_frames
    in_order: frozenset[tuple[str, str]] = frozenset()  # tables whose changes are wanted one by one
    witness: Witness | None = None  # who does not see it does not see the file either
    source: BinlogPosition = BinlogPosition("", 0)  # where it stood at `start`, if nothing was left out on the way
    carried: tuple[Piece, ...] = ()  # instead of the file: what of it is needed


@dataclass(frozen=True, slots=True)
class SplitResult:
    """Exactly one of: chunks inline, chunks in a spool file, an error's fields, `is_unseen` (the file is not there), or
    none of them (Inconsistent). `unknown`: with error 1146, the tables whose model is not in the catalog."""

    inline: bytes | None = None
    spooled: str | None = None
    error: dict[str, Any] | None = None
    unknown: tuple[tuple[str, str], ...] = ()
    is_unseen: bool = False


class UnknownTables(TargetError):
    """Error 1146, with all the tables whose models the catalog lacks: a target that describes itself may have them."""

    def __init__(self, names: list[tuple[str, str]]) -> None:
        first = no_such_table(*names[0])
        super().__init__(first.message, errno=first.errno, hint=first.hint)
        self.names = names


class Pipeline:
    """Runs batches on the caller's SparkContext; the catalog travels as a broadcast and what DDL has changed since.

    A small job is run in this process, by the same function: a job of Spark takes longer to begin than that to end. So
    are all jobs until Spark runs. On a cluster all jobs are Spark's: the operator chose where they run.

    `cluster`: where its tasks may run on other machines; `open_context` is called again when that gave the context up.
    """

    def __init__(
        self,
        open_context: Callable[[], SparkContext],
        before_job: Callable[[], None] = lambda: None,
        cluster: Cluster | None = None,
    ) -> None:
        self._open_context = open_context
        self._before_job = before_job
        self._cluster = cluster
        self.has_begun = False
        self._beginning: Future[None] | None = None
        self._cores = os.cpu_count() or 1
        self.spark_jobs = self.small_jobs = 0
        self._catalog = Catalog()
        self._broadcast: Broadcast[Catalog] | None = None
        self._lock = threading.Lock()  # two jobs at a time: one is decoded ahead

    def begin(self) -> None:
        """Before anything is decoded: with a first job, which takes 0.3 s longer than those that follow. Channels that
        share a context run one.
        """
        if self._cluster is None:
            self._cores = self._context.defaultParallelism
            with _warming:
                if self._context not in _warm:
                    nothing = SplitResult(b"".join(pieces_of(encode_chunks([]))))
                    self._collect(range(self._cores), Catalog(), lambda _, catalog: nothing)
                    _warm.add(self._context)
        else:
            self._cluster.await_executors(self._context)
            witness = self._cluster.witness
            found = self._collect(range(2 * self.parallelism), Catalog(), lambda _, catalog: look_around(witness))
            refuse_other_versions(found, own_versions())
            self._cluster.carries = not all(executor.sees_files for executor in found)
        self.spark_jobs = 0
        self.has_begun = True

    def begin_beside(self, ended: Callable[[], None] = lambda: None) -> None:
        """As `begin`, on a thread of its own, which then calls `ended`; once. The process does not wait for it to end:
        its JVM sees that by itself.
        """
        if self.has_begun or self._beginning is not None:
            return
        beginning = self._beginning = Future[None]()
        beginning.add_done_callback(lambda _: ended())

        def begin() -> None:
            try:
                self.begin()
            except Exception as error:  # noqa: BLE001 - the thread boundary: `await_begun` raises it
                beginning.set_exception(error)
            else:
                beginning.set_result(None)

        threading.Thread(target=begin, daemon=True, name="rplctl-spark").start()

    def await_begun(self, *, wanted: bool = True) -> None:
        """Raises what `begin_beside` has ended with; `wanted`: when it has, else only if it has already."""
        if self._beginning is not None and (wanted or self._beginning.done()):
            self._beginning.result()

    @cached_property
    def _context(self) -> SparkContext:
        return self._open_context()

    def decode(self, splits: Sequence[Split], catalog: Catalog) -> list[TableChunk]:
        """All chunks of a batch in split order. Raises Inconsistent, UnknownTables, and what the tasks met."""
        results = self._results(splits, catalog)
        try:
            if unknown := {name for result in results for name in result.unknown}:
                raise UnknownTables(sorted(unknown))
            return [chunk for result in results for chunk in chunks_of(result)]
        finally:
            for result in results:
                if result.spooled:
                    Path(result.spooled).unlink(missing_ok=True)

    def run(self, pieces: Sequence[Any], catalog: Catalog, task: Callable[[Any, Catalog], Any]) -> list[Any]:
        """`task` of each piece, for tasks whose results are small. On a cluster that does not see the relay log they
        are done here, one after another.
        """
        if self._cluster.carries if self._cluster is not None else not self.has_begun:
            return [task(piece, catalog) for piece in pieces]
        return self._collect(pieces, catalog, task)

    def _results(self, splits: Sequence[Split], catalog: Catalog) -> list[SplitResult]:
        if self._cluster is None:
            if self.has_begun and is_worth_a_job(sum(split.end - split.start for split in splits)):
                return self._collect(splits, catalog, run_split)
            self.small_jobs += 1
            return [run_split(split, catalog) for split in splits]
        left = dict(enumerate(splits))
        found = {} if self._cluster.carries else self._of_files(left, catalog)
        self._cluster.carries = len(found) < len(left)
        for read in (self._of_archive, self._of_carried):
            left = {number: split for number, split in left.items() if number not in found}
            found |= read(left, catalog)
        return [found[n] if n in found else run_split(split, catalog) for n, split in enumerate(splits)]

    def _of_files(self, splits: Mapping[int, Split], catalog: Catalog) -> dict[int, SplitResult]:
        """Those whose executors saw the relay log, by number."""
        assert self._cluster is not None
        witness = self._cluster.witness
        found = self._there({n: replace(split, witness=witness) for n, split in splits.items()}, catalog)
        if found:
            self._cluster.reads("the executors read the relay log")
        return found

    def _of_archive(self, splits: Mapping[int, Split], catalog: Catalog) -> dict[int, SplitResult]:
        """Those whose executors saw the same in the archive. One of which they see nothing is left alone."""
        assert self._cluster is not None
        if (archive := self._cluster.archive) is None:
            return {}
        pieces = {n: archived(s.path, s.start, s.end, archive, s.source) for n, s in splits.items()}
        named = {n: _carrying(splits[n], piece) for n, piece in pieces.items() if piece}
        found = self._there(named, catalog)
        if found:
            self._cluster.reads(f"the executors read {archive}")
        elif named:
            self._cluster.archive = None
        return found

    def _of_carried(self, splits: Mapping[int, Split], catalog: Catalog) -> dict[int, SplitResult]:
        assert self._cluster is not None
        if splits:
            self._cluster.reads("the executors do not see the data directory: the bytes of the relay log travel")
        small = [(n, split) for n, split in splits.items() if split.end - split.start <= LARGEST_CARRIED]
        return self._there({n: _carrying(s, carried(s.path, s.start, s.end)) for n, s in small}, catalog)

    def _there(self, splits: Mapping[int, Split], catalog: Catalog) -> dict[int, SplitResult]:
        """Each on an executor; without those that found no bytes there."""
        if not splits:
            return {}
        task = partial(run_on_executor, versions=own_versions())
        results = self._collect(list(splits.values()), catalog, task)
        return {number: result for number, result in zip(splits, results, strict=True) if not result.is_unseen}

    def _collect(self, pieces: Sequence[Any], catalog: Catalog, task: Callable[[Any, Catalog], Any]) -> list[Any]:
        """One job: `task` of each piece and the catalog, results in the order of the pieces."""
        self.spark_jobs += 1
        while True:
            context = self._context
            with limited_attempts(context, self._cluster) as ended:
                try:
                    return self._run_job(context, pieces, catalog, task)
                except Exception as error:
                    await_end_of_java(error)
                    if not self._begins_anew(context):
                        raise TasksFailed(ended[0] if ended else words_of(error)) from error

    def _run_job(
        self, context: SparkContext, pieces: Sequence[Any], catalog: Catalog, task: Callable[[Any, Catalog], Any]
    ) -> list[Any]:
        self._before_job()
        shared, changes = self._share(context, catalog)
        job = context.parallelize(pieces, len(pieces))
        return job.map(lambda piece: task(piece, shared.value.changed(*changes))).collect()

    def _share(self, context: SparkContext, catalog: Catalog) -> tuple[Broadcast[Catalog], Changes]:
        """A catalog that the executors have, and what makes the wanted one of it while that is a hundredth at most: to
        send all of 20,000 tables after each statement takes seconds.
        """
        with self._lock:
            if self._broadcast is not None:
                tables, databases = changes = self._catalog.changes_to(catalog)
                if len(tables) + len(databases) <= len(self._catalog.tables) // 100:
                    return self._broadcast, changes
                self._broadcast.unpersist()
            self._catalog, self._broadcast = catalog, context.broadcast(catalog)
            return self._broadcast, ({}, {})

    def _begins_anew(self, given_up: SparkContext) -> bool:
        """Where the cluster, not we, ended the context: its master was lost, or executors died too often."""
        if self._cluster is None or given_up._jsc is None or not is_over(given_up):
            return False
        with self._lock:
            if self._context is given_up:
                self._broadcast = None
                self._context = self._open_context()
            return self._context is not given_up

    @property
    def largest_job(self) -> int:
        """Bytes of relay log."""
        return CARRIED_JOB if self._cluster is not None and self._cluster.carries else NO_LIMIT

    @property
    def parallelism(self) -> int:
        """Tasks at a time. What is decoded here goes one after another, and only its memory hangs on it."""
        return self._context.defaultParallelism if self.has_begun and self._cluster else self._cores


def _carrying(split: Split, piece: bytes | Archived) -> Split:
    """The same for a machine that does not have the file. `piece`: what is in the place of its bytes."""
    pieces = (*table_maps(split.path, split.table_maps, split.start), (split.start, piece))
    return replace(split, path="", spool_folder="", carried=pieces)


def bytes_of(split: Split) -> Bytes | None:
    """The file, as far as the split needs it. None: it is not to be seen here, or not up to there yet."""
    if split.carried:
        return as_file(split.carried, split.end)
    if split.witness is not None and not split.witness.is_seen():
        return None
    try:
        data = np.memmap(split.path, np.uint8, "r")
    except FileNotFoundError:
        if split.witness is None:
            raise
        return None
    return data if split.witness is None or len(data) >= split.end else None


def run_split(split: Split, catalog: Catalog) -> SplitResult:
    """The task. Reads only its part of the file (memory map)."""
    data = bytes_of(split)
    if data is None:
        return SplitResult(is_unseen=True)
    try:
        run = read_run(data, split.start, split.end, split.description, split.table_maps)
        run = filtered(run, split.rules)
        chunks = net_chunks(
            run, catalog, split.target_kind, split.bulk_rows, framed=split.framed, in_order=split.in_order
        )
        parts = encode_chunks(chunks)
    except Inconsistent:
        return SplitResult()
    except RplError as error:
        unknown = unknown_tables(run, catalog) if error.errno == er.NO_SUCH_TABLE else []
        return SplitResult(error=_shown(error), unknown=tuple(unknown))
    if not split.spool_folder or sum(map(len, parts)) <= SPOOL_THRESHOLD:
        return SplitResult(inline=b"".join(pieces_of(parts)))
    path = private_folder(Path(split.spool_folder)) / f"{uuid.uuid4().hex}.chunks"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE)
    with os.fdopen(descriptor, "wb") as file:
        file.writelines(pieces_of(parts))
    return SplitResult(spooled=str(path))


def run_on_executor(split: Split, catalog: Catalog, versions: Versions) -> SplitResult:
    """The task elsewhere. `versions`: the applier's; an executor may have come since the first job compared them."""
    try:
        refuse_other_versions([look_around(None)], versions)
    except RplError as error:
        return SplitResult(error=_shown(error))
    return run_split(split, catalog)


def _shown(error: RplError) -> dict[str, Any]:
    kind = "format" if isinstance(error, BinlogFormatError) else "error"
    return {"kind": kind, **{name: getattr(error, name) for name in ("message", "errno", "position", "hint")}}


def encode_chunks(chunks: Sequence[TableChunk]) -> list[bytes | memoryview | Pieces]:
    """The bytes of a result, in parts:

    8 bytes     length of what follows, little-endian
    …           chunks as plain tuples in `marshal`'s format: the fastest way to many small values, and it runs no
                code on loading; of an encoded text only its length
    …           the encoded texts and large values, in the tuples' order: whoever reads them needs no copy; in the
                place of such a value is a tuple: its length, whether it is text
    """
    texts: list[bytes | memoryview | Pieces] = []
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
                (c.database, c.table, c.absent, c.deletes),
                [(s.columns, s.rows) for s in c.updates],
                [(s.columns, s.rows) for s in c.inserts],
                [(int(o.kind), *(r and (r.columns, r.rows) for r in (o.before, o.after))) for o in c.ordered],
                (c.change_count, c.foreign_keys_off, c.cascades_logged),
                c.bulk and [(e.columns, e.count, len(e.text), e.keys, e.framed) for e in c.bulk.parts],
                (c.width, c.has_views),
            )
            for c in chunks
        ]
    )
    return [len(plain).to_bytes(_LENGTH, "little"), plain, *texts]


def _utf8(text: str) -> bytes | None:
    """None where there is none: half a surrogate pair."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return None


def pieces_of(parts: Sequence[bytes | memoryview | Pieces]) -> Iterator[bytes | memoryview]:
    for part in parts:
        yield from (part,) if isinstance(part, bytes | memoryview) else part


def decode_chunks(encoded: bytes | mmap.mmap) -> list[TableChunk]:
    """The inverse of `encode_chunks`; encoded texts are views of `encoded`."""
    view = memoryview(encoded)
    at = _LENGTH + int.from_bytes(view[:_LENGTH], "little")
    found = []
    for rows, updates, inserts, ordered, facts, bulk, more in marshal.loads(view[_LENGTH:at]):
        parts = []
        for columns, count, length, row_keys, framed in bulk or ():
            parts.append(EncodedRows(columns, count, view[at : at + length], row_keys, framed))
            at += length
        fields = [*rows, [RowSet(*s) for s in updates], [RowSet(*s) for s in inserts]]
        fields += [[RowChange(ChangeKind(kind), b and RowSet(*b), a and RowSet(*a)) for kind, b, a in ordered]]
        fields += [*facts, BulkRows(*parts) if bulk else None, *more]
        found.append(TableChunk(*fields))

    def put_back(value: Any) -> Value:
        nonlocal at
        if not isinstance(value, tuple):
            return value  # type: ignore[no-any-return]
        length, is_text = value
        at += length
        raw = view[at - length : at]
        return LargeText(raw, "utf8mb4", length) if is_text else raw

    return [_mapped(chunk, put_back) if chunk.has_views else chunk for chunk in found]


def _mapped(chunk: TableChunk, change: Callable[[Any], Any]) -> TableChunk:
    """`change` of each value that may be a large one."""

    def row_set(rows: RowSet) -> RowSet:
        return RowSet(rows.columns, [tuple(map(change, row)) for row in rows.rows])

    def row_change(o: RowChange) -> RowChange:
        return RowChange(o.kind, o.before and row_set(o.before), o.after and row_set(o.after))

    updates, inserts = [*map(row_set, chunk.updates)], [*map(row_set, chunk.inserts)]
    return replace(chunk, updates=updates, inserts=inserts, ordered=[*map(row_change, chunk.ordered)])


def chunks_of(result: SplitResult) -> list[TableChunk]:
    if result.error is not None:
        fields = dict(result.error)
        raise (BinlogFormatError if fields.pop("kind") == "format" else RplError)(**fields)
    if result.spooled is not None:  # mapped for as long as a text of it is in use: a batch's rows are not held here
        with open(result.spooled, "rb") as file:
            return decode_chunks(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    if result.inline is None:
        raise Inconsistent("a split")
    return decode_chunks(result.inline)
