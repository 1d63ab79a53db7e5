"""The interface of a participant, which has the channel's position in two-phase commit: prepare, commit, rollback,
recover (WL#3970).

The target prepares first, then the participant. A durable `prepare` of the participant decides that the transaction is
committed, unless a binary log is written: then its record is the decision. At the next start, a prepared transaction in
the target is committed if `recover` names it; otherwise, it is rolled back. Invariant: only `commit` and
`commit_by_xid` move the position, to the prepared log name *and* offset (the draft of WL#3970 kept the old name).
`rollback` does not move the position: it is for a stopped or failed transaction. A ROLLBACK that the source has logged,
because its group changed nontransactional tables, is applied as an ordinary change: the position is written after it
(`commit_after`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from rplctl.errors import RplError
from rplctl.info import PreparedPosition, RelayLogInfo
from rplctl.repository.base import InfoRepository, RepositoryKind


class PositionParticipant(ABC):
    """The position of one channel as a participant in two-phase commit. `xid`: the transaction's name (xid.py)."""

    def __init__(self, repository: InfoRepository[RelayLogInfo]) -> None:
        self._repository = repository

    def open(self) -> RelayLogInfo:
        """Return the RelayLogInfo with the committed position. A start calls this after `recover`."""
        return self._repository.read()

    @abstractmethod
    def prepare(self, xid: str, expected: RelayLogInfo, new: RelayLogInfo) -> None:
        """Store the position `new` durably as prepared under the name `xid`. Raises LockBusy if the stored position is
        not `expected`, and RplError or TargetError if the position cannot be written.
        """

    @abstractmethod
    def commit(self) -> None:
        """Make the prepared position the committed one. The transaction is already decided, so an error here does not
        undo it.
        """

    @abstractmethod
    def rollback(self) -> None:
        """Forget the prepared position, if there is one. Called before the target's rollback."""

    @abstractmethod
    def recover(self) -> str | None:
        """Return the name of the transaction that is prepared, and therefore decided; None if there is none."""

    @abstractmethod
    def commit_by_xid(self, xid: str) -> None:
        """Commit the prepared position of the transaction `xid`. Nothing changes if `recover` returns another name."""

    def rollback_by_xid(self, xid: str) -> None:
        """Roll back the prepared position of the transaction `xid`. Raises RplError if `recover` returns
        another name.
        """
        stored = self.recover()
        if xid != stored:
            raise RplError(f"{xid} is not the prepared position, which is {stored or 'empty'}")
        self.rollback()

    def write(self, info: RelayLogInfo, *, durable: bool) -> None:
        """Write the position without a prepare, after a group that is not committed in two phases."""
        is_table = self._repository.kind is RepositoryKind.TABLE  # a table has no cache of the operating system
        self._repository.flush(info, force=durable or is_table, events=0)

    @abstractmethod
    def close(self, last: RelayLogInfo) -> None:
        """Store the position in the repository at an orderly stop. After this call, only the repository's position
        counts.
        """


def prepared_position(xid: str, new: RelayLogInfo) -> PreparedPosition:
    return PreparedPosition(
        xid=xid, relay=new.relay_log_position, source=new.exec_position, gtid_executed=new.gtid_executed
    )
