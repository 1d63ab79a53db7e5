"""Applies a batch to a lake with the layer `changes`: every change becomes a row of its table's log.

Changes are not combined. Invariant: a piece is decoded with table models that are valid for all of it, because a batch
ends at DDL. The files are written before the commit, which only adds their names to the tables. So no table refers to
the files of a failed attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from pyarrow import concat_tables

from rplctl.applier.apply.bulk import BulkApplier
from rplctl.applier.feed.plan import Batch
from rplctl.applier.spark.lake_piece import LakeFiles, LakePiece
from rplctl.applier.spark.lake_task import write_changes
from rplctl.decode.changes import CANNOT_UNDO, TableChanges, Transactions, table_changes
from rplctl.decode.gtid_texts import gtid_texts
from rplctl.decode.lake_rows import change_rows, lake_schema, statement_rows
from rplctl.decode.piece import Piece, Transaction
from rplctl.decode.row_stream import EventRun, named_tables, read_tables
from rplctl.errors import BinlogFormatError, RplError
from rplctl.event.scan import GroupKind
from rplctl.event.split import split_rows
from rplctl.position import BinlogPosition
from rplctl.relay_log.reader import RelayGroups
from rplctl.schema.model import TableModel
from rplctl.schema.plan import (
    AddKeysStep,
    AlterStep,
    Catalog,
    CreateStep,
    DdlPlan,
    DeleteHistoryStep,
    DeletePartitionsStep,
    DropStep,
    MoveRowsStep,
    RenameStep,
    Step,
    TruncateStep,
)
from rplctl.schema.statement import TableName
from rplctl.target.lake import LakeTarget, WrittenFile

PIECE_BYTES = 16 << 20  # bytes of the relay log for one task, because small files are slow to read


class LakeApplier(BulkApplier):
    """Applies batches to a lake (strategy LAKE), as BulkApplier applies net changes to other targets."""

    _target: LakeTarget

    def expect(self, groups: RelayGroups, stop: int, per_commit: Callable[[], int]) -> None:
        """Do nothing. Decoding in advance would write files that might never be committed."""

    def apply(self, batch: Batch, commit: Callable[..., None]) -> int:
        with self._interrupter.work():
            catalog = self._tables.catalog
            self.meanwhile()
            results = self._pipeline.run(list(self._pieces(batch, catalog)), catalog, write_changes)
            files = list(files_of(results))
            commit(lambda: self._stage(files, catalog))
        changes = sum(file.rows for file in files)
        by_spark = changes * self._pipeline.uses_spark
        self.count(by_spark, changes - by_spark)
        self.size.decoded(batch.end - batch.start, changes)
        return changes

    def _stage(self, files: list[WrittenFile], catalog: Catalog) -> None:
        for name in dict.fromkeys((file.database, file.table) for file in files):
            model = catalog.tables[name]
            self._target.stage(model, lake_schema(model), [f for f in files if (f.database, f.table) == name])

    def _pieces(self, batch: Batch, catalog: Catalog) -> Iterator[LakePiece]:
        scan, data = batch.scan, batch.groups.data
        base = Piece(
            path=str(batch.groups.path),
            log_name="",
            start=0,
            end=0,
            description=batch.description,
            source=BinlogPosition("", 0),
            models=(),
            is_relay=True,
            is_mixed=batch.scan.kind[batch.first] == GroupKind.ORDERED,
            rules=self.rules,
        )
        first = batch.first
        while first < batch.last:
            start, log = int(scan.start[first]), int(scan.source_log[first])
            alike = scan.source_log[first : batch.last] == log
            most = first + (int(np.argmin(alike)) if not alike.all() else len(alike))
            behind = max(first + 1, int(np.searchsorted(scan.end[:most], start + PIECE_BYTES, side="right")))
            end = int(scan.end[behind - 1])
            source = scan.source_position(first - 1) if first else scan.first_source
            piece = replace(base, log_name=scan.log_names[log], start=start, end=end, source=source)
            folders = self._folders(batch, start, end, catalog)
            if behind == first + 1 and end - start > 2 * PIECE_BYTES and not (batch.unpacks or base.is_mixed):
                whole = _transaction(batch, first)
                for part in split_rows(data, start, end, PIECE_BYTES, batch.description):
                    maps = part.table_map_offsets
                    own = replace(piece, start=part.start, end=part.end, table_maps=maps, transaction=whole)
                    yield LakePiece(own, folders, self._target.writer)
            else:
                yield LakePiece(piece, folders, self._target.writer)
            first = behind

    def _folders(self, batch: Batch, start: int, end: int, catalog: Catalog) -> dict[TableName, str]:
        """Return the folders of the tables that the events between `start` and `end` may change.

        Other folders are omitted, because the files of each table are checked, and there may be many tables. A batch
        with a compressed transaction gets the folders of all tables, because the driver does not know which tables this
        transaction changes.
        """
        names: Iterable[TableName] = catalog.tables
        with suppress(BinlogFormatError):  # the task reports the damage and its position
            if not batch.unpacks:
                found = named_tables(batch.groups.data, start, end, batch.description)
                names = {(self.rules.rewritten(database), table) for database, table in found} & catalog.tables.keys()
        models = ((name, catalog.tables[name]) for name in names)
        return {name: self._target.folder_of(model, lake_schema(model)) for name, model in models}


def files_of(results: list[LakeFiles]) -> Iterator[WrittenFile]:
    """Yield the files that the tasks wrote, in the order of the log. Raises the error of the first task that failed."""
    for result in results:
        if result.error is not None:
            raise RplError(**result.error)
        yield from result.files


def _transaction(batch: Batch, number: int) -> Transaction:
    scan = batch.scan
    gtid = gtid_texts(batch.groups.data, scan, np.array([number]))[0]
    return Transaction(gtid, scan.source_position(number), int(scan.end[number] - scan.source_end[number]))


class LakeChanges:
    """The changes of a group that is applied in order (DDL, CREATE TABLE … SELECT, XA COMMIT), for a lake.

    All rows have the position of the group, and consecutive numbers. The events' own positions are not used, because
    they may be elsewhere in the log (XA). The changes of a table are collected up to PIECE_BYTES or the next savepoint,
    and then written to one file. `finish` writes the remaining changes.
    """

    def __init__(self, target: LakeTarget, batch: Batch) -> None:
        self._target = target
        self._whole = _transaction(batch, batch.first)
        self._start = batch.start - self._whole.shift
        self._time = int(batch.scan.timestamp[batch.first])
        self._next = 0
        self._waiting: dict[tuple[TableModel, bool], list[Any]] = {}  # (table, can be undone) → its rows
        self._made: list[WrittenFile] = []  # files of rows that can be undone
        self._marks: dict[str, int] = {}

    def savepoint(self, name: str) -> None:
        self.finish()
        self._marks[name] = len(self._made)

    def roll_back_to(self, name: str) -> None:
        self._waiting = {key: rows for key, rows in self._waiting.items() if not key[1]}
        mark = self._marks[name]
        for file in self._made[mark:]:
            self._target.unstage(file)
        del self._made[mark:]

    def finish(self) -> None:
        """Write the remaining rows to files. Called before the batch commits, and at each savepoint."""
        for (model, can_undo), rows in self._waiting.items():
            schema = lake_schema(model)
            file = self._target.writer.write(model, self._target.folder_of(model, schema), concat_tables(rows))
            self._target.stage(model, schema, [file])
            if can_undo:
                self._made.append(file)
        self._waiting = {}

    def rows(self, piece: EventRun, catalog: Catalog) -> int:
        """Add the changes of the rows event in `piece`, which follows its table map. Return their number."""
        count = 0
        whole = self._whole
        bounds = Transactions([whole.gtid], whole.end.log_name, np.array([whole.end.log_pos]))
        for rows in read_tables(piece, catalog):
            part: TableChanges = table_changes(rows, piece, np.array([0]))
            size = len(part.number)
            part = replace(
                part,
                position=np.full(size, self._start),
                number=np.arange(self._next, self._next + size),
                transaction=np.zeros(size, np.int64),
            )
            self._next += size
            table = change_rows(part, bounds, whole.end.log_name, zero_null=self._target.writer.zero_dates_null)
            self._keep(rows.model, table, can_undo=rows.model.engine.upper() not in CANNOT_UNDO)
            count += size
        return count

    def statement(self, plan: DdlPlan, text: str) -> None:
        """Add a row for each table that the DDL creates, changes or drops. `text`: the statement.

        The row has the columns that the table has after the DDL.
        """
        for step in plan.steps:
            for op, model in _concerned(step):
                self._statement(model, op, text)

    def _statement(self, model: TableModel, op: str, text: str) -> None:
        whole = self._whole
        row = statement_rows(
            model,
            op,
            text,
            log_name=whole.end.log_name,
            position=self._start,
            gtid=whole.gtid,
            end=whole.end.log_pos,
            time=self._time,
            number=self._next,
        )
        self._next += 1
        self._keep(model, row)

    def _keep(self, model: TableModel, rows: Any, *, can_undo: bool = False) -> None:
        self._waiting.setdefault((model, can_undo and bool(self._marks)), []).append(rows)
        if sum(part.nbytes for parts in self._waiting.values() for part in parts) > PIECE_BYTES:
            self.finish()


def _concerned(step: Step) -> Iterator[tuple[str, TableModel]]:
    match step:
        case CreateStep(model) | AddKeysStep(model=model) | DeletePartitionsStep(model) | DeleteHistoryStep(model):
            yield "ddl", model
        case DropStep(model):
            yield "drop", model
        case TruncateStep(model):
            yield "truncate", model
        case AlterStep(new=model):
            yield "ddl", model
        case RenameStep(old, new) | MoveRowsStep(old=old, new=new):
            yield "ddl", old
            yield "ddl", new
