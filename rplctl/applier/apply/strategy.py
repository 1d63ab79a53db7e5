"""The strategies that apply a batch, the reasons for rejecting it, and the next strategy after a rejection (D2).

Invariant: a strategy that rejects a batch has committed nothing of `Rejected.batch`, and the position is before it. The
table `NEXT` alone chooses the next strategy, by strategy and reason. If it has no entry for the two, the batch's error
is raised (docs/architecture.md shows the table).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial

from rplctl import mysql_errors as er
from rplctl.applier.apply.live_tables import NotTransactional
from rplctl.applier.apply.table_groups import ConflictingGroups
from rplctl.applier.feed.plan import Batch, BatchKind, check_passed_over
from rplctl.commit.ambiguous_commit import InDoubt
from rplctl.decode.net_changes import Inconsistent
from rplctl.errors import LockBusy, RplError
from rplctl.target.base import CountMismatch, KeylessMismatch

MOST_IN_ORDER = 1000  # most transactions that are applied in order after they did not fit in bulk
BYTES_IN_ORDER = 1 << 20  # most bytes of a group without rollback, all of which a crash repeats


class Strategy(Enum):
    """The strategies to apply a batch."""

    PASS_OVER = auto()  # nothing is applied; only the position moves
    LAKE = auto()  # every change is a row of its table's log
    BULK = auto()  # net changes, all in one transaction
    NO_ROLLBACK = auto()  # in the source's order, into tables that cannot roll back; one commit for all
    IN_ORDER = auto()  # in the source's order, all in one transaction
    ALONE = auto()  # one transaction of the source; STOP may interrupt it
    ALONE_UNCUT = auto()  # one transaction of the source, which STOP waits for


class Reason(Enum):
    """The reasons why a strategy rejects a batch."""

    UNFIT = auto()  # the batch has other changes than net changes, or its transactions cannot be one transaction
    KEEPS_CHANGES = auto()  # a table cannot roll back
    CONFLICT = auto()  # two connections changed tables that belong together; the next attempt does not split them
    ROWS_ALIKE = auto()  # the target counts other equal rows of a keyless table; from now on they go one at a time
    REFUSED = auto()  # the target refused a change, or counted other rows
    NOT_BY_ROWS = auto()  # no row is the reason: a lock is held, or a file cannot be written
    NOT_REPEATABLE = auto()  # a crash could not repeat the group
    STOPPED_WITHIN = auto()  # a transaction of the group failed; those before it are committed


@dataclass(frozen=True)
class Applied:
    """The outcome if a batch was applied. `changes`: the number of committed row changes."""

    changes: int


@dataclass(frozen=True, kw_only=True)
class Rejected:
    """The outcome if a strategy rejects a batch.

    `batch`: the part that was not applied; before it, `changes` row changes were committed. `error`: raised if there is
    no next strategy.
    """

    reason: Reason
    batch: Batch
    error: Exception
    changes: int = 0


@dataclass(frozen=True)
class PlannedWork:
    """A batch, and the strategy that is to apply it."""

    strategy: Strategy
    batch: Batch


Way = Callable[[Rejected, Callable[[], None]], Iterator[PlannedWork]]


def each_alone(batch: Batch, check: Callable[[], None], strategy: Strategy = Strategy.ALONE) -> Iterator[PlannedWork]:
    """Yield each transaction of the batch as separate work. `check`: called before each one; it raises Stopped after
    STOP.
    """
    for group in batch.one_by_one():
        check()
        if group.kind is BatchKind.SKIP:
            check_passed_over(group)
            yield PlannedWork(Strategy.PASS_OVER, group)
        else:
            yield PlannedWork(strategy, group)


def _whole(strategy: Strategy) -> Way:
    return lambda rejected, _: iter([PlannedWork(strategy, rejected.batch)])


def _one_by_one(
    rejected: Rejected, check: Callable[[], None], strategy: Strategy = Strategy.ALONE
) -> Iterator[PlannedWork]:
    return each_alone(rejected.batch, check, strategy)


def _parts(rejected: Rejected, _: Callable[[], None]) -> Iterator[PlannedWork]:
    return (PlannedWork(Strategy.NO_ROLLBACK, part) for part in rejected.batch.parts(MOST_IN_ORDER, BYTES_IN_ORDER))


def _halves(rejected: Rejected, _: Callable[[], None]) -> Iterator[PlannedWork]:
    """Yield both halves of a long rejected batch for bulk; a short one is applied in order.

    Most of a long batch fits in bulk, and applying all of it in order would take minutes.
    """
    if rejected.batch.last - rejected.batch.first <= MOST_IN_ORDER:
        return iter([PlannedWork(Strategy.IN_ORDER, rejected.batch)])
    return (PlannedWork(Strategy.BULK, half) for half in rejected.batch.halves())


def _lake_halves(rejected: Rejected, _: Callable[[], None]) -> Iterator[PlannedWork]:
    """Yield both halves of a rejected batch, so that all transactions before the refused change are applied
    in the end.
    """
    if rejected.batch.last - rejected.batch.first == 1:
        raise rejected.error
    return (PlannedWork(Strategy.LAKE, half) for half in rejected.batch.halves())


_UNCUT = partial(_one_by_one, strategy=Strategy.ALONE_UNCUT)
NEXT: dict[tuple[Strategy, Reason], Way] = {
    (Strategy.LAKE, Reason.REFUSED): _lake_halves,
    (Strategy.BULK, Reason.UNFIT): _whole(Strategy.IN_ORDER),
    (Strategy.BULK, Reason.KEEPS_CHANGES): _parts,
    (Strategy.BULK, Reason.CONFLICT): _whole(Strategy.BULK),
    (Strategy.BULK, Reason.ROWS_ALIKE): _whole(Strategy.BULK),
    (Strategy.BULK, Reason.REFUSED): _halves,
    (Strategy.BULK, Reason.NOT_BY_ROWS): _halves,
    (Strategy.NO_ROLLBACK, Reason.NOT_REPEATABLE): _UNCUT,
    (Strategy.NO_ROLLBACK, Reason.STOPPED_WITHIN): _UNCUT,
    (Strategy.IN_ORDER, Reason.UNFIT): _one_by_one,
    (Strategy.IN_ORDER, Reason.REFUSED): _one_by_one,
    (Strategy.IN_ORDER, Reason.NOT_BY_ROWS): _one_by_one,
}
_REASONS: tuple[tuple[type[Exception], Reason], ...] = (  # the first entry that matches counts
    (Inconsistent, Reason.UNFIT),
    (NotTransactional, Reason.KEEPS_CHANGES),
    (ConflictingGroups, Reason.CONFLICT),
    (KeylessMismatch, Reason.ROWS_ALIKE),
    (CountMismatch, Reason.REFUSED),
    (LockBusy, Reason.NOT_BY_ROWS),
    (RplError, Reason.REFUSED),
)


def outcome_of(apply: Callable[[], int], batch: Batch) -> Applied | Rejected:
    """Call `apply`, and return the outcome. An error that another strategy may avoid is returned as Rejected.

    Raises the error if it is transient. Raises InDoubt if the batch may be committed; the caller must read the position
    before it repeats any part of the batch.
    """
    try:
        return Applied(apply())
    except InDoubt:
        raise
    except (Inconsistent, NotTransactional, CountMismatch, RplError) as error:
        if getattr(error, "transient", False):
            raise
        reason = next(reason for kind, reason in _REASONS if isinstance(error, kind))
        if isinstance(error, RplError) and error.errno == er.ERROR_ON_WRITE:
            reason = Reason.NOT_BY_ROWS
        return Rejected(reason=reason, batch=batch, error=error)


def next_work(strategy: Strategy, rejected: Rejected, check: Callable[[], None]) -> Iterator[PlannedWork]:
    """Yield the work that replaces the rejected batch. Raises the batch's error if no strategy is left."""
    way = NEXT.get((strategy, rejected.reason))
    if way is None:
        raise rejected.error
    return way(rejected, check)
