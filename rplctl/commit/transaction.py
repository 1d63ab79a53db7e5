"""Commits the data and the position of a batch in one transaction of the target.

These are the steps, with the crash points of WL#3970 between them:
BEGIN → compare-and-swap the position → apply → COMMIT → in mode marker, write the position to the file.

With `log_bin`, the binary log of applied transactions is written after COMMIT. The position store's guard is held from
COMMIT until the end (WL#9452 F-2.2). So a command that reads the state of the logs sees both the commit and its record,
or neither.

Two kinds of batches have another order: read the position → apply → compare-and-swap → COMMIT (`commit_after`, REQ-5).
One kind contains DDL, and the target is MySQL or MariaDB, where DDL ends the transaction. The other kind changes
nontransactional tables. Each statement that commits by itself is first recorded, so that it is executed once
(noted.py). Many transactions that change rows of MyISAM tables with a key are committed together
(own_tables/group_begun.py). If several connections commit a batch (`commit_in_branches`), branches.py explains the
steps.

An error during COMMIT is ambiguous: the transaction may be durable although the client got an error. The applier then
waits until the target accepts a new connection, and reads the stored position. The position shows whether the
transaction is committed. So the applier never repeats or skips a transaction by a guess.
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
    """Move the position by `step` and call `apply`, which changes the rows, in one transaction of the target.

    An error undoes both. In the modes xa and per-table, two_phase.py and per_table.py commit in their own way.
    """
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
    """Call `apply`, then move the position. This order is for changes that commit by themselves: DDL, MyISAM (REQ-5).

    Changes that the target can roll back are still committed together with the position. If a crash comes before this
    commit, the next start finds out from the statement notes which changes are committed (noted.py).
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
    """Move the position by `step` and call `apply`, which changes rows over several connections.

    Each connection has a transaction of its own, and all of them commit together (branches.py). An error undoes
    everything. The caller has set `store.branches`.
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
    """Commit the open transaction, and write the binary log of applied transactions, if `log_bin` is on.

    The log is written after the commit. If the step changes no data, the log is written before the commit
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
    """Commit the open transaction, which moves the position to `new`.

    If the COMMIT fails but the target has the position `new`, the transaction is committed and the error is ignored.
    """
    try:
        target.commit()
    except TargetError:
        if not until_answered(lambda: _is_committed(target, store, new)):
            raise


def _is_committed(target: Target, store: PositionStore, new: RelayLogInfo) -> bool:
    """True if the target has the position `new`, so that a COMMIT which reported an error has succeeded.

    This opens a new connection to the target, and leaves no transaction open.
    """
    target.reconnect()
    stored = store.stored(target.connection)
    target.rollback()
    return stored is not None and stored.exec_position == new.exec_position
