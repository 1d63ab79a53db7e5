"""Applies several transactions of the source in one transaction of the target, with savepoints in between (WL#3970).

Only the last COMMIT of the source becomes a COMMIT. Each earlier COMMIT becomes a savepoint (WL#3970's
`COMMIT_WAS_HERE`, with rplctl's prefix). If the source logged a ROLLBACK, the target rolls back to the last savepoint.
So after `begin … commit, begin … commit, begin … rollback`, the first two transactions remain. Invariant: the position
is that of the last COMMIT, so a crash loses the whole group, and the next start repeats it.

After error 1205 (lock wait timeout), only the current transaction is tried again, from its savepoint. Error 1213
(deadlock) has ended the transaction of the target, so the whole group is tried again (`BatchApplier.apply`). The last
transaction needs no savepoint, so a group of one transaction has none.
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
    """The part of a result that counts the row changes of the group."""

    changes: int
    by_spark: int
    by_driver: int


def apply_members(
    run: EventRun, apply: Callable[[int], None], statements: LiveTables | None, retries: int, result: Counted
) -> None:
    """Call `apply` with the number of each event, and set savepoints between the transactions.

    `statements`: executes the savepoints. It is None for a target that executes only rows. There, a group has no
    ROLLBACK, and waits for no locks. `retries`: the number of attempts after lock wait timeouts. `result`: its counts
    are set back before another attempt. Raises the errors of `apply`.
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
