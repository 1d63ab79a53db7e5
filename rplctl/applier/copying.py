"""The copy of tables (`rplctl clone`) as the applier's loop sees it.

Each call of `Copying.poll` returns one of three states: no copy (`Idle`), a position at which to wait (`Hold`), or
loaded rows (`Loaded`). Invariant: no transaction after `Hold.until` is applied before the rows of that position are
loaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rplctl.applier.options import Until
from rplctl.applier.run import Connection, Run
from rplctl.channel import Channel
from rplctl.clone.throttle import orders_seen
from rplctl.own_tables.clones import is_copying
from rplctl.target.base import Target

if TYPE_CHECKING:
    from rplctl.applier.apply.clone_load import CloneLoader


@dataclass(frozen=True, slots=True)
class Idle:
    """The state in which no table is being copied."""


@dataclass(frozen=True, slots=True)
class Hold:
    """The state in which tables are being copied, but no rows can be loaded now.

    `until`: the position at which the next rows must be loaded. The applier stops there. If the position is not known
    yet, `until` has no condition. `is_reached`: True if the applier is at that position.
    """

    until: Until
    is_reached: bool


@dataclass(frozen=True, slots=True)
class Loaded:
    """The state after rows were loaded, or after the operator stopped the applier while tables were locked."""


def has_copy(channel: Channel, target: Target) -> bool:
    """True if tables are being copied, or if files of an earlier copy must be removed."""
    return is_copying(target.engine, channel.name) or channel.clone_folder.exists()


class Copying:
    """The copy of tables on one connection to the target.

    Create this object before the first batch, because it excludes the tables of the copy from the batches.
    """

    def __init__(self, run: Run, connection: Connection) -> None:
        self._run, self._connection, self._spark = run, connection, connection.spark
        self._orders = orders_seen(run.channel)  # read first, so that orders that come later are seen as new
        self._loader = self._open()

    def _open(self) -> CloneLoader | None:
        """Return a new loader for the rows of a copy, or None if there is no copy and no file of an earlier copy."""
        run, own = self._run, self._connection
        if not has_copy(run.channel, own.target):
            return None
        from rplctl.applier.apply.clone_load import CloneLoader

        parts = (run.config, run.channel, own.target, own.store, own.work, own.spark.pipeline)
        return CloneLoader(*parts, by_gtid=run.patience.options.uses_gtid)

    def close(self) -> None:
        if self._loader is not None:
            self._loader.close()

    @property
    def is_open(self) -> bool:
        """True while some tables of the copy are not completely copied."""
        return self._loader is not None and self._loader.is_open

    def poll(self) -> Idle | Hold | Loaded:
        """Read new orders of the operator, load rows that are due, and return the state of the copy.

        Rows are due if they belong to the applier's position. Raises TargetError, OSError, or LockBusy if another
        process has moved the stored position.
        """
        is_asked = (now := orders_seen(self._run.channel)) != self._orders
        self._orders = now
        if self._loader is not None and is_asked:
            self._loader.look()
        elif self._loader is None and (is_asked or self._connection.work.left_out):
            self._loader = self._open()
        if self._loader is None or not self._loader.is_open:
            return Idle()
        if self._loads(self._loader):
            return Loaded()
        return Hold(self._loader.until, self._loader.stands) if self.is_open else Idle()

    def _loads(self, loader: CloneLoader) -> bool:
        """Load rows that are due at the applier's position.

        Return True if rows were loaded, or if a stop was requested while tables were locked.
        """
        report = self._run.report
        report.status.is_waiting = False  # loading a chunk may take long
        if self._spark.is_always:
            self._spark.begin(1)
        by_spark, by_driver = loader.rows_by_spark, loader.rows_by_driver
        with self._run.read_lock.shared(stop=self._run.held_up) as may_write:
            loaded = may_write and loader.step()
        if loaded or loader.until != Until():  # the cloner may need a long time to read a table
            self._run.patience.worked()
        report.decoded(self._spark.pipeline, loader.rows_by_spark - by_spark, loader.rows_by_driver - by_driver)
        report.cloning(loader.status())
        return loaded or not may_write
