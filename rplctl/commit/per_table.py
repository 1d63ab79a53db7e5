"""Implements the commit mode `per-table` (design D23): a lake's tables commit one by one, and the position moves last.

Each batch of a channel has a number, n, which grows by one. The batch is committed in four steps. A test kills the
process at each crash point:

    1 one transaction of rplctl's internal tables: checks that the position is the expected one; stores the models that
      DDL changed, and the intent: n, the positions before and after the batch, and the new files of each table
        inside: crash_before_update_pos, crash_after_apply, crash_commit_before; a crash here changes no table
        after it: crash_per_table_after_intent
    2 the lake itself records that this channel has claimed n
        after it: crash_per_table_after_claim
    3 each table commits its files together with the record (channel, n)
        after each: crash_per_table_between_tables; after the last: crash_per_table_before_update_pos
    4 one transaction of the internal tables: moves the position, and closes the intent
        after it: crash_commit_after

Invariant: after step 1, batch n has the same positions and files, whichever process finishes it. A table that already
has the record of n is skipped, so no change is written twice. Between steps 1 and 4, a reader may see the batch in some
tables and not in others. If a batch changes no table, step 1 also moves the position, and the other steps are omitted.

Two instances cannot both write. Steps 1 and 4 check that the position is the expected one, and the lake accepts one
claim for each n. Suppose that a second instance works with a copy of these internal tables, and has other files for n.
This instance fails in step 2 and changes no table. A table with a number above n also shows that another instance
writes to the lake.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import cast

from sqlalchemy import Connection, Engine

from rplctl.commit.ambiguous_commit import InDoubt, until_answered
from rplctl.commit.step import CommitMode, CommitStep, PositionStore
from rplctl.errors import LOSES_CHANNEL, NEW_TARGET, LockBusy, RplError, TargetError
from rplctl.failpoint import crash_point
from rplctl.info import RelayLogInfo
from rplctl.own_tables.lake_batch import LakeBatch, close_batch, keep_batch, last_batch
from rplctl.own_tables.tables import lake_batch
from rplctl.target import mapped_errors
from rplctl.target.base import Target
from rplctl.target.lake import LakeTables, LakeTarget, PendingTable

log = logging.getLogger(__name__)


class PerTablePositionStore(PositionStore):
    """The position store of mode per-table, which also writes each decided batch to the lake's tables.

    `own`: the position store of mode transaction or marker, which stores the channel's position. `unfinished`: the
    batch that is decided, but not yet in all its tables; else None.
    """

    mode = CommitMode.PER_TABLE

    def __init__(self, own: PositionStore, channel: str, engine: Engine, tables: LakeTables) -> None:
        super().__init__()
        self.unfinished: LakeBatch | None = None
        self._own = own
        self._channel = channel
        self._engine = engine
        self._tables = tables
        self._number = 0

    def is_decided(self) -> bool:
        return self.unfinished is not None

    @property
    def app_id(self) -> str:
        return f"rplctl/{self._channel}"

    def open(self) -> RelayLogInfo:
        """Finish a batch that a crash has left in only some tables, then return the position.

        Raises LockBusy if another rplctl writes to the same lake, and TargetError if the lake reports an error. Raises
        RplError if the stored position is not the one before the unfinished batch.
        """
        info = self._own.open()
        with mapped_errors(self._engine.dialect.name), self._engine.begin() as connection:
            lake_batch(self._engine.dialect.name).create(connection, checkfirst=True)
            last = last_batch(connection, self._channel)
        if last is None:
            return info
        self._number = last.number
        if not last.is_open:
            return info
        if not info.is_at(last.before):
            raise RplError(
                f"batch {last.number} of channel '{self._channel}', from {last.before.exec_position} to "
                f"{last.after.exec_position}, is not yet in all its tables, but the position is {info.exec_position}",
                channel=self._channel,
                hint="if the position in the repository RelayLogInfo was changed by hand, write "
                f"{last.before.exec_position} into it again, then run: rplctl start\n"
                f"To begin again with a lake in another folder, from the source's first log {LOSES_CHANNEL}, run: "
                f"{NEW_TARGET}; rplctl start",
            )
        log.info("batch %d, which ends at %s, is written to the tables that lack it", last.number, last.after.place)
        self.unfinished = last
        step = CommitStep(info, info.moved_to(last.after))
        self.finish(step)
        self.committed(step.after, force=True)
        return step.after

    def advance(self, connection: Connection, expected: RelayLogInfo, new: RelayLogInfo) -> None:
        self._own.advance(connection, expected, new)

    def stored(self, connection: Connection) -> RelayLogInfo | None:
        return self._own.stored(connection)

    def committed(self, new: RelayLogInfo, *, force: bool = False) -> None:
        self._own.committed(new, force=force)

    def close(self, last: RelayLogInfo) -> None:
        """Close the store. If a batch is unfinished, do nothing, because the next start finishes it."""
        if self.unfinished is None:
            self._own.close(last)

    def decide(self, target: LakeTarget, step: CommitStep) -> None:
        """Store the intent of the batch in the open transaction (step 1 of the module).

        After the COMMIT of this transaction, the batch counts as committed. If no table has changes, the position is
        moved instead. Raises LockBusy if another rplctl writes to the same lake.
        """
        staged = target.take_staged()
        if not staged:
            self.advance(target.connection, *step)
            return
        self._refuse_stranger("the lake", self._tables.claimed(self.app_id), self._number)
        for table in staged:
            self._refuse_stranger(f"table {table.folder}", self._version(table), self._number)
        batch = LakeBatch(number=self._number + 1, before=step.before, after=step.after, tables=staged)
        keep_batch(target.connection, self._channel, batch)
        self.unfinished = batch

    def finish(self, step: CommitStep) -> None:
        """Write the decided batch to every table that lacks it, then move the position (steps 2 to 4 of the module).

        The work may be interrupted and repeated. Raises InDoubt if the batch that was decided is not the one of `step`.
        """
        batch = self.unfinished
        if batch is None or not batch.after.is_at(step.after):
            raise InDoubt("another batch is decided and not finished", hint="to finish it, run: rplctl start")
        self._tables.claim(self.app_id, batch.number, batch.mark)
        crash_point("crash_per_table_after_claim")
        for table in batch.tables:
            self._refuse_stranger(f"table {table.folder}", self._version(table), batch.number)
            self._tables.publish(table, self.app_id, batch.number)
            crash_point("crash_per_table_between_tables")
        crash_point("crash_per_table_before_update_pos")
        with mapped_errors(self._engine.dialect.name), self._engine.begin() as connection:
            self.advance(connection, *step)
            close_batch(connection, self._channel)
        self._number, self.unfinished = batch.number, None
        crash_point("crash_commit_after")
        crash_point("crash_after_commit_before_update_pos")

    def _version(self, table: PendingTable) -> int:
        return self._tables.version(table.folder, self.app_id)

    def _refuse_stranger(self, where: str, found: int, most: int) -> None:
        """Raise LockBusy if `found`, the last batch number in a table or in the lake, is greater than `most`.

        `most` is the last number that this channel has written. `where`: the table or the lake, for the message.
        """
        if found > most:
            raise LockBusy(
                f"{where} has batch {found} of {self.app_id}, but this channel has written at most {most}: another "
                "rplctl writes to the same lake, or the channel's own tables are from a backup",
                channel=self._channel,
                hint="stop the other rplctl, or give a new replica another --channel name or another folder",
            )


def commit_per_table(target: Target, store: PerTablePositionStore, step: CommitStep, apply: Callable[[], None]) -> None:
    """Call `apply`, which writes the batch's files, then commit each table of the lake, and move the position.

    An error before the decision undoes everything. After a later error, the caller calls this function again with the
    same step. The step is then finished without applying it again.
    """
    lake = cast(LakeTarget, target)
    if store.is_decided():
        _finish(store, step)
        store.committed(step.after)
        return
    lake.begin(foreign_keys=True)
    try:
        crash_point("crash_before_update_pos")
        store.advance(lake.connection, step.before, step.before)  # only checks the position, and does not move it yet
        crash_point("crash_after_update_pos_before_apply")
        apply()
        crash_point("crash_after_apply")
        store.decide(lake, step)
        crash_point("crash_commit_before")
    except BaseException:
        store.unfinished = None
        lake.rollback()
        raise
    with store.guard():
        try:
            lake.commit()
        except TargetError as error:
            store.unfinished = None
            raise InDoubt(
                error.message, errno=error.errno, hint=error.hint
            ) from error  # the next start reads the outcome
        if store.is_decided():
            crash_point("crash_per_table_after_intent")
            _finish(store, step)
        else:
            crash_point("crash_commit_after")
            crash_point("crash_after_commit_before_update_pos")
        until_answered(lambda: store.committed(step.after))
    crash_point("crash_after_commit_and_update_pos")


def _finish(store: PerTablePositionStore, step: CommitStep) -> None:
    """Write the decided batch to its tables, and move the position.

    Raises InDoubt if a table stays unavailable. The next start then finishes the batch.
    """
    try:
        until_answered(lambda: store.finish(step))
    except InDoubt:
        raise
    except TargetError as error:
        raise InDoubt(error.message, errno=error.errno, hint=error.hint) from error
