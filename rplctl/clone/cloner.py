"""Reads the source for a copy: it opens a snapshot of each table group, and writes the rows to chunk files.

A table group has the tables that foreign keys link. The cloner runs in the receiver's process, in sessions of its own.
It starts and stops with the receiver, but its errors never stop the receiver.

Invariant: all chunk files of a snapshot show the source at one position of its log. MariaDB reports this position
(method Exact). With other methods, the position is between two known positions of the log, the window. If the relay log
has no change of the table group in the window, the end of the window counts as the position. Otherwise, another
snapshot is opened. If DDL names a table that is not completely read, its table group is read again. InnoDB tables are
not locked, and between two chunks, not even a DDL statement waits for the cloner.
"""

from __future__ import annotations

import logging
import math
import random
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from rplctl import mysql_errors as er
from rplctl.channel import Channel
from rplctl.clone.changed_keys import Unsure
from rplctl.clone.chunk_file import SnapshotPosition
from rplctl.clone.folder import CloneFolder, CopiedTable, Part, StoredSnapshot
from rplctl.clone.go_on import between, taken_over
from rplctl.clone.lag import lag_of
from rplctl.clone.last_row import LastRow
from rplctl.clone.read_from import READ_SOURCE, refuse_other, with_address
from rplctl.clone.reading import (
    CHUNK_BYTES,
    BeginAgain,
    Beside,
    CopySource,
    SnapshotReader,
    check_names,
    copied_table,
    names_of,
    show_snapshots,
    tables_showing_changes,
)
from rplctl.clone.report import CloneReport
from rplctl.clone.snapshot_method import (
    SOURCE_S,
    CopyStopped,
    Opened,
    SnapshotMethod,
    TableGroup,
    method_of,
    position_of_window,
)
from rplctl.clone.throttle import HistoryGrows, Throttle, read_limits
from rplctl.config import Config
from rplctl.errors import RplError, SourceError, as_rpl_error
from rplctl.failpoint import crash_point
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.relay_log.received import Received
from rplctl.repository import open_master_info, open_relay_log_info
from rplctl.result_set.columns import SESSION
from rplctl.schema.source_catalog import read_table
from rplctl.schema.statement import TableName
from rplctl.secret import reveal
from rplctl.source.select import SelectedRows
from rplctl.source.snapshot import (
    SnapshotKind,
    SourcePosition,
    lets_ddl_pass,
    locked_rows,
    orders_commits,
    step_of,
)
from rplctl.source.survey import log_end, session, survey
from rplctl.sql_text import NOTHING, Sql, written
from rplctl.target import dialect_of, open_engine, target_kind

if TYPE_CHECKING:
    from sqlalchemy import Engine

MOST_WAITING: Final = 2 << 30  # the limit for bytes of chunk files that are not loaded yet
MOST_AHEAD: Final = 20  # the limit for snapshots that are not loaded yet
KEPT_S: Final = 60.0  # an unfinished snapshot, for which the applier waits, is removed after so long an interruption
LEFT_FREE: Final = 1 << 30  # the bytes of the disk that stay free; a tenth of the disk if that is less
_POLL_S: Final = 0.5
_SOON_S: Final = 0.1  # the pause between cheap checks: for a plan, or for the receiver's connection
_STABLE_S: Final = 0.1
_FULL: Final = "Waiting: the applier has not loaded the rows that are read"
_AGAIN: Final = "see receiver.log. To continue the copy, run: rplctl stop; rplctl start"
_PAUSE_S: Final = 5.0  # the pause after an error of the source
_MOST_TRIES: Final = 50  # attempts to open a snapshot between two changes of a table group
_BETWEEN_TRIES_S: Final = 0.02
_WRITTEN_HINT: Final = (
    "pause the writes to these tables for a second; the copy then continues by itself\n"
    "If a table is not in InnoDB, or the source has neither GTIDs nor binlog_order_commits=ON, pause the writes until "
    "the tables are read. To see when they are read, run: rplctl show-clone"
)
_RECEIVER_S: Final = 60.0  # the longest wait for events from the receiver, after all tables are read

log = logging.getLogger("rplctl.cloner")


class _Written(Exception):
    """The error if the source changed the tables of a group during every attempt to read them.

    A table group has the tables that foreign keys link. The cloner reads other groups first, and then this one again.
    """

    def __init__(self, names: Sequence[TableName], when: str) -> None:
        super().__init__(f"{_listed(names)}: changed {when}; read again after the other tables")


class Cloner:
    def __init__(self, config: Config, channel: Channel, stop: threading.Event) -> None:
        self.stop = stop
        self._config, self._channel = config, channel
        self._kind = target_kind(config.target_place)
        self._folder = CloneFolder(channel)
        self._report = CloneReport(channel)
        self._failing_since = math.inf  # time.monotonic()
        self._has_plan = False
        self._throttle = Throttle(channel, stop, lambda text: self._report.state(text) if text else None)

    def run(self) -> None:
        self._folder.sweep()  # removes snapshots whose session ended with an earlier process
        while not self.stop.wait(_POLL_S if self._has_plan else _SOON_S):
            try:
                self._read_what_is_missing()
            except CopyStopped:
                return
            except BeginAgain as reason:
                log.info("%s: the table group is read again", reason)
            except HistoryGrows as reason:
                log.info("%s: the snapshot is given up, and another one continues it", reason)
            except (RplError, OSError) as error:  # for example a full disk; the receiver continues
                shown = as_rpl_error(error)
                log.warning("the copy waits %g s: %s%s", _PAUSE_S, shown.message, f" ({shown.hint})" * bool(shown.hint))
                self._report.failed(shown)
                self._failing_since = min(self._failing_since, time.monotonic())
                if time.monotonic() - self._failing_since > KEPT_S:
                    self._forget_unfinished()
                self.stop.wait(_PAUSE_S)
            except Exception as error:  # the thread boundary: every error that ends the copy is reported
                self._report.failed(RplError(f"the copy ended unexpectedly: {type(error).__name__}", hint=_AGAIN))
                log.error("the copy ended with an unexpected error. To continue it, run: rplctl stop; rplctl start")
                raise

    def _read_what_is_missing(self) -> None:
        plan = self._folder.read_plan()
        self._has_plan = bool(plan)
        if not plan:
            return self._report.state("")
        there = {found.table_group for found in self._folder.snapshots()}
        begun = {group for group in there if self._folder.unfinished(group) is not None}
        for group in [*sorted(begun.intersection(plan)), *(group for group in plan if group not in there)]:
            if group not in begun:  # an unfinished snapshot is continued at once, because the applier waits for it
                while len(self._folder.snapshots()) >= MOST_AHEAD and not self.stop.wait(_POLL_S):
                    self._report.state(_FULL)
                self._wait_for_room()
            try:
                self._read(group, plan[group])
            except _Written as written:  # other table groups come first
                self._folder.forget_unfinished(group)
                log.warning("%s", written)
                self._report.failed(SourceError(str(written), hint=_WRITTEN_HINT))

    def _read(self, group: int, names: list[TableName]) -> None:
        with self.reading() as source:
            while not source.received.begin():  # until the receiver has connected
                self._pause(_SOON_S)
            self._wait_for_purge(source)
            asked = self.asked(names, source)
            try:
                method = self._method(asked)
                if method is not None:
                    self._read_snapshot(group, asked, method)
                else:
                    self._read_locked(group, asked)
            except SourceError as error:
                if error.errno == er.TABLE_DEF_CHANGED:
                    raise BeginAgain(error.message) from error
                raise
            finally:
                self._folder.let_go()

    def asked(self, names: list[TableName], source: CopySource) -> TableGroup:
        """Return a TableGroup of these tables, for which a snapshot can be opened."""
        read_tables = partial(self._tables, names, source)
        return TableGroup(names=names, source=source, read_tables=read_tables, stop=self.stop)

    def _method(self, group: TableGroup) -> SnapshotMethod | None:
        """Return the method that opens a snapshot of the tables. Return None if the tables must be read with row locks.

        A table that is not in InnoDB needs row locks. A source without GTIDs needs them, too, if the row of the last
        change is unknown. Raises SourceError if a replica is read and has a table that is not in InnoDB.
        """
        source = group.source
        if not show_snapshots(group.names, source):
            if source.copy:
                raise SourceError(
                    f"tables on {source.copy} are not in InnoDB: {_listed(group.names)}", hint=READ_SOURCE
                )
            return None
        return method_of(group, self._last_row(group.names, source) if source.step is SnapshotKind.SHARE_LOCK else None)

    def _last_row(self, names: list[TableName], source: CopySource) -> LastRow | None:
        """Return the row that the last change of these tables wrote, for a source without GTIDs.

        A lock on this row ensures that a snapshot shows the change (last_row.py). None if the row cannot be determined,
        or if transactions become visible in another order than that of the log (binlog_order_commits=OFF).
        """
        if not orders_commits(source.query):
            return None
        found = [table for name in names if (table := copied_table(name, source, is_locked=True)) is not None]
        last = LastRow(source.received, lambda name: read_table(source.about, *name)[0], tables_showing_changes(found))
        return last if last.lock() is not None else None

    def _read_snapshot(self, group: int, asked: TableGroup, method: SnapshotMethod) -> None:
        source = asked.source
        with self.opened_snapshot(asked.names, method) as (place, tables):
            begun = self._folder.begin(group, _epoch(), place, tables, source.server_id)
            reader = self._reader(begun, source)
            with _worthless_after_error(begun):
                begun = self._go_on(begun, reader, source)
                crash_point("crash_clone_before_claim")
                begun.claim()
                self._failing_since = math.inf
                crash_point("crash_clone_after_claim")
                self._folder.let_go()
                of = f" of {source.copy}" * bool(source.copy)
                log.info("table group %d at %s: %s%s", group, place.position, names_of(tables), of)
                counts = reader.read_all()
        with _worthless_after_error(begun):
            for groups in asked.received(log_end(source.log), _RECEIVER_S):
                check_names(groups, begun)
            begun.complete(counts)

    def _go_on(self, begun: StoredSnapshot, reader: SnapshotReader, source: CopySource) -> StoredSnapshot:
        """Let the new snapshot `begun` continue an unfinished snapshot of the same tables, if there is one.

        Return `begun`, with the number of chunks that it reuses. If no part of the unfinished snapshot can be reused,
        remove the unfinished snapshot.
        """
        old = self._folder.unfinished(begun.table_group)
        if old is None:
            return begun
        try:
            since = source.received.afresh()
            log_between = between(old, begun, since, source.relay, self.stop.wait)
            (folds_names,) = source.log(written("SELECT @@GLOBAL.lower_case_table_names <> 0"))[0]
            parts, changed_rows = taken_over(old, begun, log_between, self._kind, folds_names=bool(int(folds_names)))
            self._folder.hold()
            log.info("table group %d is continued: %s", begun.table_group, _kept(parts, begun))
            return replace(reader.go_on(parts, changed_rows), continues=old.epoch)
        except Unsure as why:
            if self.stop.is_set():
                raise CopyStopped from why
            log.info("table group %d is read from the beginning: %s", begun.table_group, why)
        except SourceError:
            self._folder.forget_unfinished(begun.table_group)
            raise
        self._folder.forget_unfinished(begun.table_group)
        return begun

    def _read_locked(self, group: int, asked: TableGroup) -> None:
        """Read the tables without a snapshot, with row locks. The copy has the position after the last read.

        Raises _Written if the tables were changed meanwhile.
        """
        names, source = asked.names, asked.source
        with locked_rows(source.query, source.step, SOURCE_S) as held:
            self._pause(_STABLE_S)  # rows of MyISAM become visible a moment after their statement is logged
            tables = self._tables(names, source, is_locked=True)
            self._folder.forget_unfinished(group)
            begun = self._folder.begin(group, _epoch(), SnapshotPosition(str(held.low.position)), tables)
            with _worthless_after_error(begun):
                counts = self._reader(begun, source, held.locking).read_all()
                self._hold()
                place = position_of_window(asked, held, tables)
                if place is None:
                    raise _Written(names, "during the reading")
                begun = replace(begun, low=place)
                begun.complete(counts)
                begun.claim()
                log.info("table group %d at %s: %s", group, place.position, names_of(tables))

    @contextmanager
    def opened_snapshot(
        self, names: list[TableName], method: SnapshotMethod
    ) -> Iterator[tuple[SnapshotPosition, list[CopiedTable]]]:
        """Open a snapshot that shows the tables at one position of the log, for the `with` block.

        Yield this position, and the tables that exist at this position. Raises _Written if all attempts failed because
        the tables were changed.
        """
        self._hold()
        for _ in range(_MOST_TRIES):
            with ExitStack() as held:
                found = method.open(held)
                if isinstance(found, Opened):
                    yield found.place, found.tables
                    return
            log.debug("another snapshot is opened: %s", found.why)
            self._folder.hold()
            self._pause(random.uniform(0, _BETWEEN_TRIES_S))
        raise _Written(names, f"during {_MOST_TRIES} attempts to open a snapshot")

    def _reader(self, begun: StoredSnapshot, source: CopySource, locking: Sql = NOTHING) -> SnapshotReader:
        takes_numbers = dialect_of(self._kind).executes_statements
        beside = Beside(self._wait_for_room, self._throttle, self._report)
        return SnapshotReader(source, begun, beside, takes_numbers=takes_numbers, locking=locking)

    def _hold(self) -> None:
        self._folder.hold()
        self._pause(_STABLE_S)  # the applier's current transaction is then from before the snapshot

    def _pause(self, seconds: float) -> None:
        if self.stop.wait(seconds):
            raise CopyStopped

    @contextmanager
    def reading(self) -> Iterator[CopySource]:
        source, relay = self._records()
        password = reveal(source.user_password, self._config.datadir)
        copy = read_limits(self._channel).read_from
        info = with_address(source, copy) if copy else source
        with ExitStack() as opened:
            mysql, query = opened.enter_context(session(info, password, self._config))
            # a session of its own, because SESSION returns names in their columns' character sets
            about = opened.enter_context(survey(info, password, self._config))
            query(SESSION)
            of_log = opened.enter_context(survey(source, password, self._config)) if copy else query
            (server_id,) = of_log(written("SELECT @@GLOBAL.server_id"))[0]
            received = Received(self._channel, int(server_id), by_gtid=source.uses_gtid)
            select = partial(SelectedRows, mysql, address=f"{info.user_name}@{info.host}:{info.port}")
            step = step_of(query)
            lets_ddl_pass(query, step)
            if copy:
                refuse_other(query, of_log, copy)
            self._report.step(f"{step.value}, read from {copy}" if copy else step.value)
            is_of_mysql = step is not SnapshotKind.EXACT
            gtids = relay.gtid_executed if (":" in relay.gtid_executed) == is_of_mysql else ""
            applied = SourcePosition(None, gtids)
            lag = partial(lag_of, self._config, source, password)
            yield CopySource(
                query=query,
                about=about,
                log=of_log,
                copy=copy,
                lag=lag,
                select=select,
                step=step,
                received=received,
                server_id=int(server_id),
                applied=applied,
                relay=relay,
            )

    def _records(self) -> tuple[MasterInfo, RelayLogInfo]:
        """Return the connection settings, and the applier's stored position.

        The running applier may be further than its stored position.
        """
        with ExitStack() as opened:

            def engine() -> Engine:
                made = open_engine(self._config.target_url)
                opened.callback(made.dispose)
                return made

            relay = open_relay_log_info(self._config, self._channel, engine)
            master = open_master_info(self._config, self._channel, engine).read()
            return master, relay.read() if relay.exists() else RelayLogInfo()

    def _tables(self, names: list[TableName], source: CopySource, *, is_locked: bool = False) -> list[CopiedTable]:
        found = []
        for name in names:
            found.append(copied_table(name, source, is_locked=is_locked))
            self._folder.hold()
        return [table for table in found if table is not None]

    def _wait_for_purge(self, source: CopySource) -> None:
        """Wait, while no snapshot is open, until the source has purged enough old row versions (`--max-history`).

        Meanwhile, the applier waits for the rest of each unfinished snapshot. So after KEPT_S seconds, the unfinished
        snapshots are removed, and the applier continues.
        """
        began = time.monotonic()
        while self._throttle.has_history(source.about):
            if time.monotonic() - began > KEPT_S:
                self._forget_unfinished()
            self._pause(_POLL_S)

    def _forget_unfinished(self) -> None:
        for group in {found.table_group for found in self._folder.snapshots()}:
            self._folder.forget_unfinished(group)

    def _wait_for_room(self) -> None:
        while not self.stop.is_set() and (reason := self._lacks_room()):
            self._report.state(reason)
            self.stop.wait(_POLL_S)
        if self.stop.is_set():
            raise CopyStopped

    def _lacks_room(self) -> str:
        """Return the reason why the next chunk must not be written yet. Return '' if the chunk may be written.

        A part of the disk stays free for the relay logs, which are more important.
        """
        if self._folder.size() > MOST_WAITING:
            return _FULL
        usage = shutil.disk_usage(self._channel.run_folder)
        if usage.free < min(LEFT_FREE, usage.total // 10) + CHUNK_BYTES:
            return f"Waiting: {usage.free >> 20} MiB are free in {self._channel.datadir}"
        return ""


def _listed(names: Sequence[TableName]) -> str:
    return ", ".join(".".join(name) for name in names)


def _epoch() -> int:
    return time.time_ns() // 1000


def _kept(parts: Sequence[Part | None], begun: StoredSnapshot) -> str:
    return ", ".join(
        f"{'.'.join(table.name)} after {part.count} chunks"
        for part, table in zip(parts, begun.tables, strict=True)
        if part is not None
    )


@contextmanager
def _worthless_after_error(begun: StoredSnapshot) -> Iterator[None]:
    """Remove the snapshot if the `with` block raises an error after which the snapshot cannot be continued.

    A snapshot can be continued if two conditions are met. It has a claim, so that the applier waits for its rows. The
    error is STOP or HistoryGrows, or the source was unavailable.
    """
    try:
        yield
    except BaseException as error:
        is_claimed = begun.is_claimed
        is_away = isinstance(error, SourceError) and error.errno != er.TABLE_DEF_CHANGED
        if is_claimed and (is_away or isinstance(error, (CopyStopped, HistoryGrows))):
            raise
        begun.remove()
        if isinstance(error, FileNotFoundError) and not is_claimed:  # the loader has removed it
            raise BeginAgain(f"the applier was past {begun.low.position}") from error
        raise
