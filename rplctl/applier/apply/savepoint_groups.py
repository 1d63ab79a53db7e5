"""Several transactions of the source in one of the target: the others' commits are savepoints (WL#3970).

A real COMMIT comes at the group's end only; every other one becomes `SAVEPOINT COMMIT_WAS_HERE` (our private name), to
which a ROLLBACK that the source logged goes back: `begin … commit, begin … commit, begin … rollback` keeps the first
two. Invariant: the position is that of the last real commit, so a crash loses the whole group and repeats it.
Error 1205 costs one member, which is tried again from its savepoint; 1213 has ended the transaction, and the whole
group is begun again (`BatchApplier.apply`). The last member needs no savepoint: a group of one costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from rplctl import mysql_errors as er
from rplctl.applier.apply.live_tables import LiveTables
from rplctl.applier.decode.row_stream import EventRun
from rplctl.errors import TargetError
from rplctl.event.types import EventType


class Counted(Protocol):
    """An object that counts the row changes."""

    changes: int
    by_spark: int
    by_driver: int


def apply_members(
    run: EventRun, apply: Callable[[int], None], statements: LiveTables | None, retries: int, result: Counted
) -> None:
    """Apply every event by its number. Raises what `apply` raises.

    `statements`: None for a target that takes only rows, where a group has no ROLLBACK and waits for no locks.
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
