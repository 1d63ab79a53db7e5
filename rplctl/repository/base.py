"""The protocol of a position repository (WL#2775 `Rpl_info_handler`): six operations on a whole record.

Invariant: `read` returns a complete record that one `flush` wrote, never a mix of two records. MasterInfo and
RelayLogInfo do not know where they are stored; only `open_repository` and the REQ-6 matrix know both kinds.
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
    guard: Guard  # held while a flush makes the new record visible (WL#9452: the receiver's data lock)

    @property
    def kind(self) -> RepositoryKind: ...

    @property
    def where(self) -> str:
        """The location of the record for `Master_Info_File` and messages: a path, or `database.table`."""

    def exists(self) -> bool:
        """True if the channel has a record *with data* (REQ-6: an empty table or a cleared file has none)."""

    def stored(self) -> Info | None:
        """Return the stored record, even a cleared one, or None if there is no record. One access is enough for this.
        Raises the errors of `read` for a damaged record.
        """

    def read(self) -> Info:
        """Return the stored record. Raises NotConfigured if there is no record, RplError 1201/1872 if it is damaged."""

    def flush(self, info: Info, *, force: bool, events: int = 1) -> None:
        """Store the record. A FILE is always written, and synced if `force` is set or the period of `sync_*` is
        reached. A TABLE is written only in these two cases.

        `events`: the number of events (MasterInfo) or transactions (RelayLogInfo) since the last call.
        """

    def remove(self) -> None:
        """Delete the record (the file or the row), if it exists."""

    def is_transactional(self) -> bool:
        """True if a flush can be part of the target's transaction (WL#5125 case 4). The target is asked at
        each start.
        """
