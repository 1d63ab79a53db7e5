"""The committer of a channel, which commits the changes of a batch together with the new position.

Invariant: `info` is the position that is committed on the target, and changes only after a COMMIT.

Tables without transactions (MyISAM) need more. A group of transactions that cannot be rolled back is *open* from its
first change until its position is committed. Meanwhile, the target stores the start and the end of the group
(own_tables/group_begun.py). After a crash, `repeats` is True until the whole group is applied again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import Enum, auto

from rplctl.applier.feed.gtids import moved_by
from rplctl.applier.feed.plan import Batch
from rplctl.applier.interrupt import Interrupter
from rplctl.applier.log_bin.events import stage
from rplctl.channel import Channel
from rplctl.commit.step import CommitMode, CommitStep, PositionStore
from rplctl.commit.transaction import commit_after, commit_group, commit_in_branches
from rplctl.config import Config
from rplctl.decode.filter_rules import ReplicationFilter
from rplctl.errors import RplError
from rplctl.info import RelayLogInfo
from rplctl.own_tables.group_begun import forget_group, keep_group, kept_group
from rplctl.position import BinlogPosition
from rplctl.target import mapped_errors
from rplctl.target.base import Target

log = logging.getLogger(__name__)


class How(Enum):
    """The ways in which rows and position are committed."""

    TOGETHER = auto()  # in one transaction
    POSITION_AFTER = auto()  # the group may commit by itself, and the position is committed after it
    PARALLEL = auto()  # several connections share the batch


class Committer:
    """Commits the batches of a channel. `info`: the position that is committed on the target."""

    def __init__(  # noqa: PLR0913 - the parts of one applier
        self,
        config: Config,
        channel: Channel,
        target: Target,
        store: PositionStore,
        interrupter: Interrupter,
        info: RelayLogInfo,
    ) -> None:
        self._config, self._channel, self._target, self._store = config, channel, target, store
        self._interrupter = interrupter
        self.info = info
        self.in_xa = store.mode is CommitMode.XA
        self.positions_follow = How.POSITION_AFTER if self.in_xa else How.TOGETHER  # for batches without changes
        self._open: tuple[BinlogPosition, BinlogPosition] | None = None  # start and end of the group (group_begun.py)

    def find_open_group(self) -> None:
        """Read the stored start and end of a group that a crash interrupted.

        If the group does not start at the committed position, remove them.
        """
        with mapped_errors(self._target.kind), self._target.engine.begin() as connection:
            self._open = kept_group(connection, self._channel.name)
            if self._open is not None and not self.repeats:
                forget_group(connection, self._channel.name)
                self._open = None
        if self._open is not None:
            log.warning(
                "the transactions before %s are applied once more: they change tables without transactions, and the "
                "applier ended before it had committed the position",
                self._open[1],
            )

    @property
    def repeats(self) -> bool:
        """True if the committed position is the start of a group that a crash interrupted.

        The target may then have some changes of this group.
        """
        return self._open is not None and self._open[0] == self.info.exec_position

    def begin_group(self, batch: Batch) -> None:
        """Store the start and end of a group that cannot be rolled back, before any of it is applied.

        Raises LockBusy if another process has moved the stored position.
        """
        begin, end = self.info.exec_position, batch.source_position
        self._target.begin(foreign_keys=True)
        try:
            self._store.advance(self._target.connection, self.info, self.info)
            keep_group(self._target.connection, self._channel.name, begin, end)
            self._target.commit()
        finally:
            self._target.rollback()
        self._open = (begin, end)

    def end_group(self, done: Batch, rules: ReplicationFilter) -> None:
        """Close the group, and commit the position after its applied part `done`.

        If no part was applied, only remove the group's start and end positions from the target's internal table.
        """
        self._open = (self.info.exec_position, done.source_position)
        if done.first < done.last:
            return self.commit(done, lambda: None, rules, how=self.positions_follow)
        self._target.begin(foreign_keys=True)
        try:
            forget_group(self._target.connection, self._channel.name)
            self._target.commit()
        finally:
            self._target.rollback()
        self._open = None

    def _still_open(self, position: BinlogPosition) -> tuple[BinlogPosition, BinlogPosition] | None:
        """Return the start and end of the part of the interrupted group that comes after `position`, or None."""
        if self._open is None or not self.repeats or not position.is_before(self._open[1]):
            return None
        return position, self._open[1]

    def commit(
        self,
        batch: Batch,
        apply: Callable[[], None],
        rules: ReplicationFilter,
        *,
        how: How = How.TOGETHER,
        foreign_keys: bool = True,
    ) -> None:
        """Call `apply`, and commit the changes together with the position after the batch.

        `rules`: the filters, which exclude events from the binary log, too. `how`: the way in which changes and
        position are committed. `foreign_keys`: False to switch the target's foreign keys off. Raises RplError with
        channel and position if the batch cannot be applied or committed.
        """

        def apply_uncut() -> None:
            apply()
            if still_open is not None:
                keep_group(self._target.connection, self._channel.name, *still_open)
            elif self.repeats:
                forget_group(self._target.connection, self._channel.name)
            self._interrupter.before_commit()

        new = moved_by(batch, self.info, self._config)
        still_open = self._still_open(new.exec_position)
        parts = (self._target, self._store, CommitStep(self.info, new), apply_uncut)
        try:
            stage(self._store.log, batch, self._config, rules, self.info)
            match how:
                case How.TOGETHER:
                    commit_group(*parts, foreign_keys=foreign_keys)
                case How.POSITION_AFTER:
                    commit_after(*parts, foreign_keys=foreign_keys)
                case How.PARALLEL:
                    commit_in_branches(*parts, foreign_keys=foreign_keys)
        except RplError as error:
            error.channel = self._channel.name
            if not error.position:
                error.position = str(batch.source_position)
            raise
        self._open, self.info = still_open, new
