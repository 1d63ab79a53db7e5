"""The protocol of a position repository (WL#2775 `Rpl_info_handler`): six operations on a whole record.

Invariant: `read` returns a record that some `flush` wrote, whole; never a mix of two. MasterInfo and RelayLogInfo do
not know where they are stored; only `open_repository` and the REQ-6 matrix know both kinds.
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
        """Return the place of the record for `Master_Info_File` and messages: a path, or `database.table`."""

    def exists(self) -> bool:
        """True when a record *with data* is there for this channel (REQ-6: an empty table or cleared file is not)."""

    def stored(self) -> Info | None:
        """The record as it is, cleared or not, by one look; None when there is none. Raises as `read`."""

    def read(self) -> Info:
        """The stored record. Raises NotConfigured when there is none, RplError 1201/1872 when it is damaged."""

    def flush(self, info: Info, *, force: bool, events: int = 1) -> None:
        """Store the record. FILE writes always, fsyncs when forced or due (`sync_*`); TABLE writes when forced or due.

        `events`: how many events (MasterInfo) or transactions (RelayLogInfo) went by since the last call.
        """

    def remove(self) -> None:
        """Delete the record (the file, or the row); nothing there is fine."""

    def is_transactional(self) -> bool:
        """True when a flush can share the target's transaction (WL#5125 case 4). Asked anew at each start."""
