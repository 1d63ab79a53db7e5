"""Defines the interface of a participant, which stores the channel's position in two-phase commit (WL#3970).

First the target prepares the transaction, then the participant prepares the new position. As soon as the prepared
position is durable, the transaction counts as committed. If a binary log is written, the record in this log decides
instead. At the next start, the transaction that `recover` names is committed, and other prepared transactions are
rolled back.

Invariant: in two-phase commit, only `commit` and `commit_by_xid` move the position, to the prepared log name *and*
offset (the draft of WL#3970 kept the old name). `rollback` is for a stopped or failed transaction, and does not move
the position. A ROLLBACK event of the source is not two-phase: it is applied as an ordinary change, and `commit_after`
then writes the position.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from rplctl.errors import RplError
from rplctl.info import PreparedPosition, RelayLogInfo
from rplctl.repository.base import InfoRepository, RepositoryKind


class PositionParticipant(ABC):
    """The storage of one channel's position, as a participant in two-phase commit.

    In all methods, `xid` is the name of the transaction that moves the position (xid.py).
    """

    def __init__(self, repository: InfoRepository[RelayLogInfo]) -> None:
        self._repository = repository

    def open(self) -> RelayLogInfo:
        """Return the RelayLogInfo with the committed position, after a start has resolved the prepared position."""
        return self._repository.read()

    @abstractmethod
    def prepare(self, xid: str, expected: RelayLogInfo, new: RelayLogInfo) -> None:
        """Store the position `new` durably as the prepared position of the transaction `xid`.

        Raises LockBusy if the stored position is not `expected`, and RplError or TargetError if the position cannot be
        written.
        """

    @abstractmethod
    def commit(self) -> None:
        """Make the prepared position the committed one, after the target has committed the transaction.

        The transaction is already decided, so an error here does not undo it.
        """

    @abstractmethod
    def rollback(self) -> None:
        """Remove the prepared position, if there is one. Called before the target's rollback."""

    @abstractmethod
    def recover(self) -> str | None:
        """Return the name of the transaction whose position is prepared. Return None if no position is prepared.

        This transaction is decided: it must be committed.
        """

    @abstractmethod
    def commit_by_xid(self, xid: str) -> None:
        """Commit the prepared position of the transaction `xid`. Nothing changes if `recover` returns another name."""

    def rollback_by_xid(self, xid: str) -> None:
        """Roll back the prepared position of the transaction `xid`.

        Raises RplError if `recover` returns another name.
        """
        stored = self.recover()
        if xid != stored:
            raise RplError(f"{xid} is not the prepared position, which is {stored or 'empty'}")
        self.rollback()

    def write(self, info: RelayLogInfo, *, durable: bool) -> None:
        """Write the position without a prepare, after a batch that was not committed in two phases.

        `durable`: True if the position must be on disk when the call returns.
        """
        is_table = self._repository.kind is RepositoryKind.TABLE  # a table has no cache of the operating system
        self._repository.flush(info, force=durable or is_table, events=0)

    @abstractmethod
    def close(self, last: RelayLogInfo) -> None:
        """Store the position `last` in the repository at an orderly stop.

        After this call, only the repository has the position. Another file of the participant, for example the
        shadow-page file, is removed.
        """


def prepared_position(xid: str, new: RelayLogInfo) -> PreparedPosition:
    return PreparedPosition(
        xid=xid, relay=new.relay_log_position, source=new.exec_position, gtid_executed=new.gtid_executed
    )
