"""Commits one batch over several connections, each with a transaction of its own, which is called a branch (D24).

Each branch changes the tables of its own table groups. The first branch also moves the position. The function
commit_in_branches of transaction.py runs these steps. The right column shows the crash points, and the effect of a
crash there.

    1 each branch: XA START or BEGIN; the first: compare-and-swap of the position
    2 each branch: the changes of its tables
    3 each branch: PREPARE                          the next start rolls back: crash_commit_after_prepare
    4 row of rplctl_branches: the batch's name      this decides; the next start commits: crash_commit_after_log
    5 each branch but the first: COMMIT             crash_commit_between_engines
    6 the first: COMMIT, the position with it       crash_commit_before_unlog, crash_commit_after

Invariant: before anything is applied or the position moves, each prepared branch of this channel is resolved
(`resolve_branches`). If the channel's row in rplctl_branches names the batch of the branch, the branch is committed.
Otherwise, it is rolled back. The position is committed last, so no reader sees a position that is ahead of the rows.

A branch has the name `rplctl-branch:INSTANCE:CHANNEL:BATCH.NUMBER`. BATCH has 16 random hex digits, and NUMBER counts
from 0; xid.py explains INSTANCE and CHANNEL. A name is used once, so a late PREPARE of a lost connection is never part
of a decided batch.
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

PATIENCE_SECONDS = 10  # the wait for a lock, which another branch of the same batch may hold
_LOOK = "check the channel with rplctl show-status, then run: rplctl start"
Share = Callable[[Target], None]

log = logging.getLogger(__name__)


class Branches:
    """The worker connections of one channel, each with a transaction of its own, which is called a branch.

    `first`: the connection whose branch moves the position. `another` returns a new connection. It is called when a
    branch gets its first share of a batch. `count`: the number of connections, including `first`. `prefix`: the
    beginning of the branches' names.
    """

    def __init__(  # noqa: PLR0913 - all things that a parallel commit needs
        self,
        first: TwoPhaseTarget,
        another: Callable[[], TwoPhaseTarget],
        channel: str,
        prefix: str,
        verbs: TwoPhaseVerbs,
        count: int,
    ) -> None:
        """Create the channel's row in rplctl_branches if this row is missing. No worker connection is opened yet.

        The caller has resolved all prepared branches (`resolve_branches`). Raises TargetError if the target reports an
        error.
        """
        self.count = count
        self._targets: list[TwoPhaseTarget | None] = [first, *[None] * (count - 1)]
        self._another = another
        self._engine = first.engine
        self._channel = channel
        self._prefix = prefix
        self._verbs = verbs
        self._claimed: dict[int, object] = {}  # branch → the driver's connection for which `verbs.claim` was called
        self._decided = _begin_deciding(self._engine, channel)  # the last known batch name in the row
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
        """Run all shares of the batch at the same time, and wait for their end.

        `shares`: the number of a branch → the function that writes a part of the batch over its connection. Raises the
        error of the share that failed first.
        """
        self._each({number: partial(self._apply, number, share) for number, share in shares.items()})

    def _apply(self, number: int, share: Share) -> None:
        try:
            share(self._target(number))
        except BaseException:
            self._undo(number)  # at once, because another branch may wait for the locks of this one
            raise

    def prepare(self) -> None:
        self._each({number: target.prepare for number, target in self._begun.items()})

    def decide(self) -> None:
        """Decide that the prepared batch is committed, by writing its name to the channel's row in rplctl_branches.

        If the target's answer is lost and the row lacks the name of the batch, the row gets a random name. If the
        UPDATE with the name of the batch arrives late, it then finds the random name and changes nothing. Raises
        TargetError if the batch is not decided, InDoubt if this is unknown, and LockBusy if another applier has changed
        the row.
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
        """True if the batch name `name` was written to the channel's row in rplctl_branches.

        The result is False if the row no longer has the name that this applier wrote last. Another applier has then
        changed the row, and `name` is not written.
        """
        table = branches_decided(self._engine.dialect.name)
        ours = table.c.Channel_name == self._channel, table.c.Batch == self._decided
        with mapped_errors(self._engine.dialect.name), self._engine.begin() as connection:
            return connection.execute(update(table).where(*ours).values(Batch=name)).rowcount == 1

    def commit(self) -> None:
        """Commit all branches of the decided batch, and the first branch last, because it moves the position.

        Raises InDoubt if the target does not answer. The next start then commits the remaining branches.
        """
        others = {number: target for number, target in self._begun.items() if number}
        self._each({number: partial(self._commit, number, target) for number, target in others.items()})
        crash_point("crash_commit_between_engines")
        self._commit(0, self._begun[0])
        self._begun.clear()

    def _commit(self, number: int, target: TwoPhaseTarget) -> None:
        try:
            target.commit()
        except TargetError:
            target.reconnect()  # in MariaDB, no connection can end a branch while the one that prepared it is open
            until_answered(lambda: self._verbs.end_prepared(self._engine, "COMMIT", self._name(number)))

    def roll_back(self) -> None:
        """Roll back all branches, including prepared ones. Called only if the batch is not decided."""
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

    # prepared branches of earlier attempts, interruption and closing

    def resolve(self, *, is_doubtful: bool = False) -> None:
        """Commit or roll back the branches of an earlier batch that are still prepared, before the next batch begins.

        `is_doubtful`: True if a connection was lost, so that its last statements may still arrive. The target is then
        searched for prepared branches, even if this object knows of none.
        """
        if self._is_resolved and not is_doubtful and not self._begun:
            return
        for target in self._begun.values():
            target.reconnect()
        self._begun.clear()
        resolve_branches(self._engine, self._channel, self._prefix, self._verbs)
        self._is_resolved = True

    def interrupt(self) -> None:
        """Interrupt the running statements of all branches except the first. Called from another thread.

        The caller itself interrupts the connection of the first branch.
        """
        for number, target in list(self._begun.items()):
            if number:
                target.interrupt()

    def close(self) -> None:
        """Close the worker connections, except the first. The next start resolves branches that are still prepared."""
        self._threads.shutdown()
        for target in filter(None, self._targets[1:]):
            with suppress(TargetError):
                target.reconnect()

    def _target(self, number: int) -> TwoPhaseTarget:
        """Return the connection with this number, after opening it and beginning its transaction if necessary."""
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
        """Run the steps at the same time, and wait until all have ended.

        `steps`: the number of a branch → the function to run for this branch. Raises the error of the step that failed
        first.
        """
        begun = [self._threads.submit(copy_context().run, step) for step in steps.values()]
        failures = [error for step in as_completed(begun) if (error := step.exception()) is not None]
        if failures:
            raise failures[0]


def resolve_branches(engine: Engine, channel: str, prefix: str, verbs: TwoPhaseVerbs) -> None:
    """Commit the prepared branches of the batch that was decided last, and roll back all other branches of the channel.

    This is necessary after a crash or a lost connection. The work may be interrupted and repeated. No other process may
    work on the channel. Raises TargetError if the target reports an error.
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
    """Return the batch name in the channel's row of rplctl_branches. Return '' if there is no row.

    The batch with this name was decided last. Raises TargetError if the target reports an error.
    """
    table = branches_decided(engine.dialect.name)
    with mapped_errors(engine.dialect.name), engine.connect() as connection:
        return str(connection.execute(select(table.c.Batch).where(table.c.Channel_name == channel)).scalar() or "")


def _begin_deciding(engine: Engine, channel: str) -> str:
    """Return the batch name in the channel's row. If the row is missing, create it with a name that no batch has."""
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
