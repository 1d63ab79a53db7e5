"""Runs the Spark job of a batch, which decodes splits (ranges of the relay log) into net changes of tables (design D1).

Tasks have no side effects (split_task.py), so Spark may run a task twice. Only the name of a large result passes
through the JVM, because rows through py4j cost 19 ms/MB. On a cluster, a probe file shows whether an executor sees the
relay log. If it does not, the tasks read the archive from which the relay log was made, or the driver sends them the
bytes (carried.py). The results then return through Spark.
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

SMALL_JOB = 4 << 20  # bytes of relay log up to which this process is faster than a Spark job (bench_crossover)
LARGEST_CARRIED = 64 << 20  # bytes; a Spark message has room for 128 MB. Larger splits are decoded by this process.
NO_LIMIT = 1 << 62
CARRIED_JOB = 128 << 20  # bytes of a job whose input or results are in the driver's JVM, which has 1 GB
_warm: WeakSet[SparkContext] = WeakSet()  # contexts that have run a job
_warming = threading.Lock()


def is_worth_a_job(size: int) -> bool:
    """True if `size` bytes of the relay log are worth a Spark job, because this process would need longer."""
    return size > SMALL_JOB


class UnknownTables(TargetError):
    """Error 1146 with the names of all tables whose models the catalog lacks.

    The caller can then read these models, if the target is a server and has the tables.
    """

    def __init__(self, names: list[tuple[str, str]]) -> None:
        first = no_such_table(*names[0])
        super().__init__(first.message, errno=first.errno, hint=first.hint)
        self.names = names


class Pipeline:
    """Runs the tasks of batches in Spark, or in this process.

    With spark=always, the tasks of a pool decode all ranges. With spark=auto, this process decodes small ranges itself,
    because a Spark job takes longer to start. Until Spark runs, this process decodes all ranges. On a cluster, Spark
    decodes all ranges, because the operator has chosen the machines. The catalog (the table models) is broadcast once,
    and each job gets the changes that DDL has made since.

    `open_context`: returns the Spark context. It is called again if the cluster has ended the context.
    `before_job`: called before each job. `cluster`: the executors on other machines, if any.
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
        self._lock = threading.Lock()  # two jobs may run at the same time, because one is decoded in advance

    def begin(self) -> None:
        """Start Spark, and run a first job without rows, because the first job takes 0.3 s longer than others.

        Channels that share a context run only one such job.
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
        """Run `begin` in a thread, which calls `ended` at its end. A second call has no effect.

        The process does not wait for the thread. When the process ends, its JVM notices this by itself.
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
        """Raise the error with which Spark failed to start, if `begin_beside` has been called.

        `wanted`: True to wait for the end of the start. Otherwise, only a start that has ended can raise its error.
        """
        if self._beginning is not None and (wanted or self._beginning.done()):
            self._beginning.result()

    @cached_property
    def _context(self) -> SparkContext:
        return self._open_context()

    def decode(self, splits: Sequence[Split], catalog: Catalog) -> list[TableChunk]:
        """Decode the splits of a job, and return the net changes of all tables, in the order of the splits.

        Raises Inconsistent if the changes of a split contradict each other, UnknownTables if the catalog lacks models,
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

        If the executors of a cluster do not see the relay log, this process runs the tasks, one after another. The
        tasks of a pool ignore `task`: the type of a piece determines what they do.
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

        If a pool decodes all rows, its tasks decode these, too. Otherwise this process decodes each piece when the
        caller requests its rows.
        """
        if self._pool is None or not self._pool.takes_all:
            return decode_here(pieces)
        self.spark_jobs += 1
        return self._pool.chunks(pieces, catalog)

    @property
    def takes_all(self) -> bool:
        """True if a pool's tasks decode all rows, even if there are only a few."""
        return self._pool is not None and self._pool.takes_all

    def in_order(self, pieces: Sequence[OrderedPiece], catalog: Catalog) -> list[TableChunk]:
        """Decode rows events whose order counts, in tasks of the pool. Return one chunk of changes for each event.

        Only for a pipeline with `takes_all`.
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
        """Decode the splits on executors that see the relay log.

        Return the results by the numbers of the splits, for the splits whose executors saw the file.
        """
        assert self.cluster is not None
        probe = self.cluster.probe
        found = self._there({n: replace(split, probe=probe) for n, split in splits.items()}, catalog)
        if found:
            self.cluster.reads("the executors read the relay log")
        return found

    def _of_archive(self, splits: Mapping[int, Split], catalog: Catalog) -> dict[int, SplitResult]:
        """Decode the splits on executors that read the archive.

        Return the results by the numbers of the splits, for the splits whose bytes an executor could read. If no
        executor sees the archive, the archive is not used again.
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
        """Decode the splits on executors.

        Return the results by the numbers of the splits, for the splits whose bytes an executor could read.
        """
        if not splits:
            return {}
        task = partial(run_on_executor, versions=own_versions())
        results = self._by_spark(self._collect(list(splits.values()), catalog, task))
        return {number: result for number, result in zip(splits, results, strict=True) if not result.is_unseen}

    def _collect(self, pieces: Sequence[Any], catalog: Catalog, task: Callable[[Any, Catalog], Any]) -> list[Any]:
        """Run one job, which calls `task` with each piece and the catalog. Return the results in the same order.

        If the cluster ends the context meanwhile, the job is run again on a new context. Raises TasksFailed if the job
        fails.
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
        """Return a broadcast catalog, and the changes that turn it into the wanted `catalog`.

        If more than a hundredth of the tables has changed, the wanted catalog itself is broadcast. It is not sent with
        each job, because this takes seconds for 20,000 tables.
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
        """Open another context if the cluster has ended the context `given_up`. True if a new context is open.

        A cluster ends a context if its master is lost, or if executors died too often.
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
        """True if Spark tasks run the pieces of `run`, and False if this process runs them."""
        return not self.cluster.carries if self.cluster is not None else self.has_begun

    @property
    def workers(self) -> int:
        """The number of Spark tasks that can run at the same time, or 0 until Spark runs."""
        if self._pool is not None:
            return self._pool.pool.workers
        return self.parallelism if self.has_begun else 0

    @property
    def failed_attempts(self) -> int:
        """The number of attempts in the pool that failed, because the task died, froze or sent a wrong answer.

        Another attempt has then decoded the range.
        """
        return self._pool.pool.failures if self._pool is not None else 0

    @property
    def job_name(self) -> str:
        """The name of the pool's long-running job, or '' without a pool."""
        return self._pool.pool.job_name if self._pool is not None else ""

    @property
    def largest_job(self) -> int:
        """The largest number of bytes of the relay log that one job may have."""
        return CARRIED_JOB if self.cluster is not None and self.cluster.carries else NO_LIMIT

    @property
    def parallelism(self) -> int:
        """The number of tasks that run at the same time.

        A job is divided into so many tasks. If this process decodes, it runs the tasks one after another. The number
        then only limits the memory that one task needs.
        """
        return self._context.defaultParallelism if self.has_begun and self.cluster else self._cores


def _carrying(split: Split, piece: bytes | Archived) -> Split:
    """Return the split for an executor that does not see the relay log.

    `piece`: the bytes to decode, or their place in the archive.
    """
    pieces = (*table_maps(split.path, split.table_maps, split.start), (split.start, piece))
    return replace(split, path="", spool_folder="", carried=pieces)
