"""The interface of a lake: a target that stores rows in files, with a separate log of changes for each table.

    LakeTarget    a Target whose replicated tables are files; rplctl's own tables are in a database
    FileWriter    writes rows to a file that no table lists yet; Spark tasks use it
    LakeTables    adds files to a table in one transaction of this table, with the number of the batch

Invariant: a file belongs to a table only after the table's log lists the file. Each batch is committed to a table only
once, because the table stores the number of its last batch. Before a writer commits a batch, it claims the batch's
number in the lake, so that no second writer commits this batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from rplctl.schema.model import TableModel
from rplctl.target.base import Target


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file with rows of one table. `path` is relative to the table's folder."""

    database: str
    table: str
    folder: str  # the table's folder, relative to the lake
    path: str
    size: int  # bytes
    rows: int
    stats: str  # statistics of the rows, in the format of the kind of lake


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingTable:
    """The changes of one table in a batch that is not committed yet. `columns`: the table's columns after the batch, in
    the format of the kind of lake. `removed`: the paths of files that the batch removes. `replaces`: True if the batch
    also removes all earlier files, and the table then has exactly these columns.
    """

    folder: str
    columns: str
    files: tuple[tuple[str, int, str], ...] = ()  # path, bytes, stats
    removed: tuple[str, ...] = ()
    replaces: bool = False


class FileWriter(Protocol):
    """Writes the files of lake tables. The object can be pickled, because Spark tasks use it."""

    zero_dates_null: bool  # an invalid date becomes NULL; otherwise an invalid date is an error

    def write(self, model: TableModel, folder: str, rows: Any, stats: str = "") -> WrittenFile:
        """Write `rows` (an Arrow table) to a new file in `folder`, and sync the file. `stats`: the statistics that the
        table's log gets, or '' for only the number of rows. Raises TargetError if the file cannot be written.
        """


class LakeTables(Protocol):
    """The interface to the tables of one lake, for the commit of a batch. `app_id` names the channel in the lake."""

    def columns_of(self, schema: Any) -> str:
        """Return an Arrow schema as text, in the format of the kind of lake. Raises TargetError if a type is not
        supported.
        """

    def fits(self, has: str, wanted: str) -> bool:
        """True if a table with the columns `has` accepts rows with the columns `wanted`."""

    def takes(self, folder: str, columns: str) -> bool | None:
        """True if the table accepts rows with these columns. Return None if the table does not exist. Raises
        TargetError if the lake cannot be read.
        """

    def version(self, folder: str, app_id: str) -> int:
        """Return the number of the last batch that the channel (`app_id`) has committed to the table, or 0. Raises
        TargetError if the lake cannot be read.
        """

    def places(self, folder: str) -> list[tuple[str, str, int, int]]:
        """Return (operation, log file, position, row number) of each change in a change log, in any order. Raises
        TargetError if the lake cannot be read.
        """

    def claimed(self, app_id: str) -> int:
        """Return the number of the last batch of the channel (`app_id`) that a writer has claimed, or 0. Raises
        TargetError if the lake cannot be read.
        """

    def claim(self, app_id: str, batch: int, mark: int) -> None:
        """Record durably that the writer with this `mark` commits the batch. This writer may repeat the call. Raises
        LockBusy if another writer has claimed this batch or a later one, and TargetError if the lake reports an error.
        """

    def publish(self, table: PendingTable, app_id: str, batch: int) -> None:
        """Commit all files of the batch to the table atomically. Raises LockBusy if another writer has committed in
        the meantime, and TargetError if the lake reports an error.
        """


@runtime_checkable
class LakeTarget(Target, Protocol):
    writer: FileWriter
    keeps_changes: bool  # a table's rows are changes; otherwise they are the source's current rows

    def adopts(self, model: TableModel) -> bool:
        """True if the lake accepts changes of the table from a channel that starts in the middle of the source's log.
        Raises TargetError if the lake cannot be read.
        """

    def folder_of(self, model: TableModel, schema: Any) -> str:
        """Return the folder for the rows of this table, relative to the lake's root. `schema`: the Arrow schema of the
        rows. Raises TargetError if the lake cannot be read.
        """

    def stage(self, model: TableModel, schema: Any, files: Sequence[WrittenFile]) -> None:
        """Add files of a table to the batch, which is committed later. If the table does not exist, the commit creates
        the table. `rollback` removes the files from the batch.
        """

    def unstage(self, file: WrittenFile) -> None:
        """Remove a file from the batch, because the source has rolled back the rows of the file."""

    def take_staged(self) -> tuple[PendingTable, ...]:
        """Return the changes that `stage` has collected since `begin`, with one entry for each table."""
