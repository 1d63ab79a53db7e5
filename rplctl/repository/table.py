"""TABLE: the records are rows of slave_master_info and slave_relay_log_info in the target (WL#2775 `Rpl_info_table`).

Invariant: one transaction writes a whole row. An unforced flush writes nothing before the period of the `sync_…` option
is reached ("there is no optimistic write to a table", REQ-3). The applier does not move its position by `flush`. It
uses `compare_and_swap`, in the transaction that changes the data (REQ-5, design D3, D4).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import cache, cached_property, partial
from typing import Any, Generic

from sqlalchemy import Connection, Engine, Select, Table, Update, bindparam, delete, insert, select, update
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, SQLAlchemyError

from rplctl import mysql_errors as er
from rplctl.durable import Guard
from rplctl.errors import TargetError
from rplctl.info import RelayLogInfo
from rplctl.repository.base import Info, RepositoryKind
from rplctl.repository.fields import Field, FieldError
from rplctl.repository.record import RELAY_LOG_INFO, Record
from rplctl.repository.tables import (
    KEY,
    NUMBER_OF_LINES,
    check_definition,
    has_channels,
    info_tables,
    is_known_to_lack,
    qualified_name,
    table_exists,
)
from rplctl.sql_run import ask
from rplctl.sql_text import written
from rplctl.target.asked_once import answer
from rplctl.target.dialect import TO_WRITE
from rplctl.target.registry import dialect_of

_FIELDS = {field.column: field for field in RELAY_LOG_INFO.fields}
_MOVING = {
    name: _FIELDS[name]
    for name in ("Relay_log_name", "Relay_log_pos", "Master_log_name", "Master_log_pos", "Gtid_executed")
}
_INSERTS_AT_MOST = 10  # several new channels may insert their rows at the same time
_EXPECTED = [_FIELDS[name] for name in (KEY, "Relay_log_name", "Relay_log_pos")]


class TableRepository(Generic[Info]):
    """A repository that stores the record of one channel in one row of the record's table."""

    kind = RepositoryKind.TABLE

    def __init__(self, record: Record[Info], channel: str, engine: Callable[[], Engine], sync_period: int) -> None:
        self._record: Record[Info] = record
        self._channel = channel
        self._open_engine = engine
        self._sync_period = sync_period
        self._events_since_write = 0
        self._is_checked = False
        self.guard: Guard = nullcontext

    @property
    def where(self) -> str:
        return qualified_name(self._open_engine().dialect.name, self._record.table)

    def exists(self) -> bool:
        """True if there is a row with data. False if there is no table or no database file.

        Raises RplError 1201 (MasterInfo) or 1872 (RelayLogInfo) if the table is damaged.
        """
        info = self.stored()
        return info is not None and self._record.has_data(info)

    def read(self) -> Info:
        with self._connect() as connection:
            info = self._select(connection)
        if info is None:
            raise self._record.missing(self._channel, f"{self.where} has no row for it")
        return info

    def stored(self) -> Info | None:
        """Return the record. Return None if the row, the table or the database file is missing.

        A record that RESET cleared is returned, too.
        """
        if is_file_missing(engine := self._open_engine()) or is_known_to_lack(engine, self._record):
            return None
        with self._connect(check=False) as connection:
            if not table_exists(connection, self._record):
                return None
            self._check(connection)
            return self._select(connection)

    def flush(self, info: Info, *, force: bool, events: int = 1) -> None:
        """Write the record if `force` is set, or if the number of events since the last write reaches the `sync_…`
        option.

        A RelayLogInfo in a table with transactions is always written, whatever `sync_relay_log_info` is.
        """
        self._events_since_write += events
        due = force or 0 < self._sync_period <= self._events_since_write
        if not due and not self._is_always_written:
            return
        self._write(replace(info, channel_name=self._channel))
        self._events_since_write = 0

    def _write(self, info: Info) -> None:
        """Write the row. Start again if another channel's new row has taken the chosen Master_id in the meantime."""
        for attempt in range(1, _INSERTS_AT_MOST + 1):
            with self._connect(write=True) as connection:
                self._check(connection)
                try:
                    return self._upsert(connection, info)
                except IntegrityError:
                    if attempt == _INSERTS_AT_MOST:
                        raise

    def remove(self) -> None:
        if is_file_missing(self._open_engine()):
            return
        with self._connect(write=True, check=False) as connection:
            if table_exists(connection, self._record):
                table = self._table(connection)
                connection.execute(delete(table).where(table.c[KEY] == self._channel))

    def is_transactional(self) -> bool:
        """True if the table's engine has transactions.

        The server is asked on each call, because a privileged user may run ALTER TABLE … ENGINE (REQ-1).
        """
        engine, table = self._open_engine(), self._record.table

        def ask() -> bool:
            with self._connect() as connection:
                return dialect_of(engine.dialect.name).is_crash_safe(connection, table)

        return answer(engine, f"is {table} crash-safe", ask)

    @cached_property
    def _is_always_written(self) -> bool:
        return self._record is RELAY_LOG_INFO and self.is_transactional()

    def _table(self, connection: Connection) -> Table:
        return info_tables(connection.dialect.name)[self._record.table]

    def _check(self, connection: Connection) -> None:
        """Check the definition of the table on the first call for this object. Later calls do nothing.

        This is sufficient because the definition does not change while the channel runs.
        """
        if not self._is_checked:
            definition = partial(check_definition, connection, self._record, self._channel)
            answer(connection.engine, f"definition of {self._record.table}", definition)
            self._is_checked = True

    def _select(self, connection: Connection) -> Info | None:
        table = self._table(connection)
        rows = connection.execute(select(table).where(table.c[KEY] == self._channel)).all()
        if not rows:
            return None
        return record_of_row(connection.dialect.name, self._record, self._channel, rows[0])

    def _upsert(self, connection: Connection, info: Info) -> None:
        table = self._table(connection)
        values = self._values(info)
        del values["Master_id"]  # an existing row keeps its own
        mine = table.c[KEY] == self._channel
        is_there = connection.execute(select(table.c[KEY]).where(mine)).first() is not None
        # an UPDATE without a row would lock the gap for other channels' new rows (InnoDB)
        if not is_there or connection.execute(update(table).where(mine).values(values)).rowcount == 0:
            values["Master_id"] = _free_master_id(connection, table, info.master_id)
            connection.execute(insert(table).values(values))

    def _values(self, info: Info) -> dict[str, Any]:
        try:
            values = {f.column: f.notation.to_column(getattr(info, f.name)) for f in self._record.fields}
        except FieldError as error:
            raise self._record.damaged(self._channel, str(error)) from None
        return {NUMBER_OF_LINES: self._record.number_of_lines, **values}

    @contextmanager
    def _connect(self, *, write: bool = False, check: bool = True) -> Iterator[Connection]:
        """Open a connection, and a transaction for the block, which is committed at the end of the block.

        `write`: True if the block changes rows. `check`: True to check the table's definition first. Errors of the
        driver leave the block as TargetError, without the parameters of the statement.
        """
        engine = self._open_engine()
        with mapped_errors(self.where, self._channel), engine.connect() as plain:
            connection = plain.execution_options(**TO_WRITE) if write else plain
            transaction = connection.begin()
            with transaction:
                if check:
                    self._check(connection)
                yield connection
                if write:  # the guard is only held during COMMIT, and not while a statement waits for a lock
                    with self.guard():
                        transaction.commit()


@contextmanager
def open_reader(engine: Engine) -> Iterator[TableReader]:
    """Open a connection on which the caller reads both tables many times.

    On a server, each read is one statement without a transaction. On SQLite, a read has a transaction, which costs
    nothing. Raises TargetError if the target does not answer.
    """
    with ExitStack() as opened:
        with mapped_errors(engine.dialect.name, None):
            connection = opened.enter_context(engine.connect())
            if not dialect_of(engine.dialect.name).is_one_file:
                connection = connection.execution_options(isolation_level="AUTOCOMMIT")
        yield TableReader(connection)


class TableReader:
    """A connection on which both tables are read, for snapshot_reader.py.

    One statement reads the rows of all channels of a table.
    """

    def __init__(self, connection: Connection) -> None:
        self._dialect = connection.dialect.name
        self._connection = connection

    def check(self, record: Record[Any], channel: str) -> bool:
        """True if the table of this record exists in the target.

        Raises RplError 1201 (MasterInfo) or 1872 (RelayLogInfo), with the name of the channel, if rplctl cannot use the
        table.
        """
        with mapped_errors(qualified_name(self._dialect, record.table), None):
            is_there = table_exists(self._connection, record)
            if is_there:
                check_definition(self._connection, record, channel)
        return is_there

    def rows(self, record: Record[Any]) -> dict[str, Any]:
        """Return the rows by channel name in lower case. The values are those that the driver returned."""
        table = info_tables(self._dialect)[record.table]
        with mapped_errors(qualified_name(self._dialect, record.table), None):
            found = self._connection.execute(select(table)).all()
        key = list(table.c.keys()).index(KEY)
        return {str(row[key]).casefold(): row for row in found}

    def parsed(self, record: Record[Info], channel: str, row: Any) -> Info | None:
        """Return the record in this row, or None if the row is None.

        Raises RplError 1201 (MasterInfo) or 1872 (RelayLogInfo) for an invalid value.
        """
        return None if row is None else record_of_row(self._dialect, record, channel, row)

    def end(self) -> None:
        """End the database snapshot of the reads so far, so that later reads see newer rows."""
        self._connection.rollback()


def record_of_row(dialect: str, record: Record[Info], channel: str, row: Sequence[Any]) -> Info:
    """Return the record in a row, which has Number_of_lines first and then the record's fields in their order.

    Raises RplError 1201 (MasterInfo) or 1872 (RelayLogInfo) if the row is damaged.
    """
    return _record_of(dialect, record, channel, zip(record.fields, row[1:], strict=True))


def _record_of(dialect: str, record: Record[Info], channel: str, found: Iterable[tuple[Field, Any]]) -> Info:
    values: dict[str, Any] = {}
    for field, stored in found:
        try:
            values[field.name] = field.notation.from_column(stored)
        except FieldError as error:
            where = qualified_name(dialect, record.table)
            repair = f"UPDATE {where} SET {field.column} = …; then run: rplctl check"
            raise record.damaged(channel, f"{where}.{field.column}: {error}", repair) from None
    return replace(record.empty(channel), **values | {"channel_name": channel})


def stored_relay_log_info(connection: Connection, channel: str) -> RelayLogInfo | None:
    """Return the positions in the channel's row, read in the caller's transaction.

    Return None if there is no row or if the row has no positions. Raises RplError 1201 (MasterInfo) or 1872
    (RelayLogInfo) if the row is damaged. Errors of the driver are not converted.
    """
    dialect = connection.dialect.name
    row = connection.execute(_positions(dialect), {"channel": channel}).first()
    if row is None:
        return None
    info = _record_of(dialect, RELAY_LOG_INFO, channel, zip(_MOVING.values(), row, strict=True))
    return info if RELAY_LOG_INFO.has_data(info) else None


def compare_and_swap(connection: Connection, expected: RelayLogInfo, new: RelayLogInfo) -> bool:
    """Move the executed position in the caller's transaction. Return False if another process has moved it (design D4).

    The row must still have the relay log position of `expected`, so that the update changes exactly one row. Otherwise,
    the result is False and the caller must roll back. If `expected` has no position, the first row is inserted. Only
    the positions are written, so that settings that an operator has changed in the row are kept. Errors of the driver
    are not converted, because the caller knows the error numbers of the target.
    """
    table = info_tables(connection.dialect.name)[RELAY_LOG_INFO.table]
    given = {f"old_{f.column}": f.notation.to_column(getattr(expected, f.name)) for f in _EXPECTED}
    given |= {f"new_{f.column}": f.notation.to_column(getattr(new, f.name)) for f in _MOVING.values()}
    if connection.execute(_swap(connection.dialect.name), given).rowcount == 1:
        return True
    if RELAY_LOG_INFO.has_data(expected):
        return False
    if connection.execute(select(table.c[KEY]).where(table.c[KEY] == expected.channel_name)).first():
        return False
    fresh = {f.column: f.notation.to_column(getattr(new, f.name)) for f in RELAY_LOG_INFO.fields}
    fresh["Master_id"] = _free_master_id(connection, table, new.master_id)
    try:
        connection.execute(insert(table).values({NUMBER_OF_LINES: RELAY_LOG_INFO.number_of_lines, **fresh}))
    except IntegrityError:  # another committer inserted first
        return False
    return True


# The next two functions are cached, because each transaction executes their statements.


@cache
def _positions(dialect: str) -> Select[Any]:
    table = info_tables(dialect)[RELAY_LOG_INFO.table]
    return select(*(table.c[name] for name in _MOVING)).where(table.c[KEY] == bindparam("channel"))


@cache
def _swap(dialect: str) -> Update:
    table = info_tables(dialect)[RELAY_LOG_INFO.table]
    same = (table.c[f.column] == bindparam(f"old_{f.column}") for f in _EXPECTED)
    return update(table).where(*same).values({name: bindparam(f"new_{name}") for name in _MOVING})


def stored_channels(engine: Engine, record: Record[Any]) -> list[str]:
    """Return the names of the channels that have a row, or [] if there is no table or database file.

    Raises TargetError if the target reports an error.
    """
    with _read(engine, record) as connection:
        if connection is None:
            return []
        if not has_channels(connection, record):
            return channels_of_ids(_ids(connection, record))
        column = info_tables(engine.dialect.name)[record.table].c[KEY]
        return [str(name) for name in connection.execute(select(column)).scalars()]


def stored_ids(engine: Engine, record: Record[Any]) -> list[int]:
    """Return the Master_id of every row, or [] if there is no table or database file.

    Raises TargetError if the target reports an error.
    """
    with _read(engine, record) as connection:
        return _ids(connection, record) if connection is not None else []


@contextmanager
def _read(engine: Engine, record: Record[Any]) -> Iterator[Connection | None]:
    """Open a transaction in which the block may read the table, whatever layout the table has.

    Yield None if the table or the database file is missing.
    """
    if is_file_missing(engine):
        yield None
        return
    with mapped_errors(qualified_name(engine.dialect.name, record.table), None), engine.connect() as connection:
        with connection.begin():
            yield connection if table_exists(connection, record) else None


def _ids(connection: Connection, record: Record[Any]) -> list[int]:
    name = dialect_of(connection.dialect.name).own_name(record.table)
    return [int(n) for n in ask(connection, written("SELECT Master_id FROM {}", name)).scalars()]


def channels_of_ids(ids: list[int]) -> list[str]:
    """Return the channel names for rows in the layout of WL#2775, which has no channel names.

    The names are those that the upgrade of the layout uses: '' for the smallest Master_id, and `master-ID` for the
    others.
    """
    return [f"master-{id}" if number else "" for number, id in enumerate(sorted(ids))]


def is_file_missing(engine: Engine) -> bool:
    """True if the target is a SQLite file that does not exist yet.

    The caller then executes no query, because a query would create this file.
    """
    return dialect_of(engine.dialect.name).is_missing(engine)


@contextmanager
def mapped_errors(where: str, channel: str | None) -> Iterator[None]:
    """Turn the exceptions of SQLAlchemy in this block into TargetError.

    The text of SQLAlchemy's exceptions shows the parameters of the statement, which may contain a password.
    """
    try:
        yield
    except DBAPIError as error:
        reason = " ".join(str(error.orig).split())  # the text of PostgreSQL has several lines
        number = re.match(r"\((\d+),", reason)
        if number:
            errno = int(number[1])
        else:  # errors of PostgreSQL have a SQLSTATE, unless the connection failed
            errno = 0 if getattr(error.orig, "sqlstate", "") is not None else er.CR_CONN_HOST_ERROR
        transient = error.connection_invalidated or _may_pass(error, errno)
        raise TargetError(
            f"{where}: {reason}",
            errno=errno,
            channel=channel,
            transient=transient,
            hint="to check the channel and its target, run: rplctl check",
        ) from None
    except SQLAlchemyError as error:
        raise TargetError(
            f"{where}: {type(error).__name__}",
            channel=channel,
            hint="to check the channel and its target, run: rplctl check",
        ) from None


def _may_pass(error: DBAPIError, errno: int) -> bool:
    """True if the error is transient: the server is unreachable or overloaded, or a lock is held.

    MySQL reports these errors by number, PostgreSQL and SQLite by the class of the exception.
    """
    if errno:
        return errno in er.TRANSIENT or getattr(error.orig, "is_refusal", False)
    reason = str(error.orig)
    is_sqlite = "sqlite3" in type(error.orig).__module__
    return isinstance(error, OperationalError) and (not is_sqlite or "locked" in reason or "busy" in reason)


def _free_master_id(connection: Connection, table: Table, wanted: int) -> int:
    """Return the Master_id for a new row: the wanted one, or 1 above the highest one in the table (WL#2775 REQ-2).

    The wanted one is 0 for a record that has none. Another channel's row may have it if the record comes from a file:
    the channels of another instance with the same target are not known to this instance.
    """
    found = connection.execute(select(table.c.Master_id)).scalars().all()
    return wanted if wanted and wanted not in found else max(found, default=0) + 1
