"""Applies several transactions of the source in one of the target: all commits but the last become savepoints
(WL#3970).

Only the group's end is a real COMMIT. Every other one becomes `SAVEPOINT COMMIT_WAS_HERE` (with a private name), to
which a logged ROLLBACK of the source returns: `begin … commit, begin … commit, begin … rollback` keeps the first two.
Invariant: the position is that of the last real commit, so a crash loses the whole group and repeats it.

Error 1205 costs one transaction, which is tried again from its savepoint. Error 1213 has ended the transaction, and the
whole group begins again (`BatchApplier.apply`). The last transaction needs no savepoint: a group of one costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from rplctl import mysql_errors as er
from rplctl.applier.apply.live_tables import LiveTables
from rplctl.decode.row_stream import EventRun
from rplctl.errors import TargetError
from rplctl.event.types import EventType


class Counted(Protocol):
    """A result that counts the row changes of the group."""

    changes: int
    by_spark: int
    by_driver: int


def apply_members(
    run: EventRun, apply: Callable[[int], None], statements: LiveTables | None, retries: int, result: Counted
) -> None:
    """Call `apply` with the number of each event, and set savepoints between the transactions. Raises the errors of
    `apply`.

    `statements`: executes the savepoints. None for a target that executes only rows; a group then has no ROLLBACK and
    waits for no locks.
    """
    number, begun, last = 0, 0, len(run.types) - 1
    counts = result.changes, result.by_spark, result.by_driver
    while number <= last:
        try:
            apply(number)
        except TargetError as error:
            if statements is None or not begun or error.errno != er.LOCK_WAIT_TIMEOUT or not retries:
                raise
            statements.roll_back()
            retries -= 1
            number = begun
            result.changes, result.by_spark, result.by_driver = counts
            continue
        number += 1
        if statements is not None and run.types[number - 1] == EventType.XID and number <= last:
            statements.commit_was_here()
            begun = number
            counts = result.changes, result.by_spark, result.by_driver
