"""Commit mode `xa` (WL#3970, design D3): the target and a position outside it commit together, in two phases.

    1 XA START … changes … XA PREPARE        undone at the next start: crash_commit_before, crash_commit_after_prepare
    2 position prepared, durable             the decision; finished from here on: crash_commit_after_log
      with `log_bin`: then binary log        the decision is its record, whatever the position says (WL#5125 8)
    3 XA COMMIT                              crash_commit_between_engines, crash_commit_before_unlog
    4 position committed                     crash_commit_after

Invariant: a prepared transaction of this channel is committed if a participant's `recover` names it, else rolled back,
before anything else is applied or the position moves (resolve.py). Transactions with another prefix are never changed.
An error after step 2 is not a failure: the transaction is finished on another connection, at the latest by the next
start. DDL, groups on nontransactional tables and groups without changes have no prepare (`commit_after`): their
position is written after them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import cast

from sqlalchemy import Connection, Engine

from rplctl.commit.ambiguous_commit import until_answered
from rplctl.commit.marker import one_that_counts, read_marker, remove_marker
from rplctl.commit.participants.base import PositionParticipant
from rplctl.commit.step import CommitMode, CommitStep, PositionStore, taken_over
from rplctl.commit.xid import xid_of
from rplctl.errors import TargetError
from rplctl.failpoint import crash_point
from rplctl.info import RelayLogInfo
from rplctl.own_tables.owner import claim_alone
from rplctl.repository.base import InfoRepository
from rplctl.target import mapped_errors
from rplctl.target.base import Target, TwoPhaseTarget, TwoPhaseVerbs

log = logging.getLogger(__name__)


class XaPositionStore(PositionStore):
    mode = CommitMode.XA

    def __init__(
        self,
        repository: InfoRepository[RelayLogInfo],
        participant: PositionParticipant,
        engine: Engine,
        prefix: str,
        verbs: TwoPhaseVerbs,
    ) -> None:
        super().__init__()
        self.participant = participant
        self.prefix = prefix
        self.verbs = verbs
        self.decided = ""  # the name of a transaction that may be decided but is not finished, so no other may begin
        self._repository = repository
        self._engine = engine
        self._claimed: object = None  # the driver's connection that has this instance's mark

    def open(self) -> RelayLogInfo:
        """Return the position from the participant. If the target has a marker, from mode `marker` or from a backup of
        that time, choose between both as mode `marker` does.
        """
        info = self.participant.open()
        with mapped_errors(self._engine.dialect.name), self._engine.connect() as connection:
            marker, in_step = read_marker(connection, info.channel_name)
        before = info
        if marker is not None:
            info = one_that_counts(info, marker, in_step)
        with mapped_errors(self._engine.dialect.name):
            claim_alone(self._engine, info.channel_name, self.owner, self.mode)
        if not info.left_at:  # from here on the position needs the owner's row in the target (D29)
            info = replace(info, left_at=info.place)
        if info is not before:
            self.participant.write(info, durable=True)
        if marker is not None:
            remove_marker(info.channel_name, self._engine)
        return info

    def advance(self, connection: Connection, expected: RelayLogInfo, new: RelayLogInfo) -> None:
        """Check that the stored position is `expected`, for groups without a prepare. The position moves later, in
        `committed`.

        Raises LockBusy if another process has moved it.
        """
        if not self._repository.read().is_at(expected):
            raise taken_over(expected)

    def stored(self, connection: Connection) -> RelayLogInfo | None:
        return self._repository.read() if self._repository.exists() else None

    def committed(self, new: RelayLogInfo, *, force: bool = False) -> None:
        self.participant.write(new, durable=True)

    def close(self, last: RelayLogInfo) -> None:
        self.participant.close(last)

    def begin(self, target: Target, xid: str, *, foreign_keys: bool) -> None:
        """Begin the transaction named `xid`, on a connection that has this instance's mark.

        A new connection first rolls back a transaction that the last connection prepared before it broke, because this
        transaction still holds its locks. It is not decided: a decided transaction is finished before.
        """
        driver = target.connection.connection.driver_connection
        if driver is not self._claimed:
            self.verbs.claim(target.connection, self.prefix)
            for undecided in self.verbs.prepared_xids(target.engine, self.prefix):
                self.verbs.end_prepared(target.engine, "ROLLBACK", undecided)
                log.info("prepared transaction %s was not decided and is rolled back", undecided)
            self._claimed = driver
        cast(TwoPhaseTarget, target).begin(foreign_keys=foreign_keys, xid=xid)

    def decide(self, xid: str, expected: RelayLogInfo, new: RelayLogInfo) -> None:
        """Make the participant store the prepared position, which decides that the transaction is committed. If this
        fails and cannot be undone, the next start reads the outcome.
        """
        self.decided = xid
        try:
            self.participant.prepare(xid, expected, new)
            if self.log is not None:
                self.log.decide(xid, expected, new)
        except BaseException:
            if self.log is not None and self.log.has(xid):
                raise
            if self.participant.recover() == xid:
                self.participant.rollback_by_xid(xid)
            self.decided = ""
            raise


def commit_in_two_phases(
    target: Target, store: XaPositionStore, step: CommitStep, apply: Callable[[], None], *, foreign_keys: bool = True
) -> None:
    """Apply a step's changes and move its position in two phases, as transaction.commit_group does in one transaction.

    If it is called again after an error that followed the decision, it finishes the step without applying it again.
    """
    xid = xid_of(store.prefix, step.after)
    if store.decided:
        if store.decided != xid:
            raise TargetError(f"{store.decided} is decided and not finished", hint="to finish it, run: rplctl start")
        with store.guard():
            _finish_elsewhere(store, target.engine, xid)
        return
    store.begin(target, xid, foreign_keys=foreign_keys)
    try:
        crash_point("crash_before_update_pos")
        apply()
        crash_point("crash_after_apply")
        crash_point("crash_commit_before")
        cast(TwoPhaseTarget, target).prepare()
        crash_point("crash_commit_after_prepare")
    except BaseException:
        _undo(target)
        raise
    with ExitStack() as held:
        if store.log is not None:
            held.enter_context(store.guard())  # no reader may see the log ahead of the target
        _decide(target, store, xid, step)
        if store.log is None:
            held.enter_context(store.guard())
        _carry_out(target, store, xid)
    crash_point("crash_commit_after")


def _decide(target: Target, store: XaPositionStore, xid: str, step: CommitStep) -> None:
    try:
        store.decide(xid, *step)
    except BaseException:
        if store.decided:
            target.reconnect()  # the transaction stays prepared
        else:
            _undo(target)
        raise
    crash_point("crash_commit_after_log")


def _carry_out(target: Target, store: XaPositionStore, xid: str) -> None:
    """Commit the decided transaction on the connection that prepared it."""
    try:
        target.commit()
    except TargetError:
        target.reconnect()
        until_answered(lambda: _finish_elsewhere(store, target.engine, xid))
        return
    crash_point("crash_commit_between_engines")
    crash_point("crash_commit_before_unlog")
    store.participant.commit()
    store.decided = ""


def _finish_elsewhere(store: XaPositionStore, engine: Engine, xid: str) -> None:
    """Commit the decided transaction on another connection, because its own one did not confirm the COMMIT."""
    store.verbs.end_prepared(engine, "COMMIT", xid)
    store.participant.commit_by_xid(xid)
    store.decided = ""


def _undo(target: Target) -> None:
    """Roll back the target's transaction. If a deadlock has already ended it, open a new connection, because only that
    helps.
    """
    try:
        target.rollback()
    except TargetError:
        target.reconnect()
