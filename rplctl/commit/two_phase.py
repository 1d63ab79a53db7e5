"""Implements the commit mode `xa` (WL#3970, design D3): target and position commit together, in two phases.

In this mode, the position is stored outside the target's transactions. The object that stores it is called a
participant (participants/). The right column shows the crash points, and the effect of a crash there.

    1 XA START … changes … XA PREPARE        the next start rolls back: crash_commit_before, crash_commit_after_prepare
    2 position prepared, durable             this decides; the next start commits: crash_commit_after_log
      with `log_bin`: then binary log        the record in this log decides, whatever the position says (WL#5125 8)
    3 XA COMMIT                              crash_commit_between_engines, crash_commit_before_unlog
    4 position committed                     crash_commit_after

Invariant: before a start applies anything or moves the position, it resolves each prepared transaction of this channel
(resolve.py). It commits the transaction that a participant's `recover` names, and rolls back the others. It never
changes a transaction with another prefix. An error after step 2 does not undo the transaction. It is finished on
another connection, at the latest by the next start. Some batches have no prepare (`commit_after`): DDL, changes of
nontransactional tables, and batches without changes. The position of such a batch is written after its changes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import cast

from sqlalchemy import Connection, Engine

from rplctl.commit.ambiguous_commit import until_answered
from rplctl.commit.marker import read_marker, remove_marker, valid_position
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
        self._claimed: object = None  # the driver's connection on which `begin` has called `verbs.claim`

    def open(self) -> RelayLogInfo:
        """Return the position that the participant has stored.

        If the channel used mode `marker` before, the target may still have its marker. The rules of mode `marker`
        (marker.py) then choose the marker's position or the participant's. After that, the marker is removed.
        """
        info = self.participant.open()
        with mapped_errors(self._engine.dialect.name), self._engine.connect() as connection:
            marker, in_step = read_marker(connection, info.channel_name)
        before = info
        if marker is not None:
            info = valid_position(info, marker, in_step)
        with mapped_errors(self._engine.dialect.name):
            claim_alone(self._engine, info.channel_name, self.owner, self.mode)
        if not info.left_at:  # a set `left_at` shows that the target must have a row in rplctl_channel_owner (D29)
            info = replace(info, left_at=info.place)
        if info is not before:
            self.participant.write(info, durable=True)
        if marker is not None:
            remove_marker(info.channel_name, self._engine)
        return info

    def advance(self, connection: Connection, expected: RelayLogInfo, new: RelayLogInfo) -> None:
        """Check that the stored position is `expected`, before a batch without a prepare is committed.

        The position moves later, in `committed`. Raises LockBusy if another process has moved the position.
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
        """Begin the transaction named `xid` in the target.

        A new connection is first marked as this channel's, so that a later start can find and terminate it. If the last
        connection broke, its prepared transaction still holds locks and is rolled back. This transaction is not
        decided, because a decided one is finished before the next one begins.
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
        """Decide that the transaction `xid` is committed, by storing the prepared position durably.

        With `log_bin`, the record in the binary log is stored after that, and this record decides. If an error comes
        before the decision, the prepared position is rolled back. If this rollback fails, too, the next start reads the
        outcome.
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
    """Call `apply` in a transaction of the target, and commit it together with the position, in two phases.

    An error before the decision undoes both. After a later error, the caller calls this function again with the same
    step. The step is then finished without applying it again.
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
            held.enter_context(store.guard())  # no reader may see a log that is ahead of the target
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
    """Commit the decided transaction on the connection that prepared it, then the position.

    If this connection fails, the transaction is committed over another connection.
    """
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
    """Commit the decided transaction over another connection, because the one that prepared it did not confirm."""
    store.verbs.end_prepared(engine, "COMMIT", xid)
    store.participant.commit_by_xid(xid)
    store.decided = ""


def _undo(target: Target) -> None:
    """Roll back the target's transaction. If the rollback fails, for example after a deadlock, open a new connection.

    The end of a connection rolls back its transaction.
    """
    try:
        target.rollback()
    except TargetError:
        target.reconnect()
