"""The position in a TABLE of another engine than the data, which keeps each statement through a crash (Aria).

Invariant: the row is the last participant: one write of the row is both prepare and commit (WL#5125 variant 5), by one
UPDATE on a connection of its own, after the target has prepared.
"""

from __future__ import annotations

from sqlalchemy import Engine

from rplctl.commit.participants.base import PositionParticipant
from rplctl.commit.step import taken_over
from rplctl.commit.xid import xid_of
from rplctl.errors import RplError
from rplctl.info import RelayLogInfo
from rplctl.repository.base import InfoRepository
from rplctl.repository.table import compare_and_swap
from rplctl.target import mapped_errors


class RowPosition(PositionParticipant):
    def __init__(self, repository: InfoRepository[RelayLogInfo], engine: Engine, prefix: str) -> None:
        super().__init__(repository)
        self._engine = engine
        self._prefix = prefix

    def prepare(self, xid: str, expected: RelayLogInfo, new: RelayLogInfo) -> None:
        with mapped_errors(self._engine.dialect.name), self._engine.begin() as connection:
            moved = compare_and_swap(connection, expected, new)
        if not moved:
            raise taken_over(expected)

    def commit(self) -> None:
        """Do nothing: the row is the decision."""

    def rollback(self) -> None:
        """Do nothing: a written row is the decision."""

    def recover(self) -> str | None:
        """Return the name of the transaction that led to the row's position, whether or not it is already committed."""
        return xid_of(self._prefix, self._repository.read()) if self._repository.exists() else None

    def commit_by_xid(self, xid: str) -> None:
        """Do nothing: the row is the decision."""

    def rollback_by_xid(self, xid: str) -> None:
        if self.recover() == xid:
            raise RplError(f"{self._repository.where} has the position of {xid}, which must be committed")

    def close(self, last: RelayLogInfo) -> None:
        """Do nothing: the row is the position."""
