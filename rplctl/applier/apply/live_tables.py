"""Executes the source's own statements on a server (MySQL, MariaDB), and provides the models of its tables (D10, D11).

The events INTVAR, RAND, USER_VAR and the blocks of LOAD DATA are stored until their statement comes. Invariant: they
are stored at most until their group (transaction) is applied.

When a replica applies a rows event, no trigger fires, and the server adds no history to a system-versioned table.
INSERT, UPDATE and DELETE of rplctl would have both effects. For such tables, the server itself therefore *replays* the
rows event: rplctl sends the event to the server in a BINLOG statement.
"""

# ruff: noqa: B027 - a table source leaves methods empty that it does not need

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from rplctl import mysql_errors as er
from rplctl.applier.apply.binlog_statement import split_by_kind
from rplctl.applier.apply.target_catalog import LiveCatalog
from rplctl.applier.apply.temporary_tables import TemporaryTables
from rplctl.applier.apply.tolerance import Tolerance
from rplctl.applier.spark.pipeline import UnknownTables
from rplctl.commit.noted import StatementNotes
from rplctl.decode.json_as_text import keeps_documents
from rplctl.decode.net_changes import Inconsistent
from rplctl.decode.row_stream import EventRun, read_tables, unknown_tables
from rplctl.errors import OR_SKIP, BinlogFormatError, RplError, TargetError
from rplctl.event.events import Intvar, LoadBlock, Rand, UserVar, parse_event
from rplctl.event.format_description import FormatDescription
from rplctl.event.query import ExecuteLoadQuery, Query
from rplctl.event.rows import DELETE, INSERT, NO_FOREIGN_KEY_CHECKS
from rplctl.event.table_map import TableMap, parse_table_map
from rplctl.event.types import EventType
from rplctl.schema.affected import Affected, affected_by
from rplctl.schema.context import DdlContext
from rplctl.schema.model import TableModel
from rplctl.schema.plan import Catalog
from rplctl.schema.row_key import key_of
from rplctl.schema.statement import Move, TableName
from rplctl.schema.updated_names import UpdatedNames, updated_names
from rplctl.sql_run import run
from rplctl.sql_text import written
from rplctl.target.base import SourceStatement, StatementTarget

_ROWS_FLAGS = 25  # offset of the flags in a rows event, after the header and the table id
# errors for text that is invalid in its character set
_NO_TEXT = frozenset({er.INVALID_CHARACTER_STRING, er.TRUNCATED_WRONG_VALUE_FOR_FIELD})
COMMIT_WAS_HERE = written("rplctl_commit_was_here")  # WL#3970's name with rplctl's prefix


class NotTransactional(Exception):
    """The error for a batch that changes nontransactional tables, so that another strategy must apply it.

    No caller outside of the applier sees this error.
    """


class TableSource(ABC):
    """Provides the models of the tables, and all that depends on whether the target executes statements.

    The methods of this class are for a target that takes only rows and DDL that rplctl plans. LiveTables overrides them
    for a server. `statements`: the object that executes the source's statements, or None if the target takes only rows.
    """

    @property
    @abstractmethod
    def catalog(self) -> Catalog: ...

    @property
    def statements(self) -> LiveTables | None:
        return None

    def know(self, names: Iterable[TableName]) -> Catalog:
        """Return the catalog with the models of these tables, after reading them from the target if necessary.

        Known tables that a statement has changed are also read again. If the models are stored (StoredModels), nothing
        is read, because only DDL changes the catalog.
        """
        return self.catalog

    @abstractmethod
    def find(self, unknown: UnknownTables) -> Catalog:
        """Return the catalog with the tables that a decoding task did not know.

        Raises `unknown` if only DDL changes the catalog, so that the tables do not exist.
        """

    def check_bulk(self, models: Sequence[TableModel]) -> None:
        """Check that rows of these tables can be applied in bulk.

        Raises NotTransactional if a table cannot be rolled back, and Inconsistent if the rows must be applied in the
        source's order.
        """

    def cascading_parents(self) -> Collection[TableName]:
        """Return the tables whose changes cascade to other tables by the target's foreign keys.

        Tables that `check_bulk` refuses may be missing.
        """
        return ()

    def foreign_keys(self, databases: Collection[str]) -> Iterable[tuple[TableName, TableName]]:
        """Return for each foreign key on the target its table and the table to which it refers.

        A server returns only the keys within these databases, because others may have tables of another program.
        """
        models = self.catalog.tables.items()
        return ((name, (key.ref_database, key.ref_table)) for name, model in models for key in model.foreign_keys)

    def introduce(self, run: EventRun) -> Catalog:
        """Prepare the target for a group (transaction), before the transaction of the group begins.

        Return the catalog with the tables whose rows the group changes.
        """
        return self.catalog

    @abstractmethod
    def can_share(self, run: EventRun) -> bool:
        """True if several transactions of the source in this run may be one transaction of the target."""

    def position_follows(self, run: EventRun, *, in_xa: bool) -> bool:
        """True if the run may be committed without its position, for example because the run has DDL.

        The position must then be committed after the run (`commit_after`).
        """
        return False

    def kept_by(self, run: EventRun) -> list[TableName]:
        """Return the nontransactional tables whose rows the run changes, as far as its events show them."""
        return []

    def begin_group(self, run: EventRun, kept: Collection[TableName] = ()) -> None:
        """Prepare for the events of a group, at the beginning of its transaction.

        `kept`: the tables from `kept_by`, if the next start must be able to detect a crash in the group.
        """

    def take_moves(self) -> list[Move]:
        """Return the tables that the group's statements have moved with all their rows, for example by RENAME TABLE.

        A second call returns nothing. For planned DDL, the result is empty, because the plan has its moves.
        """
        return []

    def replay_from_now(self, error: TargetError, run: EventRun, changes: int) -> bool:
        """True if a run that failed and was rolled back should be applied again.

        This time, the server replays its rows events. `changes`: the number of row changes before the error.
        """
        return False

    def committed(self, catalog: Catalog) -> None:
        """Use this catalog from now on, because planned DDL was committed."""


class LiveTables(TableSource):
    """The tables of a target that executes the source's statements, for one applier.

    Events that belong to a later statement are stored until the group ends. `notes`: the statement notes, or None if
    the caller does not handle crashes (commit/noted.py).
    """

    def __init__(self, target: StatementTarget, tolerance: Tolerance, notes: StatementNotes | None = None) -> None:
        self.notes = notes
        self._target = target
        self._tolerance = tolerance
        self._tables = LiveCatalog(target)
        self._variables: list[Intvar | Rand | UserVar] = []
        self._files: dict[int, list[bytes]] = {}
        self._were_prepared = False
        self._moves: list[Move] = []
        self.temporary_tables = TemporaryTables()
        self._raw_text: set[tuple[str, str]] = set()  # tables with text that is invalid in its column's character set

    @property
    def catalog(self) -> Catalog:
        return self._tables.catalog

    @property
    def statements(self) -> LiveTables:
        return self

    def know(self, names: Iterable[TableName]) -> Catalog:
        self._tables.load(names)
        return self._tables.catalog

    def find(self, unknown: UnknownTables) -> Catalog:
        return self.know(unknown.names)

    def foreign_keys(self, databases: Collection[str]) -> Iterable[tuple[TableName, TableName]]:
        pairs = self._target.foreign_keys()  # the catalog has only the tables whose rows were changed
        return ((child, parent) for child, parent in pairs if child[0] in databases and parent[0] in databases)

    def introduce(self, run: EventRun) -> Catalog:
        names = unknown_tables(run, Catalog())
        catalog = self.know(names)
        models = map(catalog.tables.get, names)
        if any(m is not None and (self._target.wants_replay(m) or self._prefers_replay(m)) for m in models):
            self._target.introduce(run.description)
        return catalog

    def position_follows(self, run: EventRun, *, in_xa: bool) -> bool:
        """True if the run may be committed without its position, so that the position is committed after the run.

        Without two-phase commit, the result is always True. In two-phase commit (`in_xa`), it is True for two kinds of
        runs:
        * The source did not commit the run by an XID event. For example, the run is DDL, which commits by itself, or
          ends in a ROLLBACK, which does not undo changes of MyISAM tables.
        * The run changes nontransactional tables of this target.
        """
        return not (in_xa and (run.types == EventType.XID).any() and self.can_roll_back(run))

    def can_share(self, run: EventRun) -> bool:
        """True if several transactions of the source in this run may be one transaction of the target.

        For this, all changed tables must be transactional. If one of the source's transactions fails, the rollback also
        undoes the earlier ones.
        """
        return self.can_roll_back(run)

    def can_roll_back(self, run: EventRun) -> bool:
        """True if all tables whose rows the run changes have transactions on this target."""
        models = (self.catalog.tables.get(name) for name in unknown_tables(run, Catalog()))
        return all(model is None or self._target.is_transactional(model) for model in models)

    def kept_by(self, run: EventRun) -> list[TableName]:
        """Return the nontransactional tables that the run may change.

        If the text of a statement does not show its tables, the statement may change any nontransactional table.
        """
        names = set(unknown_tables(run, Catalog()))
        for number in np.flatnonzero(np.isin(run.types, [EventType.QUERY, EventType.EXECUTE_LOAD_QUERY])).tolist():
            event = parse_event(run.event(number), run.description)
            query = event.query if isinstance(event, ExecuteLoadQuery) else event
            if isinstance(query, Query) and not self._target.is_ddl(query, _context(query, run.description)):
                names |= self._changed_by(query, run.description)
        tables = self.know(names).tables
        models = (tables[name] for name in sorted(names & tables.keys()))
        return [
            (m.database, m.name) for m in models if not self._target.is_transactional(m) and m.engine != "BLACKHOLE"
        ]

    def _changed_by(self, query: Query, description: FormatDescription) -> set[TableName]:
        """Return the tables that a statement may change.

        If the statement joins tables, or reaches other tables by a view, trigger or function, it may change any
        nontransactional table.
        """
        context = _context(query, description)
        try:
            found = updated_names(query.sql_bytes.decode("latin-1"), query.database, context, query.charset)
        except RplError:
            found = UpdatedNames(None)
        tables = self.know(found.tables or ()).tables
        models = [tables[name] for name in found.tables or () if name in tables]
        is_clear = len(models) == len(found.tables or ())
        return {
            *(found.tables or ()),
            *self._target.other_nontransactional(models if is_clear else (), query.sql_bytes),
        }

    def can_repeat(self, run: EventRun) -> bool:
        """True if the rows of the run may be applied to tables that already have some of these rows, as after a crash.

        This needs:
        * full images of rows with a key,
        * tables without triggers and history, which only the event itself changes,
        * nontransactional tables only, so that no ROLLBACK removes a part of the rows.
        """
        for rows in read_tables(run, self.catalog, self._target.kind):
            model, count = rows.model, len(rows.model.columns)
            if self._target.is_transactional(model) or not key_of(model):
                return False
            if self._target.wants_replay(model) or self._prefers_replay(model):
                return False
            if (rows.events.column_count != count).any() or not rows.images.are_full():
                return False
        return True

    def begin_group(self, run: EventRun, kept: Collection[TableName] = ()) -> None:
        """Prepare for the events of a group, at the beginning of its transaction.

        Set a savepoint if the group has a ROLLBACK or an XA statement, because the group may then roll back to it.
        """
        if kept and self.notes is not None:
            self.notes.begin_nontransactional(kept)
        self._variables.clear()
        self._moves.clear()
        self._files.clear()
        queries = (run.event(int(number)).upper() for number in np.flatnonzero(run.types == EventType.QUERY))
        if any(b"ROLLBACK" in query or b"XA " in query for query in queries):
            self.commit_was_here()

    def commit_was_here(self) -> None:
        """Set a savepoint at a commit of the source, while the target's transaction continues (savepoint_groups.py)."""
        run(self._target.connection, written("SAVEPOINT {}", COMMIT_WAS_HERE))

    def roll_back(self) -> None:
        """Roll back to the source's last commit, because the source has logged a ROLLBACK.

        A source logs a ROLLBACK if the transaction has changed a nontransactional table or has dropped a table. For
        example, CREATE OR REPLACE TABLE … SELECT drops a table before it fails.
        """
        self._target.roll_back_to(COMMIT_WAS_HERE)

    def take(self, event: bytes, description: FormatDescription) -> int:
        """Handle one event that belongs to a statement.

        If the statement is now complete, execute it and return 1. Otherwise store the event, and return 0.
        """
        match parse_event(event, description):
            case Intvar() | Rand() | UserVar() as variable:
                self._variables.append(variable)
            case LoadBlock(file_id, data):
                if event[4] == EventType.APPEND_BLOCK:
                    self._file(file_id).append(data)
                else:
                    self._files.pop(file_id, None)
                    if event[4] == EventType.BEGIN_LOAD_QUERY:
                        self._files[file_id] = [data]
            case ExecuteLoadQuery() as load:
                self._run(load, load.query, tuple(self._file(load.file_id)), description)
                del self._files[load.file_id]
                return 1
        return 0

    def run(self, query: Query, description: FormatDescription) -> Sequence[str]:
        """Execute the statement of a QUERY event. Return notes about parts that the target does not support."""
        return self._run(query, query, (), description)

    def _run(
        self, statement: Query | ExecuteLoadQuery, query: Query, file: tuple[bytes, ...], description: FormatDescription
    ) -> Sequence[str]:
        left_out: list[str] = []
        variables, self._variables = tuple(self._variables), []
        drops_missing = self._tolerance.drops_missing(is_mariadb=description.is_mariadb)
        context = _context(query, description)

        def send(is_rest: bool) -> None:
            sent = SourceStatement(
                query=statement,
                variables=variables,
                file=file,
                server_version=description.server_version,
                drops_missing=drops_missing or is_rest,
                system_zone=description.system_zone,
            )
            left_out.extend(self._target.run_statement(sent))

        changed = _changed(query, context) if self.notes is not None and self._target.is_ddl(query, context) else None
        if self.notes is None or changed is None:
            send(False)
        else:
            self.notes.carry_out(query.sql_bytes, changed, send)
        text = query.sql_bytes.decode("latin-1")
        self.temporary_tables.follow(query, context)
        self._moves += self._tables.forget(text, query.database, context, query.charset)
        return left_out

    def take_moves(self) -> list[Move]:
        moves, self._moves = self._moves, []
        return moves

    def _file(self, file_id: int) -> list[bytes]:
        if file_id not in self._files:
            raise BinlogFormatError(
                f"the relay log contains an event of LOAD DATA for file {file_id}, but not the event with the first "
                "block of this file",
                errno=er.SLAVE_RELAY_LOG_READ_FAILURE,
                hint="to fetch the relay logs again, run: rplctl stop; rplctl recover --refetch; rplctl "
                f"start{OR_SKIP}",
            )
        return self._files[file_id]

    def replay(self, piece: EventRun, catalog: Catalog) -> bool:
        """Let the server replay a rows event, if only the server can apply it. Return True if the server did.

        In any case, first set foreign_key_checks as the event needs it. `piece`: the table map and the rows event.
        """
        rows = piece.event(int(np.size(piece.types)) - 1)
        table_map = parse_table_map(piece.event(0), piece.description)
        added = NO_FOREIGN_KEY_CHECKS if self._were_prepared and not self._may_act(table_map, piece) else 0
        self._target.check_foreign_keys(not (rows[_ROWS_FLAGS] | added) & NO_FOREIGN_KEY_CHECKS)
        model = catalog.tables.get((table_map.database, table_map.table))
        if model is None:
            return False
        if not (self.replays(model, piece) or self._only_replay_is_exact(model, piece, catalog)):
            return False
        assert piece.types[0] == EventType.TABLE_MAP
        for part in split_by_kind(piece, table_map, model):
            if added:
                part = part[:_ROWS_FLAGS] + bytes([part[_ROWS_FLAGS] | added]) + part[_ROWS_FLAGS + 1 :]
            self._target.replay_rows(piece.event(0), part, piece.description)
        return True

    def replays(self, model: TableModel, run: EventRun) -> bool:
        """True if the server replays rows events of the table. Otherwise rplctl applies their rows by statements."""
        can = self._prefers_replay(model) and self._target.can_replay(run.description)
        return can or self._target.wants_replay(model)

    def _only_replay_is_exact(self, model: TableModel, piece: EventRun, catalog: Catalog) -> bool:
        """True if a text would change a document of the event. Without the privilege, the server then reports 1227."""
        if not (self._target.prefers_replay(model) and self._target.is_of_vendor(piece.description)):
            return False
        return not all(keeps_documents(rows) for rows in read_tables(piece, catalog, self._target.kind))

    def _prefers_replay(self, model: TableModel) -> bool:
        return self._target.prefers_replay(model) or (model.database, model.name) in self._raw_text

    def replay_from_now(self, error: TargetError, run: EventRun, changes: int) -> bool:
        """True if the server may accept a row that failed and was rolled back, when it replays the rows event.

        The reason is text that is not valid in its character set. A statement cannot store this text, but the replay of
        a rows event stores it unchanged.
        """
        names = set(unknown_tables(run, Catalog())) - self._raw_text
        if error.errno not in _NO_TEXT or not names or (changes and not self.can_roll_back(run)):
            return False
        self._raw_text |= names
        return True

    @contextmanager
    def prepared(self) -> Iterator[None]:
        """Apply the rows in the block like the rows of an XA transaction at XA COMMIT, without checking their parents.

        The source made this check before XA PREPARE. Before XA COMMIT, another session with foreign_key_checks=0 may
        have deleted the parents. XA COMMIT succeeds in this case, so rplctl must not check again.
        """
        self._were_prepared = True
        try:
            yield
        finally:
            self._were_prepared = False

    def _may_act(self, table_map: TableMap, piece: EventRun) -> bool:
        """True if a foreign key action may change other rows because of this event.

        If not, the only effect of foreign keys on this event is the check that parents exist.
        """
        events = piece.rows_events()
        name = (table_map.database, table_map.table)
        return events.kind[0] != INSERT and (events.kind[0] == DELETE or name in self._target.cascading_parents())

    def remade(self, names: Iterable[tuple[str, str]]) -> None:
        """Forget the models of these tables, because they were created again without a statement of the source."""
        self._tables.remade(set(names))

    def check_bulk(self, models: Sequence[TableModel]) -> None:
        if not all(self._target.is_transactional(model) for model in models):
            raise NotTransactional
        parents = self._target.cascading_parents()
        for model in models:
            if (model.database, model.name) in parents:
                raise Inconsistent("foreign keys that cascade")
            if self._target.wants_replay(model):
                raise Inconsistent("triggers or system versioning")


def _context(query: Query, description: FormatDescription) -> DdlContext:
    return DdlContext(sql_mode=query.context.sql_mode or 0, server_version=description.server_version)


def _changed(query: Query, context: DdlContext) -> Affected | None:
    try:
        return affected_by(query.sql, query.database, context)
    except BinlogFormatError:  # a literal is in another character set, and perhaps the names, too
        return Affected()
