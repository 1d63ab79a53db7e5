"""Stores the position in a table whose storage engine makes single statements crash-safe, without transactions (Aria).

After the target has prepared the transaction, one UPDATE of the position's row is both prepare and commit (WL#5125
variant 5). A connection of its own executes the UPDATE. Invariant: no participant prepares after the UPDATE, because
the UPDATE cannot be rolled back.
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
        """Do nothing, because `prepare` has already moved the row's position."""

    def rollback(self) -> None:
        """Do nothing, because a prepared position is already the committed one in the row."""

    def recover(self) -> str | None:
        """Return the name of the transaction that ends at the row's position. Return None if there is no row.

        The target may have committed the transaction already.
        """
        return xid_of(self._prefix, self._repository.read()) if self._repository.exists() else None

    def commit_by_xid(self, xid: str) -> None:
        """Do nothing, because the row already has the transaction's position."""

    def rollback_by_xid(self, xid: str) -> None:
        if self.recover() == xid:
            raise RplError(f"{self._repository.where} has the position of {xid}, which must be committed")

    def close(self, last: RelayLogInfo) -> None:
        """Do nothing, because the row always has the committed position."""
