"""Applies one batch to the target: tries one strategy after another, and repeats attempts after transient errors (D2).

Invariant: `info` is the position that is committed in the target, and `catalog` has the table models that are valid at
this position. Both change only after a COMMIT. If a strategy rejects a batch, strategy.py chooses the next strategy.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np

from rplctl import mysql_errors as er
from rplctl.applier.apply.bulk import LARGEST_UNPACKED, BulkApplier
from rplctl.applier.apply.committer import Committer
from rplctl.applier.apply.live_tables import LiveTables, TableSource
from rplctl.applier.apply.ordered_batch import OrderedBatches
from rplctl.applier.apply.permitted import refuse_generated_keys
from rplctl.applier.apply.strategy import (
    Applied,
    PlannedWork,
    Rejected,
    Strategy,
    each_alone,
    next_work,
    outcome_of,
)
from rplctl.applier.apply.table_source import StoredModels
from rplctl.applier.apply.tolerance import Tolerance
from rplctl.applier.feed.event_range import split_by_unpacked_size
from rplctl.applier.feed.plan import Batch, BatchKind, check_passed_over, refuse_unknown
from rplctl.applier.interrupt import Interrupter
from rplctl.applier.log_bin.catch_up import catch_up
from rplctl.applier.spark.pipeline import Pipeline
from rplctl.channel import Channel
from rplctl.commit.position_store import open_branches, open_notes, opened
from rplctl.commit.step import CommitMode, PositionStore
from rplctl.config import Config
from rplctl.errors import TargetError
from rplctl.event.scan import GroupKind
from rplctl.info import RelayLogInfo
from rplctl.schema.model import TableModel
from rplctl.schema.plan import Catalog, DatabaseModel
from rplctl.schema.statement import TableName
from rplctl.target import statement_target
from rplctl.target.base import Target

if TYPE_CHECKING:
    from rplctl.applier.apply.lake import LakeChanges
    from rplctl.target.lake import LakeTarget

RETRY_PAUSE_SECONDS = 1.0
LOGGED = np.array([GroupKind.CONTROL, GroupKind.ROWS, GroupKind.ORDERED])  # groups that a lake stores as changes
KEEPS_CONNECTION = frozenset({er.LOCK_WAIT_TIMEOUT, er.LOCK_DEADLOCK})  # errors that roll back, but keep the connection

log = logging.getLogger(__name__)


class BatchApplier:
    """Applies the batches of a channel on one connection to the target.

    `bulk`: the applier for the first strategy, which also sets the size of a batch. `retried`: the number of attempts
    that followed a transient error. `on_retry`: called with each transient error.
    """

    def __init__(  # noqa: PLR0913 - the parts of one applier
        self,
        config: Config,
        channel: Channel,
        target: Target,
        store: PositionStore,
        pipeline: Pipeline,
        interrupter: Interrupter,
        tables: TableSource,
        info: RelayLogInfo,
    ) -> None:
        self._config, self._target, self._store, self._tables = config, target, store, tables
        self.interrupter = interrupter
        self.retried = 0
        self.on_retry: Callable[[TargetError], None] = lambda _: None
        self._unpacked_bytes = min(LARGEST_UNPACKED, config.max_batch_bytes)
        self._committer = Committer(config, channel, target, store, interrupter, info)
        lake = cast("LakeTarget", target) if store.mode is CommitMode.PER_TABLE else None
        self._is_lake = lake is not None and lake.keeps_changes
        kind, lake_changes = BulkApplier, cast("Callable[[Batch], LakeChanges | None]", lambda _: None)
        if lake is not None and self._is_lake:
            from rplctl.applier.apply.lake import LakeApplier, LakeChanges

            kind, lake_changes = LakeApplier, partial(LakeChanges, lake)
        parts = (config, channel, target, tables, pipeline, interrupter)
        self.bulk = kind(*parts, in_xa=self._committer.in_xa, branches=store.branches)
        self._ordered = OrderedBatches(*parts, committer=self._committer, bulk=self.bulk, lake_changes=lake_changes)

    @classmethod
    def open(  # noqa: PLR0913 - the parts of one applier
        cls,
        config: Config,
        channel: Channel,
        target: Target,
        store: PositionStore,
        pipeline: Pipeline,
        interrupter: Interrupter,
    ) -> BatchApplier:
        """Return an applier at the position that target, repository and binary log agree on.

        After a crash, these three may have different positions, and are first brought to one position. Raises RplError
        if this is not possible, or if the target rejects a setting of the channel.
        """
        info = opened(store, channel)
        store.branches = open_branches(config, channel, target, store)
        server = statement_target(target)
        if server is not None:
            server.set_primary_key_policy(info.require_table_primary_key_check)
        else:
            refuse_generated_keys(info, target.kind)
        info = catch_up(config, channel, target, store, info, has_rollbacks=server is not None)
        tables: TableSource
        if server is not None:
            store.notes = open_notes(store, server, channel, info)
            tables = LiveTables(server, Tolerance.from_config(config), store.notes)
        else:
            tables = StoredModels.open(target, channel.name, info.exec_position)
        applier = cls(config, channel, target, store, pipeline, interrupter, tables, info)
        if server is not None:
            applier._committer.find_open_group()
        return applier

    @property
    def info(self) -> RelayLogInfo:
        """The position that is committed in the target."""
        return self._committer.info

    @info.setter
    def info(self, info: RelayLogInfo) -> None:
        self._committer.info = info

    @property
    def passed_over(self) -> int:
        """The number of errors that were skipped, because options tolerate them."""
        return self._ordered.passed_over

    @property
    def catalog(self) -> Catalog:
        """The table models that are valid at the committed position."""
        return self._tables.catalog

    @property
    def executes_statements(self) -> bool:
        return self._tables.statements is not None

    @property
    def temporary_tables(self) -> tuple[str, ...]:
        """The source's temporary tables in the target's session, which ends with the applier."""
        return self._tables.statements.temporary_tables.names if self._tables.statements is not None else ()

    def close(self) -> None:
        """End the jobs that were started in advance, and close the worker connections and the binary log.

        The caller closes the target and Spark.
        """
        self.bulk.close()
        if self._store.branches is not None:
            self._store.branches.close()
        if self._store.log is not None:
            self._store.log.close()

    @property
    def left_out(self) -> frozenset[TableName]:
        return self.bulk.rules.waiting

    def leave_out(self, waiting: frozenset[TableName]) -> None:
        """Exclude the rows of the tables `waiting` from all batches, because `rplctl clone` has not copied them yet."""
        self.bulk.rules = replace(self.bulk.rules, waiting=waiting)

    def learned(self, models: Mapping[TableName, TableModel | None], databases: Mapping[str, DatabaseModel]) -> None:
        """Use new models for tables that were created or dropped without a statement of the source, as by a copy.

        The model of a dropped table is None.
        """
        catalog = self._tables.catalog
        if self._tables.statements is not None:
            self._tables.statements.remade(models)
        tables = {name: model for name, model in {**catalog.tables, **models}.items() if model is not None}
        self._tables.committed(Catalog(tables, {**catalog.databases, **databases}))
        self.bulk.forget_tables()

    def apply(self, batch: Batch, meanwhile: Callable[[], None] = lambda: None) -> int:
        """Apply and commit the batch, and return the number of row changes.

        After a transient error, the batch is tried again, `replica_transaction_retries` times. If the last of these
        attempts meets a lock error, the transactions are applied one at a time, up to the one that fails. `meanwhile`:
        called when the last job of the batch begins to be decoded, to read the next batch in advance. Raises Stopped if
        a stop is requested, and the error of the last attempt.
        """
        self.bulk.meanwhile = meanwhile
        begun = self.info
        for _ in range(self._config.replica_transaction_retries):
            try:
                return self._carry_out(self._planned(batch))
            except TargetError as error:
                if not error.transient:
                    raise
                self._pause(error)
                batch = batch.left(begun, self.info)
        try:
            return self._carry_out(self._planned(batch))
        except TargetError as error:
            if not error.transient or error.errno not in KEEPS_CONNECTION or batch.kind is not BatchKind.BULK:
                raise
        return self._carry_out(each_alone(batch.left(begun, self.info), self.interrupter.check))

    def _pause(self, error: TargetError) -> None:
        """Wait before the next attempt, and open those connections again that cannot be used after the error."""
        log.warning("the next attempt is in %g s: %s (%d)", RETRY_PAUSE_SECONDS, error.message, error.errno)
        self.retried += 1
        self.on_retry(error)
        if error.errno not in KEEPS_CONNECTION:
            self._target.reconnect()
        if self._store.branches is not None:
            self._store.branches.resolve(is_doubtful=True)
        self.interrupter.stop.wait(RETRY_PAUSE_SECONDS)
        self.interrupter.check()

    def _planned(self, batch: Batch) -> Iterator[PlannedWork]:
        """Yield the batch together with the strategy that tries it first.

        If the batch unpacks to too many bytes, yield it in several parts.
        """
        check_passed_over(batch)
        if batch.kind is BatchKind.SKIP:
            yield PlannedWork(Strategy.PASS_OVER, batch)
        elif self._is_lake and np.isin(batch.scan.kind[batch.first : batch.last], LOGGED).all():
            yield PlannedWork(Strategy.LAKE, batch)
        elif batch.kind is BatchKind.SINGLE:
            refuse_unknown(batch)
            yield PlannedWork(Strategy.ALONE, batch)
        else:
            for part in split_by_unpacked_size(batch, self._unpacked_bytes):
                if self._committer.repeats:
                    yield from each_alone(part, self.interrupter.check, Strategy.ALONE_UNCUT)
                else:
                    yield PlannedWork(Strategy.IN_ORDER if part.kind is BatchKind.COMMIT_GROUP else Strategy.BULK, part)

    def _carry_out(self, planned: Iterator[PlannedWork]) -> int:
        """Apply the planned work in order, and return the number of row changes.

        If a strategy rejects a part of the work, the part is replaced by the work that strategy.py chooses.
        """
        changes, waiting = 0, [planned]
        while waiting:
            work = next(waiting[-1], None)
            if work is None:
                waiting.pop()
                continue
            outcome = self._attempt(work)
            changes += outcome.changes
            if isinstance(outcome, Rejected):
                waiting.append(next_work(work.strategy, outcome, self.interrupter.check))
        return changes

    def _attempt(self, work: PlannedWork) -> Applied | Rejected:
        """Apply a batch by one strategy, and return the outcome.

        Raises Stopped if a stop is requested, every transient error, and every error of the strategy ALONE.
        """
        batch = work.batch
        match work.strategy:
            case Strategy.PASS_OVER:
                return Applied(self._pass_over(batch))
            case Strategy.ALONE | Strategy.ALONE_UNCUT:
                return Applied(self._ordered.apply(batch, may_be_cut=work.strategy is Strategy.ALONE))
            case Strategy.NO_ROLLBACK:
                return self._ordered.apply_without_rollback(batch)
            case Strategy.IN_ORDER:
                return outcome_of(partial(self._ordered.apply, batch), batch)
            case Strategy.BULK | Strategy.LAKE:
                commit = partial(self._committer.commit, batch, rules=self.bulk.rules)
                return outcome_of(partial(self.bulk.apply, batch, commit), batch)

    def _pass_over(self, batch: Batch) -> int:
        """Move the position past a batch that is skipped.

        After a reconnect by GTID, the control events at the start of the log arrive again. They do not move the
        position back.
        """
        if batch.transaction_count or not batch.source_position.is_before(self.info.exec_position):
            self._committer.commit(batch, lambda: None, self.bulk.rules, how=self._committer.positions_follow)
        return 0
