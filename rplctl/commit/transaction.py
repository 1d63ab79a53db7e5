"""The transaction that commits both data and position.

Order, with the crash points of WL#3970 between the steps: BEGIN → compare-and-swap the position → apply → COMMIT → the
file follows (mode marker).

With `log_bin` the binary log of applied transactions follows COMMIT. Everything from COMMIT on is under the position
store's guard (WL#9452 F-2.2): a reader of the state of the logs sees both or neither.

A group has another order if it has DDL on a target whose DDL ends the transaction (MySQL, MariaDB), or changes a
nontransactional table: read the position → apply → compare-and-swap → COMMIT (`commit_after`, REQ-5). Its statements
that commit by themselves are recorded first, so that each is executed once (noted.py). Rows of MyISAM tables with a key
share a commit with many others (own_tables/group_begun.py). If several connections commit a batch
(`commit_in_branches`), the steps are those of branches.py.

An error during COMMIT is ambiguous: the transaction may be durable although the client got an error. The stored
position decides. It is read on a new connection, and the applier waits until the target accepts one. So a transaction
is never blindly repeated or skipped.
"""

from __future__ import annotations

from collections.abc import Callable

from rplctl.commit.ambiguous_commit import InDoubt, until_answered
from rplctl.commit.per_table import PerTablePositionStore, commit_per_table
from rplctl.commit.step import CommitStep, PositionStore, taken_over
from rplctl.commit.two_phase import XaPositionStore, commit_in_two_phases
from rplctl.errors import RplError, TargetError
from rplctl.failpoint import crash_point
from rplctl.info import RelayLogInfo
from rplctl.target.base import Target


def commit_group(
    target: Target, store: PositionStore, step: CommitStep, apply: Callable[[], None], *, foreign_keys: bool = True
) -> None:
    """Move the position by `step`, and call `apply`, in one transaction. An error undoes both."""
    if isinstance(store, XaPositionStore):
        commit_in_two_phases(target, store, step, apply, foreign_keys=foreign_keys)
        return
    if isinstance(store, PerTablePositionStore):
        commit_per_table(target, store, step, apply)
        return
    if store.branches is not None:
        store.branches.resolve()
    target.begin(foreign_keys=foreign_keys)
    try:
        _move_and_apply(target, store, step, apply)
    except BaseException:
        target.rollback()
        raise
    with store.guard():
        _commit_logged(target, store, step)
        crash_point("crash_commit_after")
        crash_point("crash_after_commit_before_update_pos")
        until_answered(lambda: store.committed(step.after))
    crash_point("crash_after_commit_and_update_pos")


def commit_after(
    target: Target, store: PositionStore, step: CommitStep, apply: Callable[[], None], *, foreign_keys: bool = True
) -> None:
    """Call `apply`, then move the position, for groups that may commit by themselves (WL#2775: "non-transactional").

    Changes that the target can roll back are still committed together with the position. After a crash in between, the
    next start finds out from the statement notes which changes were committed (noted.py).
    """
    expected, new = step
    notes = store.notes
    if store.branches is not None:
        store.branches.resolve()
    target.begin(foreign_keys=foreign_keys)
    try:
        stored = store.stored(target.connection)
        if stored is not None and not stored.is_at(expected):
            raise taken_over(expected)
        if notes is not None:
            notes.open(expected, new, foreign_keys=foreign_keys)
        if notes is None or not notes.is_whole:
            apply()
        crash_point("crash_after_commit_before_update_pos")
        store.advance(target.connection, expected, new)
        if notes is not None:
            notes.close()
    except BaseException:
        target.rollback()
        if notes is not None:
            notes.failed()
        raise
    with store.guard():
        _commit_logged(target, store, step)
        crash_point("crash_commit_after")
        until_answered(lambda: store.committed(new))
    if notes is not None:
        notes.committed()
    crash_point("crash_after_commit_and_update_pos")


def commit_in_branches(
    target: Target, store: PositionStore, step: CommitStep, apply: Callable[[], None], *, foreign_keys: bool = True
) -> None:
    """Move the position by `step`, and call `apply`, in the transactions of several connections. An error undoes
    everything, as in commit_group.
    """
    branches = store.branches
    assert branches is not None
    branches.begin(foreign_keys=foreign_keys)
    try:
        _move_and_apply(target, store, step, apply)
        branches.prepare()
        crash_point("crash_commit_after_prepare")
        if store.log is not None:
            store.log.before_commit(*step)
    except BaseException:
        branches.roll_back()
        raise
    with store.guard():
        try:
            branches.decide()
        except InDoubt:
            raise
        except RplError:
            branches.roll_back()
            raise
        crash_point("crash_commit_after_log")
        branches.commit()
        if store.log is not None:
            store.log.after_commit(*step)
        crash_point("crash_commit_before_unlog")
        until_answered(lambda: store.committed(step.after))
    crash_point("crash_commit_after")


def _move_and_apply(target: Target, store: PositionStore, step: CommitStep, apply: Callable[[], None]) -> None:
    """Move the position, then call `apply`, in the open transaction."""
    crash_point("crash_before_update_pos")
    store.advance(target.connection, *step)
    crash_point("crash_after_update_pos_before_apply")
    apply()
    crash_point("crash_after_apply")
    crash_point("crash_commit_before")


def _commit_logged(target: Target, store: PositionStore, step: CommitStep) -> None:
    """Commit, then write the binary log of applied transactions. If the step changes no data, write the log first
    (binary_log.py).
    """
    if store.log is None:
        _commit(target, store, step.after)
        return
    store.log.before_commit(*step)
    _commit(target, store, step.after)
    store.log.after_commit(*step)
    crash_point("crash_commit_after_log")
    crash_point("crash_commit_before_unlog")


def _commit(target: Target, store: PositionStore, new: RelayLogInfo) -> None:
    """Commit the open transaction. An error is raised only if the target does not have the new position."""
    try:
        target.commit()
    except TargetError:
        if not until_answered(lambda: _is_committed(target, store, new)):
            raise


def _is_committed(target: Target, store: PositionStore, new: RelayLogInfo) -> bool:
    """True if the target has the position `new` although COMMIT reported an error. Reconnects, and rolls back an open
    transaction.
    """
    target.reconnect()
    stored = store.stored(target.connection)
    target.rollback()
    return stored is not None and stored.exec_position == new.exec_position
