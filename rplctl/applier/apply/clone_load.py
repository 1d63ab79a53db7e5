"""Loads chunk files of a copy (`rplctl clone`) into the target, each at its position in the source's log.

A snapshot shows one or more tables at one position L in the source's log, and all its chunks have this position. Rows
are loaded while the applier is exactly at L. Events of these tables before L were skipped, so no change is applied
twice. Events after L are applied without tolerance for missing or duplicate rows, and with foreign keys. With GTIDs, a
channel is at L if it has applied exactly the transactions that the snapshot shows. Invariant: a chunk and its row of
the clone state are written in one transaction that checks the position. So no chunk is loaded twice.

Before L, the applier applies events up to L. Past L, the snapshot cannot be loaded any more and is removed, and the
cloner opens another snapshot for its tables. At L, `Move` names the next action:

    BEGIN    create the tables of the snapshot
    LOAD     load the chunks and the keys that are due
    WAIT     the cloner has not written the next chunk yet
    END      all chunks are loaded: replicate the tables from now on
    REMOVE   remove the snapshot: a file or a table is missing, or a newer snapshot copies the remaining rows

own_tables/clones.py has the states of each table. tests/clone/model.py checks that source and target get equal tables.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum, auto
from functools import partial
from itertools import groupby
from typing import Any, Final

from sqlalchemy import Connection

from rplctl import mysql_errors as er
from rplctl.applier.apply.batch import BatchApplier
from rplctl.applier.apply.clone_loaders import Loaders
from rplctl.applier.apply.clone_pieces import KEYS, DuePieces, GivenUp, Piece, Tries
from rplctl.applier.apply.clone_rows import (
    DecodedRows,
    decoded,
    delete_rows,
    foreign_rows,
    load_rows,
    reporting_foreign_rows,
)
from rplctl.applier.apply.clone_speed import CloneSpeed
from rplctl.applier.apply.clone_statements import create_statements, drop_statements, server_late_keys
from rplctl.applier.apply.clone_tables import drop_tables, make_keys, make_tables, with_free_index_names
from rplctl.applier.apply.snapshot_side import Side, side_of
from rplctl.applier.feed.prefetch import Prefetch
from rplctl.applier.options import Until
from rplctl.applier.spark.pipeline import Pipeline
from rplctl.channel import Channel
from rplctl.clone.chunk_file import ChunkFile, digest_of, read_chunk
from rplctl.clone.folder import CloneFolder, StoredSnapshot
from rplctl.clone.throttle import read_limits
from rplctl.commit.step import PositionStore, taken_over
from rplctl.config import Config
from rplctl.decode.copied_rows import CopyPiece
from rplctl.decode.filter_rules import ReplicationFilter, moved
from rplctl.errors import RelayLogError, TargetError
from rplctl.failpoint import crash_point
from rplctl.own_tables.clones import ClonedTable, CopyState, forget_clone, move_clone, read_clones
from rplctl.own_tables.initial_models import stands
from rplctl.own_tables.models import store_models
from rplctl.schema.definition import copied_definition
from rplctl.schema.model import TableModel
from rplctl.schema.source_catalog import quote
from rplctl.schema.statement import TableName
from rplctl.sql_text import joined, written
from rplctl.target import mapped_errors, statement_target
from rplctl.target.base import CountMismatch, TableChunk, Target, no_such_table
from rplctl.target.registry import dialect_of

_MOST_AHEAD: Final = 32 << 20  # bytes of the largest chunk that is decoded in advance
_NAMES: Final = ("Database_name", "Table_name", "Source_database", "Family", "Expected_rows", "Expected_bytes")
ReadChunk = tuple[ChunkFile, Iterable[DecodedRows]]
log = logging.getLogger(__name__)


class Move(Enum):
    """The actions that a snapshot may need when the applier is at its position."""

    WAIT = auto()
    REMOVE = auto()
    BEGIN = auto()
    LOAD = auto()
    END = auto()


class CloneLoader:
    """Loads a copy on one connection. Create it before the first batch: it makes `work` exclude the copy's tables."""

    def __init__(  # noqa: PLR0913 - the parts of one loader
        self,
        config: Config,
        channel: Channel,
        target: Target,
        store: PositionStore,
        work: BatchApplier,
        pipeline: Pipeline,
        *,
        by_gtid: bool,
    ) -> None:
        """Read the clone state, and write the plan for the cloner. Raises TargetError or OSError if this fails."""
        self._channel, self._target, self._store, self._work = channel, target, store, work
        self._pipeline, self._by_gtid = pipeline, by_gtid
        self._rules = ReplicationFilter.from_config(config)
        self._folder, self._server = CloneFolder(channel), statement_target(target)
        self._models: dict[TableName, TableModel] = {}  # models of the tables of the current snapshot
        self._keyed: set[int] = set()  # numbers of the current snapshot's tables that have all their keys
        self._begun = 0  # the epoch of the snapshot whose tables this process has created; 0 after a failure
        self._stop = work.interrupter.stop
        self._loaders, self._ahead = Loaders(target), Prefetch[ReadChunk](RelayLogError, OSError)
        self.until = Until()  # the position at which the next rows are loaded
        self._counting = threading.Lock()
        self.rows_by_spark = self.rows_by_driver = 0  # committed rows, by the process that decoded them
        self._speed, self._tries = CloneSpeed(), Tries()
        self._read_clone_state()
        self._plan()

    def look(self) -> None:
        """Read the clone state again, because tables may have been added to it. Raises TargetError or OSError."""
        self._read_clone_state()
        self._forget()
        self.until = Until()
        self._plan()

    def _read_clone_state(self) -> None:
        with mapped_errors(self._target.engine.dialect.name), self._target.engine.connect() as connection:
            rows = read_clones(connection, self._channel.name)
        self._left_out = frozenset(row.name for row in rows if row.State is CopyState.LEFT_OUT)
        self._waiting = {row.name: row for row in rows if row.is_open}
        self._done = [row for row in rows if row.State is CopyState.DONE]

    def close(self) -> None:
        self._loaders.close()
        self._ahead.close()

    @property
    def is_open(self) -> bool:
        """True while some tables of the copy are not completely copied."""
        return bool(self._waiting) or self._is_behind

    @property
    def stands(self) -> bool:
        """True if the applier is at the position of the next rows, and must load them before it applies events."""
        return self.is_open and self.until == self._here()

    @property
    def _is_behind(self) -> bool:
        """True if a statement has added tables to the copy that this loader does not know yet."""
        return not self._work.left_out <= self._left_out.union(self._waiting)

    def status(self) -> dict[str, Any]:
        """Return the progress of the copy as fields of ThreadStatus."""
        return self._speed.status([*self._done, *self._waiting.values()])

    def _plan(self) -> None:
        table_groups = groupby(sorted(self._waiting.values(), key=lambda row: row.Family), lambda row: row.Family)
        self._folder.write_plan(
            {table_group: [(row.Source_database, row.Table_name) for row in rows] for table_group, rows in table_groups}
        )
        self._work.leave_out(self._left_out.union(self._waiting))

    def step(self) -> bool:
        """Load the rows that are due, and return True if anything was loaded, created or removed.

        Raises LockBusy if another process has moved the stored position.
        """
        if self._is_behind:
            self.look()
        self.until = Until()
        for found in self._folder.snapshots():
            rows = [row for row in self._waiting.values() if row.Family == found.table_group]
            side = side_of(found, self._work.info, by_gtid=self._by_gtid) if rows else Side.PAST
            if side is Side.AT:
                self.until = self._here()
                return self._carry_out(found, rows)
            if side is Side.BEFORE:
                position = Until(kind="master_pos", log_name=found.position.log_name, log_pos=found.position.log_pos)
                self.until = Until(kind="sql_after_gtids", gtids=found.low.gtids) if self._by_gtid else position
                return False
            found.remove()
        if self._folder.is_held:  # the applier must wait here while the cloner opens a snapshot
            self.until = self._here()
        return False

    def _here(self) -> Until:
        here = self._work.info.relay_log_position
        return Until(kind="relay_pos", log_name=here.log_name, log_pos=here.log_pos)

    def _carry_out(self, found: StoredSnapshot, rows: list[ClonedTable]) -> bool:
        """Do what the snapshot `found` needs. True if anything was loaded, created or removed."""
        by_source = {(row.Source_database, row.Table_name): row for row in rows}
        if not by_source.keys() >= {table.name for table in found.tables}:
            found.remove()  # a statement has moved one of the tables to another group
            return True
        names = [by_source[table.name].name for table in found.tables]
        move = self._next_move(found, names, by_source)
        if move is Move.LOAD:
            if self._load_due(found, names):
                return True
            move = self._move_after_load(found, by_source)
        if move is Move.BEGIN:
            self._begin(found, by_source)
        elif move is Move.REMOVE:
            found.remove()
        elif move is Move.END:
            self._end(found, rows, by_source)
        return move is not Move.WAIT

    def _next_move(
        self, found: StoredSnapshot, names: list[TableName], by_source: dict[TableName, ClonedTable]
    ) -> Move:
        """Return BEGIN, LOAD or REMOVE for the snapshot. Raises TargetError if a table just created is missing.

        `by_source`: the clone state of each table, by the table's name on the source.
        """
        if any(by_source[table.name].Epoch != found.epoch for table in found.tables):
            if self._takes_over(found, by_source):
                return Move.BEGIN
            log.warning(
                "the earlier snapshot of table group %d is missing; its tables are copied again", found.table_group
            )
            return Move.REMOVE
        if not self._learn(names):
            if found.epoch == self._begun:  # the table was just created, so another copy would meet the same error
                raise no_such_table(*next(name for name in names if name not in self._models))
            log.warning(
                "a table of table group %d is no longer on the target; its tables are copied again", found.table_group
            )
            return Move.REMOVE
        if found.epoch != self._begun and any(_keeps_half(self._models[name]) for name in names):
            return Move.REMOVE
        return Move.LOAD

    def _load_due(self, found: StoredSnapshot, names: list[TableName]) -> bool:
        """Load the pieces of the snapshot that are due. True if a piece was loaded, or if the snapshot was removed."""
        self._begun = 0
        if self._server is None:  # the keys are added in the transaction that finishes the tables
            self._keyed.update(range(len(names)))
        pieces = DuePieces(found, [self._waiting[name].Chunks for name in names], self._keyed, self._stop.is_set)
        try:
            with self._work.interrupter.work():
                threads = read_limits(self._channel).load_threads
                self._loaders.run(partial(self._load_pieces, found, names, pieces), threads)
                if pieces.failure is not None:
                    raise pieces.failure
        except FileNotFoundError:  # the cloner has just begun again, and has removed the snapshot
            return True
        except RelayLogError as error:
            if error.transient:  # the disk has no room for a large row
                raise
            found.remove()
            self._speed.incident = self._tries.again(names, pieces.failed, error)
            return True
        self._begun = found.epoch
        self._keyed.update(number for number, chunk in pieces.done if chunk == KEYS)
        return bool(pieces.done)

    def _takes_over(self, found: StoredSnapshot, by_source: dict[TableName, ClonedTable]) -> bool:
        """True if exactly those chunks of earlier snapshots are loaded that the snapshot `found` reuses."""
        rows = [by_source[table.name] for table in found.tables]
        kept = [(row, count) for row, count in zip(rows, found.counts, strict=False) if count]
        return all((row.Epoch, row.Chunks) == (found.continues, count) for row, count in kept)

    def _hand_over(
        self, found: StoredSnapshot, successor: StoredSnapshot, by_source: dict[TableName, ClonedTable]
    ) -> Move:
        """Return WAIT if `successor` reuses a chunk of `found` that is not loaded yet, or else REMOVE.

        If the file of such a chunk is missing, `successor` is removed, too.
        """
        for number, (table, count) in enumerate(zip(found.tables, successor.counts, strict=True)):
            row = by_source[table.name]
            if count and row.Chunks != count:
                path = found.chunk_path(number, row.Chunks)
                if row.Chunks < count and path.exists():
                    return Move.WAIT
                log.warning("%s is missing; its tables are copied again", path)
                successor.remove()
                break
        return Move.REMOVE

    def _move_after_load(self, found: StoredSnapshot, by_source: dict[TableName, ClonedTable]) -> Move:
        """Return WAIT, REMOVE or END for a snapshot that has no piece to load now."""
        successor = next((one for one in self._folder.snapshots() if one.continues == found.epoch), None)
        if successor is not None:
            return self._hand_over(found, successor, by_source)
        if (counts := found.chunk_counts()) is None:
            return Move.WAIT
        for number, table in enumerate(found.tables):
            row = by_source[table.name]
            path = found.chunk_path(number, row.Chunks)
            if row.Chunks != counts[number] and not path.exists():
                log.warning("%s is missing; its tables are copied again", path)
                return Move.REMOVE
            if row.Chunks != counts[number] or number not in self._keyed:
                return Move.WAIT
        return Move.END

    def _load_pieces(self, found: StoredSnapshot, names: list[TableName], pieces: DuePieces, target: Target) -> None:
        """Load pieces of the snapshot in one thread, on the connection `target`, until no piece is due."""
        while (piece := pieces.next()) is not None:
            try:
                if piece[1] == KEYS:
                    self._add_keys(target, found, piece[0], names[piece[0]])
                else:
                    self._load(target, found, piece, names[piece[0]], pieces)
            except GivenUp as given_up:  # the caller raises the error of the other piece
                return pieces.end(piece, given_up)
            except BaseException as error:
                pieces.end(piece, error)
                raise
            pieces.end(piece)
        return None

    def _begin(self, found: StoredSnapshot, by_source: dict[TableName, ClonedTable]) -> None:
        """Create the tables of a new snapshot empty, except for tables that reuse rows of an earlier snapshot."""
        every = [(by_source[table.name], table, found.keeps(number)) for number, table in enumerate(found.tables)]
        begun = [(row, table) for row, table, is_kept in every if not is_kept]
        if self._server is not None and begun:
            gone = by_source.keys() - {table.name for table in found.tables}
            there = [name for key in gone if self._server.table_model(*(name := by_source[key].name)) is not None]
            made = create_statements([table for _, table in begun], found, self._rules)
            self._server.make_tables([*drop_statements(there), *made])
        models = with_free_index_names(self._work.catalog, [moved(table.model, self._rules) for _, table in begun])
        defaults = {row.Database_name: replace(table.database, name=row.Database_name) for row, table in begun}
        fresh = ClonedTable(Database_name="", Table_name="", Source_database="", Family=0, State=CopyState.COPYING)
        old = [
            row if kept else replace(fresh, **{name: getattr(row, name) for name in _NAMES}) for row, _, kept in every
        ]
        now = [replace(row, Epoch=found.epoch, Position=found.low.position) for row in old]
        with self._transaction(self._target) as connection:
            if self._server is None and begun:
                make_tables(self._target, self._work.catalog, models, defaults)
                store_models(connection, self._channel.name, self._work.info.exec_position, models, defaults)
            if dialect_of(self._target.kind).makes_primary_keys_late:  # chunks may delete rows of kept tables by it
                kept = [self._work.catalog.tables[row.name] for row, _, is_kept in every if is_kept]
                make_keys(self._target, self._work.catalog, kept, primary_alone=True)
            for (row, _, _), new in zip(every, now, strict=True):
                move_clone(connection, self._channel.name, row, new)
            crash_point("crash_clone_before_begin")
        crash_point("crash_clone_after_begin")
        self._waiting.update((row.name, row) for row in now)
        self._begun = found.epoch
        self._forget()
        self._work.learned(models, defaults)

    def _forget(self) -> None:
        """Forget the models and keys of the previous snapshot's tables. `_learn` then reads the models again."""
        self._models.clear()
        self._keyed.clear()

    def _learn(self, names: Iterable[TableName]) -> bool:
        """Read the models of the tables from the target. Return False if a table is missing."""
        for name in names:
            if name not in self._models:
                server = self._server
                found = server.table_model(*name) if server is not None else self._work.catalog.tables.get(name)
                if found is None or (server is None and not stands(self._target, found)):
                    return False
                self._models[name] = found
        return True

    @contextmanager
    def _transaction(self, target: Target) -> Iterator[Connection]:
        """Run the block in a transaction of the target in which the stored position does not move.

        Raises LockBusy if another process has moved the stored position.
        """
        here = self._work.info
        target.begin(foreign_keys=False)
        try:
            stored = self._store.stored(target.connection)
            if stored is not None and not stored.is_at(here):
                raise taken_over(here)
            with mapped_errors(target.kind):
                yield target.connection
        except BaseException:
            target.rollback()
            raise
        target.commit()

    def _load(self, target: Target, found: StoredSnapshot, piece: Piece, name: TableName, pieces: DuePieces) -> None:
        """Load one piece, and commit it when all earlier pieces of its table are committed.

        Raises GivenUp if another piece has failed. Raises RelayLogError if the file is damaged, or, as a transient
        error, if the disk is full.
        """
        model, following = self._models[name], (piece[0], piece[1] + 1)
        file, rows = self._ahead.take((found.epoch, piece)) or self._read(target, found, piece, model)
        with self._transaction(target) as connection:
            gone = delete_rows(target, model, file.head.gone)
            try:
                by_spark = load_rows(rows, model, target)
            except CountMismatch as error:
                raise foreign_rows(name) from error
            pieces.await_turn(piece)
            row = self._waiting[name]
            more = replace(row, Chunks=row.Chunks + 1, Row_count=row.Row_count + file.rows - gone,
                           Byte_count=row.Byte_count + len(file.packets))  # fmt: skip
            move_clone(connection, self._channel.name, row, more)
            crash_point("crash_clone_before_load")
            if target is self._target and found.chunk_path(*following).exists():
                read = partial(self._read, target, found, following, model, at_once=True)
                self._ahead.begin((found.epoch, following), read)  # decodes while this thread waits for the commit
        crash_point("crash_clone_after_load")
        self._waiting[name] = more
        with self._counting:
            self.rows_by_spark += by_spark
            self.rows_by_driver += file.rows - by_spark
        found.chunk_path(*piece).unlink(missing_ok=True)

    def _read(
        self, target: Target, found: StoredSnapshot, piece: Piece, model: TableModel, *, at_once: bool = False
    ) -> ReadChunk:
        """Return a chunk file with its rows, which are decoded while the caller reads them.

        `at_once`: True to decode a small chunk before the return. Raises RelayLogError if the file is damaged.
        """
        table, path = found.tables[piece[0]], found.chunk_path(*piece)
        file = read_chunk(path)
        if (file.head.epoch, file.head.chunk) != (found.epoch, piece[1]) or file.head.digest != digest_of(table.create):
            raise RelayLogError(f"{path} does not contain the chunk that its name gives")
        rows = decoded(file, table.model.columns, model, target, self._channel.spool_folder, self._decode)
        return file, list(rows) if at_once and len(file.packets) <= _MOST_AHEAD else rows

    def _decode(self, pieces: Sequence[CopyPiece]) -> Iterable[TableChunk]:
        return self._pipeline.copy(pieces, self._work.catalog)

    def _add_keys(self, target: Target, found: StoredSnapshot, number: int, name: TableName) -> None:
        """Add the late keys that the table still lacks. Only for servers, whose DDL is not part of a transaction."""
        table, server = found.tables[number], statement_target(target)
        assert server is not None
        wanted = copied_definition(table.create, table.model.name).keys(server_late_keys(table, found))
        while wanted:
            model = server.table_model(*name)
            if model is None:
                raise no_such_table(*name)
            there = {key.name.casefold() for key in model.keys}
            if not (missing := [written("ADD {}", one) for key, one in wanted.items() if key.casefold() not in there]):
                return
            try:
                with reporting_foreign_rows(name):
                    server.make_tables([written("ALTER TABLE {} {}", quote(*name), joined(", ", missing))])
            except TargetError as error:
                if error.errno != er.DUP_KEYNAME:  # the ALTER TABLE of a killed applier may have continued
                    raise

    def _end(self, found: StoredSnapshot, rows: list[ClonedTable], by_source: dict[TableName, ClonedTable]) -> None:
        """Finish a table group: replicate its tables from now on, and drop tables that the source no longer has."""
        copied = {by_source[table.name].name for table in found.tables}
        gone = [row.name for row in rows if row.name not in copied]
        known: dict[TableName, TableModel | None] = {}
        if self._server is not None:
            there = [name for name in gone if self._server.table_model(*name) is not None]
            self._server.make_tables(drop_statements(there))
        else:
            known = {name: self._work.catalog.tables[name] for name in gone if name in self._work.catalog.tables}
        with self._transaction(self._target) as connection:
            if dropped := drop_tables(self._target, self._work.catalog, known.values()):
                store_models(connection, self._channel.name, self._work.info.exec_position, dropped)
            if self._server is None:
                make_keys(self._target, self._work.catalog, [self._models[name] for name in copied])
            for row in rows:
                if row.name in copied:
                    move_clone(connection, self._channel.name, row, replace(row, State=CopyState.DONE))
                else:
                    forget_clone(connection, self._channel.name, row.name)
            crash_point("crash_clone_before_end")
        crash_point("crash_clone_after_end")
        self._work.learned(dict.fromkeys(known), {})
        self._tries, self._speed.incident = Tries(), ""
        for row in rows:
            self._waiting.pop(row.name)
        self._done += [replace(row, State=CopyState.DONE) for row in rows if row.name in copied]
        names = [*map(".".join, sorted(copied)), *(f"{'.'.join(name)} (gone from the source)" for name in gone)]
        log.info("copied at %s: %s", found.low.position, ", ".join(names))
        self._forget()
        self._plan()
        found.remove()
        self.until = Until()


def _keeps_half(model: TableModel) -> bool:
    """True if the engine cannot roll back the rows of an interrupted chunk. The table is then copied again."""
    return model.engine.lower() in ("myisam", "aria", "memory", "csv", "archive")
