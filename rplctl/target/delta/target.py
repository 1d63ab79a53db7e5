"""Applies changes to a lake of Delta tables. rplctl's own tables are in a SQLite file.

Invariant: the open transaction of the SQLite file changes nothing in the lake. Data files are written before this
transaction. After its COMMIT, one commit for each table adds the files to the lake (`commit.per_table`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from sqlalchemy import Engine

from rplctl.errors import RplError
from rplctl.schema.model import TableModel
from rplctl.schema.plan import Catalog, DdlPlan
from rplctl.target.base import RowChange, RowSet, TableChunk, Value
from rplctl.target.delta.place import LakePlace, file_name
from rplctl.target.delta.tables import DeltaTables
from rplctl.target.lake import LakeTables, PendingTable, WrittenFile
from rplctl.target.sqlite.target import SqliteTarget

PLACE = "rplctl_place"  # the execution option of the engine that contains the LakePlace


class DeltaTarget(SqliteTarget):
    """A connection to a lake of Delta tables with the source's changes. The class implements `lake.LakeTarget`."""

    kind = "delta"
    bulk_rows = 1
    keeps_changes = True

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.writer: LakePlace = engine.get_execution_options()[PLACE]
        self._tables = self.open_tables(self.writer)
        self._staged: dict[str, PendingTable] = {}
        self._folders: dict[TableModel, tuple[str, str]] = {}

    @staticmethod
    def open_tables(place: LakePlace) -> LakeTables:
        return DeltaTables(place)

    def begin(self, *, foreign_keys: bool) -> None:
        self._staged = {}
        super().begin(foreign_keys=True)

    def rollback(self) -> None:
        self._staged = {}
        super().rollback()

    def folder_of(self, model: TableModel, schema: Any) -> str:
        return self._placed(model, schema)[0]

    def stage(self, model: TableModel, schema: Any, files: Sequence[WrittenFile]) -> None:
        folder, columns = self._placed(model, schema)
        had = self._staged.get(folder)
        added = tuple((file.path, file.size, file.stats) for file in files)
        self._staged[folder] = PendingTable(folder=folder, columns=columns, files=(had.files if had else ()) + added)

    def unstage(self, file: WrittenFile) -> None:
        had = self._staged[file.folder]
        left = tuple(kept for kept in had.files if kept[0] != file.path)
        if left:
            self._staged[file.folder] = replace(had, files=left)
        else:
            del self._staged[file.folder]

    def take_staged(self) -> tuple[PendingTable, ...]:
        staged, self._staged = tuple(self._staged.values()), {}
        return staged

    def _placed(self, model: TableModel, schema: Any) -> tuple[str, str]:
        """Return the folder for the table's rows, and the columns of the rows in the lake's format. Cache the folder if
        it already exists in the lake.
        """
        if (found := self._folders.get(model)) is None:
            found, is_there = self._find(model, self._tables.columns_of(schema))
            if is_there:  # do not cache a new table, because only the first commit decides its columns
                self._folders[model] = found
        return found

    def _find(self, model: TableModel, columns: str) -> tuple[tuple[str, str], bool]:
        base = f"{file_name(model.database)}/{file_name(model.name)}"
        last, takes_last = base, True
        for number in count(1):
            folder = base if number == 1 else f"{base}~{number}"
            staged = self._staged.get(folder)
            takes = self._tables.takes(folder, columns)
            if staged is not None and takes is not False:
                takes = self._tables.fits(staged.columns, columns)
            if takes is None:
                is_last = number > 1 and takes_last
                return ((last if is_last else folder), columns), is_last and last not in self._staged
            last, takes_last = folder, takes
        raise AssertionError

    # methods of Target that a lake of changes does not need

    def check_table(self, model: TableModel) -> None:
        """Do nothing, because the commit of a table's first change creates the table."""

    def adopts(self, model: TableModel) -> bool:
        """True for every table, because changes can be stored without the table's earlier rows."""
        return True

    def takes_multisets(self, model: TableModel) -> bool:
        return True

    def execute_ddl(self, plan: DdlPlan, catalog: Catalog) -> None:
        """Do nothing: the applier stores the text of the statement as a change of the change log.

        A table gets a new column when the first row with this column is written.
        """

    def apply_chunks(self, chunks: Sequence[TableChunk], models: Mapping[tuple[str, str], TableModel]) -> None:
        raise _no_rows()

    def apply_change(self, change: RowChange, model: TableModel) -> None:
        raise _no_rows()

    def stored_value(self, image: RowSet, column: int, model: TableModel) -> Value:
        raise _no_rows()


def _no_rows() -> RplError:
    return RplError("a lake of changes does not support reading or changing single rows")
