"""A step is what one commit moves: the position before it and the position after it.

Invariant: whoever takes a step has found the channel's position at `before`, or raises `taken_over` and applies nothing
(design D4).
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from rplctl.errors import LockBusy
from rplctl.info import RelayLogInfo


class CommitMode(StrEnum):
    """How the position moves with the data: see position_store.py."""

    TRANSACTION = "transaction"
    MARKER = "marker"
    XA = "xa"
    PER_TABLE = "per-table"


class Step(NamedTuple):
    before: RelayLogInfo
    after: RelayLogInfo


def taken_over(expected: RelayLogInfo) -> LockBusy:
    """The fence of design D4 closed: the stored position is not what this applier left."""
    return LockBusy(
        f"the stored position of channel '{expected.channel_name}' is no longer {expected.exec_position}: "
        "another applier or an operator changed it; nothing was applied",
        channel=expected.channel_name,
        position=str(expected.exec_position),
        hint="rplctl show-status, then rplctl start",
    )
