"""One batch into the target: net changes in bulk, and the two ways back when they do not fit (design D2).

Invariant: `info` is the position that is committed in the target and `catalog` the table models valid there; both move
only after a COMMIT. Each of the three ways is a whole: bulk and ordered commit the batch or nothing, one-by-one commits
all before the offender and raises its error. A long batch that does not fit in bulk is halved, each half its own batch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext, suppress
from functools import partial

import numpy as np

from rplctl import mysql_errors as er
from rplctl.applier.apply.in_order import OrderedRange, mixes_foreign_key_checks, wants_foreign_keys
from rplctl.applier.apply.permitted import check_permitted, refuse_generated_keys
from rplctl.applier.apply.statements import NotTransactional, StatementRunner
from rplctl.applier.apply.tolerance import Tolerance
from rplctl.applier.decode.event_filter import filtered
from rplctl.applier.decode.filter_rules import ReplicationFilter
from rplctl.applier.decode.net_changes import Inconsistent
from rplctl.applier.decode.row_stream import EventRun, named_tables, read_run
from rplctl.applier.decode.superseded import without_superseded
from rplctl.applier.feed.batch_size import BatchSize
from rplctl.applier.feed.event_range import EventRange, apart, event_range, lying_range
from rplctl.applier.feed.gtids import moved_by
from rplctl.applier.feed.plan import Batch, BatchKind, check_passed_over, plan_batches, refuse_unknown
from rplctl.applier.feed.prefetch import Prefetch
from rplctl.applier.interrupt import Interrupter
from rplctl.applier.log_bin.catch_up import CatchUp
from rplctl.applier.log_bin.events import stage
from rplctl.applier.spark.pipeline import Pipeline, Split, UnknownTables
from rplctl.applier.spark.splits import SMALLEST_SPLIT, jobs
from rplctl.channel import Channel
from rplctl.commit.ambiguous_commit import InDoubt
from rplctl.commit.position_store import CommitMode, Ledger
from rplctl.commit.transaction import commit_after, commit_group
from rplctl.config import Config
from rplctl.errors import RplError, TargetError
from rplctl.event.scan import GroupKind
from rplctl.info import RelayLogInfo
from rplctl.own_tables.models import load_models, store_models
from rplctl.relay_log.reader import RelayGroups
from rplctl.schema.model import TableModel
from rplctl.schema.plan import Catalog
from rplctl.target import mapped_errors
from rplctl.target.base import BagMismatch, CountMismatch, TableChunk, Target, statement_target

MOST_IN_ORDER = 1000  # transactions that are gone through in order when they do not fit in bulk
LARGEST_UNFOLDED = 64 << 20  # bytes of compressed transactions, unfolded, that are decoded together
RETRY_PAUSE_SECONDS = 1.0
CUTTABLE = np.array([GroupKind.CONTROL, GroupKind.ROWS])  # a rollback undoes them as a whole
# a statement that XA transactions may not hold; for temporary tables (MySQL)
NOT_IN_XA = frozenset({er.XAER_RMFAIL, er.XA_TEMP_TABLE})
# lock wait timeout, deadlock: rolled back, and that is all
KEEPS_CONNECTION = frozenset({er.LOCK_WAIT_TIMEOUT, er.LOCK_DEADLOCK})

log = logging.getLogger(__name__)


class BatchApplier:
    def __init__(  # noqa: PLR0913 - the parts of one applier
        self,
        config: Config,
        channel: Channel,
        target: Target,
        ledger: Ledger,
        pipeline: Pipeline,
        interrupter: Interrupter,
    ) -> None:
        self._config = config
        self._interrupter = interrupter
        self._channel = channel
        self._target = target
        self._ledger = ledger
        self._pipeline = pipeline
        self._rules = ReplicationFilter.from_config(config)
        self._checked: set[tuple[str, str]] = set()
        self._one_by_one_tables: frozenset[tuple[str, str]] = frozenset()  # without a key, and no bags
        self._bags: set[tuple[str, str]] = set()  # without a key, and rows that are alike are the same to the target
        self.info: RelayLogInfo = ledger.open()
        server = statement_target(target)
        self._statements = StatementRunner(server, Tolerance.from_config(config)) if server is not None else None
        if server is not None:
            server.judge_primary_keys(self.info.require_table_primary_key_check)
        else:
            refuse_generated_keys(self.info, target.kind)
        catch_up = CatchUp(config, channel, target, ledger, has_rollbacks=server is not None)
        self.info = catch_up.run(self.info)
        self.catalog = Catalog()
        if self._statements is None:
            with mapped_errors(target.engine.dialect.name), target.engine.connect() as connection:
                self.catalog = load_models(connection, channel.name, self.info.exec_position)
        sized = BatchSize.as_text if self._bulk_rows else BatchSize.as_values
        self.batch_size = sized(config.max_batch_bytes)
        self._unfolded_bytes = min(LARGEST_UNFOLDED, config.max_batch_bytes)
        self._ahead: Prefetch[list[TableChunk]] = Prefetch(RplError, Inconsistent)
        self._meanwhile: Callable[[], None] = lambda: None
        self.retried = 0
        self.passed_over = 0
        self.on_retry: Callable[[TargetError], None] = lambda _: None  # told when `retried` counts on

    @property
    def _bulk_rows(self) -> int:
        """Bulk loads need temporary tables, which no server lets into a transaction that is to be prepared."""
        return 0 if self._ledger.mode is CommitMode.XA else self._target.bulk_rows

    @property
    def executes_statements(self) -> bool:
        return self._statements is not None

    def close(self) -> None:
        """End with what was begun ahead; the target and Spark are the caller's."""
        self._ahead.close()
        if self._ledger.log is not None:
            self._ledger.log.close()

    def apply(self, batch: Batch, meanwhile: Callable[[], None] = lambda: None) -> int:
        """Apply and commit; the number of row changes. Transient errors are tried again `replica_transaction_retries`
        times, then one transaction at a time, so that it stops at the one that cannot be had. Raises Stopped.

        `meanwhile`: called when the last of it begins to be decoded; not at all if that moment does not come.
        """
        self._meanwhile = meanwhile
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
                self._interrupter.stop.wait(RETRY_PAUSE_SECONDS)
                self._interrupter.check()
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
                self._commit(batch, lambda: None, after=self._ledger.mode is CommitMode.XA)
            return 0
        if batch.kind is BatchKind.SINGLE:
            refuse_unknown(batch)
            return self._ordered(batch)
        parts = apart(batch, self._unfolded_bytes)
        if len(parts) > 1:
            return sum(self._apply(part) for part in parts)
        if batch.kind is BatchKind.COMMIT_GROUP:
            return self._in_order(batch)
        try:
            return self._bulk(batch)
        except Inconsistent:
            return self._in_order(batch)
        except NotTransactional:
            return self._one_by_one(batch, may_be_cut=False)
        except InDoubt:
            raise  # it may be committed: nothing of it is tried again before the position is read
        except BagMismatch as error:
            log.info("%s; from here on they are changed one by one", error)
            self._one_by_one_tables |= {error.table}
            return self._apply(batch)
        except (CountMismatch, RplError) as error:
            if getattr(error, "transient", False):
                raise
        if batch.last - batch.first <= MOST_IN_ORDER:
            return self._in_order(batch)
        # nearly all of a long batch fits in bulk still, and in order it would take minutes to find what does not
        return sum(self._apply(half) for half in batch.halves())

    def _in_order(self, batch: Batch) -> int:
        """In one transaction; if that cannot be, one of the source at a time up to the one that fails."""
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

    def _one_by_one(self, batch: Batch, *, may_be_cut: bool = True) -> int:
        changes = 0
        for group in batch.one_by_one():
            self._interrupter.check()
            if group.kind is BatchKind.SKIP:
                changes += self._apply(group)
            else:
                changes += self._ordered(group, may_be_cut=may_be_cut)
        return changes

    def _decode(self, splits: list[Split]) -> list[TableChunk]:
        try:
            return self._pipeline.decode(splits, self.catalog)
        except UnknownTables as error:
            if self._statements is None:
                raise
            self.catalog = self._statements.know(error.names)
            return self._pipeline.decode(splits, self.catalog)

    def _decoded(self, events: EventRange) -> Iterator[list[TableChunk]]:
        """Job by job; while the target is busy with one, the next is decoded."""
        changes, size = 0, events.end - events.start
        following = self._jobs(events)
        job = next(following, None)
        if job is not None and job[-1].end == events.end:
            self._last_begins()
        while job is not None:
            if self._statements is not None:
                self.catalog = self._statements.know([])  # a statement may have changed tables since
            chunks = self._ahead.take((job, self.catalog))
            if chunks is None:
                chunks = self._decode(job)
            found = sum(chunk.change_count for chunk in chunks)
            changes += found
            self.batch_size.job_decoded(found, sum(chunk.net_count for chunk in chunks))
            done = job[-1].end - events.start
            job = next(following, None)
            if job is not None:
                self._begin(job)
            if job is None or job[-1].end == events.end:
                self.batch_size.decoded(size, changes * size // done)
                self._last_begins()
            yield chunks
            del chunks  # before the next ones come

    def _last_begins(self) -> None:
        meanwhile, self._meanwhile = self._meanwhile, lambda: None
        meanwhile()

    def learn_tables(self, batch: Batch) -> None:
        """Before the first batch is decoded: a job that meets a table which the catalog lacks is a job lost."""
        if self._statements is None or self.catalog.tables or batch.kind is not BatchKind.BULK:
            return
        piece = min(batch.end, batch.start + SMALLEST_SPLIT)
        with suppress(RplError):  # met again in its turn
            named = named_tables(batch.groups.data, batch.start, piece, batch.description)
            self.catalog = self._statements.know(named)

    def expect(self, groups: RelayGroups, stop: int, per_commit: Callable[[], int]) -> None:
        """The first `stop` of these groups come next: begin to decode them (from any thread)."""
        planned = plan_batches(groups, stop, has_rollbacks=self.executes_statements, per_commit=per_commit)
        batch = next(planned, None)
        if batch is not None and batch.kind is BatchKind.BULK and not batch.unfolds:
            self._begin(next(self._jobs(lying_range(batch))))

    def _begin(self, job: list[Split]) -> None:
        catalog = self.catalog
        self._ahead.begin((job, catalog), lambda: self._pipeline.decode(job, catalog))

    def _jobs(self, events: EventRange) -> Iterator[list[Split]]:
        task = partial(
            Split,
            spool_folder=str(self._channel.spool_folder),
            target_kind=self._target.kind,
            rules=self._rules,
            bulk_rows=self._bulk_rows,
            framed=self._target.takes_frames,
            in_order=self._one_by_one_tables,
        )
        return jobs(events, self.batch_size, self._pipeline.parallelism, task)

    def _bulk(self, batch: Batch) -> int:
        """Decode and apply job by job, in one transaction: memory hangs on a job's size, not on the batch's."""
        changes = 0
        with (
            self._interrupter.work(),
            event_range(batch, self._unfolded_bytes, self._channel.spool_folder) as events,
        ):
            decoded = self._decoded(events)
            chunks: list[TableChunk] | None = next(decoded)
            unchecked = self._check_bulk(chunks or [])

            def apply() -> None:
                nonlocal chunks, changes
                while chunks is not None:
                    self._apply_chunks(chunks)
                    changes += sum(chunk.change_count for chunk in chunks)
                    chunks = None  # before the next ones come
                    chunks = next(decoded, None)
                    if chunks is not None and self._check_bulk(chunks) and not unchecked:
                        raise Inconsistent("rows with foreign_key_checks=0 behind others")

            self._commit(batch, apply, foreign_keys=not unchecked)
        return changes

    def _check_bulk(self, chunks: list[TableChunk]) -> bool:
        """Whether the target's foreign keys must rest. Raises when its tables do not fit, or not the bulk way."""
        models = self.catalog.tables
        touched = {(chunk.database, chunk.table) for chunk in chunks}
        if self._statements is not None:
            self._statements.check_bulk([models[name] for name in touched])
        parents = touched & self._cascading_parents()
        if any((chunk.database, chunk.table) in parents and not chunk.cascades_logged for chunk in chunks):
            raise Inconsistent("foreign keys that cascade")
        for name in touched - self._checked:
            self._target.check_table(models[name])
            self._checked.add(name)
        for chunk in chunks:
            if chunk.takes_copies(models[chunk.database, chunk.table]):
                self._check_bag(models[chunk.database, chunk.table])
        return bool(parents) or any(chunk.foreign_keys_off for chunk in chunks)

    def _check_bag(self, model: TableModel) -> None:
        name = (model.database, model.name)
        if name in self._bags:
            return
        if not self._target.takes_bags(model):
            raise BagMismatch(*name, "the target has more of them than the source")
        self._bags.add(name)

    def _apply_chunks(self, chunks: list[TableChunk]) -> None:
        by_split: list[list[TableChunk]] = []
        for chunk in chunks:  # chunks of one split name each table once
            if not by_split or any((c.database, c.table) == (chunk.database, chunk.table) for c in by_split[-1]):
                by_split.append([])
            by_split[-1].append(chunk)
        for piece in without_superseded(by_split):
            self._target.apply_chunks(piece, self.catalog.tables)

    def _cascading_parents(self) -> set[tuple[str, str]]:
        """Tables whose rows the target itself changes others with: a foreign key with an action points at them."""
        if self._statements is not None:
            return set()  # the server's own; StatementRunner knows them
        return {
            (key.ref_database, key.ref_table)
            for model in self.catalog.tables.values()
            for key in model.foreign_keys
            if key.acts
        }

    def _ordered(self, batch: Batch, *, may_be_cut: bool = True) -> int:
        """The batch in the source's order, in one transaction. `may_be_cut`: by STOP, if it holds nothing but rows."""
        only_rows = bool(np.isin(batch.scan.kind[batch.first : batch.last], CUTTABLE).all()) and not batch.has_payload
        with (
            self._interrupter.work() if may_be_cut and only_rows else nullcontext(),
            event_range(batch, self._unfolded_bytes, self._channel.spool_folder) as events,
        ):
            run = read_run(events.data, events.start, events.end, events.description)
            return self._ordered_run(batch, filtered(run, self._rules))

    def _ordered_run(self, batch: Batch, run: EventRun) -> int:
        own = self._statements is not None
        if batch.last - batch.first > 1 and (batch.has_payload or (not own and mixes_foreign_key_checks(run))):
            raise Inconsistent("groups that do not fit into one transaction")
        foreign_keys = wants_foreign_keys(run, statements_bring_their_own=own)
        if self._statements is not None:
            self.catalog = self._statements.introduce(run)
        check_permitted(run, self.info, self._config, self._know)
        if self._statements is not None:
            if batch.last - batch.first > 1 and not self._statements.can_roll_back(run):
                raise Inconsistent("rows that stay when the groups behind them fail")
        work = OrderedRange(
            self._target,
            self.catalog,
            self._channel.name,
            config=self._config,
            statements=self._statements,
            cascades_lost=() if foreign_keys else self._cascading_parents(),
        )

        def apply() -> None:
            if self._statements is not None:
                self._statements.begin_group(run)
            result = work.apply(run)
            if self._statements is not None:
                result.moves.extend(self._statements.take_moves())
            if result.models or result.databases or result.moves:
                store_models(
                    self._target.connection,
                    self._channel.name,
                    batch.source_position,
                    result.models,
                    result.databases,
                    result.moves,
                )

        after = self._statements is not None and not (
            self._ledger.mode is CommitMode.XA and self._statements.waits_for_commit(run)
        )
        try:
            self._commit(batch, apply, foreign_keys=foreign_keys, after=after)
        except TargetError as error:
            if self._may_replay(error, run, work.result.changes):
                return self._ordered_run(batch, run)
            if after or error.errno not in NOT_IN_XA:
                raise
            self._commit(batch, apply, foreign_keys=foreign_keys, after=True)
        return self._applied(work)

    def _applied(self, work: OrderedRange) -> int:
        """What was committed: its notes, its tables; the number of row changes."""
        for note in (*work.result.notes, *work.result.passed_over.messages):
            log.warning("%s", note)
        if work.result.passed_over.count:
            self.passed_over += work.result.passed_over.count
        if work.result.passed_over.errors:
            log.warning("%s", work.result.passed_over.summary())
        if work.result.catalog is not None:
            self.catalog = work.result.catalog
            self._checked.clear()
            self._bags.clear()
            self._one_by_one_tables = frozenset()
        return work.result.changes

    def _may_replay(self, error: TargetError, run: EventRun, changes: int) -> bool:
        """Whether the run is tried again, its rows applied by the server itself; nothing of it may have stayed."""
        if self._statements is None or (changes and not self._statements.can_roll_back(run)):
            return False
        return self._statements.replay_from_now(error, run)

    def _know(self, names: Iterable[tuple[str, str]]) -> Catalog:
        """The catalog, with these tables of the target in it if it has them."""
        return self.catalog if self._statements is None else self._statements.know(names)

    def _commit(
        self, batch: Batch, apply: Callable[[], None], *, foreign_keys: bool = True, after: bool = False
    ) -> None:
        """`after`: the group may commit by itself, its position follows."""

        def apply_uncut() -> None:
            apply()
            self._interrupter.before_commit()

        new = moved_by(batch, self.info, self._config)
        try:
            stage(self._ledger.log, batch, self._config, self._rules, self.info)
            commit = commit_after if after else commit_group
            commit(self._target, self._ledger, (self.info, new), apply_uncut, foreign_keys=foreign_keys)
        except RplError as error:
            error.channel = self._channel.name
            if not error.position:
                error.position = str(batch.source_position)
            raise
        self.info = new
