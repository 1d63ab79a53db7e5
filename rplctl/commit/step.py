"""A step has the positions before and after one commit. A position store keeps the channel's position.

Invariant: a step is committed only if the channel's stored position is `before`. If it is not, nothing is applied, and
the error is the one from `taken_over` (design D4).
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


class CommitStep(NamedTuple):
    before: RelayLogInfo
    after: RelayLogInfo


class PositionStore(ABC):
    """Stores the channel's position. Each commit mode has a subclass (position_store.py).

    `log`: the binary log of applied transactions; None if `log_bin` is off.
    `branches`: the worker connections, if several commit one batch; else None. `notes`: the statement notes, if the
    target executes statements; else None.
    `guard`: held from COMMIT until `committed` returns, so that log-status never sees a GTID executed in one place
    only.
    `owner`: the owner of the channel's rows in the target, set by `open` (D29).
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
        """Return the position to start from, after recovery from a crash. Raises NotConfigured if no position is
        stored, and RplError 1201 if its record is damaged.
        """

    @abstractmethod
    def advance(self, connection: Connection, expected: RelayLogInfo, new: RelayLogInfo) -> None:
        """Move the position inside the data's transaction.

        Raises LockBusy if the stored position is not `expected`, TargetError with MySQL's number if the target fails.
        """

    @abstractmethod
    def stored(self, connection: Connection) -> RelayLogInfo | None:
        """Return the position that the target has now, which shows the outcome of an ambiguous COMMIT."""

    @abstractmethod
    def committed(self, new: RelayLogInfo, *, force: bool = False) -> None:
        """Record a committed position in the repository. `force`: write it at once, because relay logs are purged next,
        and no repository may name a purged log.
        """

    @abstractmethod
    def close(self, last: RelayLogInfo) -> None:
        """Store the last position in the repository at an orderly stop (REQ-5 ii)."""


def taken_over(expected: RelayLogInfo) -> LockBusy:
    """Return the error if the stored position is not the one that this applier wrote, so another process uses the
    channel (design D4).
    """
    return LockBusy(
        f"the stored position of channel '{expected.channel_name}' is no longer {expected.exec_position}: "
        "another applier or an operator changed it; nothing was applied",
        channel=expected.channel_name,
        position=str(expected.exec_position),
        hint="check the channel with rplctl show-status, then run: rplctl start",
    )
