"""A step is what one commit moves: the position before it and the position after it. A ledger keeps the position.

Invariant: whoever takes a step has found the channel's position at `before`, or raises `taken_over` and applies nothing
(design D4).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import nullcontext
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from rplctl.durable import Guard
from rplctl.errors import LockBusy
from rplctl.info import RelayLogInfo

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from rplctl.applied_log.binary_log import BinaryLog
    from rplctl.commit.branches import Branches
    from rplctl.commit.noted import StatementNotes
    from rplctl.own_tables.owner import Owner


class CommitMode(StrEnum):
    """The ways in which the position moves with the data (position_store.py)."""

    TRANSACTION = "transaction"
    MARKER = "marker"
    XA = "xa"
    PER_TABLE = "per-table"


class Step(NamedTuple):
    before: RelayLogInfo
    after: RelayLogInfo


class PositionStore(ABC):
    """Who keeps the position (position_store.py). `log`: None while `log_bin` is off. `branches`: further connections
    that commit, or None. `notes`: of a target that executes statements, or None. `guard`: held from COMMIT until
    `committed` returns: no GTID counts as executed while log-status looks. `owner`: whose the channel's rows in the
    target are from `open` on (D29).
    """

    mode: CommitMode

    def __init__(self) -> None:
        self.log: BinaryLog | None = None
        self.branches: Branches | None = None
        self.notes: StatementNotes | None = None
        self.guard: Guard = nullcontext
        self.owner: Owner | None = None

    @abstractmethod
    def open(self) -> RelayLogInfo:
        """The position to start from, reconciled after a crash. Raises NotConfigured, RplError 1201."""

    @abstractmethod
    def advance(self, connection: Connection, expected: RelayLogInfo, new: RelayLogInfo) -> None:
        """Move the position inside the data's transaction.

        Raises LockBusy if the stored position is not `expected`, TargetError with MySQL's number if the target fails.
        """

    @abstractmethod
    def stored(self, connection: Connection) -> RelayLogInfo | None:
        """Return the position that the target holds now: the answer to a COMMIT whose outcome is unknown."""

    @abstractmethod
    def committed(self, new: RelayLogInfo, *, force: bool = False) -> None:
        """Record a committed position. `force`: relay logs are purged next, and no repository may name a purged log."""

    @abstractmethod
    def close(self, last: RelayLogInfo) -> None:
        """The applier stops in an orderly way (REQ-5 ii)."""


def taken_over(expected: RelayLogInfo) -> LockBusy:
    """The fence of design D4 closed: the stored position is not what this applier left."""
    return LockBusy(
        f"the stored position of channel '{expected.channel_name}' is no longer {expected.exec_position}: "
        "another applier or an operator changed it; nothing was applied",
        channel=expected.channel_name,
        position=str(expected.exec_position),
        hint="rplctl show-status, then rplctl start",
    )
