"""Applies changes to a mirror: Delta tables with the same rows as the source's tables.

Invariant: as in `target.DeltaTarget`, the open transaction changes no table. An overlay collects the net changes of a
table in memory. When the transaction is complete, the files with changed rows are rewritten, and all expectations about
rows are checked. Then one commit for each table replaces the old files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Engine

from rplctl import mysql_errors as er
from rplctl.errors import OR_EXCLUDE, RplError, TargetError
from rplctl.schema.model import TableModel
from rplctl.schema.plan import Catalog, DdlPlan
from rplctl.schema.row_key import key_of
from rplctl.target.base import (
    ChangeKind,
    CountMismatch,
    Row,
    RowChange,
    RowSet,
    TableChunk,
    Value,
    chunk_model,
    describe_key,
    no_record,
)
from rplctl.target.delta.columns import row_schema
from rplctl.target.delta.mirror_ddl import MirrorDdl
from rplctl.target.delta.overlay import Overlay
from rplctl.target.delta.place import INSTEAD_OF_MIRROR, LakePlace, file_name
from rplctl.target.delta.rewrite import MirrorFiles
from rplctl.target.delta.tables import DeltaTables, columns_of
from rplctl.target.delta.target import DeltaTarget
from rplctl.target.lake import PendingTable


class MirrorTarget(DeltaTarget):
    """A connection to a mirror. The class implements `lake.LakeTarget` and `base.Savepoints`."""

    bulk_rows = 0
    keeps_changes = False

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._forget()

    def _forget(self) -> None:
        self._overlays: dict[tuple[str, str], tuple[TableModel, Overlay]] = {}
        self._files: dict[TableModel, MirrorFiles] = {}
        self._marks: dict[str, dict[tuple[str, str], tuple[TableModel, Overlay]]] = {}

    def begin(self, *, foreign_keys: bool) -> None:
        self._forget()
        super().begin(foreign_keys=foreign_keys)

    def rollback(self) -> None:
        self._forget()
        super().rollback()

    def savepoint(self, name: str) -> None:
        self._marks[name] = {table: (model, overlay.copy()) for table, (model, overlay) in self._overlays.items()}

    def roll_back_to(self, name: str) -> None:
        self._overlays = {table: (model, overlay.copy()) for table, (model, overlay) in self._marks[name].items()}

    def check_table(self, model: TableModel) -> None:
        if not key_of(model):
            error = TargetError(
                f"a lake of layer=mirror cannot identify the rows of table '{model.qualified_name}', which has "
                f"{_unusable_key(model)}",
                errno=er.REQUIRES_PRIMARY_KEY,
                # a key that is added later does not help, because rows without a key are already in the log
                hint=f"{INSTEAD_OF_MIRROR}{OR_EXCLUDE}",
            )
            error.table = (model.database, model.name)
            raise error

    def adopts(self, model: TableModel) -> bool:
        """True if the mirror already has the table. A new table would lack its earlier rows if the channel starts in
        the middle of the source's log.
        """
        return DeltaTables(self.writer).open_table(folder_of(model)) is not None

    def takes_multisets(self, model: TableModel) -> bool:
        return False

    def follow_foreign_keys(self, wanted: bool, models: Mapping[tuple[str, str], TableModel]) -> bool:
        """Do nothing, because a mirror has no foreign keys. The applier itself refuses changes that would execute
        foreign key actions (`Dialect.follows_foreign_keys`).
        """
        return True

    def apply_chunks(self, chunks: Sequence[TableChunk], models: Mapping[tuple[str, str], TableModel]) -> None:
        for chunk in chunks:
            self._overlay(chunk_model(chunk, models)).take(chunk)

    def apply_change(self, change: RowChange, model: TableModel) -> None:
        overlay, key = self._overlay(model), key_of(model)
        before = None if change.before is None else _key(change.before, key)
        if change.before is not None and before is None:
            raise _partial(model)
        if before is not None and not self._is_there(model, before):
            raise no_record(change.before, model)
        if change.kind is ChangeKind.DELETE:
            assert before is not None
            overlay.set(before, None, expects=True)
            return
        assert change.after is not None
        after = _key(change.after, key) or before
        if after is None:
            raise _partial(model)
        if after != before and self._is_there(model, after):
            entry = "-".join(map(str, after))
            raise TargetError(
                f"Duplicate entry '{entry}' for key '{model.name}.PRIMARY'",
                errno=er.DUP_ENTRY,
                position=describe_key(change.after, model),
            )
        try:
            if before is None:
                overlay.set(after, overlay.whole(change.after), expects=False)
            else:
                overlay.update(before, change.after)
        except CountMismatch as error:
            raise _partial(model) from error

    def stored_value(self, image: RowSet, column: int, model: TableModel) -> Value:
        raise _partial(model)

    def execute_ddl(self, plan: DdlPlan, catalog: Catalog) -> None:
        self._stage_rows()  # for rows that come before the DDL in the same transaction
        ddl = MirrorDdl(self.writer, folder_of, self._files_of)
        for table in ddl.carry_out(plan):
            if table.folder in self._staged:
                raise RplError("a mirror cannot apply DDL and rows of the same table in one transaction")
            self._staged[table.folder] = table
        self._forget()

    def take_staged(self) -> tuple[PendingTable, ...]:
        self._stage_rows()
        return super().take_staged()

    def _stage_rows(self) -> None:
        """Write the net changes of all tables into new files, and add the files to the batch. Raises CountMismatch if
        the target's rows are not as expected.
        """
        for model, overlay in self._overlays.values():
            if not overlay.entries:
                continue
            files, removed = self._files_of(model).rewrite(model, overlay)
            if files or removed:
                named = tuple((file.path, file.size, file.stats) for file in files)
                columns = columns_of(row_schema(model))
                self._staged[folder_of(model)] = PendingTable(
                    folder=folder_of(model), columns=columns, files=named, removed=tuple(removed)
                )
        self._overlays = {}

    def _overlay(self, model: TableModel) -> Overlay:
        name = (model.database, model.name)
        if name not in self._overlays:
            self._overlays[name] = (model, Overlay(key_of(model), len(model.columns)))
        return self._overlays[name][1]

    def _is_there(self, model: TableModel, key: Row) -> bool:
        found = self._overlay(model).is_there(key)
        if found is not None:
            return found
        return self._files_of(model).count(model, key_of(model), key, zero_null=self.writer.zero_dates_null) > 0

    def _files_of(self, model: TableModel) -> MirrorFiles:
        if model not in self._files:
            self._files[model] = open_files(self.writer, model)
        return self._files[model]

    def changed_rows(self, database: str, table: str) -> list[Row]:
        """Return the rows of a table that the open transaction has updated or inserted, without deleted rows."""
        found = self._overlays.get((database, table))
        return [] if found is None else [row for _, row in found[1].entries.values() if row is not None]


def folder_of(model: TableModel) -> str:
    return f"{file_name(model.database)}/{file_name(model.name)}"


def open_files(place: LakePlace, model: TableModel) -> MirrorFiles:
    """Return an object with the current files of a mirror's table. A missing table has no files. Raises TargetError if
    the lake cannot be read.
    """
    snapshot = DeltaTables(place).snapshot(folder_of(model))
    stats: dict[str, str] = {} if snapshot is None else snapshot[1]
    return MirrorFiles(place, folder_of(model), row_schema(model), stats)


def _key(image: RowSet, key: Sequence[int]) -> Row | None:
    at = {column: n for n, column in enumerate(image.columns)}
    return tuple(image.rows[0][at[c]] for c in key) if all(c in at for c in key) else None


def _unusable_key(model: TableModel) -> str:
    """Return a text for an error: the reason why no key of the table identifies its rows."""
    for key in model.keys:
        if key.is_unique and (key.has_expression or any(part.length for part in key.parts)):
            return f"only the key `{key.name}`, which is over an expression or a part of a column"
    return "no primary key and no unique key without NULLs"


def _partial(model: TableModel) -> TargetError:
    return TargetError(
        f"cannot complete a row image of {model.qualified_name}, which lacks columns, in a lake of layer=mirror",
        errno=er.SLAVE_CONVERSION_FAILED,
        hint=f"{INSTEAD_OF_MIRROR}{OR_EXCLUDE}\n"
        "To log complete rows in sessions that connect later, run on the source: SET GLOBAL binlog_row_image=FULL, "
        "GLOBAL binlog_row_value_options=''",
    )
