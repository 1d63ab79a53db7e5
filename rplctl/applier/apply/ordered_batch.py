"""Applies a batch in the source's order, event by event, in one transaction of the target (design D2).

Invariant: a batch is committed as a whole. Otherwise, none of it is committed, and the error gives the reason.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from rplctl import mysql_errors as er
from rplctl.applier.apply.bulk import LARGEST_UNPACKED, BulkApplier
from rplctl.applier.apply.committer import Committer, How
from rplctl.applier.apply.foreign_key_checks import wants_foreign_keys
from rplctl.applier.apply.in_order import OrderedRange
from rplctl.applier.apply.live_tables import TableSource
from rplctl.applier.apply.permitted import check_permitted
from rplctl.applier.apply.recopy import tables_to_copy_again
from rplctl.applier.apply.rows_ahead import tasks_of
from rplctl.applier.apply.strategy import Applied, Reason, Rejected
from rplctl.applier.feed.event_range import event_range, relay_log_range
from rplctl.applier.feed.plan import Batch
from rplctl.applier.interrupt import Interrupter, Stopped
from rplctl.applier.spark.pipeline import Pipeline
from rplctl.channel import Channel
from rplctl.clone.table_groups import linked
from rplctl.config import Config
from rplctl.decode.event_filter import filtered
from rplctl.decode.net_changes import Inconsistent
from rplctl.decode.row_stream import EventRun, read_run
from rplctl.decode.tables_to_requeue import default_database, tables_to_requeue
from rplctl.errors import RplError, TargetError
from rplctl.event.scan import GroupKind
from rplctl.event.types import EventType
from rplctl.failpoint import crash_point
from rplctl.own_tables.clones import requeue_tables
from rplctl.own_tables.models import store_models
from rplctl.schema.statement import TableName
from rplctl.target.base import Target

if TYPE_CHECKING:
    from rplctl.applier.apply.lake import LakeChanges

CUTTABLE = np.array([GroupKind.CONTROL, GroupKind.ROWS])  # groups that a rollback undoes completely
NOT_IN_XA = frozenset({er.XAER_RMFAIL, er.XA_TEMP_TABLE})  # XA refuses the statement, or (MySQL) temporary tables

log = logging.getLogger(__name__)


class OrderedBatches:
    """Applies batches event by event, in the source's order (strategies IN_ORDER, ALONE, ALONE_UNCUT and NO_ROLLBACK).

    `passed_over`: the number of errors that were skipped. `bulk`: has the filters, and counts the decoded rows.
    `lake_changes`: returns the object that stores the changes of a batch, for a lake.
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
        committer: Committer,
        bulk: BulkApplier,
        lake_changes: Callable[[Batch], LakeChanges | None],
    ) -> None:
        self._config, self._channel, self._target, self._tables = config, channel, target, tables
        self._pipeline, self._interrupter, self._committer, self._bulk = pipeline, interrupter, committer, bulk
        self._lake_changes = lake_changes
        self._unpacked_bytes = min(LARGEST_UNPACKED, config.max_batch_bytes)
        self.passed_over = 0

    def apply(self, batch: Batch, *, may_be_cut: bool = True) -> int:
        """Apply and commit the batch, and return the number of row changes.

        `may_be_cut`: True if a stop may interrupt the batch. A batch that has more than rows is never interrupted.
        """
        only_rows = bool(np.isin(batch.scan.kind[batch.first : batch.last], CUTTABLE).all()) and not batch.has_payload
        with (
            self._interrupter.work() if may_be_cut and only_rows else nullcontext(),
            event_range(batch, self._unpacked_bytes, self._channel.spool_folder) as events,
        ):
            rules = self._bulk.rules
            run = read_run(events.data, events.start, events.end, events.description)
            is_statement = batch.last - batch.first == 1 and batch.scan.kind[batch.first] == GroupKind.QUERY
            if rules.waiting and is_statement and (names := tables_to_requeue(run, rules)):
                return self._requeue(batch, names, run)
            is_kept = (run.types == EventType.XA_PREPARE).any()  # tables may be copied before the XA COMMIT
            if is_kept:
                rules = replace(rules, waiting=frozenset())
            try:
                return self._apply_run(batch, filtered(run, rules))
            except TargetError as error:
                known = self._bulk.rules, self._target, self._config, self._channel
                if not is_statement or not (names := tables_to_copy_again(error, run, *known)):
                    raise
            return self._requeue(batch, names, run)

    def apply_without_rollback(self, batch: Batch) -> Applied | Rejected:
        """Apply several transactions on nontransactional tables, and commit the position once, after all of them.

        After a crash before this commit, the transactions are applied once more (own_tables/group_begun.py). A batch
        that cannot be repeated is rejected.
        """
        statements = self._tables.statements
        refused = Rejected(reason=Reason.NOT_REPEATABLE, batch=batch, error=Inconsistent("one at a time"))
        if batch.has_payload or statements is None:
            return refused
        raw = relay_log_range(batch)
        run = filtered(read_run(raw.data, raw.start, raw.end, raw.description), self._bulk.rules)
        self._tables.introduce(run)
        if not statements.can_repeat(run):
            return refused
        work = self._range()  # tolerates no errors, because this is the group's first attempt
        self._committer.begin_group(batch)
        ends = np.searchsorted(run.starts, batch.scan.end[batch.first : batch.last]).tolist()
        done, changes, failure = 0, 0, None
        self._target.begin(foreign_keys=True)
        try:
            self._tables.begin_group(run)
            for first, last in pairwise([0, *ends]):
                self._interrupter.check()
                changes = work.result.changes
                work.apply(run.part(first, last))
                done += 1
                crash_point("crash_after_commit_before_update_pos")
        except (Stopped, Inconsistent, RplError) as error:
            if getattr(error, "transient", False):
                raise  # the connection may be lost, so the group is repeated as after a crash
            failure = error
        finally:
            self._target.rollback()
        self._committer.end_group(replace(batch, last=batch.first + done), self._bulk.rules)
        self._applied(work)
        if failure is None:
            return Applied(work.result.changes)
        if isinstance(failure, Stopped) or work.result.changes > changes:
            raise failure
        rest = replace(batch, first=batch.first + done)
        return Rejected(reason=Reason.STOPPED_WITHIN, batch=rest, error=failure, changes=changes)

    def _requeue(self, batch: Batch, statement_tables: list[TableName], run: EventRun) -> int:
        """Move the position past a statement without executing it, and let `rplctl clone` copy its tables again.

        There are two reasons. Either only the source knows the statement's effect on rows. Or the statement names
        copied tables together with tables that are not copied yet, for example to swap them by RENAME. The tables that
        foreign keys link with these tables are copied again, too, because the copy drops and creates their parents or
        children, and because the effects of actions such as CASCADE are not in the log.
        """
        rules = self._bulk.rules
        replicated = replace(rules, waiting=frozenset())
        pairs = self._tables.foreign_keys({database for database, _ in statement_tables})
        names = [name for name in linked(statement_tables, pairs) if replicated.accepts_rows(*name)]
        log.info(
            "%s: copied again because of a statement at %s", ", ".join(map(".".join, names)), batch.source_position
        )
        database = default_database(run)
        found = [
            (name, database if rules.rewritten(database) == name[0] else rules.original(name[0])) for name in names
        ]
        self._committer.commit(batch, lambda: requeue_tables(self._target.connection, self._channel.name, found), rules)
        self._bulk.rules = replace(rules, waiting=rules.waiting.union(names))
        return 0

    def _apply_run(self, batch: Batch, run: EventRun) -> int:
        tables, is_several = self._tables, batch.last - batch.first > 1
        if is_several and batch.has_payload:
            raise Inconsistent("compressed groups are applied one by one")
        foreign_keys = wants_foreign_keys(run, statements_bring_their_own=tables.statements is not None)
        tables.introduce(run)
        check_permitted(run, self._committer.info, self._config, tables.know)
        follows = tables.position_follows(run, in_xa=self._committer.in_xa)
        kept = tables.kept_by(run) if follows and not self._committer.repeats else []
        if is_several and (kept or not tables.can_share(run)):
            raise Inconsistent("groups that cannot share one transaction")
        changes = self._lake_changes(batch)
        work = self._range(() if foreign_keys else tables.cascading_parents(), changes)

        def apply() -> None:
            tables.begin_group(run, kept)
            result = work.apply(run)
            if changes is not None:
                changes.finish()
            result.moves.extend(tables.take_moves())
            if result.models or result.databases or result.moves:
                store_models(
                    self._target.connection,
                    self._channel.name,
                    batch.source_position,
                    result.models,
                    result.databases,
                    result.moves,
                )

        commit = partial(self._committer.commit, batch, apply, self._bulk.rules, foreign_keys=foreign_keys)
        try:
            commit(how=How.POSITION_AFTER if follows else How.TOGETHER)
        except TargetError as error:
            if tables.replay_from_now(error, run, work.result.changes):
                return self._apply_run(batch, run)
            if follows or error.errno not in NOT_IN_XA:
                raise
            commit(how=How.POSITION_AFTER)
        return self._applied(work)

    def _range(self, cascades_lost: Collection[TableName] = (), changes: LakeChanges | None = None) -> OrderedRange:
        return OrderedRange(
            self._target,
            self._tables.catalog,
            self._channel.name,
            config=self._config,
            statements=self._tables.statements,
            cascades_lost=cascades_lost,
            again=self._committer.repeats,
            waiting=self._bulk.rules.waiting,
            changes=changes,
            tasks=tasks_of(self._pipeline, self._channel.spool_folder),
        )

    def _applied(self, work: OrderedRange) -> int:
        """Log the notes of a range that is committed, and use its table models from now on.

        Return the number of row changes in the range.
        """
        for note in (*work.result.notes, *work.result.passed_over.messages):
            log.warning("%s", note)
        self._bulk.count(work.result.by_spark, work.result.by_driver)
        self.passed_over += work.result.passed_over.count
        if work.result.passed_over.errors:
            log.warning("%s", work.result.passed_over.summary())
        if work.result.catalog is not None:
            self._tables.committed(work.result.catalog)
            self._bulk.forget_tables()
        return work.result.changes
