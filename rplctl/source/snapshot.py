"""Rows of a live source at a known place of its binary log: a ladder of three ways, none of which locks a table.

    exact         MariaDB, Percona: `binlog_snapshot_*` names the position of a consistent snapshot; L = H
    GTID window   MySQL with GTIDs: L = gtid_executed before the snapshot, H = the log's end behind its opening, all
                  three asked for in one packet: the window is as short whatever the way to the server
    share lock    MySQL without GTIDs: L = what a row is of that the caller knows from the log: when it is
                  share-locked, in a transaction of its own before the snapshot, all that is logged up to there is seen
                  (InnoDB shows a transaction first and lets go of its locks then; binlog_order_commits=ON shows them in
                  the order of the log); H as for GTIDs

A snapshot is a transaction, which holds what its statements have of a table's definition. Back at a savepoint MySQL
lets go of it, MariaDB only in a session that does not log (`sql_log_bin=0`, BINLOG ADMIN or SUPER): else DDL waits
until the snapshot ends, and all that asks for the table waits behind it (seen on 10.5, 10.11, 11.8).

Below them is no snapshot but rows that are share-locked as they are read (`locked_rows`): what is logged and not seen
yet still holds its own locks, and is waited for; tables of MyISAM and the like are locked by each statement anyhow.
Invariant: all that is logged up to L is seen, and nothing that is logged behind H. A position that is read before a
snapshot proves nothing on MySQL: it names commits which the snapshot does not show (`settled_end` waits for those: a
transaction owns its GTID from before it is logged until it is visible). SELECT, REPLICATION SLAVE and
REPLICATION CLIENT (MariaDB: BINLOG MONITOR) are the rights that it takes.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

from rplctl import mysql_errors as er
from rplctl.errors import SourceError, WaitTimeout
from rplctl.event.gtid import MariadbGtidState, MysqlGtidSet
from rplctl.position import BinlogPosition
from rplctl.source.survey import Query, answered_place, executed_gtids, log_end
from rplctl.sql_text import NOTHING, Grammar, Sql, float_literal, matched, text_literal, utf8_literal, written

_AGAIN_S = 0.01
_BINARY_LOG_STATUS = (8, 4)  # MySQL's version that took SHOW MASTER STATUS away
_PASSING = frozenset(  # of a lock that is not got: the row's, or because the table has changed
    {
        *(er.LOCK_WAIT_TIMEOUT, er.LOCK_DEADLOCK, er.QUERY_TIMEOUT),
        *(er.NO_SUCH_TABLE, er.BAD_FIELD_ERROR, er.KEY_DOES_NOT_EXITS, er.TABLEACCESS_DENIED_ERROR),
    }
)
_GTID = re.compile(r"GTID_NEXT\s*=\s*'([^']+)'")
_SNAPSHOT = written("START TRANSACTION WITH CONSISTENT SNAPSHOT")


class Step(Enum):
    EXACT = "exact"
    GTID_WINDOW = "GTID window"
    SHARE_LOCK = "share lock"


@dataclass(frozen=True, slots=True)
class LogPlace:
    """A place of the source's log. `gtids`: all that is logged before it, in the vendor's notation; '' = not known.
    Of a GTID window L's position is some place that all before is seen, and H has no GTIDs: one that is visible may not
    be in gtid_executed yet.
    """

    position: BinlogPosition | None
    gtids: str = ""


@dataclass(frozen=True, slots=True)
class RowLock:
    """A SELECT that share-locks a row. `finds`: whether the row must be there, else it was deleted."""

    sql: Sql
    finds: bool


class Snapshot:
    """`low`: L. `locking`: what each SELECT must end with; then there is no transaction, each SELECT is its own."""

    def __init__(self, query: Query, low: LogPlace, high: LogPlace | None, locking: Sql = NOTHING) -> None:
        self._query, self._high = query, high
        self.low, self.locking = low, locking

    def high(self) -> LogPlace:
        """H; asked for when all rows have been read. Raises SourceError."""
        return self._high or LogPlace(log_end(self._query))


def step_of(query: Query) -> Step:
    """The highest that the server has. Raises SourceError."""
    if query(written("SHOW STATUS LIKE 'binlog_snapshot_file'")):
        return Step.EXACT
    modes = query(written("SHOW GLOBAL VARIABLES LIKE 'gtid_mode'"))
    return Step.GTID_WINDOW if modes and str(modes[0][1]).upper() == "ON" else Step.SHARE_LOCK


def orders_commits(query: Query) -> bool:
    """True if MySQL shows transactions in the order of its log."""
    return any(
        str(value).upper() == "ON" for _, value in query(written("SHOW GLOBAL VARIABLES LIKE 'binlog_order_commits'"))
    )


def lets_ddl_pass(query: Query, step: Step) -> bool:
    """True if a later snapshot of the session blocks no DDL between two of its statements. Must not be called within a
    transaction.
    """
    if step is not Step.EXACT or "mariadb" not in str(query(written("SELECT @@version"))[0][0]).lower():
        return True
    try:
        query(written("SET SESSION sql_log_bin=0"))
    except SourceError as error:
        if error.errno != er.SPECIFIC_ACCESS_DENIED_ERROR:
            raise
        return False
    return True


@contextmanager
def snapshot(
    query: Query, step: Step, applied: LogPlace, timeout_s: float, lock: Callable[[], RowLock | None] | None = None
) -> Iterator[Snapshot]:
    """Within the block `query` sees the source as at one time, all up to `applied`, and all that was logged when it was
    called (but for the exact step, which says what it sees, and the share lock, which sees what the row that `lock`
    gives stands for). The transaction ends with the block.

    Raises WaitTimeout when the source does not show `applied` in time; SourceError, 1205 when `lock` proves nothing:
    its row is gone, or locked by somebody else for long.
    """
    deadline = time.monotonic() + timeout_s
    query(written("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
    try:
        if step is Step.EXACT:
            yield _exact(query, applied, deadline)
        elif step is Step.GTID_WINDOW:
            yield _window(query, applied, deadline)
        else:
            assert lock is not None
            yield _behind(query, lock)
    finally:
        query(written("ROLLBACK"))


@contextmanager
def locked_rows(query: Query, step: Step, timeout_s: float) -> Iterator[Snapshot]:
    """Within the block each row is seen as at some time between L and H. Raises WaitTimeout, SourceError."""
    low = settled_end(query, step, timeout_s)
    query(written("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"))
    try:
        yield Snapshot(query, low, None, written(" LOCK IN SHARE MODE"))
    finally:
        query(written("ROLLBACK"))


def _exact(query: Query, applied: LogPlace, deadline: float) -> Snapshot:
    """Delivered comes before visible: opened again until it shows what is applied."""
    while True:
        query(_SNAPSHOT)
        found = {
            str(name).lower(): str(value) for name, value in query(written("SHOW STATUS LIKE 'binlog_snapshot_%'"))
        }
        name = found.get("binlog_snapshot_file", "")
        if not name:
            raise SourceError("the source does not say which position its snapshot has: its binary log is off")
        position = answered_place(name, found.get("binlog_snapshot_position"))
        place = LogPlace(position, found.get("binlog_snapshot_gtid_executed", "") or gtids_at(query, position))
        if (applied.position is None or not position.is_before(applied.position)) and _shows(place, applied):
            return Snapshot(query, place, place)
        query(written("ROLLBACK"))
        if time.monotonic() > deadline:
            raise _too_late(applied)
        time.sleep(_AGAIN_S)


def gtids_at(query: Query, position: BinlogPosition) -> str:
    """MariaDB's GTID position there."""
    (gtids,) = query(written("SELECT BINLOG_GTID_POS({}, {})", utf8_literal(position.log_name), position.log_pos))[0]
    return str(gtids or "")


def _shows(place: LogPlace, applied: LogPlace) -> bool:
    """By MariaDB's GTIDs; of a domain that the source does not have nothing is asked."""
    if ":" in place.gtids + applied.gtids:
        return True
    there = MariadbGtidState.parse(place.gtids)
    wanted = MariadbGtidState.parse(applied.gtids).domains
    return all(there.contains(domain, number) for domain, (_, number) in wanted.items() if domain in there.domains)


def _window(query: Query, applied: LogPlace, deadline: float) -> Snapshot:
    if applied.gtids:
        patience = float_literal(round(max(0.001, deadline - time.monotonic()), 3))
        wanted = matched(Grammar.MYSQL_GTIDS, applied.gtids)
        (late,) = query(written("SELECT WAIT_FOR_EXECUTED_GTID_SET('{}', {})", wanted, patience))[0]
        if late:
            raise _too_late(applied)
    settled = log_end(query)
    _wait_until_stable(query, deadline)
    (gtids,), (name, offset, *_) = query(written("SELECT @@GLOBAL.gtid_executed"), _SNAPSHOT, _status(query))
    low = LogPlace(settled, str(gtids).replace("\n", ""))
    return Snapshot(query, low, LogPlace(answered_place(name, offset)))


def logged_gtids(query: Query, begin: BinlogPosition, end: BinlogPosition) -> MysqlGtidSet | None:
    """Return the GTIDs of the transactions that the server has logged between the two positions. None if the positions
    are in two files.
    """
    if begin.log_name != end.log_name:
        return None
    rows = query(written("SHOW BINLOG EVENTS IN {} FROM {}", text_literal(begin.log_name), begin.log_pos))
    texts = (_GTID.search(str(info)) for _, at, kind, _, _, info in rows if kind == "Gtid" and at < end.log_pos)
    return MysqlGtidSet.parse(",".join(text[1] for text in texts if text is not None))


def _behind(query: Query, last: Callable[[], RowLock | None]) -> Snapshot:
    """Return a snapshot that has the row's transaction and all transactions before it. The lock is released as soon as
    it is granted.
    """
    status = _status(query)
    lock = last()
    if lock is None:
        raise SourceError("no row of the last change is known", errno=er.LOCK_WAIT_TIMEOUT, transient=True)
    try:
        *found, (name, offset, *_) = query(
            written("ROLLBACK"),
            written("SET SESSION innodb_lock_wait_timeout=1"),
            written("SET TRANSACTION ISOLATION LEVEL READ COMMITTED"),
            written("START TRANSACTION"),
            lock.sql,
            written("ROLLBACK"),
            _SNAPSHOT,
            status,
        )
    except SourceError as error:
        if error.errno not in _PASSING:
            raise
        raise SourceError(error.message, errno=er.LOCK_WAIT_TIMEOUT, transient=True) from error
    if lock.finds and not found:
        raise SourceError(
            "the row that the table's last change wrote no longer exists on the source",
            errno=er.LOCK_WAIT_TIMEOUT,
            transient=True,
        )
    return Snapshot(query, LogPlace(None), LogPlace(answered_place(name, offset)))


def _status(query: Query) -> Sql:
    version = tuple(map(int, re.findall(r"\d+", query(written("SELECT @@version"))[0][0])[:2]))
    if version >= _BINARY_LOG_STATUS:
        return written("SHOW BINARY LOG STATUS")
    return written("SHOW MASTER STATUS")


def settled_end(query: Query, step: Step, timeout_s: float) -> LogPlace:
    """A place near the log's end, with the GTIDs of all that is logged before it; MySQL's may have some from behind it.
    What is logged before it is seen by a snapshot that is opened from now on; by share lock, of rows that are read with
    one, and on the exact step a snapshot says whether it does. Raises WaitTimeout, SourceError.
    """
    end = log_end(query)
    if step is Step.EXACT:
        return LogPlace(end, gtids_at(query, end))
    if step is Step.SHARE_LOCK:
        return LogPlace(end)
    _wait_until_stable(query, time.monotonic() + timeout_s)
    return LogPlace(end, executed_gtids(query, of_mysql=True))


def _wait_until_stable(query: Query, deadline: float) -> None:
    """Wait until all that is logged by now is in gtid_executed, or rolled back."""
    owned = _owned(query)
    while owned:
        if time.monotonic() > deadline:
            raise WaitTimeout(
                f"transactions of the source do not end: {owned}",
                hint="do they wait for a semi-synchronous replica, or does a session hold a GTID_NEXT?",
            )
        query(written("SELECT WAIT_FOR_EXECUTED_GTID_SET('{}', 0.1)", matched(Grammar.MYSQL_GTIDS, str(owned))))
        now = _owned(query)
        owned = owned.subtract(owned.subtract(now))


def _owned(query: Query) -> MysqlGtidSet:
    """GTIDs of transactions that are under way: `UUID:NUMBER#THREAD`."""
    return MysqlGtidSet.parse(re.sub(r"#\d+", "", str(query(written("SELECT @@GLOBAL.gtid_owned"))[0][0] or "")))


def _too_late(applied: LogPlace) -> WaitTimeout:
    return WaitTimeout(
        f"the source does not show {applied.gtids or applied.position}, which the replica has applied",
        hint="is the server that is read the source itself, or a replica that lags?",
    )
