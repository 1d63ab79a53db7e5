"""Applies one batch as net changes, job after job, in one transaction of the target (design D1, D2).

Spark decodes a job while the target applies the job before it. At the end of a batch, Spark decodes the first job of
the next batch in advance. Invariant: the batch is committed as a whole or not at all. Changes that cannot be applied in
bulk raise an error before the COMMIT.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, cast

from rplctl import mysql_errors as er
from rplctl.applier.apply.committer import How
from rplctl.applier.apply.live_tables import TableSource
from rplctl.applier.apply.table_groups import ConflictingGroups, TableGroups
from rplctl.applier.feed.batch_size import BatchSize
from rplctl.applier.feed.event_range import EventRange, event_range, relay_log_range
from rplctl.applier.feed.plan import Batch, BatchKind, plan_batches
from rplctl.applier.feed.prefetch import Prefetch
from rplctl.applier.interrupt import Interrupter
from rplctl.applier.spark.pipeline import Pipeline, UnknownTables
from rplctl.applier.spark.split_task import Split
from rplctl.applier.spark.splits import SMALLEST_SPLIT, jobs
from rplctl.channel import Channel
from rplctl.commit.branches import Branches
from rplctl.config import Config
from rplctl.decode.filter_rules import ReplicationFilter
from rplctl.decode.net_changes import Inconsistent
from rplctl.decode.overwritten import without_overwritten
from rplctl.decode.row_stream import named_tables
from rplctl.errors import RplError, TargetError
from rplctl.relay_log.reader import RelayGroups
from rplctl.schema.model import TableModel
from rplctl.schema.statement import TableName
from rplctl.target.base import CountMismatch, KeylessMismatch, TableChunk, Target

if TYPE_CHECKING:
    from rplctl.target.base import TwoPhaseTarget

LARGEST_UNPACKED = 64 << 20  # most unpacked bytes of compressed transactions that are decoded together
WORTH_A_BRANCH = 1000  # the number of rows from which a second worker connection is used
# errors that another worker connection may cause: its locks, and its rows that are not yet visible
_IN_THE_WAY = frozenset({er.LOCK_WAIT_TIMEOUT, er.LOCK_DEADLOCK, er.ROW_IS_REFERENCED_2, er.NO_REFERENCED_ROW_2})

log = logging.getLogger(__name__)


class BulkApplier:
    """Applies batches as net changes (strategy BULK).

    `size`: determines the sizes of batches and jobs. `rules`: the filters. `meanwhile`: a function that is called when
    the last job of a batch begins to be decoded, to read the next batch in advance.
    """

    def __init__(  # noqa: PLR0913 - the parts of one applier
        self,
        config: Config,
        channel: Channel,
        target: Target,
        tables: TableSource,
        pipeline: Pipeline,
        interrupter: Interrupter,
        *,
        in_xa: bool,
        branches: Branches | None = None,
    ) -> None:
        """Create the applier. `in_xa`: True if the target's transactions are prepared (XA).

        `branches`: the worker connections, if there are any.
        """
        self._spool_folder = channel.spool_folder
        self._target = target
        self._tables = tables
        self._pipeline = pipeline
        self._interrupter = interrupter
        self.rules = ReplicationFilter.from_config(config)
        self._in_xa = in_xa
        self.size = (BatchSize.as_text if self._bulk_rows else BatchSize.as_values)(config.max_batch_bytes)
        self._unpacked_bytes = min(LARGEST_UNPACKED, config.max_batch_bytes)
        self._branches = branches
        self._groups = TableGroups(branches.count if branches is not None else 1)
        self._is_split = False  # True if worker connections share the current batch
        self._has_learnt = False
        self._ahead: Prefetch[list[TableChunk]] = Prefetch(RplError, Inconsistent)
        self.meanwhile: Callable[[], None] = lambda: None
        self.rows_by_spark = self.rows_by_driver = 0
        self.forget_tables()

    @property
    def _bulk_rows(self) -> int:
        """The smallest number of net changes of a table that are loaded in bulk. 0 means that none are loaded in bulk.

        The value is 0 in a transaction that will be prepared, if the target cannot load in bulk there.
        """
        if self._in_xa and not cast("TwoPhaseTarget", self._target).loads_prepared:
            return 0
        return self._target.bulk_rows

    def forget_tables(self) -> None:
        """Forget the results of earlier checks of tables, because committed DDL may have changed the tables."""
        self._checked: set[TableName] = set()
        self._one_by_one_tables: frozenset[TableName] = frozenset()  # keyless tables that are changed row by row
        self._multisets: set[TableName] = set()  # keyless tables in which equal rows are interchangeable on the target

    def count(self, by_spark: int, by_driver: int) -> None:
        """Add to the numbers of committed row changes that Spark tasks and this process have decoded."""
        self.rows_by_spark += by_spark
        self.rows_by_driver += by_driver

    def close(self) -> None:
        """End the jobs that were started in advance."""
        self._ahead.close()

    def learn_tables(self, batch: Batch) -> None:
        """Read the models of the tables in the first part of the batch, before the batch is decoded.

        Otherwise, the first job would meet unknown tables and would have to be repeated. Only the first batch of an
        applier needs this, on a target that executes statements.
        """
        if self._tables.statements is None or self._tables.catalog.tables or batch.kind is not BatchKind.BULK:
            return
        if self._has_learnt:  # the first batch was examined, and the target has none of its tables
            return
        self._has_learnt = True
        piece = min(batch.end, batch.start + SMALLEST_SPLIT)
        with suppress(RplError):  # raised again when the batch is applied
            named = named_tables(batch.groups.data, batch.start, piece, batch.description)
            self._tables.know(named)

    def expect(self, groups: RelayGroups, stop: int, per_commit: Callable[[], int]) -> None:
        """Start to decode the first job of the next batch in advance. Any thread may call this method.

        `groups`: the next groups (transactions), of which the first `stop` may be applied now. `per_commit`: returns
        the largest number of transactions per COMMIT.
        """
        planned = plan_batches(groups, stop, has_rollbacks=self._tables.statements is not None, per_commit=per_commit)
        batch = next(planned, None)
        if batch is not None and batch.kind is BatchKind.BULK and not batch.unpacks:
            self._begin(next(self._jobs(relay_log_range(batch))))

    def apply(self, batch: Batch, commit: Callable[..., None]) -> int:
        """Apply a batch as net changes in one transaction, and return the number of row changes.

        The batch is decoded and applied job by job, so the memory depends on the size of a job, not of the batch.

        `commit`: calls its argument in the transaction, and commits. Raises Inconsistent, NotTransactional,
        KeylessMismatch or CountMismatch if the batch cannot be applied in bulk. Raises ConflictingGroups if another
        attempt may succeed. After each of these errors, no change of the batch is applied.
        """
        try:
            return self._apply(batch, commit)
        except KeylessMismatch as error:
            log.info("%s; from here on, its rows are changed one by one", error)
            self._one_by_one_tables |= {error.table}
            raise

    def _apply(self, batch: Batch, commit: Callable[..., None]) -> int:
        changes = by_spark = 0
        with self._interrupter.work(), event_range(batch, self._unpacked_bytes, self._spool_folder) as events:
            decoded = self._decoded(events)
            chunks: list[TableChunk] | None = next(decoded)
            unchecked = self._check_bulk(chunks or [])
            self._groups.begin(self._tables.catalog)
            self._is_split = self._branches is not None and self._groups.are_several(chunks or [], WORTH_A_BRANCH)

            def apply_jobs() -> None:
                nonlocal chunks, changes, by_spark
                while chunks is not None:
                    self._apply_chunks(chunks)
                    changes += sum(chunk.change_count for chunk in chunks)
                    by_spark += sum(chunk.change_count for chunk in chunks if chunk.by_spark)
                    chunks = None  # frees the memory before the next job
                    chunks = next(decoded, None)
                    if chunks is not None and self._check_bulk(chunks) and not unchecked:
                        raise Inconsistent("rows with foreign_key_checks=0 after other rows")

            try:
                how = How.PARALLEL if self._is_split else How.TOGETHER
                commit(apply_jobs, foreign_keys=not unchecked, how=how)
            except (CountMismatch, TargetError) as error:
                if not (self._groups.are_shared and _is_conflict(error)):
                    raise  # only one connection has applied rows, so no other worker connection is the cause
                names = ", ".join(map(".".join, self._groups.join_changed()))
                log.warning(
                    "%s: one connection commits these tables from now on, because two conflicted: %s", names, error
                )
                raise ConflictingGroups(str(error)) from error
        self.count(by_spark, changes - by_spark)
        return changes

    def _decoded(self, events: EventRange) -> Iterator[list[TableChunk]]:
        """Yield the chunks (net changes of tables) of each job.

        The next job is decoded while the caller applies the chunks.
        """
        changes, size = 0, events.end - events.start
        following = self._jobs(events)
        job = next(following, None)
        if job is not None and job[-1].end == events.end:
            self._last_begins()
        while job is not None:
            catalog = self._tables.know([])  # a statement may have changed tables since the last job
            chunks = self._ahead.take((job, catalog))
            if chunks is None:
                chunks = self._decode(job)
            found = sum(chunk.change_count for chunk in chunks)
            changes += found
            self.size.job_decoded(found, sum(chunk.net_count for chunk in chunks))
            done = job[-1].end - events.start
            job = next(following, None)
            if job is not None:
                self._begin(job)
            if job is None or job[-1].end == events.end:
                self.size.decoded(size, changes * size // done)
                self._last_begins()
            yield chunks
            del chunks  # frees the memory before the next job

    def _last_begins(self) -> None:
        meanwhile, self.meanwhile = self.meanwhile, lambda: None
        meanwhile()

    def _jobs(self, events: EventRange) -> Iterator[list[Split]]:
        task = partial(
            Split,
            spool_folder=str(self._spool_folder),
            target_kind=self._target.kind,
            rules=self.rules,
            bulk_rows=self._bulk_rows,
            length_prefixed=self._target.takes_length_prefixed,
            in_order=self._one_by_one_tables,
        )
        return jobs(events, self.size, self._pipeline.parallelism, task, self._pipeline.largest_job)

    def _begin(self, job: list[Split]) -> None:
        catalog = self._tables.catalog
        self._ahead.begin((job, catalog), lambda: self._pipeline.decode(job, catalog))

    def _decode(self, splits: list[Split]) -> list[TableChunk]:
        try:
            return self._pipeline.decode(splits, self._tables.catalog)
        except UnknownTables as error:
            return self._pipeline.decode(splits, self._tables.find(error))

    def _check_bulk(self, chunks: list[TableChunk]) -> bool:
        """Check that these chunks (net changes of tables) may be applied in bulk.

        Return True if the target must not check foreign keys for them. Raises TargetError if a table does not match its
        model, and NotTransactional, Inconsistent or KeylessMismatch if the chunks cannot be applied in bulk.
        """
        models = self._tables.catalog.tables
        changed = {(chunk.database, chunk.table) for chunk in chunks}
        self._tables.check_bulk([models[name] for name in changed])
        parents = changed.intersection(self._tables.cascading_parents())
        if any((chunk.database, chunk.table) in parents and not chunk.cascades_logged for chunk in chunks):
            raise Inconsistent("foreign keys that cascade")
        for name in changed - self._checked:
            self._target.check_table(models[name])
            self._checked.add(name)
        for chunk in chunks:
            if chunk.takes_copies(models[chunk.database, chunk.table]):
                self._check_multiset(models[chunk.database, chunk.table])
        return bool(parents) or any(chunk.foreign_keys_off for chunk in chunks)

    def _check_multiset(self, model: TableModel) -> None:
        name = (model.database, model.name)
        if name in self._multisets:
            return
        if not self._target.takes_multisets(model):
            raise KeylessMismatch(*name, "the target's table has a column, trigger or key of its own")
        self._multisets.add(name)

    def _apply_chunks(self, chunks: list[TableChunk]) -> None:
        for piece in pieces_to_apply(chunks):
            self._apply_piece(piece)

    def _apply_piece(self, piece: list[TableChunk]) -> None:
        models = self._tables.catalog.tables
        if self._branches is None or not self._is_split:
            return self._target.apply_chunks(piece, models)

        def applied(share: list[TableChunk], target: Target) -> None:
            target.apply_chunks(share, models)

        shares = self._groups.split(piece, self._tables.catalog)
        self._branches.apply({branch: partial(applied, share) for branch, share in shares.items()})


def pieces_to_apply(chunks: list[TableChunk]) -> Iterator[list[TableChunk]]:
    """Yield the chunks in lists, which are applied one after another.

    A chunk has the net changes of one table in one split, so several chunks may be of the same table. A list has at
    most one chunk of each table. Updates that a later list overwrites are removed.
    """
    by_split: list[list[TableChunk]] = []
    for chunk in chunks:
        if not by_split or any((c.database, c.table) == (chunk.database, chunk.table) for c in by_split[-1]):
            by_split.append([])
        by_split[-1].append(chunk)
    return without_overwritten(by_split)


def _is_conflict(error: CountMismatch | TargetError) -> bool:
    """True if another worker connection may have caused the error. One connection alone may then apply the batch."""
    return not isinstance(error, KeylessMismatch) if isinstance(error, CountMismatch) else error.errno in _IN_THE_WAY
