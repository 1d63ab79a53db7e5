"""Opens snapshots of a live source at a known position of its binary log, without locking a whole table.

A snapshot is a transaction of the source that sees one consistent state. Two positions limit this state. The snapshot
sees everything that is logged before L, the low watermark. It sees nothing that is logged after H, the high watermark.
There are three methods:

    exact         For MariaDB and Percona Server. The source reports the position of a consistent snapshot in
                  `binlog_snapshot_*`. L and H are this position.
    GTID window   For MySQL with GTIDs. L is gtid_executed before the snapshot, H is the end of the log after the
                  start of the snapshot. One packet has all three queries, so the network latency does not make the
                  window larger.
    share lock    For MySQL without GTIDs. L is the transaction that wrote a row, which the caller knows from the log. A
                  separate transaction share-locks this row before the snapshot. InnoDB makes a transaction visible
                  before it releases its locks, in the order of the log if binlog_order_commits=ON. So the snapshot sees
                  this transaction and all earlier ones. H is the same as for GTIDs.

A snapshot keeps a metadata lock of each table that it reads. On MySQL, a rollback to a savepoint releases these locks.
On MariaDB, such a rollback releases them only in a session that does not log (`sql_log_bin=0`, which needs BINLOG ADMIN
or SUPER). Otherwise, DDL waits until the snapshot ends, and all later statements on the table wait for the DDL (seen on
10.5, 10.11, 11.8).

For tables without snapshots, `locked_rows` share-locks the rows during the read. A transaction that is logged but not
yet visible holds its own locks, so the read waits for it. In MyISAM and similar engines, a statement locks its tables
anyway.

On MySQL, the end of the log may include commits that a later snapshot does not see yet. So `settled_end` waits for
these commits: a transaction owns its GTID from before it is logged until it is visible. The account needs SELECT,
REPLICATION SLAVE and REPLICATION CLIENT (on MariaDB, BINLOG MONITOR).
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
from rplctl.source.survey import Ask, answered_place, executed_gtids, log_end
from rplctl.sql_text import NOTHING, Grammar, Sql, float_literal, matched, text_literal, utf8_literal, written

_AGAIN_S = 0.01
_BINARY_LOG_STATUS = (8, 4)  # the MySQL version that removed SHOW MASTER STATUS
_PASSING = frozenset(  # errors after which the copy tries again: the row is locked, or its table was changed
    {
        *(er.LOCK_WAIT_TIMEOUT, er.LOCK_DEADLOCK, er.QUERY_TIMEOUT),
        *(er.NO_SUCH_TABLE, er.BAD_FIELD_ERROR, er.KEY_DOES_NOT_EXITS, er.TABLEACCESS_DENIED_ERROR),
    }
)
_TRIES_AGAIN = "the copy tries again by itself. To see its state, run: rplctl show-clone"
_GTID = re.compile(r"GTID_NEXT\s*=\s*'([^']+)'")
_SNAPSHOT = written("START TRANSACTION WITH CONSISTENT SNAPSHOT")


class SnapshotKind(Enum):
    EXACT = "exact"
    GTID_WINDOW = "GTID window"
    SHARE_LOCK = "share lock"


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """A position in the source's log, and the GTIDs of all transactions before it.

    `gtids`: in the notation of MySQL or MariaDB; '' = unknown. With the method GTID window, `position` of L may be
    earlier than `gtids` of L, but everything before `position` is visible. H has no GTIDs, because a visible
    transaction may not be in gtid_executed yet.
    """

    position: BinlogPosition | None
    gtids: str = ""


@dataclass(frozen=True, slots=True)
class RowLock:
    """A SELECT that share-locks one row, for the method share lock.

    `finds`: True if the SELECT must find the row, False if the row was deleted.
    """

    sql: Sql
    finds: bool


class Snapshot:
    """An open snapshot, or a read with locked rows. `low`: the low watermark L.

    `locking`: the clause that each SELECT must have at its end. It is empty for a snapshot, and locks the rows for a
    read without a snapshot.
    """

    def __init__(self, query: Ask, low: SourcePosition, high: SourcePosition | None, locking: Sql = NOTHING) -> None:
        self._query, self._high = query, high
        self.low, self.locking = low, locking

    def high(self) -> SourcePosition:
        """Return the high watermark H. The caller must have read all rows before.

        Raises SourceError if the source reports an error.
        """
        return self._high or SourcePosition(log_end(self._query))


def step_of(query: Ask) -> SnapshotKind:
    """Query the server, and return the best snapshot method that it supports.

    Raises SourceError if the source reports an error.
    """
    if query(written("SHOW STATUS LIKE 'binlog_snapshot_file'")):
        return SnapshotKind.EXACT
    modes = query(written("SHOW GLOBAL VARIABLES LIKE 'gtid_mode'"))
    return SnapshotKind.GTID_WINDOW if modes and str(modes[0][1]).upper() == "ON" else SnapshotKind.SHARE_LOCK


def orders_commits(query: Ask) -> bool:
    """True if the MySQL server makes transactions visible in the order of its log (binlog_order_commits=ON)."""
    return any(
        str(value).upper() == "ON" for _, value in query(written("SHOW GLOBAL VARIABLES LIKE 'binlog_order_commits'"))
    )


def lets_ddl_pass(query: Ask, step: SnapshotKind) -> bool:
    """True if a later snapshot of the session does not block DDL between two of its statements.

    On MariaDB, the function first turns off the binary log of the session (`sql_log_bin=0`), and returns False if the
    account lacks the privilege. It must not be called within a transaction. `step`: the snapshot method.
    """
    if step is not SnapshotKind.EXACT or "mariadb" not in str(query(written("SELECT @@version"))[0][0]).lower():
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
    query: Ask,
    step: SnapshotKind,
    applied: SourcePosition,
    timeout_s: float,
    lock: Callable[[], RowLock | None] | None = None,
) -> Iterator[Snapshot]:
    """Open a snapshot for the block, in which the session `query` sees one consistent state of the source.

    `step`: the method. With the method GTID window, the snapshot sees all transactions up to `applied`, and all that
    were logged before the call. With the method exact, it sees all up to `applied`, and reports its own position. With
    the method share lock, it sees all up to the transaction that wrote the row of `lock`.

    Raises WaitTimeout if the source does not show `applied` within `timeout_s` seconds. Raises SourceError if the
    source reports an error. The error is 1205 if the row of `lock` is missing or stays locked.
    """
    deadline = time.monotonic() + timeout_s
    query(written("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
    try:
        if step is SnapshotKind.EXACT:
            yield _exact(query, applied, deadline)
        elif step is SnapshotKind.GTID_WINDOW:
            yield _window(query, applied, deadline)
        else:
            assert lock is not None
            yield _behind(query, lock)
    finally:
        query(written("ROLLBACK"))


@contextmanager
def locked_rows(query: Ask, step: SnapshotKind, timeout_s: float) -> Iterator[Snapshot]:
    """Let the session `query` read rows with locks during the block, for tables without snapshots.

    Each row is read in its state at some time between L and H. `step`: the method that the server supports for other
    tables. Raises WaitTimeout if `settled_end` does not return in time, and SourceError if the source reports an error.
    """
    low = settled_end(query, step, timeout_s)
    query(written("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"))
    try:
        yield Snapshot(query=query, low=low, high=None, locking=written(" LOCK IN SHARE MODE"))
    finally:
        query(written("ROLLBACK"))


def _exact(query: Ask, applied: SourcePosition, deadline: float) -> Snapshot:
    """Open a snapshot again and again until it shows `applied`.

    This is necessary because the source sends a transaction to its replicas before the transaction is visible.
    `deadline`: in the time of time.monotonic().
    """
    while True:
        query(_SNAPSHOT)
        found = {
            str(name).lower(): str(value) for name, value in query(written("SHOW STATUS LIKE 'binlog_snapshot_%'"))
        }
        name = found.get("binlog_snapshot_file", "")
        if not name:
            raise SourceError("the source does not report the position of its snapshot: its binary log is off")
        position = answered_place(name, found.get("binlog_snapshot_position"))
        place = SourcePosition(position, found.get("binlog_snapshot_gtid_executed", "") or gtids_at(query, position))
        if (applied.position is None or not position.is_before(applied.position)) and _shows(place, applied):
            return Snapshot(query=query, low=place, high=place)
        query(written("ROLLBACK"))
        if time.monotonic() > deadline:
            raise _too_late(applied)
        time.sleep(_AGAIN_S)


def gtids_at(query: Ask, position: BinlogPosition) -> str:
    """Return the GTIDs of a MariaDB server at this position of its binary log. Return '' if the GTIDs are unknown."""
    (gtids,) = query(written("SELECT BINLOG_GTID_POS({}, {})", utf8_literal(position.log_name), position.log_pos))[0]
    return str(gtids or "")


def _shows(place: SourcePosition, applied: SourcePosition) -> bool:
    """True if the GTIDs of `place` include the GTIDs of `applied`, in each domain that `place` has.

    The result is also True for MySQL's GTIDs, which are not compared here.
    """
    if ":" in place.gtids + applied.gtids:
        return True
    there = MariadbGtidState.parse(place.gtids)
    wanted = MariadbGtidState.parse(applied.gtids).domains
    return all(there.contains(domain, number) for domain, (_, number) in wanted.items() if domain in there.domains)


def _window(query: Ask, applied: SourcePosition, deadline: float) -> Snapshot:
    if applied.gtids:
        patience = float_literal(round(max(0.001, deadline - time.monotonic()), 3))
        wanted = matched(Grammar.MYSQL_GTIDS, applied.gtids)
        (late,) = query(written("SELECT WAIT_FOR_EXECUTED_GTID_SET('{}', {})", wanted, patience))[0]
        if late:
            raise _too_late(applied)
    settled = log_end(query)
    _wait_until_stable(query, deadline)
    (gtids,), (name, offset, *_) = query(written("SELECT @@GLOBAL.gtid_executed"), _SNAPSHOT, _status(query))
    low = SourcePosition(settled, str(gtids).replace("\n", ""))
    return Snapshot(query=query, low=low, high=SourcePosition(answered_place(name, offset)))


def logged_gtids(query: Ask, begin: BinlogPosition, end: BinlogPosition) -> MysqlGtidSet | None:
    """Return the GTIDs of the transactions that a MySQL server has logged between the two positions.

    Return None if the positions are in different files.
    """
    if begin.log_name != end.log_name:
        return None
    rows = query(written("SHOW BINLOG EVENTS IN {} FROM {}", text_literal(begin.log_name), begin.log_pos))
    texts = (_GTID.search(str(info)) for _, at, kind, _, _, info in rows if kind == "Gtid" and at < end.log_pos)
    return MysqlGtidSet.parse(",".join(text[1] for text in texts if text is not None))


def _behind(query: Ask, last: Callable[[], RowLock | None]) -> Snapshot:
    """Open a snapshot with the method share lock: it sees the transaction that wrote a row, and all earlier ones.

    `last`: a function that returns the SELECT for the row; None if the row is unknown. The lock on the row is released
    as soon as it is granted. Raises SourceError 1205 if the row is unknown, missing or locked.
    """
    status = _status(query)
    lock = last()
    if lock is None:
        raise SourceError(
            "the received events do not show a row that the last change of the tables wrote",
            errno=er.LOCK_WAIT_TIMEOUT,
            transient=True,
            hint=_TRIES_AGAIN,
        )
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
        raise SourceError(error.message, errno=er.LOCK_WAIT_TIMEOUT, transient=True, hint=_TRIES_AGAIN) from error
    if lock.finds and not found:
        raise SourceError(
            "the row that the table's last change wrote no longer exists on the source",
            errno=er.LOCK_WAIT_TIMEOUT,
            transient=True,
            hint=_TRIES_AGAIN,
        )
    return Snapshot(query=query, low=SourcePosition(None), high=SourcePosition(answered_place(name, offset)))


def _status(query: Ask) -> Sql:
    version = tuple(map(int, re.findall(r"\d+", query(written("SELECT @@version"))[0][0])[:2]))
    if version >= _BINARY_LOG_STATUS:
        return written("SHOW BINARY LOG STATUS")
    return written("SHOW MASTER STATUS")


def settled_end(query: Ask, step: SnapshotKind, timeout_s: float) -> SourcePosition:
    """Return a position near the end of the log, with the GTIDs of all transactions before it.

    A snapshot that is opened later sees everything before this position. There are two exceptions. With the method
    share lock, only rows that are read with a lock show everything, and `gtids` is ''. With the method exact, the
    snapshot reports its own position. On MySQL, `gtids` may also have some GTIDs of later transactions.
    Raises WaitTimeout if transactions of the source do not end within `timeout_s` seconds. Raises SourceError if the
    source reports an error.
    """
    end = log_end(query)
    if step is SnapshotKind.EXACT:
        return SourcePosition(end, gtids_at(query, end))
    if step is SnapshotKind.SHARE_LOCK:
        return SourcePosition(end)
    _wait_until_stable(query, time.monotonic() + timeout_s)
    return SourcePosition(end, executed_gtids(query, of_mysql=True))


def _wait_until_stable(query: Ask, deadline: float) -> None:
    """Wait until all transactions that are logged now are visible or rolled back.

    Raises WaitTimeout at the deadline, which is a time of time.monotonic().
    """
    owned = _owned(query)
    while owned:
        if time.monotonic() > deadline:
            raise WaitTimeout(
                f"transactions of the source do not end: {owned}",
                hint="on the source, end the sessions that wait for a semi-synchronous replica or own a GTID, then "
                "run the rplctl command again; to list the sessions, run there: SHOW PROCESSLIST",
            )
        query(written("SELECT WAIT_FOR_EXECUTED_GTID_SET('{}', 0.1)", matched(Grammar.MYSQL_GTIDS, str(owned))))
        now = _owned(query)
        owned = owned.subtract(owned.subtract(now))


def _owned(query: Ask) -> MysqlGtidSet:
    """Return the GTIDs of running transactions (gtid_owned), which the server prints as `UUID:NUMBER#THREAD`."""
    return MysqlGtidSet.parse(re.sub(r"#\d+", "", str(query(written("SELECT @@GLOBAL.gtid_owned"))[0][0] or "")))


def _too_late(applied: SourcePosition) -> WaitTimeout:
    return WaitTimeout(
        f"the source does not show {applied.gtids or applied.position}, which the replica has applied",
        hint="check that the server is the source, not a replica that lags: rplctl doctor",
    )
