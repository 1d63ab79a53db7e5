"""A participant is the position in two-phase commit: prepare, commit, rollback, recover (WL#3970).

It votes last, but for the binary log, whose record is the decision where there is one: `prepare` durable is the
decision, so a prepared transaction in the target is committed if `recover` names it, else rolled back. Invariant: only
`commit` and `commit_by_xid` move the position, to the prepared name *and* offset (the worklog's draft kept the old
name); `rollback` never does. That is the rollback of a stopped or failed transaction; the logged ROLLBACK of a group
that changed tables without transactions is a change like others, whose position follows it (`commit_after`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from rplctl.errors import RplError
from rplctl.info import PreparedPosition, RelayLogInfo
from rplctl.repository.base import InfoRepository, RepositoryKind


class PositionParticipant(ABC):
    """One channel's position. `xid` is a name of xid.py."""

    def __init__(self, repository: InfoRepository[RelayLogInfo]) -> None:
        self._repository = repository

    def open(self) -> RelayLogInfo:
        """The committed record, at start, after `recover` was answered."""
        return self._repository.read()

    @abstractmethod
    def prepare(self, xid: str, expected: RelayLogInfo, new: RelayLogInfo) -> None:
        """Make the step durable. Raises LockBusy when the stored position is not `expected`, RplError, TargetError."""

    @abstractmethod
    def commit(self) -> None:
        """The prepared position is the position. Cannot fail the transaction any more: it is decided."""

    @abstractmethod
    def rollback(self) -> None:
        """Forget what was prepared, the position stays; nothing prepared is fine. Before the target's rollback."""

    @abstractmethod
    def recover(self) -> str | None:
        """The transaction whose decision is stored."""

    @abstractmethod
    def commit_by_xid(self, xid: str) -> None:
        """Commit the prepared position of that name; a name other than that of `recover` changes nothing."""

    def rollback_by_xid(self, xid: str) -> None:
        """Roll back the prepared position of that name. Raises RplError for a name other than that of `recover`."""
        stored = self.recover()
        if xid != stored:
            raise RplError(f"{xid} is not the prepared position ({stored or 'there is none'})")
        self.rollback()

    def write(self, info: RelayLogInfo, *, durable: bool) -> None:
        """Write the position without a prepare: for groups in which a participant cannot do two-phase commit."""
        is_table = self._repository.kind is RepositoryKind.TABLE  # has no cache of the system to be written into
        self._repository.flush(info, force=durable or is_table, events=0)

    @abstractmethod
    def close(self, last: RelayLogInfo) -> None:
        """The channel stops in an orderly way: the repository alone says everything."""


def prepared_position(xid: str, new: RelayLogInfo) -> PreparedPosition:
    return PreparedPosition(
        xid=xid, relay=new.relay_log_position, source=new.exec_position, gtid_executed=new.gtid_executed
    )
