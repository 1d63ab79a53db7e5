"""The interface of a target that keeps files of rows instead of rows: a lake, each table a log of changes of its own.

    LakeTarget    a Target whose own tables are in a database, and whose replicated tables are files
    FileWriter    travels to Spark's tasks: rows → a file that no table names yet
    LakeTables    names files in a table: one transaction of that table, with the number of the batch

Invariant: a file counts only once its table names it. A table takes a batch once: it says itself which batch it has.
Of each number there is one batch in the whole lake, claimed before its first table takes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from rplctl.schema.model import TableModel
from rplctl.target.base import Target


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file of one table's rows. `path` is relative to the table's folder."""

    database: str
    table: str
    folder: str  # of the table, relative to the lake
    path: str
    size: int  # bytes
    rows: int
    stats: str  # of the rows, as the kind of lake writes them down


@dataclass(frozen=True, slots=True)
class PendingTable:
    """The changes that a batch brings to one table. `columns`: its columns after the batch, as the kind of lake writes
    them down. `removed`: paths of files that the batch removes. `replaces`: after the batch, the table has these files
    only, and exactly these columns.
    """

    folder: str
    columns: str
    files: tuple[tuple[str, int, str], ...] = ()  # path, bytes, stats
    removed: tuple[str, ...] = ()
    replaces: bool = False


class FileWriter(Protocol):
    """Pure data until it writes; runs in Spark's tasks."""

    zero_dates_null: bool  # a date that is none becomes NULL; else it is an error

    def write(self, model: TableModel, folder: str, rows: Any, stats: str = "") -> WrittenFile:
        """Write `rows`, a table of Arrow's, into a new file, which is durable when this returns. `stats`: figures of
        the rows other than their number. Raises TargetError.
        """


class LakeTables(Protocol):
    """The tables of one lake, as the commit sees them."""

    def columns_of(self, schema: Any) -> str:
        """Return Arrow's schema as the kind of lake writes it down. Raises TargetError for a type that it has not."""

    def fits(self, has: str, wanted: str) -> bool:
        """True if a table of the columns `has` takes rows of `wanted`."""

    def takes(self, folder: str, columns: str) -> bool | None:
        """True if the table takes rows of these columns; None if the table does not exist. Raises TargetError."""

    def version(self, folder: str, app_id: str) -> int:
        """Return the last batch of `app_id` that the table has; 0 for none, or when there is no table. Raises
        TargetError.
        """

    def places(self, folder: str) -> list[tuple[str, str, int, int]]:
        """Return (op, log, pos, row number) of each change in the table, in no order. Raises TargetError."""

    def claimed(self, app_id: str) -> int:
        """Return the last batch of `app_id` that a writer has claimed; 0 for none. Raises TargetError."""

    def claim(self, app_id: str, batch: int, mark: int) -> None:
        """Make the batch of this mark the one of its number in the whole lake, durably; again by whoever has it.
        Raises LockBusy when another one, or a later one, is that; TargetError.
        """

    def publish(self, table: PendingTable, app_id: str, batch: int) -> None:
        """Commit the files of the batch, all or none. Raises LockBusy when somebody else has committed meanwhile,
        TargetError.
        """


@runtime_checkable
class LakeTarget(Target, Protocol):
    writer: FileWriter
    keeps_changes: bool  # as rows; else its tables are those of the source

    def adopts(self, model: TableModel) -> bool:
        """True if a channel that begins in the middle of the source's log continues with this table of the source.
        Raises TargetError.
        """

    def folder_of(self, model: TableModel, schema: Any) -> str:
        """Return the folder for rows of this definition, relative to the lake. `schema`: Arrow's schema of its changes.
        Raises TargetError.
        """

    def stage(self, model: TableModel, schema: Any, files: Sequence[WrittenFile]) -> None:
        """Add files that the batch brings, or make the table, in the open transaction. Undone by `rollback`."""

    def unstage(self, file: WrittenFile) -> None:
        """Forget a staged file whose rows the source took back."""

    def take_staged(self) -> tuple[PendingTable, ...]:
        """Return the changes that `stage` collected since `begin`, one entry for each table."""
