"""Applies a range of the relay log event by event, in the source's order: DDL, statements, savepoints, and rows.

A bulk batch that the target rejects is applied again in this way. Then the failing event, table, key and end position
are known (design D2). The transaction of the target belongs to the caller, so changes before an error are rolled back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from rplctl import mysql_errors as er
from rplctl.applier.apply.cascade_refresh import Cascade, cascade_of
from rplctl.applier.apply.foreign_key_checks import WITHOUT_ACTIONS
from rplctl.applier.apply.live_tables import COMMIT_WAS_HERE, LiveTables
from rplctl.applier.apply.row_error import row_error
from rplctl.applier.apply.rows_ahead import DecodedBy, RowsAhead, RowsOfEvent, table_id
from rplctl.applier.apply.savepoint_groups import apply_members
from rplctl.applier.apply.tolerance import PassedOver, Tolerance, undone_on_error
from rplctl.applier.apply.unsupported_ddl import (
    NOTED_KINDS,
    UnsupportedDdl,
    cannot_execute,
    concerns_no_table,
    refused_object,
    shown,
)
from rplctl.applier.feed.event_range import spool_file
from rplctl.channel import Channel
from rplctl.commit.noted import StatementNotes
from rplctl.config import Config
from rplctl.decode.ddl_context import ddl_context
from rplctl.decode.event_filter import filtered
from rplctl.decode.filter_rules import ReplicationFilter
from rplctl.decode.net_changes import row_changes
from rplctl.decode.row_stream import EventRun, TableRows, read_run, read_tables, unknown_tables
from rplctl.decode.tables_to_requeue import table_at
from rplctl.decode.transaction_words import ROLLBACK_TO, SAVEPOINT, TRANSACTION_WORDS, XA
from rplctl.decode.undone import without_undone
from rplctl.errors import IN_ROW_FORMAT, SHOW_TRANSACTION, SKIP_AND_COPY, SKIP_AND_REPAIR, RplError, TargetError
from rplctl.event.events import Query, XaPrepare, parse_event, parse_query
from rplctl.event.rows import INSERT
from rplctl.event.types import PLAIN_ROWS, STATEMENT_EVENTS, EventType
from rplctl.mask import masked
from rplctl.own_tables.prepared import keep_prepared, take_prepared
from rplctl.schema.model import TableModel
from rplctl.schema.plan import Catalog, DatabaseModel, DdlPlan, plan_ddl
from rplctl.schema.statement import (
    AlterTable,
    DropDatabase,
    Move,
    NoOperation,
    TableName,
    Unreplicated,
)
from rplctl.skipped_objects import SkippedObjects
from rplctl.sql_run import run as run_sql
from rplctl.sql_text import Sql, word, written
from rplctl.target.base import ForeignKeyTarget, Savepoints, Target
from rplctl.target.registry import dialect_of

# A statement is never skipped silently: its triggers and functions change tables that its text does not show.
_ROLLED_BACK_HINT = (
    f"{SHOW_TRANSACTION}\n"
    "To skip the whole transaction, which the source rolled back, run: rplctl skip --yes; rplctl start\n"
    "To copy its nontransactional tables (MyISAM, Aria) again, too, whose changes the source kept, run instead: "
    "rplctl skip --yes; rplctl clone --tables DB.TABLE --replace --yes; rplctl start"
)


@dataclass(slots=True, kw_only=True)
class OrderedResult:
    """The outcome of applying a range: row counts, new table models, notes for the log, and skipped errors."""

    changes: int = 0
    by_spark: int = 0  # row changes in `changes` that Spark tasks decoded
    by_driver: int = 0  # row changes in `changes` that this process decoded; a statement counts in neither of the two
    models: dict[TableName, TableModel | None] = field(default_factory=dict)
    databases: dict[str, DatabaseModel | None] = field(default_factory=dict)
    moves: list[Move] = field(default_factory=list)
    catalog: Catalog | None = None  # after the range's DDL; None = unchanged
    notes: list[str] = field(default_factory=list)
    passed_over: PassedOver = field(default_factory=PassedOver)


class ChangeLog(Savepoints, Protocol):
    """The interface to a target that stores every change as a row of a log (lake.py)."""

    def rows(self, piece: EventRun, catalog: Catalog) -> int:
        """Store the changes of the rows event in `piece`, which follows its table map. Return their number."""

    def statement(self, plan: DdlPlan, text: str) -> None: ...


class OrderedRange:
    """Applies one run of events. The channel's filters have already removed the excluded events.

    `statements`: executes the source's statements, or None if the target takes only rows and DDL that rplctl plans.
    `cascades_lost`: tables whose foreign key actions the target will not execute in this transaction.
    `again`: True if some of the run's rows may already be on the target (own_tables/group_begun.py).
    `waiting`: tables that `rplctl clone` has not copied yet. `changes`: stores the changes, for a lake with change
    logs.
    `tasks`: the tasks that decode the rows, if any.
    `config`: has the options for DDL that the target cannot execute, and the filters for DROP and RENAME.
    """

    def __init__(  # noqa: PLR0913 - what surrounds a run, by keyword
        self,
        target: Target,
        catalog: Catalog,
        channel: str,
        *,
        config: Config,
        statements: LiveTables | None = None,
        cascades_lost: Collection[TableName] = (),
        again: bool = False,
        waiting: frozenset[TableName] = frozenset(),
        changes: ChangeLog | None = None,
        tasks: DecodedBy | None = None,
    ) -> None:
        self._target = target
        is_replayed = statements.replays if statements is not None else lambda _, __: False
        self._ahead = RowsAhead(tasks, target.kind, is_replayed) if tasks is not None and changes is None else None
        self._log = changes
        self._marks = changes or (target if isinstance(target, Savepoints) else None)
        self._cascades_lost = cascades_lost
        self._rest = ReplicationFilter(waiting=waiting)  # filters events that were stored unfiltered at XA PREPARE
        self._follows: bool | None = False  # True if the target executes foreign key actions; None if unknown
        self._catalog = catalog
        self._channel = channel
        self._retries = config.replica_transaction_retries
        of_channel = Channel(channel, config.datadir)
        self._spool_folder = of_channel.spool_folder
        self._skipped = SkippedObjects(of_channel)
        self._policy = UnsupportedDdl(config.on_unsupported_ddl)
        self._lower_case = config.lower_case_table_names
        self._statements = statements
        self._tolerance = replace(Tolerance.from_config(config), again=again)
        rules = ReplicationFilter.from_config(config)
        self._accepts = (lambda name: rules.accepts_tables([name])) if rules.has_table_rules else None
        self._cascades_of, self._cascades = catalog, dict[str, Cascade]()
        self._may_roll_back = False
        self._checked: set[str] = set()  # tables whose columns were compared with the model
        self.result = OrderedResult()

    def apply(self, run: EventRun) -> OrderedResult:
        """Apply every event that is not committed yet. An RplError has the table, errno and end position."""
        notes = self._statements.notes if self._statements is not None else None
        try:
            return self._apply(run, notes)
        except RplError as error:
            if notes is not None and not self.result.changes and not error.transient:
                notes.record_no_change()
            raise

    def _apply(self, run: EventRun, notes: StatementNotes | None = None) -> OrderedResult:
        """Apply the run. `notes`: the statement notes, which show the events that are committed (commit/noted.py).

        `notes` is None for events that were prepared before their XA COMMIT.
        """
        if (prepare := np.flatnonzero(run.types == EventType.XA_PREPARE)).size:
            self._prepare(run, int(prepare[0]))
            return self.result
        if not dialect_of(self._target.kind).has_savepoints:
            run = without_undone(run)
        self._may_roll_back = self._statements is None and ends_in_rollback(run)
        self._commit_was_here()
        maps: dict[int, int] = {}

        def event(number: int) -> None:
            if notes is not None:
                notes.event = number
                if number < notes.events_done and run.types[number] != EventType.TABLE_MAP:
                    return
            try:
                self._event(run, number, maps)
            except RplError as error:
                at = maps.get(table_id(run, number), number) if run.types[number] in PLAIN_ROWS else number
                error.table = table_at(run, at, self._lower_case)
                raise

        apply_members(run, event, self._statements, self._retries, self.result)
        return self.result

    def _commit_was_here(self) -> None:
        if self._may_roll_back:
            self._say(written("SAVEPOINT {}", COMMIT_WAS_HERE))
            if self._marks is not None:
                self._marks.savepoint(COMMIT_WAS_HERE)

    def _event(self, run: EventRun, number: int, maps: dict[int, int]) -> None:
        code = run.types[number]
        if code == EventType.TABLE_MAP:
            maps[table_id(run, number)] = number
        elif code in PLAIN_ROWS:
            self._tolerate(self._apply_rows, run, number, maps)
        elif code == EventType.QUERY:
            self._tolerate(self._apply_query, run, number)
        elif code in STATEMENT_EVENTS:
            self._tolerate(self._take, run, number)

    def _tolerate(self, apply: Callable[..., None], run: EventRun, number: int, *more: object) -> None:
        """Apply one event by `apply`. If replica_skip_errors lists the error, skip the rest of this event."""
        try:
            apply(run, number, *more)
        except RplError as error:
            if self._may_roll_back and error.errno in (
                er.BINLOG_UNSAFE_STATEMENT,
                er.BINLOG_ROW_INJECTION_AND_STMT_MODE,
            ):
                error.hint = _ROLLED_BACK_HINT
            if not self._tolerance.ignores(error):
                raise
            self.result.passed_over.add(error, run.end_position(number))

    def _take(self, run: EventRun, number: int) -> None:
        if self._statements is None:
            what = EventType(int(run.types[number])).name
            raise RplError(
                f"this target cannot execute a statement that the source logged instead of row events: {what}",
                errno=er.BINLOG_ROW_INJECTION_AND_STMT_MODE,
                position=run.end_position(number),
                hint=IN_ROW_FORMAT,
            )
        self.result.changes += self._statements.take(run.event(number), run.description)

    def _prepare(self, run: EventRun, number: int) -> None:
        """Store the events before XA PREPARE in the target until XA COMMIT. With ONE PHASE, apply them at once."""
        prepare = parse_event(run.event(number), run.description)
        assert isinstance(prepare, XaPrepare)
        if prepare.one_phase:
            self.apply(filtered(run.part(0, number), self._rest))
            return
        events = (run.event(n) for n in range(number))
        keep_prepared(self._target.connection, self._channel, str(prepare.xid), events, run.description)

    def _end_xa(self, verb: str, xid: str, at: str) -> None:
        with spool_file(self._spool_folder) as path:
            with path.open("wb") as file:
                description = take_prepared(
                    self._target.connection, self._channel, xid, file if verb == "COMMIT" else None
                )
            if description is None:
                raise RplError(
                    f"XAER_NOTA: Unknown XID: XA {verb} {xid}, whose XA PREPARE is before this channel's first "
                    "position",
                    errno=er.XAER_NOTA,
                    position=at,
                    hint=SKIP_AND_REPAIR,
                )
            if path.stat().st_size:
                data = np.memmap(path, np.uint8, "r")
                with nullcontext() if self._statements is None else self._statements.prepared():
                    self._apply(filtered(read_run(data, 0, len(data), description), self._rest))

    def _apply_rows(self, run: EventRun, number: int, maps: Mapping[int, int]) -> None:
        table_map = maps.get(table_id(run, number))
        chosen = np.array([number] if table_map is None else [table_map, number])
        piece = EventRun(
            data=run.data,
            starts=run.starts[chosen],
            lengths=run.lengths[chosen],
            types=run.types[chosen],
            description=run.description,
        )
        if self._statements is not None:
            self._catalog = self._statements.know(unknown_tables(piece, self._statements.catalog))
            if self._statements.replay(piece, self._catalog):
                self.result.changes += 1
                return
        if self._log is not None:
            count = self._log.rows(piece, self._catalog)
            self.result.changes += count
            self.result.by_driver += count
            return
        if self._ahead is not None and (ready := self._ahead.take(run, number, maps, self._catalog)) is not None:
            self.result.by_spark += self._apply_changes(ready, run, number)
            return
        for rows in read_tables(piece, self._catalog, self._target.kind):
            decoded = self._decoded_here(rows)
            self.result.by_driver += self._apply_changes(decoded, run, number)

    def _apply_changes(self, rows: RowsOfEvent, run: EventRun, number: int) -> int:
        """Apply the changes of a rows event, and return how many there were."""
        if rows.model.qualified_name not in self._checked:
            self._target.check_table(rows.model)
            self._checked.add(rows.model.qualified_name)
        cascade, follows, count = self._cascade(rows), False, 0
        self._set_actions(rows, run, number)
        for change in rows.changes:
            try:
                if cascade is not None and cascade.follows(change):
                    cascade.refuse_unknown(self._target, run.end_position(number), change)
                    follows = True
                misfit = self._tolerance.apply_row(self._target, change, rows.model)
            except TargetError as error:
                raise row_error(error, change, rows.model, run, number) from error
            count += 1
            self.result.changes += 1
            if misfit is not None:
                shown = row_error(misfit, change, rows.model, run, number)
                self.result.passed_over.add(shown, shown.position)
        if follows and cascade is not None:
            cascade.refresh(self._target)
        return count

    def _decoded_here(self, rows: TableRows) -> RowsOfEvent:
        """Return the changes of the rows, each of which is decoded just before it is applied.

        A JSON diff needs the target's document at that time.
        """
        changes = row_changes(rows, lambda image, column: self._target.stored_value(image, column, rows.model))
        kind, flags = int(rows.events.kind[0]), int(rows.events.flags[0])
        return RowsOfEvent(model=rows.model, kind=kind, flags=flags, changes=changes)

    def _cascade(self, rows: RowsOfEvent) -> Cascade | None:
        """Return the foreign key actions that rplctl must handle after these changes.

        Return None if the log contains their effects, or if the server executes them.
        """
        if self._statements is not None or rows.kind == INSERT or rows.flags & WITHOUT_ACTIONS:
            return None
        if self._cascades_of is not self._catalog:
            self._cascades_of, self._cascades = self._catalog, {}
        if (found := self._cascades.get(rows.model.qualified_name)) is None:
            found = self._cascades[rows.model.qualified_name] = cascade_of(
                self._catalog, rows.model, are_followed=dialect_of(self._target.kind).follows_foreign_keys
            )
        return found

    def _set_actions(self, rows: RowsOfEvent, run: EventRun, number: int) -> None:
        """Switch the target's foreign key actions on or off, as this event needs it.

        Raises RplError if the target cannot do so within a transaction.
        """
        wants_action = rows.kind != INSERT and not rows.flags & WITHOUT_ACTIONS
        wants_action &= (rows.model.database, rows.model.name) in self._cascades_lost
        if wants_action is not self._follows and not self._follow(wants_action):
            raise RplError(
                "this target cannot apply the cascading actions of a transaction that changes some rows of "
                f"{rows.model.qualified_name} with foreign_key_checks=1 and others with foreign_key_checks=0",
                errno=er.ROW_IS_REFERENCED_2,
                position=run.end_position(number),
                hint=SKIP_AND_REPAIR,
            )

    def _follow(self, wanted: bool) -> bool:
        """Switch foreign key actions on (`wanted`) or off. Return False if the target cannot do so in a transaction."""
        target, models = self._target, self._catalog.tables
        can = isinstance(target, ForeignKeyTarget) and target.follow_foreign_keys(wanted, models)
        self._follows = wanted and can
        return self._follows is wanted

    def _apply_query(self, run: EventRun, number: int) -> None:
        query = parse_query(run.event(number), run.description)
        try:
            self._apply_words(query, run, number)
        except RplError as error:
            error.hide(query.sql_bytes.decode("utf-8", "replace"))
            raise

    def _apply_words(self, query: Query, run: EventRun, number: int) -> None:
        sql = query.sql_bytes.decode("latin-1").strip()  # these keywords are ASCII in every client character set
        if TRANSACTION_WORDS.match(sql):
            if sql.upper().startswith("ROLLBACK"):
                self._roll_back()
            return
        if match := ROLLBACK_TO.match(sql):
            self._say(written("ROLLBACK TO SAVEPOINT {}", _private(match[1])))
            self._follows = None if self._cascades_lost else False  # this also undoes a switch of the actions
            if self._marks is not None:
                self._marks.roll_back_to(_private(match[1]))
        elif match := XA.match(sql):
            if match[1].upper() in ("COMMIT", "ROLLBACK"):
                self._end_xa(match[1].upper(), match[2], run.end_position(number))
        elif match := SAVEPOINT.match(sql):
            self._say(written("SAVEPOINT {}", _private(match[1])))
            if self._marks is not None:
                self._marks.savepoint(_private(match[1]))
        elif self._statements is not None:
            self._run_statement(query, run, number)
        else:
            may_fail = not self._tolerance.is_strict and not dialect_of(self._target.kind).ddl_commits
            with undone_on_error(self._target, wanted=may_fail):
                self._apply_ddl(query, run, number)

    def _say(self, sql: Sql) -> None:
        run_sql(self._target.connection, sql)

    def _roll_back(self) -> None:
        """Undo changes since the last commit of the source, which logged a ROLLBACK. DDL counts as a commit."""
        if self._statements is not None:
            self._statements.roll_back()
        elif self._may_roll_back:
            self._say(written("ROLLBACK TO SAVEPOINT {}", COMMIT_WAS_HERE))
            if self._marks is not None:
                self._marks.roll_back_to(COMMIT_WAS_HERE)

    def _run_statement(self, query: Query, run: EventRun, number: int) -> None:
        assert self._statements is not None
        at = run.end_position(number)
        try:
            left_out = self._statements.run(query, run.description)
        except RplError as error:
            context = ddl_context(query, run.description, self._lower_case)
            copies = bool(self._rest.waiting)
            refused = refused_object(query, context, error, self._skipped.read(), copies=copies)
            if refused is None and error.errno == er.TRG_DOES_NOT_EXIST:  # DROP TRIGGER, at which no replica stops
                self.result.notes.append(f"skipped at {at}: {error.message}")
                return
            if refused is None or not self._policy.skips(refused):
                error.position = error.position or at
                raise
            self._skip_object(refused, at)
            return
        self._skipped.left_out(left_out, at)
        self.result.notes.extend(left_out)
        self.result.changes += 1

    def _apply_ddl(self, query: Query, run: EventRun, number: int) -> None:
        at = run.end_position(number)
        context = ddl_context(query, run.description, self._lower_case)
        try:
            plan = plan_ddl(
                query.sql,
                query.database,
                context,
                self._catalog,
                self._accepts,
                may_replace=self._log is not None,  # in a change log, a known table may be one that is created later
                may_drop_unknown=self._policy is UnsupportedDdl.SKIP
                or self._tolerance.drops_missing(is_mariadb=context.is_mariadb),
            )
            for statement in plan.unreplicated:
                self._skip_object(statement, at)
        except RplError as error:
            if self._policy is not UnsupportedDdl.SKIP or not concerns_no_table(query, context, error, self._catalog):
                error.position = error.position or at
                raise
            error.hide(query.sql)
            self.result.notes.append(f"skipped at {at}: {error.message}")
            self.result.passed_over.statements += 1
            return
        self.result.notes.extend(plan.notes)
        for action in plan.actions:
            if isinstance(action, DropDatabase):
                self._skipped.forget(action.name)
        try:
            self._target.execute_ddl(plan, self._catalog)
        except TargetError as error:
            ignores = any(isinstance(action, AlterTable) and action.ignore for action in plan.actions)
            if not ignores or error.errno != er.DUP_ENTRY:
                raise
            text = "ALTER IGNORE TABLE removed rows on the source, whose log does not say which"
            raise TargetError(f"{text}: {error.message}", errno=er.DUP_ENTRY, hint=SKIP_AND_COPY) from error
        if self._log is not None:
            self._log.statement(plan, masked(query.sql))
        self.result.models.update(plan.model_changes)
        self.result.databases.update(plan.database_changes)
        self.result.moves.extend(plan.moves())
        self._catalog = self.result.catalog = self._catalog.after(plan)
        if not all(isinstance(action, NoOperation) for action in plan.actions):
            self._commit_was_here()

    def _skip_object(self, statement: Unreplicated, at: str) -> None:
        """Skip a statement that the target cannot execute, with a note. Raises RplError 1235 if it is not permitted."""
        title = dialect_of(self._target.kind).title
        if not self._policy.skips(statement):
            raise cannot_execute(statement, title)
        self.result.passed_over.statements += 1
        self.result.notes.append(f"skipped at {at}: a {title} target cannot execute {shown(statement)}")
        if statement.kind in NOTED_KINDS:
            text = shown(statement)
            self._skipped.note(statement.kind, statement.names, is_drop=statement.is_drop, text=text, position=at)


def ends_in_rollback(run: EventRun) -> bool:
    """True if the last event of the run is a ROLLBACK that the source has logged."""
    if not len(run.types) or run.types[-1] != EventType.QUERY:
        return False
    words = parse_query(run.event(len(run.types) - 1), run.description).sql_bytes.strip()
    return words.upper() == b"ROLLBACK"


def _private(name: str) -> Sql:
    """Return the name on the target for a savepoint of the source.

    It is short, independent of case, and never the name of one of the applier's own savepoints.
    """
    return word("s_" + hashlib.sha256(name.strip("`\"'").lower().encode()).hexdigest()[:40])
