"""The protocol of a position repository (WL#2775 `Rpl_info_handler`): the operations on a whole record.

Invariant: `read` returns a complete record that one `flush` wrote, never a mix of two records. MasterInfo and
RelayLogInfo do not know where they are stored. Only `open_repository` and switch.py distinguish FILE and TABLE.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol, TypeVar

from rplctl.durable import Guard
from rplctl.info import MasterInfo, RelayLogInfo

Info = TypeVar("Info", MasterInfo, RelayLogInfo)


class RepositoryKind(StrEnum):
    FILE = "FILE"
    TABLE = "TABLE"


class InfoRepository(Protocol[Info]):
    guard: Guard  # a flush holds this lock while it makes the new record visible (WL#9452: the receiver's data lock)

    @property
    def kind(self) -> RepositoryKind: ...

    @property
    def where(self) -> str:
        """The location of the record, as `Master_Info_File` and messages show it: a path, or `database.table`."""

    def exists(self) -> bool:
        """True if the channel has a record *with data*. An empty table and a record that RESET cleared have no data
        (REQ-6).
        """

    def stored(self) -> Info | None:
        """Return the stored record, or None if there is no record. A record that RESET cleared is returned, too.

        The function reads the file or the table only once. Raises the errors of `read` for a damaged record.
        """

    def read(self) -> Info:
        """Return the stored record.

        Raises NotConfigured if there is no record, and RplError 1201 (MasterInfo) or 1872 (RelayLogInfo) if it is
        damaged.
        """

    def flush(self, info: Info, *, force: bool, events: int = 1) -> None:
        """Store the record.

        A FILE is always written. It is also synced if `force` is set or if the period of the `sync_*` option is
        reached. A TABLE is written only in these two cases. The exception is a RelayLogInfo in a table with
        transactions, which is always written. `events`: the number of events (MasterInfo) or transactions
        (RelayLogInfo) since the last call.
        """

    def remove(self) -> None:
        """Delete the record (the file or the row), if it exists."""

    def is_transactional(self) -> bool:
        """True if a flush can be part of a transaction of the target (WL#5125 case 4).

        Each start asks the target again, because an operator may have changed the storage engine of the table.
        """
