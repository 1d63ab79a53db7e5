"""The strategies that apply a batch, the reasons for rejecting it, and the next strategy after a rejection (D2).

Invariant: a strategy that rejects a batch has committed nothing of `Rejected.batch`, and the position is before this
batch. Only the table `NEXT` chooses the next strategy, by strategy and reason. If the table has no entry for these two,
the batch's error is raised. docs/architecture.md explains the table.
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
    """The strategies by which the applier can apply a batch."""

    PASS_OVER = auto()  # nothing is applied; only the position moves
    LAKE = auto()  # every change is a row of its table's log
    BULK = auto()  # net changes, all in one transaction
    NO_ROLLBACK = auto()  # in the source's order, into tables that cannot roll back; one commit for all
    IN_ORDER = auto()  # in the source's order, all in one transaction
    ALONE = auto()  # one transaction of the source, which a stop may interrupt
    ALONE_UNCUT = auto()  # one transaction of the source, for which a stop waits


class Reason(Enum):
    """The reasons for which a strategy rejects a batch."""

    UNFIT = auto()  # net changes cannot replace the changes, or the transactions cannot share one transaction
    KEEPS_CHANGES = auto()  # a table cannot roll back
    CONFLICT = auto()  # two connections changed tables that belong together; the next attempt does not divide them
    ROWS_ALIKE = auto()  # a keyless table has an unexpected number of equal rows, which now change one by one
    REFUSED = auto()  # the target refused a change, or changed an unexpected number of rows
    NOT_BY_ROWS = auto()  # no row is the reason: a lock is held, or a file cannot be written
    NOT_REPEATABLE = auto()  # the group could not be repeated after a crash
    STOPPED_WITHIN = auto()  # a transaction of the group failed; those before it are committed


@dataclass(frozen=True)
class Applied:
    """The outcome of a strategy that has applied a batch. `changes`: the number of committed row changes."""

    changes: int


@dataclass(frozen=True, kw_only=True)
class Rejected:
    """The outcome of a strategy that rejects a batch.

    `batch`: the part that was not applied. `changes`: the number of row changes that were committed before this part.
    `error`: the error to raise if there is no next strategy.
    """

    reason: Reason
    batch: Batch
    error: Exception
    changes: int = 0


@dataclass(frozen=True)
class PlannedWork:
    """A batch that is still to be applied, and the strategy for it."""

    strategy: Strategy
    batch: Batch


Way = Callable[[Rejected, Callable[[], None]], Iterator[PlannedWork]]


def each_alone(batch: Batch, check: Callable[[], None], strategy: Strategy = Strategy.ALONE) -> Iterator[PlannedWork]:
    """Yield each transaction of the batch as separate work.

    `check`: called before each transaction. It raises Stopped after a stop was requested. `strategy`: the strategy that
    applies each transaction.
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
    """Yield both halves of a rejected batch for BULK. A short batch is applied by IN_ORDER instead.

    Most of a long batch can be applied by BULK, and applying all of it by IN_ORDER would take minutes.
    """
    if rejected.batch.last - rejected.batch.first <= MOST_IN_ORDER:
        return iter([PlannedWork(Strategy.IN_ORDER, rejected.batch)])
    return (PlannedWork(Strategy.BULK, half) for half in rejected.batch.halves())


def _lake_halves(rejected: Rejected, _: Callable[[], None]) -> Iterator[PlannedWork]:
    """Yield both halves of a rejected batch, so that all transactions before the refused change are finally applied.

    Raises the batch's error if the batch is only one transaction.
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
    """Call `apply`, which applies `batch`, and return the outcome.

    An error that another strategy may avoid is returned as Rejected. Transient errors are raised. Raises InDoubt if the
    batch may be committed. The caller must then read the position before it repeats any part of the batch.
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
    """Return the work that replaces a batch that `strategy` has rejected.

    `check`: called before each transaction of this work. It raises Stopped after a stop was requested. Raises the
    batch's error if there is no next strategy.
    """
    way = NEXT.get((strategy, rejected.reason))
    if way is None:
        raise rejected.error
    return way(rejected, check)
