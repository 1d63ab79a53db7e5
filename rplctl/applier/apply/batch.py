"""One batch into the target: net changes in bulk, and the two ways back when they do not fit (design D2).

Invariant: `info` is the position that is committed in the target and `catalog` the table models valid there; both move
only after a COMMIT. Each of the three ways is a whole: bulk and ordered commit the batch or nothing, one-by-one commits
all before the offender and raises its error. A long batch that does not fit in bulk is halved, each half its own batch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, cast

import numpy as np

from rplctl import mysql_errors as er
from rplctl.applier.apply.bulk import LARGEST_UNPACKED, BulkApplier
from rplctl.applier.apply.in_order import OrderedRange, wants_foreign_keys
from rplctl.applier.apply.live_tables import LiveTables, NotTransactional, TableSource
from rplctl.applier.apply.permitted import check_permitted, refuse_generated_keys
from rplctl.applier.apply.recopy import copied_anew
from rplctl.applier.apply.rows_ahead import tasks_of
from rplctl.applier.apply.table_groups import ConflictingGroups
from rplctl.applier.apply.table_source import StoredModels
from rplctl.applier.apply.tolerance import Tolerance
from rplctl.applier.decode.event_filter import filtered
from rplctl.applier.decode.filter_rules import ReplicationFilter
from rplctl.applier.decode.net_changes import Inconsistent
from rplctl.applier.decode.row_stream import EventRun, read_run
from rplctl.applier.decode.tables_to_requeue import tables_to_requeue
from rplctl.applier.feed.event_range import event_range, relay_log_range, split_by_unpacked_size
from rplctl.applier.feed.gtids import moved_by
from rplctl.applier.feed.plan import Batch, BatchKind, check_passed_over, refuse_unknown
from rplctl.applier.interrupt import Interrupter, Stopped
from rplctl.applier.log_bin.catch_up import catch_up
from rplctl.applier.log_bin.events import stage
from rplctl.applier.spark.pipeline import Pipeline
from rplctl.channel import Channel
from rplctl.commit.ambiguous_commit import InDoubt
from rplctl.commit.position_store import open_branches, open_notes
from rplctl.commit.step import CommitMode, PositionStore, Step
from rplctl.commit.transaction import commit_after, commit_group, commit_in_branches
from rplctl.config import Config
from rplctl.errors import LockBusy, RplError, TargetError
from rplctl.event.scan import GroupKind
from rplctl.event.types import EventType
from rplctl.failpoint import crash_point
from rplctl.info import RelayLogInfo
from rplctl.own_tables.clones import requeue_tables
from rplctl.own_tables.group_begun import forget_group, keep_group, kept_group
from rplctl.own_tables.models import store_models
from rplctl.position import BinlogPosition
from rplctl.schema.model import TableModel
from rplctl.schema.plan import Catalog, DatabaseModel
from rplctl.schema.statement import TableName
from rplctl.target import mapped_errors, statement_target
from rplctl.target.base import CountMismatch, KeylessMismatch, Target

if TYPE_CHECKING:
    from rplctl.applier.apply.lake import LakeChanges
    from rplctl.target.lake import LakeTarget

MOST_IN_ORDER = 1000  # transactions that are gone through in order when they do not fit in bulk
BYTES_IN_ORDER = 1 << 20  # of log, where nothing can be rolled back: what a crash repeats
RETRY_PAUSE_SECONDS = 1.0
CUTTABLE = np.array([GroupKind.CONTROL, GroupKind.ROWS])  # a rollback undoes them as a whole
LOGGED = np.array([GroupKind.CONTROL, GroupKind.ROWS, GroupKind.ORDERED])  # a lake keeps them as they are
NOT_IN_XA = frozenset({er.XAER_RMFAIL, er.XA_TEMP_TABLE})  # a statement that XA refuses; temporary tables (MySQL)
KEEPS_CONNECTION = frozenset({er.LOCK_WAIT_TIMEOUT, er.LOCK_DEADLOCK})  # rolled back, and that is all

log = logging.getLogger(__name__)


@dataclass(eq=False)
class BatchApplier:
    """`info`: the position that is committed; `bulk`: the first way, which also knows how much a batch takes."""

    _config: Config
    _channel: Channel
    _target: Target
    _store: PositionStore
    _pipeline: Pipeline
    interrupter: Interrupter
    _tables: TableSource
    info: RelayLogInfo
    retried: int = 0
    passed_over: int = 0
    on_retry: Callable[[TargetError], None] = lambda _: None  # told when `retried` counts on

    def __post_init__(self) -> None:
        self._in_xa = self._store.mode is CommitMode.XA
        self._rules = ReplicationFilter.from_config(self._config)
        self._unpacked_bytes = min(LARGEST_UNPACKED, self._config.max_batch_bytes)
        self._begun: tuple[BinlogPosition, BinlogPosition] | None = None  # a group that is open (group_begun.py)
        lake = cast("LakeTarget", self._target) if self._store.mode is CommitMode.PER_TABLE else None
        self._lake = lake if lake is not None and lake.keeps_changes else None
        kind = BulkApplier
        self._lake_changes: Callable[[Batch], LakeChanges | None] = lambda _: None
        if self._lake is not None:
            from rplctl.applier.apply.lake import LakeApplier, LakeChanges

            kind, self._lake_changes = LakeApplier, partial(LakeChanges, self._lake)
        parts = (self._config, self._channel, self._target, self._tables, self._pipeline, self.interrupter)
        self.bulk = kind(*parts, in_xa=self._in_xa, branches=self._store.branches)

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
        """Open at the position on which target, repository and binary log agree after a crash. Raises RplError."""
        info = store.open()
        store.branches = open_branches(config, channel, target, store)
        server = statement_target(target)
        if server is not None:
            server.judge_primary_keys(info.require_table_primary_key_check)
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
            applier._find_group()
        return applier

    def _find_group(self) -> None:
        """Look for a group that a crash interrupted; forget one that does not begin at the position."""
        with mapped_errors(self._target.kind), self._target.engine.begin() as connection:
            self._begun = kept_group(connection, self._channel.name)
            if self._begun is not None and not self._is_again:
                forget_group(connection, self._channel.name)
                self._begun = None
        if self._begun is not None:
            log.warning(
                "the transactions up to %s are applied once more: they change tables without transactions, and the "
                "applier ended in the middle of them",
                self._begun[1],
            )

    @property
    def catalog(self) -> Catalog:
        """The table models that are valid at the position."""
        return self._tables.catalog

    @property
    def executes_statements(self) -> bool:
        return self._tables.statements is not None

    def close(self) -> None:
        """End with what was begun ahead; the target and Spark are the caller's."""
        self.bulk.close()
        if self._store.branches is not None:
            self._store.branches.close()
        if self._store.log is not None:
            self._store.log.close()

    @property
    def left_out(self) -> frozenset[TableName]:
        return self._rules.waiting

    def leave_out(self, waiting: frozenset[TableName]) -> None:
        """Exclude tables that are not copied yet."""
        self._rules = replace(self._rules, waiting=waiting)
        self.bulk.rules = self._rules

    def learned(self, models: Mapping[TableName, TableModel | None], databases: Mapping[str, DatabaseModel]) -> None:
        """Adopt tables that were committed without the source's DDL: created, or dropped (None)."""
        catalog = self._tables.catalog
        if self._tables.statements is not None:
            self._tables.statements.remade(models)
        tables = {name: model for name, model in {**catalog.tables, **models}.items() if model is not None}
        self._tables.committed(Catalog(tables, {**catalog.databases, **databases}))
        self.bulk.forget_tables()

    def apply(self, batch: Batch, meanwhile: Callable[[], None] = lambda: None) -> int:
        """Apply and commit; the number of row changes. Transient errors are tried again `replica_transaction_retries`
        times, then one transaction at a time, so that it stops at the one that cannot be had. Raises Stopped.

        `meanwhile`: called when the last of it begins to be decoded; not at all if that moment does not come.
        """
        self.bulk.meanwhile = meanwhile
        begun = self.info
        for _ in range(self._config.replica_transaction_retries):
            try:
                return self._apply(batch)
            except TargetError as error:
                if not error.transient:
                    raise
                log.warning("tried again in %g s: %s (%d)", RETRY_PAUSE_SECONDS, error.message, error.errno)
                self.retried += 1
                self.on_retry(error)
                if error.errno not in KEEPS_CONNECTION:
                    self._target.reconnect()
                if self._store.branches is not None:
                    self._store.branches.resolve(is_doubtful=True)
                self.interrupter.stop.wait(RETRY_PAUSE_SECONDS)
                self.interrupter.check()
                batch = batch.left(begun, self.info)
        try:
            return self._apply(batch)
        except TargetError as error:
            if not error.transient or error.errno not in KEEPS_CONNECTION or batch.kind is not BatchKind.BULK:
                raise
        return self._one_by_one(batch.left(begun, self.info))

    def _apply(self, batch: Batch) -> int:
        check_passed_over(batch)
        if batch.kind is BatchKind.SKIP:
            # a dump by GTID begins with the log's start again: no transaction, so the position does not go back for it
            if batch.transaction_count or not batch.source_position.is_before(self.info.exec_position):
                self._commit(batch, lambda: None, after=self._in_xa)
            return 0
        if self._lake is not None and np.isin(batch.scan.kind[batch.first : batch.last], LOGGED).all():
            return self._to_lake(batch)
        if batch.kind is BatchKind.SINGLE:
            refuse_unknown(batch)
            return self._ordered(batch)
        parts = split_by_unpacked_size(batch, self._unpacked_bytes)
        if len(parts) > 1:
            return sum(self._apply(part) for part in parts)
        if self._is_again:
            return self._one_by_one(batch, may_be_cut=False)
        if batch.kind is BatchKind.COMMIT_GROUP:
            return self._in_order(batch)
        return self._in_bulk(batch)

    def _in_bulk(self, batch: Batch) -> int:
        """Apply the batch as net changes, or in order where they do not fit. Return the number of row changes."""
        try:
            return self.bulk.apply(batch, partial(self._commit, batch))
        except Inconsistent:
            return self._in_order(batch)
        except NotTransactional:
            return sum(map(self._without_rollback, batch.parts(MOST_IN_ORDER, BYTES_IN_ORDER)))
        except InDoubt:
            raise  # it may be committed: nothing of it is tried again before the position is read
        except ConflictingGroups:
            return self._in_bulk(batch)
        except KeylessMismatch as error:
            log.info("%s; from here on they are changed one by one", error)
            self.bulk.change_one_by_one(error.table)
            return self._in_bulk(batch)
        except (CountMismatch, RplError) as error:
            if getattr(error, "transient", False):
                raise
        if batch.last - batch.first <= MOST_IN_ORDER:
            return self._in_order(batch)
        # nearly all of a long batch fits in bulk still, and in order it would take minutes to find what does not
        return sum(self._apply(half) for half in batch.halves())

    def _to_lake(self, batch: Batch) -> int:
        """Every change as it is; where one cannot be kept, all transactions before its own are."""
        try:
            return self.bulk.apply(batch, partial(self._commit, batch))
        except (InDoubt, LockBusy):
            raise
        except RplError as error:
            if error.transient or error.errno == er.ERROR_ON_WRITE or batch.last - batch.first == 1:
                raise
        return sum(self._to_lake(half) for half in batch.halves())

    def _in_order(self, batch: Batch) -> int:
        """Apply the batch in one transaction, or else one source transaction at a time up to the one that fails."""
        try:
            return self._ordered(batch)
        except InDoubt:
            raise
        except RplError as error:
            if error.transient:
                raise
        except Inconsistent:
            pass
        return self._one_by_one(batch)

    def _without_rollback(self, batch: Batch) -> int:
        """Transactions on tables that keep what is done to them, in the source's order, with one commit for all. A
        crash before it applies them once more (own_tables/group_begun.py); one by one where that cannot be done twice.
        """
        statements = self._tables.statements
        if batch.has_payload or statements is None:
            return self._one_by_one(batch, may_be_cut=False)
        raw = relay_log_range(batch)
        run = filtered(read_run(raw.data, raw.start, raw.end, raw.description), self._rules)
        self._tables.introduce(run)
        if not statements.can_repeat(run):
            return self._one_by_one(batch, may_be_cut=False)
        work = self._range()  # strict: it is the first time
        self._begin_group(batch)
        ends = np.searchsorted(run.starts, batch.scan.end[batch.first : batch.last]).tolist()
        done, changes, failure = 0, 0, None
        self._target.begin(foreign_keys=True)
        try:
            self._tables.begin_group(run)
            for first, last in pairwise([0, *ends]):
                self.interrupter.check()
                changes = work.result.changes
                work.apply(run.part(first, last))
                done += 1
                crash_point("crash_after_commit_before_update_pos")
        except (Stopped, Inconsistent, RplError) as error:
            if getattr(error, "transient", False):
                raise  # the connection may be gone: tried again as after a crash
            failure = error
        finally:
            self._target.rollback()
        self._end_group(replace(batch, last=batch.first + done))
        self._applied(work)
        if failure is None:
            return work.result.changes
        if isinstance(failure, Stopped) or work.result.changes > changes:
            raise failure
        return changes + self._one_by_one(replace(batch, first=batch.first + done), may_be_cut=False)

    def _begin_group(self, batch: Batch) -> None:
        """Say in the target what is applied from here on, before any of it is; from the position that is ours alone."""
        begin, end = self.info.exec_position, batch.source_position
        self._target.begin(foreign_keys=True)
        try:
            self._store.advance(self._target.connection, self.info, self.info)
            keep_group(self._target.connection, self._channel.name, begin, end)
            self._target.commit()
        finally:
            self._target.rollback()
        self._begun = (begin, end)

    def _end_group(self, done: Batch) -> None:
        """Commit that no group is open, with the position after what was applied, if anything was."""
        self._begun = (self.info.exec_position, done.source_position)
        if done.first < done.last:
            return self._commit(done, lambda: None, after=self._in_xa)
        self._target.begin(foreign_keys=True)
        try:
            forget_group(self._target.connection, self._channel.name)
            self._target.commit()
        finally:
            self._target.rollback()
        self._begun = None

    @property
    def _is_again(self) -> bool:
        """True if a group that a crash interrupted begins here: some of its changes may be on the target."""
        return self._begun is not None and self._begun[0] == self.info.exec_position

    def _group_behind(self, position: BinlogPosition) -> tuple[BinlogPosition, BinlogPosition] | None:
        """Return the begin and end of the group that is still open after `position` is committed, or None."""
        if self._begun is None or not self._is_again or not position.is_before(self._begun[1]):
            return None
        return position, self._begun[1]

    def _one_by_one(self, batch: Batch, *, may_be_cut: bool = True) -> int:
        changes = 0
        for group in batch.one_by_one():
            self.interrupter.check()
            is_skipped = group.kind is BatchKind.SKIP
            changes += self._apply(group) if is_skipped else self._ordered(group, may_be_cut=may_be_cut)
        return changes

    def _ordered(self, batch: Batch, *, may_be_cut: bool = True) -> int:
        """The batch in the source's order, in one transaction. `may_be_cut`: by STOP, if it holds nothing but rows."""
        only_rows = bool(np.isin(batch.scan.kind[batch.first : batch.last], CUTTABLE).all()) and not batch.has_payload
        with (
            self.interrupter.work() if may_be_cut and only_rows else nullcontext(),
            event_range(batch, self._unpacked_bytes, self._channel.spool_folder) as events,
        ):
            run = read_run(events.data, events.start, events.end, events.description)
            is_statement = batch.last - batch.first == 1 and batch.scan.kind[batch.first] == GroupKind.QUERY
            if self._rules.waiting and is_statement and (names := tables_to_requeue(run, self._rules)):
                return self._requeue(batch, names)
            is_kept = (run.types == EventType.XA_PREPARE).any()  # tables may be copied by its COMMIT
            rules = replace(self._rules, waiting=frozenset()) if is_kept else self._rules
            try:
                return self._ordered_run(batch, filtered(run, rules))
            except TargetError as error:
                known = self._rules, self.catalog, self._target, self._config, self._channel
                if not is_statement or not (names := copied_anew(error, run, *known)):
                    raise
            return self._requeue(batch, names)

    def _requeue(self, batch: Batch, names: list[TableName]) -> int:
        """A statement about tables that wait and others (a swap by RENAME), or of which only the source knows what it
        does to rows, is not carried out: these tables are copied as it leaves them.
        """
        log.info("%s: to be copied again, by a statement at %s", ", ".join(map(".".join, names)), batch.source_position)
        found = [(name, self._rules.original(name[0])) for name in names]
        self._commit(batch, lambda: requeue_tables(self._target.connection, self._channel.name, found))
        self.leave_out(self._rules.waiting.union(names))
        return 0

    def _ordered_run(self, batch: Batch, run: EventRun) -> int:
        tables, is_several = self._tables, batch.last - batch.first > 1
        if is_several and batch.has_payload:
            raise Inconsistent("compressed groups are gone through one by one")
        foreign_keys = wants_foreign_keys(run, statements_bring_their_own=self.executes_statements)
        tables.introduce(run)
        check_permitted(run, self.info, self._config, tables.know)
        after = tables.position_follows(run, in_xa=self._in_xa)
        kept = tables.kept_by(run) if after and not self._is_again else []
        if is_several and (kept or not tables.can_share(run)):
            raise Inconsistent("groups that do not fit into one transaction")
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

        try:
            self._commit(batch, apply, foreign_keys=foreign_keys, after=after)
        except TargetError as error:
            if tables.replay_from_now(error, run, work.result.changes):
                return self._ordered_run(batch, run)
            if after or error.errno not in NOT_IN_XA:
                raise
            self._commit(batch, apply, foreign_keys=foreign_keys, after=True)
        return self._applied(work)

    def _range(self, cascades_lost: Collection[TableName] = (), changes: LakeChanges | None = None) -> OrderedRange:
        return OrderedRange(
            self._target,
            self._tables.catalog,
            self._channel.name,
            config=self._config,
            statements=self._tables.statements,
            cascades_lost=cascades_lost,
            again=self._is_again,
            waiting=self._rules.waiting,
            changes=changes,
            tasks=tasks_of(self._pipeline, self._channel.spool_folder),
        )

    def _applied(self, work: OrderedRange) -> int:
        """Log the notes of a committed range, adopt its tables, and return the number of its row changes."""
        for note in (*work.result.notes, *work.result.passed_over.messages):
            log.warning("%s", note)
        self.bulk.count(work.result.by_spark, work.result.by_driver)
        self.passed_over += work.result.passed_over.count
        if work.result.passed_over.errors:
            log.warning("%s", work.result.passed_over.summary())
        if work.result.catalog is not None:
            self._tables.committed(work.result.catalog)
            self.bulk.forget_tables()
        return work.result.changes

    def _commit(
        self,
        batch: Batch,
        apply: Callable[[], None],
        *,
        foreign_keys: bool = True,
        after: bool = False,
        in_branches: bool = False,
    ) -> None:
        """`after`: the group may commit by itself, its position follows. `in_branches`: `apply` shares it."""

        def apply_uncut() -> None:
            apply()
            if left is not None:
                keep_group(self._target.connection, self._channel.name, *left)
            elif self._is_again:
                forget_group(self._target.connection, self._channel.name)
            self.interrupter.before_commit()

        new = moved_by(batch, self.info, self._config)
        left = self._group_behind(new.exec_position)
        try:
            stage(self._store.log, batch, self._config, self._rules, self.info)
            commit = commit_after if after else commit_in_branches if in_branches else commit_group
            commit(self._target, self._store, Step(self.info, new), apply_uncut, foreign_keys=foreign_keys)
        except RplError as error:
            error.channel = self._channel.name
            if not error.position:
                error.position = str(batch.source_position)
            raise
        self._begun, self.info = left, new
