"""Defines the interface of a position store, and the step by which one commit moves the channel's position.

A step has the positions before and after the commit. Invariant: a step is committed only if the channel's stored
position is `before`. Otherwise, nothing is applied, and `taken_over` returns the error (design D4).
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
    """The ways in which the position is committed together with the data (position_store.py)."""

    TRANSACTION = "transaction"
    MARKER = "marker"
    XA = "xa"
    PER_TABLE = "per-table"


class CommitStep(NamedTuple):
    before: RelayLogInfo
    after: RelayLogInfo


class PositionStore(ABC):
    """The storage of one channel's executed position. Each commit mode has a subclass (position_store.py).

    `log`: the binary log of applied transactions; None if `log_bin` is off.
    `branches`: the worker connections, if several commit one batch; else None.
    `notes`: the notes about statements that commit by themselves (D28); None if the target executes no statements.
    `guard`: a lock that is held from COMMIT until `committed` returns. Without this lock, log-status might show a GTID
    as executed in the target but not in the repository.
    `owner`: this instance and its source, which `open` writes to rplctl_channel_owner (D29).
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
        """Recover from a crash if necessary, and return the position from which the applier starts.

        Raises NotConfigured if no position is stored, and RplError 1201 if the stored record is damaged.
        """

    @abstractmethod
    def advance(self, connection: Connection, expected: RelayLogInfo, new: RelayLogInfo) -> None:
        """Move the stored position from `expected` to `new`, in the open transaction that also changes the data.

        Raises LockBusy if the stored position is not `expected`, and TargetError with MySQL's number if the target
        reports an error.
        """

    @abstractmethod
    def stored(self, connection: Connection) -> RelayLogInfo | None:
        """Return the stored position. Return None if no position is stored.

        If a COMMIT got no answer, the stored position shows whether the transaction was committed.
        """

    @abstractmethod
    def committed(self, new: RelayLogInfo, *, force: bool = False) -> None:
        """Write the position `new` to the repository, after the target has committed it.

        `force`: True if the position must be durable at once. Before relay logs are purged, `force` is true, because no
        repository may name a purged log.
        """

    @abstractmethod
    def close(self, last: RelayLogInfo) -> None:
        """Store the position `last` durably in the repository, at an orderly stop of the applier (REQ-5 ii)."""


def taken_over(expected: RelayLogInfo) -> LockBusy:
    """Return the error for a stored position that is not `expected`, the one that this applier wrote last (design D4).

    Another process has then moved the position or uses the channel.
    """
    return LockBusy(
        f"the stored position of channel '{expected.channel_name}' is no longer {expected.exec_position}: "
        "another applier or an operator changed it; nothing was applied",
        channel=expected.channel_name,
        position=str(expected.exec_position),
        hint="check the channel with rplctl show-status, then run: rplctl start",
    )
