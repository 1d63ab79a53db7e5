"""Runs the Spark job of one batch: it takes splits of the relay log, and returns encoded chunks in the order of the
splits (design D1).

Tasks are pure (split_task); Spark may run one twice. Only the name of a large result passes through the JVM, because
rows through py4j cost 19 ms/MB. A probe file shows whether an executor sees the relay log. If it does not, tasks read
the archive from which the relay log was made, or get its bytes (`carried`), and their results return through Spark.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from rplctl.applier.spark.carried import Archived, archived, carried, table_maps
from rplctl.applier.spark.cluster import Cluster, is_over, look_around, own_versions, refuse_other_versions
from rplctl.applier.spark.failure import TasksFailed, await_end_of_java, limited_attempts, words_of
from rplctl.applier.spark.pool import ChannelPool
from rplctl.applier.spark.split_task import (
    Split,
    SplitResult,
    chunks_of,
    encode_chunks,
    pieces_of,
    run_on_executor,
    run_split,
)
from rplctl.decode.copied_rows import CopyPiece, decode_here
from rplctl.decode.ordered_rows import OrderedPiece
from rplctl.errors import TargetError
from rplctl.schema.plan import Catalog, Changes
from rplctl.target.base import TableChunk, no_such_table

if TYPE_CHECKING:
    from pyspark import Broadcast, SparkContext

SMALL_JOB = 4 << 20  # bytes of relay log for one task, which this process decodes sooner (bench_crossover)
LARGEST_CARRIED = 64 << 20  # bytes; a Spark message has room for 128 MB. Larger splits are decoded by this process.
NO_LIMIT = 1 << 62
CARRIED_JOB = 128 << 20  # bytes of a job whose bytes or results are sent: they are in the driver's JVM, which has 1 GB
_warm: WeakSet[SparkContext] = WeakSet()  # contexts that have run a job
_warming = threading.Lock()


def is_worth_a_job(size: int) -> bool:
    """True if so many bytes of the relay log are worth a Spark job."""
    return size > SMALL_JOB


class UnknownTables(TargetError):
    """Error 1146 with the names of all tables whose models the catalog lacks. A target that is a server may have these
    tables.
    """

    def __init__(self, names: list[tuple[str, str]]) -> None:
        first = no_such_table(*names[0])
        super().__init__(first.message, errno=first.errno, hint=first.hint)
        self.names = names


class Pipeline:
    """Runs the tasks of batches on the caller's SparkContext, or in this process. The catalog is broadcast; later
    changes by DDL are sent with each job.

    With spark=always, a pool's tasks decode all ranges. Otherwise this process runs a small job with the same function,
    because a Spark job takes longer to start. Until Spark runs, this process runs all jobs. On a cluster, Spark runs
    all jobs: the operator has chosen its machines.
    `cluster`: the executors on other machines, if any. `open_context`: returns the context; it is called again if the
    cluster has ended the last one.
    `open_pool`: returns the pool whose tasks occupy all cores of the context, or None.
    """

    def __init__(
        self,
        open_context: Callable[[], SparkContext],
        before_job: Callable[[], None] = lambda: None,
        cluster: Cluster | None = None,
        open_pool: Callable[[], ChannelPool | None] = lambda: None,
    ) -> None:
        self._open_context = open_context
        self._before_job = before_job
        self._open_pool = open_pool
        self._pool: ChannelPool | None = None
        self.cluster = cluster
        self.has_begun = False
        self._beginning: Future[None] | None = None
        self._cores = os.cpu_count() or 1
        self.spark_jobs = self.small_jobs = 0
        self._catalog = Catalog()
        self._broadcast: Broadcast[Catalog] | None = None
        self._lock = threading.Lock()  # two jobs may run at a time, because one is decoded in advance

    def begin(self) -> None:
        """Start Spark, and run a first job without rows, because the first job takes 0.3 s longer.

        Channels that share a context run one such job.
        """
        if self.cluster is None and (pool := self._open_pool()) is not None:
            self._cores = self._context.defaultParallelism
            pool.pool.begin(self._context)
            pool.pool.await_task()
            self._pool = pool
        elif self.cluster is None:
            self._cores = self._context.defaultParallelism
            with _warming:
                if self._context not in _warm:
                    nothing = SplitResult(inline=b"".join(pieces_of(encode_chunks([]))))
                    self._collect(range(self._cores), Catalog(), lambda _, catalog: nothing)
                    _warm.add(self._context)
        else:
            self.cluster.await_executors(self._context)
            probe = self.cluster.probe
            found = self._collect(range(2 * self.parallelism), Catalog(), lambda _, catalog: look_around(probe))
            refuse_other_versions(found, own_versions())
            self.cluster.carries = not all(executor.sees_files for executor in found)
        self.spark_jobs = 0
        self.has_begun = True

    def begin_beside(self, ended: Callable[[], None] = lambda: None) -> None:
        """Run `begin` in a thread, which calls `ended` at its end; a second call has no effect.

        The process does not wait for the thread to end: its JVM notices by itself that the process has ended.
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
        """Raise the error if the thread of `begin_beside` has ended with one. `wanted`: True to wait until it has
        ended.
        """
        if self._beginning is not None and (wanted or self._beginning.done()):
            self._beginning.result()

    @cached_property
    def _context(self) -> SparkContext:
        return self._open_context()

    def decode(self, splits: Sequence[Split], catalog: Catalog) -> list[TableChunk]:
        """Decode the splits of a job, and return all chunks in the order of the splits.

        Raises Inconsistent if the changes of a piece contradict each other, UnknownTables if the catalog lacks models,
        and the other errors of the tasks.
        """
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
        """Run `task` on each piece, and return the results, which must be small.

        On a cluster that does not see the relay log, this process runs the tasks, one after another. The tasks of a
        pool run the task that belongs to the type of the piece, not `task`.
        """
        if self._pool is not None:
            self.spark_jobs += 1
            return [answer.files for answer in self._pool.run(pieces, catalog)]
        if not self.uses_spark:
            self.small_jobs += 1
            return [task(piece, catalog) for piece in pieces]
        return self._collect(pieces, catalog, task)

    def copy(self, pieces: Sequence[CopyPiece], catalog: Catalog) -> Iterable[TableChunk]:
        """Decode rows of a copy, and return them in the order of the pieces. Raises the errors of `copied_chunk`.

        The tasks of a pool that takes all rows decode them; otherwise this process decodes each piece when its chunk is
        requested.
        """
        if self._pool is None or not self._pool.takes_all:
            return decode_here(pieces)
        self.spark_jobs += 1
        return self._pool.chunks(pieces, catalog)

    @property
    def takes_all(self) -> bool:
        """True if a pool's tasks decode all rows, even if there are few."""
        return self._pool is not None and self._pool.takes_all

    def in_order(self, pieces: Sequence[OrderedPiece], catalog: Catalog) -> list[TableChunk]:
        """Decode rows events whose order counts, by tasks of the pool (`takes_all`), and return one chunk for each
        event.
        """
        assert self._pool is not None
        self.spark_jobs += 1
        return self._pool.chunks(pieces, catalog)

    def _results(self, splits: Sequence[Split], catalog: Catalog) -> list[SplitResult]:
        if self.cluster is None:
            is_worth = is_worth_a_job(sum(split.end - split.start for split in splits))
            if self._pool is not None and (is_worth or self._pool.takes_all):
                self.spark_jobs += 1
                return [answer.split or SplitResult() for answer in self._pool.run(splits, catalog)]
            if self.has_begun and is_worth:
                return self._by_spark(self._collect(splits, catalog, run_split))
            self.small_jobs += 1
            return [run_split(split, catalog) for split in splits]
        left = dict(enumerate(splits))
        found = {} if self.cluster.carries else self._of_files(left, catalog)
        self.cluster.carries = len(found) < len(left)
        for read in (self._of_archive, self._of_carried):
            left = {number: split for number, split in left.items() if number not in found}
            found |= read(left, catalog)
        return [found[n] if n in found else run_split(split, catalog) for n, split in enumerate(splits)]

    def _by_spark(self, results: list[SplitResult]) -> list[SplitResult]:
        return [replace(result, by_spark=True) for result in results]

    def _of_files(self, splits: Mapping[int, Split], catalog: Catalog) -> dict[int, SplitResult]:
        """Decode the splits on executors that see the relay log. Return number → result of the splits that they could
        decode.
        """
        assert self.cluster is not None
        probe = self.cluster.probe
        found = self._there({n: replace(split, probe=probe) for n, split in splits.items()}, catalog)
        if found:
            self.cluster.reads("the executors read the relay log")
        return found

    def _of_archive(self, splits: Mapping[int, Split], catalog: Catalog) -> dict[int, SplitResult]:
        """Decode the splits from the archive; return number → result.

        The archive is not used again if no executor sees it.
        """
        assert self.cluster is not None
        if (archive := self.cluster.archive) is None:
            return {}
        pieces = {n: archived(s.path, s.start, s.end, archive, s.source) for n, s in splits.items()}
        named = {n: _carrying(splits[n], piece) for n, piece in pieces.items() if piece}
        found = self._there(named, catalog)
        if found:
            self.cluster.reads(f"the executors read {archive}")
        elif named:
            self.cluster.archive = None
        return found

    def _of_carried(self, splits: Mapping[int, Split], catalog: Catalog) -> dict[int, SplitResult]:
        assert self.cluster is not None
        if splits:
            self.cluster.reads("the executors do not see the data directory: the relay log's bytes are sent to them")
        small = [(n, split) for n, split in splits.items() if split.end - split.start <= LARGEST_CARRIED]
        return self._there({n: _carrying(s, carried(s.path, s.start, s.end)) for n, s in small}, catalog)

    def _there(self, splits: Mapping[int, Split], catalog: Catalog) -> dict[int, SplitResult]:
        """Decode the splits on executors. Return number → result of the splits whose bytes an executor could read."""
        if not splits:
            return {}
        task = partial(run_on_executor, versions=own_versions())
        results = self._by_spark(self._collect(list(splits.values()), catalog, task))
        return {number: result for number, result in zip(splits, results, strict=True) if not result.is_unseen}

    def _collect(self, pieces: Sequence[Any], catalog: Catalog, task: Callable[[Any, Catalog], Any]) -> list[Any]:
        """Run one job, which calls `task` with each piece and the catalog. Return the results in the order of the
        pieces.
        """
        self.spark_jobs += 1
        while True:
            context = self._context
            with limited_attempts(context, self.cluster) as ended:
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
        """Return a broadcast catalog, and the changes that turn it into the wanted catalog.

        If more than a hundredth has changed, the wanted catalog itself is broadcast: sending 20,000 tables with each
        job takes seconds.
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
        """Open another context if the cluster has ended this one, because its master was lost or executors died too
        often. True if it did.
        """
        if self.cluster is None or given_up._jsc is None or not is_over(given_up):
            return False
        with self._lock:
            if self._context is given_up:
                self._broadcast = None
                self._context = self._open_context()
            return self._context is not given_up

    @property
    def uses_spark(self) -> bool:
        """True if Spark tasks, and not this process, run the pieces of `run`."""
        return not self.cluster.carries if self.cluster is not None else self.has_begun

    @property
    def workers(self) -> int:
        """The number of Spark tasks that run at a time; 0 until Spark runs."""
        if self._pool is not None:
            return self._pool.pool.workers
        return self._context.defaultParallelism if self.has_begun else 0

    @property
    def failed_attempts(self) -> int:
        """The number of attempts in the pool whose task died, froze or answered wrongly. Another attempt decoded these
        ranges.
        """
        return self._pool.pool.failures if self._pool is not None else 0

    @property
    def job_name(self) -> str:
        """The name of the pool's long-running job; '' without a pool."""
        return self._pool.pool.job_name if self._pool is not None else ""

    @property
    def largest_job(self) -> int:
        """The largest number of bytes of the relay log in one job."""
        return CARRIED_JOB if self.cluster is not None and self.cluster.carries else NO_LIMIT

    @property
    def parallelism(self) -> int:
        """The number of tasks that run at a time.

        If this process decodes, tasks run one after another, and the number only limits their memory.
        """
        return self._context.defaultParallelism if self.has_begun and self.cluster else self._cores


def _carrying(split: Split, piece: bytes | Archived) -> Split:
    """Return the split for an executor that does not see the relay log. `piece`: the bytes to decode, or their place in
    the archive.
    """
    pieces = (*table_maps(split.path, split.table_maps, split.start), (split.start, piece))
    return replace(split, path="", spool_folder="", carried=pieces)
