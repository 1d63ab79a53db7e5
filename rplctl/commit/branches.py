"""Several connections (branches) commit for one channel, each its own table groups, with one position (design D24).

    1 each branch: XA START or BEGIN; the first: compare-and-swap of the position
    2 each branch: its tables' changes
    3 each branch: PREPARE                          undone at the next start: crash_commit_after_prepare
    4 row of rplctl_branches: the batch's name      the decision; finished from here on: crash_commit_after_log
    5 each branch but the first: COMMIT             crash_commit_between_engines
    6 the first: COMMIT, the position with it       crash_commit_before_unlog, crash_commit_after

Invariant: a prepared branch whose batch the row names is committed, every other one of this channel is rolled back,
before anything else is applied or the position moves (`resolve_branches`). The position is committed last, so no reader
sees a position that is ahead of the rows. A name is used once, so a late PREPARE of a lost connection is never part of
a decided batch. Branches are named `rplctl-branch:INSTANCE:CHANNEL:BATCH.NUMBER`: 16 random hex digits and a number
from 0 on; for INSTANCE and CHANNEL see xid.py. transaction.commit_in_branches runs the steps.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from contextvars import copy_context
from functools import partial

from sqlalchemy import Engine, insert, select, update

from rplctl.commit.ambiguous_commit import until_answered
from rplctl.errors import LockBusy, TargetError
from rplctl.failpoint import crash_point
from rplctl.own_tables.tables import branches_decided
from rplctl.target import mapped_errors
from rplctl.target.base import Target, TwoPhaseTarget, TwoPhaseVerbs

PATIENCE_SECONDS = 10  # for a lock, which another branch of the same batch may hold
_LOOK = "check the channel with rplctl show-status, then run: rplctl start"
Share = Callable[[Target], None]

log = logging.getLogger(__name__)


class Branches:
    """The connections of one channel. `first`: its own connection, whose branch moves the position.

    The others open at their first share.
    """

    def __init__(  # noqa: PLR0913 - the parts of one
        self,
        first: TwoPhaseTarget,
        another: Callable[[], TwoPhaseTarget],
        channel: str,
        prefix: str,
        verbs: TwoPhaseVerbs,
        count: int,
    ) -> None:
        """Open the branches. Nothing may be prepared when this is called (`resolve_branches`). Raises TargetError if
        the target reports an error.
        """
        self.count = count
        self._targets: list[TwoPhaseTarget | None] = [first, *[None] * (count - 1)]
        self._another = another
        self._engine = first.engine
        self._channel = channel
        self._prefix = prefix
        self._verbs = verbs
        self._claimed: dict[int, object] = {}  # branch → the driver's connection that has our mark
        self._decided = _begin_deciding(self._engine, channel)  # the batch name that we last wrote to the row
        self._batch = ""
        self._foreign_keys = True
        self._begun: dict[int, TwoPhaseTarget] = {}
        self._is_resolved = True
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="branch")

    # the steps

    def begin(self, *, foreign_keys: bool) -> None:
        self.resolve()
        self._batch = _new_name()
        self._foreign_keys = foreign_keys
        self._target(0)

    def apply(self, shares: Mapping[int, Share]) -> None:
        """Run each share on its branch, all at the same time. Raises the error of the first one that failed."""
        self._each({number: partial(self._apply, number, share) for number, share in shares.items()})

    def _apply(self, number: int, share: Share) -> None:
        try:
            share(self._target(number))
        except BaseException:
            self._undo(number)  # at once, because another branch may wait for its locks
            raise

    def prepare(self) -> None:
        self._each({number: target.prepare for number, target in self._begun.items()})

    def decide(self) -> None:
        """Decide the batch.

        Raises TargetError if it was not decided, InDoubt if this is unknown, LockBusy if another applier decided. If
        the answer to the decision is lost, the row gets another name, unless the decision has arrived. A decision that
        arrives later finds the other name, and has no effect.
        """
        try:
            if not self.swap_decision(self._batch):
                raise LockBusy("another applier commits for this channel", channel=self._channel, hint=_LOOK)
        except TargetError:
            void = _new_name()
            if until_answered(lambda: self.swap_decision(void)):
                self._decided = void
                raise
            if until_answered(lambda: decided_batch(self._engine, self._channel)) != self._batch:
                raise
        self._decided = self._batch

    def swap_decision(self, name: str) -> bool:
        """Replace our last name in the row by `name`; False if another applier has replaced it."""
        table = branches_decided(self._engine.dialect.name)
        ours = table.c.Channel_name == self._channel, table.c.Batch == self._decided
        with mapped_errors(self._engine.dialect.name), self._engine.begin() as connection:
            return connection.execute(update(table).where(*ours).values(Batch=name)).rowcount == 1

    def commit(self) -> None:
        """Commit the decided batch. Raises InDoubt if the target does not answer: the next start continues."""
        others = {number: target for number, target in self._begun.items() if number}
        self._each({number: partial(self._commit, number, target) for number, target in others.items()})
        crash_point("crash_commit_between_engines")
        self._commit(0, self._begun[0])
        self._begun.clear()

    def _commit(self, number: int, target: TwoPhaseTarget) -> None:
        try:
            target.commit()
        except TargetError:
            target.reconnect()  # in MariaDB, no other connection can end a branch while its owner is connected
            until_answered(lambda: self._verbs.end_prepared(self._engine, "COMMIT", self._name(number)))

    def roll_back(self) -> None:
        """Roll back all branches, including prepared ones. The caller has not decided the batch."""
        for number in list(self._begun):
            self._undo(number)

    def _undo(self, number: int) -> None:
        if (target := self._begun.pop(number, None)) is None:
            return
        try:
            target.rollback()
        except TargetError:
            target.reconnect()
            self._is_resolved = False

    # branches of earlier attempts, and the end

    def resolve(self, *, is_doubtful: bool = False) -> None:
        """Resolve prepared branches before anything else is applied.

        `is_doubtful`: a connection was lost, and statements sent over it may arrive late.
        """
        if self._is_resolved and not is_doubtful and not self._begun:
            return
        for target in self._begun.values():
            target.reconnect()
        self._begun.clear()
        resolve_branches(self._engine, self._channel, self._prefix, self._verbs)
        self._is_resolved = True

    def interrupt(self) -> None:
        """Interrupt the statements of all branches but the first, which the caller interrupts.

        Called from another thread.
        """
        for number, target in list(self._begun.items()):
            if number:
                target.interrupt()

    def close(self) -> None:
        """Close the worker connections. Prepared branches stay until the next start resolves them."""
        self._threads.shutdown()
        for target in filter(None, self._targets[1:]):
            with suppress(TargetError):
                target.reconnect()

    def _target(self, number: int) -> TwoPhaseTarget:
        """Return the branch's connection, in its transaction."""
        if number in self._begun:
            return self._begun[number]
        target = self._targets[number]
        if target is None:
            target = self._targets[number] = self._another()
        driver = target.connection.connection.driver_connection
        if driver is not self._claimed.get(number):
            self._verbs.claim(target.connection, f"{self._prefix}{number}:")
            self._claimed[number] = driver
        target.begin(foreign_keys=self._foreign_keys, xid=self._name(number))
        self._begun[number] = target
        self._verbs.wait_at_most(target.connection, PATIENCE_SECONDS)
        return target

    def _name(self, number: int) -> str:
        return f"{self._prefix}{self._batch}.{number}"

    def _each(self, steps: Mapping[int, Callable[[], None]]) -> None:
        """Run the steps at the same time; return after all have ended.

        Raises the error of the first one that failed.
        """
        begun = [self._threads.submit(copy_context().run, step) for step in steps.values()]
        failures = [error for step in as_completed(begun) if (error := step.exception()) is not None]
        if failures:
            raise failures[0]


def resolve_branches(engine: Engine, channel: str, prefix: str, verbs: TwoPhaseVerbs) -> None:
    """Resolve the branches that a crash left prepared: commit the decided batch, roll back everything else.

    May be interrupted and repeated. No other process may work on the channel. Raises TargetError if the target reports
    an error.
    """
    prepared = verbs.prepared_xids(engine, prefix)
    if not prepared:
        return
    decided = decided_batch(engine, channel)
    for xid in sorted(prepared, key=_number, reverse=True):  # number 0, which has the position, is last
        verbs.terminate_sessions(engine, f"{prefix}{_number(xid)}:")
        is_decided = xid.removeprefix(prefix).partition(".")[0] == decided
        verbs.end_prepared(engine, "COMMIT" if is_decided else "ROLLBACK", xid)
        how = "was decided and is committed" if is_decided else "was not decided and is rolled back"
        log.info("prepared transaction %s %s", xid, how)


def decided_batch(engine: Engine, channel: str) -> str:
    """Return the batch that the channel's row names as decided; '' if there is no row. Raises TargetError if the
    target reports an error.
    """
    table = branches_decided(engine.dialect.name)
    with mapped_errors(engine.dialect.name), engine.connect() as connection:
        return str(connection.execute(select(table.c.Batch).where(table.c.Channel_name == channel)).scalar() or "")


def _begin_deciding(engine: Engine, channel: str) -> str:
    """Return the batch name in the channel's row, which is created if necessary."""
    if found := decided_batch(engine, channel):
        return found
    name = _new_name()
    with mapped_errors(engine.dialect.name), engine.begin() as connection:
        connection.execute(insert(branches_decided(engine.dialect.name)).values(Channel_name=channel, Batch=name))
    return name


def _new_name() -> str:
    return os.urandom(8).hex()


def _number(xid: str) -> int:
    return int(xid.rpartition(".")[2])
