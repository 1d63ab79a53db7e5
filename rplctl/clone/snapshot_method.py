"""Opens a snapshot of a table group, and finds the snapshot's position in the source's log, with one of four methods.

    Exact         MariaDB: the server reports the position of the snapshot
    GtidWindow    MySQL with GTIDs: the snapshot was opened between two known positions, the window. If it shows all
                  changes of the table group in the window, the end of the window is its position
    LastRowLock   MySQL without GTIDs: like GtidWindow, but a lock on the last changed row begins the window
    OnReplica     the snapshot is on a replica, and its position is found in the log of the source

A table group has the tables that foreign keys link. Invariant: an opened snapshot shows the tables at the position
`Opened.place`, with all transactions before this position and none after it. If this is not certain, the method returns
Retry, and the cloner opens another snapshot.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from rplctl import mysql_errors as er
from rplctl.clone.chunk_file import SnapshotPosition
from rplctl.clone.folder import CopiedTable
from rplctl.clone.last_row import LastRow
from rplctl.clone.read_from import READ_SOURCE, refuse_foreign
from rplctl.clone.reading import CopySource, tables_showing_changes
from rplctl.clone.shown_end import ShownEnd, shown_by
from rplctl.errors import SourceError
from rplctl.event.gtid import MariadbGtidState, MysqlGtidSet
from rplctl.position import BinlogPosition
from rplctl.relay_log.reader import RelayGroups
from rplctl.relay_log.received import changed, count_up_to, ddl_after, gtids_of, named_by_ddl
from rplctl.schema.source_catalog import read_table, unless_gone
from rplctl.schema.statement import TableName
from rplctl.source.snapshot import RowLock, Snapshot, SnapshotKind, SourcePosition, gtids_at, settled_end, snapshot
from rplctl.source.survey import log_end

SOURCE_S: Final = 10.0  # the longest wait until a logged transaction is visible, and until it is received


class CopyStopped(Exception):
    """The error that ends the cloner's current work after STOP."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The result of opening a snapshot: its position `place`, and the group's tables that exist at this position."""

    place: SnapshotPosition
    tables: list[CopiedTable]


@dataclass(frozen=True, slots=True)
class Retry:
    """The result if it is uncertain that a snapshot shows one position, so that another one must be opened.

    `why`: the reason.
    """

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableGroup:
    """The tables that one snapshot must show, and the source on which it is opened.

    `read_tables` returns the definitions of the tables that exist in the snapshot of the session `source.query`.
    `stop` is set by STOP.
    """

    names: list[TableName]
    source: CopySource
    read_tables: Callable[[], list[CopiedTable]]
    stop: threading.Event

    def snapshot(
        self, held: ExitStack, step: SnapshotKind, lock: Callable[[], RowLock | None] | None = None
    ) -> Snapshot:
        """Open a snapshot in the session `source.query`. The exit stack `held` closes it.

        `step`: the method. `lock`: returns the row whose lock begins the window. Raises the errors of
        `source.snapshot.snapshot`.
        """
        return held.enter_context(snapshot(self.source.query, step, self.source.applied, SOURCE_S, lock))

    def received(self, end: BinlogPosition, patience_s: float = SOURCE_S) -> Iterator[RelayGroups]:
        """Yield the event groups of the relay log up to the position `end`, as they arrive.

        Raises CopyStopped after STOP, and SourceError if nothing has arrived for `patience_s` seconds.
        """
        yield from self.source.received.until(end, patience_s, self.stop.wait)
        if self.stop.is_set():
            raise CopyStopped


class SnapshotMethod(Protocol):
    """A way to open a snapshot of tables that foreign keys link, and to find the snapshot's position."""

    def open(self, held: ExitStack) -> Opened | Retry:
        """Open a snapshot, which the exit stack `held` closes, and find its position.

        Raises SourceError if the source reports an error, and CopyStopped after STOP.
        """


@dataclass(frozen=True, slots=True)
class Exact:
    group: TableGroup

    def open(self, held: ExitStack) -> Opened | Retry:
        source = self.group.source
        source.received.begin()
        end = log_end(source.query)
        shown = self.group.snapshot(held, SnapshotKind.EXACT)
        tables = self.group.read_tables()
        if len(tables) < len(self.group.names) and self._are_named(shown):
            return Retry("DDL named a missing table after the snapshot")
        return Opened(self._place(shown, end), tables)

    def _place(self, shown: Snapshot, end: BinlogPosition) -> SnapshotPosition:
        """Return the position of the snapshot. It is `end` if there is no transaction between the snapshot and `end`.

        `end`: the end of the source's log before the snapshot was opened.
        """
        low, source = shown.low, self.group.source
        assert low.position is not None
        is_same = low.position.is_before(end) and low.gtids == gtids_at(source.query, end)
        return SnapshotPosition(str(end if is_same else low.position), _with_ours(low.gtids, source))

    def _are_named(self, shown: Snapshot) -> bool:
        """True if DDL after the snapshot's position names a table of the group.

        If a table of the group is missing when the definitions are read, this DDL may have dropped or renamed the
        table. The snapshot may then show rows of a table whose definition cannot be read.
        """
        low = shown.low.position
        assert low is not None
        received = self.group.received(log_end(self.group.source.query))
        found = [ddl_after(groups, low, frozenset(self.group.names)) for groups in received]
        return any(found)


@dataclass(frozen=True, slots=True)
class GtidWindow:
    group: TableGroup

    def open(self, held: ExitStack) -> Opened | Retry:
        self.group.source.received.begin()
        shown = self.group.snapshot(held, SnapshotKind.GTID_WINDOW)
        return _in_window(self.group, shown, self.group.read_tables())


@dataclass(frozen=True, slots=True)
class LastRowLock:
    group: TableGroup
    last: LastRow

    def open(self, held: ExitStack) -> Opened | Retry:
        try:
            shown = self.group.snapshot(held, SnapshotKind.SHARE_LOCK, self.last.lock)
        except SourceError as error:
            if error.errno != er.LOCK_WAIT_TIMEOUT:
                raise
            return Retry("the row of the last change is missing or locked")
        return _in_window(self.group, shown, self.group.read_tables(), self.last.look)


@dataclass(frozen=True, slots=True)
class OnReplica:
    """The method for a snapshot on a replica of the source, which must be less than SOURCE_S seconds behind."""

    group: TableGroup

    def open(self, held: ExitStack) -> Opened | Retry:
        group, source = self.group, self.group.source
        source.received.begin()
        before = settled_end(source.log, source.step, SOURCE_S)
        assert before.position is not None
        shown = held.enter_context(snapshot(source.query, source.step, SourcePosition(None, before.gtids), SOURCE_S))
        gtids = shown_by(shown, source.query)
        if gtids is None:
            return Retry("the replica's transactions are not certain")
        tables = group.read_tables()
        end = settled_end(source.log, source.step, SOURCE_S)
        assert end.position is not None
        refuse_foreign(gtids, end.gtids, source.copy)
        self._refuse_other_tables(tables)
        about, plain = tables_showing_changes(tables, group.names), frozenset(group.names)
        found = ShownEnd(surely=shown.low.gtids, shown=gtids, position=before.position, names=about, plain=plain)
        for groups in group.received(end.position):
            found.look(groups)
        if not found.fits:
            return Retry("the replica shows other transactions than a part of the source's log")
        if source.step is SnapshotKind.EXACT:
            all_gtids = _with_ours(gtids_at(source.log, found.position), source)
        else:
            all_gtids = str(MysqlGtidSet.parse(source.applied.gtids).union(MysqlGtidSet.parse(gtids)))
        return Opened(SnapshotPosition(str(found.position), all_gtids), tables)

    def _refuse_other_tables(self, tables: Sequence[CopiedTable]) -> None:
        """Raise SourceError if a table is missing on the replica, or if its definition differs from the source's."""
        source, models = self.group.source, {table.name: table.model for table in tables}
        for name in self.group.names:
            there = unless_gone(partial(read_table, source.log), *name)
            if there is not None and there[0] != models.get(name):
                how = "different" if name in models else "missing"
                raise SourceError(f"{'.'.join(name)} is {how} on {source.copy}", hint=READ_SOURCE)


def method_of(group: TableGroup, last: LastRow | None) -> SnapshotMethod | None:
    """Return the method that opens a snapshot of the group. Return None if its rows can only be read with locks.

    `last`: the row that the most recent change of these tables wrote. Without GTIDs, a lock on this row shows whether
    the snapshot contains the change. Pass None if rplctl cannot find out which row it is.
    """
    if group.source.step is SnapshotKind.SHARE_LOCK and last is None:
        return None
    if group.source.copy:
        return OnReplica(group)
    if group.source.step is SnapshotKind.EXACT:
        return Exact(group)
    if group.source.step is SnapshotKind.GTID_WINDOW:
        return GtidWindow(group)
    assert last is not None
    return LastRowLock(group, last)


def position_of_window(
    group: TableGroup,
    shown: Snapshot,
    tables: list[CopiedTable],
    look: Callable[[RelayGroups], None] = lambda groups: None,
) -> SnapshotPosition | None:
    """Return the position of a snapshot that was opened between two positions of the log, the window.

    This is the end of the window. The result is None if a transaction in the window may have changed the tables without
    being visible in the snapshot. `tables`: the tables that exist in the snapshot. `look` is called with all event
    groups that were received meanwhile.
    """
    source, names = group.source, group.names
    high = shown.high().position
    assert high is not None
    end = log_end(source.query) if len(tables) < len(names) else high  # a missing table may have existed at `high`
    is_exact = source.step is SnapshotKind.EXACT
    seen = MysqlGtidSet() if is_exact else MysqlGtidSet.parse(shown.low.gtids)
    gtids = MysqlGtidSet() if is_exact else MysqlGtidSet.parse(source.applied.gtids).union(seen)
    about, plain = tables_showing_changes(tables, names), frozenset(names)
    is_changed = False
    for groups in group.received(end):
        look(groups)
        count = count_up_to(groups, high)
        is_changed |= any(changed(groups, number, about, seen) for number in range(count))
        is_changed |= any(named_by_ddl(groups, number, plain) for number in range(count, len(groups.scan)))
        gtids = gtids.union(gtids_of(groups, count))
    if is_changed:
        return None
    return SnapshotPosition(str(high), _with_ours(gtids_at(source.query, high), source) if is_exact else str(gtids))


def _in_window(
    group: TableGroup,
    shown: Snapshot,
    tables: list[CopiedTable],
    look: Callable[[RelayGroups], None] = lambda groups: None,
) -> Opened | Retry:
    place = position_of_window(group, shown, tables, look)
    return Opened(place, tables) if place is not None else Retry("a table was changed while the snapshot was opened")


def _with_ours(gtids: str, source: CopySource) -> str:
    """Return `gtids`, the GTIDs of a MariaDB snapshot, and the applier's GTIDs in all domains that `gtids` lacks."""
    there, ours = MariadbGtidState.parse(gtids), MariadbGtidState.parse(source.applied.gtids)
    return str(MariadbGtidState({**ours.domains, **there.domains}))
