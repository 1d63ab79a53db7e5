"""Reads the source for a copy: one snapshot for each table group of the plan, whose rows it writes to chunk files.

The cloner runs in the receiver's process, on a session of its own: it stops and starts with the receiver, but its
errors never stop the receiver. Invariant: all chunk files of a snapshot show the source at one position of its log.
The exact method of `source.snapshot` reports this position. A window counts as one position, its end, if the relay log
has no change of the table group in it; otherwise it is opened again. If DDL names a table before it is completely
read, its table group begins again. No table is locked; between two chunks not even a DDL statement waits for the
cloner.
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
from rplctl.clone.chunk_file import Place
from rplctl.clone.folder import CloneFolder, CopiedTable, Part, Snapshot
from rplctl.clone.go_on import between, taken_over
from rplctl.clone.lag import lag_of
from rplctl.clone.last_row import LastRow
from rplctl.clone.read_from import READ_SOURCE, refuse_foreign, refuse_other, with_address
from rplctl.clone.reading import (
    CHUNK_BYTES,
    BeginAgain,
    Beside,
    Reader,
    Source,
    check_names,
    copied_table,
    names_of,
    show_snapshots,
    telling_tables,
)
from rplctl.clone.received import Received, changed, count_up_to, ddl_behind, gtids_of, named_by_ddl
from rplctl.clone.report import CloneReport
from rplctl.clone.shown_end import ShownEnd, shown_by
from rplctl.clone.throttle import HistoryGrows, Throttle, read_limits
from rplctl.config import Config
from rplctl.errors import RplError, SourceError, as_rpl_error
from rplctl.event.gtid import MariadbGtidState, MysqlGtidSet
from rplctl.failpoint import crash_point
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.position import BinlogPosition
from rplctl.relay_log.reader import RelayGroups
from rplctl.repository import open_master_info, open_relay_log_info
from rplctl.result_set.columns import SESSION
from rplctl.schema.source_catalog import read_table, unless_gone
from rplctl.schema.statement import TableName
from rplctl.secret import reveal
from rplctl.source.select import SelectedRows
from rplctl.source.snapshot import (
    LogPlace,
    Snapshot as Opened,
    Step,
    gtids_at,
    lets_ddl_pass,
    locked_rows,
    orders_commits,
    settled_end,
    snapshot,
    step_of,
)
from rplctl.source.survey import log_end, session, survey
from rplctl.sql_text import NOTHING, Sql, written
from rplctl.target import dialect_of, open_engine, target_kind

if TYPE_CHECKING:
    from sqlalchemy import Engine

MOST_WAITING: Final = 2 << 30  # most bytes of chunk files that are not loaded yet
MOST_AHEAD: Final = 20  # most snapshots that are not loaded yet
KEPT_S: Final = 60.0  # an unfinished snapshot, at which the applier waits, is kept for so long
LEFT_FREE: Final = 1 << 30  # bytes of the disk that stay free, or a tenth of it if that is less
_POLL_S: Final = 0.5
_SOON_S: Final = 0.1  # between checks for a plan or for the receiver's connection, which are cheap
_STABLE_S: Final = 0.1
_FULL: Final = "Waiting: the applier has not loaded the rows that are read"
_AGAIN: Final = "see receiver.log. To continue the copy, run: rplctl stop; rplctl start"
_PAUSE_S: Final = 5.0  # after an error of the source
_MOST_TRIES: Final = 50  # to open a snapshot between two changes of a table group
_BETWEEN_TRIES_S: Final = 0.02
_SOURCE_S: Final = 10.0  # for logged transactions to be visible, and to be received
_WRITTEN_HINT: Final = (
    "pause the writes to these tables for a millisecond, or, if their engine has no snapshots or the source has"
    " neither GTIDs nor binlog_order_commits=ON, while they are read"
)
_RECEIVER_S: Final = 60.0  # for the receiver to receive events after all tables are read

log = logging.getLogger("rplctl.cloner")


class _Stopped(Exception): ...


class _Written(Exception):
    """The error for a table group that was changed during every attempt to read it."""

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
            except _Stopped:
                return
            except BeginAgain as reason:
                log.info("%s: the table group is read again", reason)
            except HistoryGrows as reason:
                log.info("%s: the snapshot is given up, and another one continues it", reason)
            except (RplError, OSError) as error:  # such as a full disk; the receiver goes on
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
            if group not in begun:  # the applier waits for an unfinished snapshot, so it must not wait for the applier
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
            try:
                shows = show_snapshots(names, source)
                if source.copy and not shows:
                    raise SourceError(f"tables on {source.copy} are not in InnoDB: {_listed(names)}", hint=READ_SOURCE)
                last = self._last_row(names, source) if shows and source.step is Step.SHARE_LOCK else None
                if shows and (last is not None or source.step is not Step.SHARE_LOCK):
                    self._read_snapshot(group, names, source, last)
                else:
                    self._read_locked(group, names, source)
            except SourceError as error:
                if error.errno == er.TABLE_DEF_CHANGED:
                    raise BeginAgain(error.message) from error
                raise
            finally:
                self._folder.let_go()

    def _last_row(self, names: list[TableName], source: Source) -> LastRow | None:
        """Return the last change of the table group; None if no row of it is certain."""
        if not orders_commits(source.query):
            return None
        found = [table for name in names if (table := copied_table(name, source, is_locked=True)) is not None]
        last = LastRow(source.received, lambda name: read_table(source.about, *name)[0], telling_tables(found))
        return last if last.lock() is not None else None

    def _read_snapshot(self, group: int, names: list[TableName], source: Source, last: LastRow | None) -> None:
        with self.opened_snapshot(names, source, last) as (place, tables):
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
            for groups in self._received(source, log_end(source.log), _RECEIVER_S):
                check_names(groups, begun)
            begun.complete(counts)

    def _go_on(self, begun: Snapshot, reader: Reader, source: Source) -> Snapshot:
        """Continue with the usable part of an unfinished snapshot, or remove that snapshot."""
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
                raise _Stopped from why
            log.info("table group %d is read from the beginning: %s", begun.table_group, why)
        except SourceError:
            self._folder.forget_unfinished(begun.table_group)
            raise
        self._folder.forget_unfinished(begun.table_group)
        return begun

    def _read_locked(self, group: int, names: list[TableName], source: Source) -> None:
        """Read the tables in their state at the end of the reading, if no table was changed meanwhile."""
        with locked_rows(source.query, source.step, _SOURCE_S) as held:
            self._pause(_STABLE_S)  # rows of MyISAM become visible a moment after their statement is logged
            tables = self._tables(names, source, is_locked=True)
            self._folder.forget_unfinished(group)
            begun = self._folder.begin(group, _epoch(), Place(str(held.low.position)), tables)
            with _worthless_after_error(begun):
                counts = self._reader(begun, source, held.locking).read_all()
                self._hold()
                place = self._place_of_window(held, names, tables, source)
                if place is None:
                    raise _Written(names, "during the reading")
                begun = replace(begun, low=place)
                begun.complete(counts)
                begun.claim()
                log.info("table group %d at %s: %s", group, place.position, names_of(tables))

    @contextmanager
    def opened_snapshot(
        self, names: list[TableName], source: Source, last: LastRow | None
    ) -> Iterator[tuple[Place, list[CopiedTable]]]:
        """Yield a snapshot that shows the tables at one position of the log.

        Raises _Written if none could be opened.
        """
        self._hold()
        for _ in range(_MOST_TRIES):
            with ExitStack() as opened:
                found = self._open(names, source, last, opened)
                if found is not None:
                    yield found
                    return
            self._folder.hold()
            self._pause(random.uniform(0, _BETWEEN_TRIES_S))
        raise _Written(names, f"during {_MOST_TRIES} attempts to open a snapshot")

    def _open(
        self, names: list[TableName], source: Source, last: LastRow | None, opened: ExitStack
    ) -> tuple[Place, list[CopiedTable]] | None:
        if source.copy:
            return self._open_copy(names, source, opened)
        if last is None:
            source.received.begin()
        end = log_end(source.query)
        lock = last.lock if last is not None else None
        try:
            held = opened.enter_context(snapshot(source.query, source.step, source.applied, _SOURCE_S, lock))
        except SourceError as error:
            if lock is None or error.errno != er.LOCK_WAIT_TIMEOUT:
                raise
            return None
        tables = self._tables(names, source)
        if source.step is not Step.EXACT:
            place = self._place_of_window(held, names, tables, source, last)
            return (place, tables) if place is not None else None
        place = _exact_place(held, end, source)
        return None if len(tables) < len(names) and self._are_named(names, held, source) else (place, tables)

    def _open_copy(
        self, names: list[TableName], source: Source, opened: ExitStack
    ) -> tuple[Place, list[CopiedTable]] | None:
        """Open a snapshot on a replica of the source, whose lag must be less than _SOURCE_S."""
        source.received.begin()
        before = settled_end(source.log, source.step, _SOURCE_S)
        assert before.position is not None
        has = LogPlace(None, before.gtids)
        held = opened.enter_context(snapshot(source.query, source.step, has, _SOURCE_S))
        shown = shown_by(held, source.query)
        if shown is None:
            return None
        tables = self._tables(names, source)
        end = settled_end(source.log, source.step, _SOURCE_S)
        assert end.position is not None
        refuse_foreign(shown, end.gtids, source.copy)
        models = {table.name: table.model for table in tables}
        for name in names:
            there = unless_gone(partial(read_table, source.log), *name)
            if there is not None and there[0] != models.get(name):
                how = "different" if name in models else "missing"
                raise SourceError(f"{'.'.join(name)} is {how} on {source.copy}", hint=READ_SOURCE)
        found = ShownEnd(held.low.gtids, shown, before.position, telling_tables(tables, names), frozenset(names))
        for groups in self._received(source, end.position, _SOURCE_S):
            found.look(groups)
        if not found.fits:
            return None
        place = found.position
        if source.step is Step.EXACT:
            return Place(str(place), _with_ours(gtids_at(source.log, place), source)), tables
        return Place(str(place), str(MysqlGtidSet.parse(source.applied.gtids).union(MysqlGtidSet.parse(shown)))), tables

    def _place_of_window(
        self, held: Opened, names: list[TableName], tables: list[CopiedTable], source: Source,
        last: LastRow | None = None,
    ) -> Place | None:  # fmt: skip
        """Return H if no transaction before H may have changed the tables without being visible; else None."""
        high = held.high().position
        assert high is not None
        end = log_end(source.query) if len(tables) < len(names) else high  # a missing table may have existed at H
        is_exact = source.step is Step.EXACT
        seen = MysqlGtidSet() if is_exact else MysqlGtidSet.parse(held.low.gtids)
        gtids = MysqlGtidSet() if is_exact else MysqlGtidSet.parse(source.applied.gtids).union(seen)
        about, plain = telling_tables(tables, names), frozenset(names)
        is_changed = False
        for groups in self._received(source, end, _SOURCE_S):
            if last is not None:
                last.look(groups)
            count = count_up_to(groups, high)
            is_changed |= any(changed(groups, number, about, seen) for number in range(count))
            is_changed |= any(named_by_ddl(groups, number, plain) for number in range(count, len(groups.scan)))
            gtids = gtids.union(gtids_of(groups, count))
        if is_changed:
            return None
        return Place(str(high), _with_ours(gtids_at(source.query, high), source) if is_exact else str(gtids))

    def _are_named(self, names: list[TableName], held: Opened, source: Source) -> bool:
        """True if DDL after L names a table: a table that is missing now may have existed at L."""
        low = held.low.position
        assert low is not None
        received = self._received(source, log_end(source.query), _SOURCE_S)
        found = [ddl_behind(groups, low, frozenset(names)) for groups in received]
        return any(found)

    def _received(self, source: Source, end: BinlogPosition, patience_s: float) -> Iterator[RelayGroups]:
        yield from source.received.until(end, patience_s, self.stop.wait)
        if self.stop.is_set():
            raise _Stopped

    def _reader(self, begun: Snapshot, source: Source, locking: Sql = NOTHING) -> Reader:
        takes_numbers = dialect_of(self._kind).executes_statements
        beside = Beside(self._wait_for_room, self._throttle, self._report)
        return Reader(source, begun, beside, takes_numbers=takes_numbers, locking=locking)

    def _hold(self) -> None:
        self._folder.hold()
        self._pause(_STABLE_S)  # the applier's current transaction is then from before the snapshot

    def _pause(self, seconds: float) -> None:
        if self.stop.wait(seconds):
            raise _Stopped

    @contextmanager
    def reading(self) -> Iterator[Source]:
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
            is_of_mysql = step is not Step.EXACT
            gtids = relay.gtid_executed if (":" in relay.gtid_executed) == is_of_mysql else ""
            applied = LogPlace(None, gtids)
            lag = partial(lag_of, self._config, source, password)
            yield Source(query, about, of_log, copy, lag, select, step, received, int(server_id), applied, relay)

    def _records(self) -> tuple[MasterInfo, RelayLogInfo]:
        """Read the repositories on a connection of our own. The applier may be further than its record says."""
        with ExitStack() as opened:

            def engine() -> Engine:
                made = open_engine(self._config.target_url)
                opened.callback(made.dispose)
                return made

            relay = open_relay_log_info(self._config, self._channel, engine)
            master = open_master_info(self._config, self._channel, engine).read()
            return master, relay.read() if relay.exists() else RelayLogInfo()

    def _tables(self, names: list[TableName], source: Source, *, is_locked: bool = False) -> list[CopiedTable]:
        found = []
        for name in names:
            found.append(copied_table(name, source, is_locked=is_locked))
            self._folder.hold()
        return [table for table in found if table is not None]

    def _wait_for_purge(self, source: Source) -> None:
        """Wait, without a snapshot, until old row versions are purged.

        Unfinished snapshots are given up after KEPT_S.
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
            raise _Stopped

    def _lacks_room(self) -> str:
        """Return why a chunk has to wait, or ''. Some of the disk is reserved for the relay logs, which come first."""
        if self._folder.size() > MOST_WAITING:
            return _FULL
        usage = shutil.disk_usage(self._channel.run_folder)
        if usage.free < min(LEFT_FREE, usage.total // 10) + CHUNK_BYTES:
            return f"Waiting: {usage.free >> 20} MiB are free in {self._channel.datadir}"
        return ""


def _exact_place(held: Opened, end: BinlogPosition, source: Source) -> Place:
    """Return the snapshot's position; `end`, the end of the log, if there is no transaction between the two."""
    low = held.low
    assert low.position is not None
    is_same = low.position.is_before(end) and low.gtids == gtids_at(source.query, end)
    return Place(str(end if is_same else low.position), _with_ours(low.gtids, source))


def _with_ours(gtids: str, source: Source) -> str:
    there, ours = MariadbGtidState.parse(gtids), MariadbGtidState.parse(source.applied.gtids)
    return str(MariadbGtidState({**ours.domains, **there.domains}))


def _listed(names: Sequence[TableName]) -> str:
    return ", ".join(".".join(name) for name in names)


def _epoch() -> int:
    return time.time_ns() // 1000


def _kept(parts: Sequence[Part | None], begun: Snapshot) -> str:
    return ", ".join(
        f"{'.'.join(table.name)} after {part.count} chunks"
        for part, table in zip(parts, begun.tables, strict=True)
        if part is not None
    )


@contextmanager
def _worthless_after_error(begun: Snapshot) -> Iterator[None]:
    """Remove the snapshot after an error, unless it is claimed and can be continued (STOP, source unavailable)."""
    try:
        yield
    except BaseException as error:
        is_claimed = begun.is_claimed
        is_away = isinstance(error, SourceError) and error.errno != er.TABLE_DEF_CHANGED
        if is_claimed and (is_away or isinstance(error, (_Stopped, HistoryGrows))):
            raise
        begun.remove()
        if isinstance(error, FileNotFoundError) and not is_claimed:  # the loader has removed it
            raise BeginAgain(f"the applier was past {begun.low.position}") from error
        raise
