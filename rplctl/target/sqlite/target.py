"""Applies rows and DDL to a SQLite file, which has the data, the position and the table models.

Invariant: data and position commit together, also with DDL. Python's sqlite3 would commit before DDL. So the driver's
transaction handling is off (`isolation_level=None`), and this module executes BEGIN and COMMIT. With a write-ahead log,
readers do not wait for the applier. All tables are in one file, because a commit over several ATTACHed databases with
write-ahead logs is not atomic (design D5). With synchronous=FULL, a committed position survives a power cut.

MySQL's table `db`.`t` has the name "db__t" in SQLite. `ddl_type.py` describes the stored values.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import cast

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError

from rplctl import mysql_errors as er
from rplctl.errors import TargetError, target_gone
from rplctl.schema.model import TableModel
from rplctl.schema.naming import physical_name
from rplctl.schema.plan import Catalog, DdlPlan
from rplctl.schema.row_key import key_of
from rplctl.sql_run import run
from rplctl.sql_text import Sql, joined, written
from rplctl.target.base import (
    ChangeKind,
    CountMismatch,
    Row,
    RowChange,
    RowSet,
    TableChunk,
    Value,
    check_columns,
    expect_rows,
    has_one_unique_key,
    inserts_together,
    keyless_mismatch,
    no_record,
)
from rplctl.target.column_rows import values_of
from rplctl.target.ddl_parts import computed_values, quote
from rplctl.target.dialect import BEGIN, TO_WRITE
from rplctl.target.one_connection import OneConnection
from rplctl.target.sqlite.cascades import follow_foreign_keys, forget_foreign_keys
from rplctl.target.sqlite.ddl import DDL, table
from rplctl.target.sqlite.ddl_type import row_number
from rplctl.target.sqlite.driver import SqliteDriver, driver_of
from rplctl.target.sqlite.errors import integrity_error, mapped_errors, target_error
from rplctl.target.sqlite.large import BoundColumns, execute_rows
from rplctl.target.sqlite.multiset import is_all_there_is, remove_copies

CACHE_BYTES = 16 << 20  # page cache; with SQLite's default of 2 MB, a batch writes the same pages several times
BUSY_TIMEOUT_MS = 50_000  # the default of innodb_lock_wait_timeout
STEP_MS = 200  # length of one step of a wait for the write lock
_TEXTS, _LONG_TEXTS = 4096, 64  # number of cached SQL texts
_AT_ONCE = 50  # rows per INSERT; a row then takes two thirds of the time of a single INSERT
_MANY = 10 * _AT_ONCE  # with fewer rows, building the text of such an INSERT is not worthwhile
STEPS_BETWEEN_CHECKS = 50_000  # instructions of SQLite's virtual machine, a few milliseconds


def open_engine(url: str, make_folders: Callable[[], None] | None = None) -> Engine:
    """Return a SQLAlchemy engine for the file in the target's URL.

    The first connection calls `make_folders` and creates the file, if it is missing. A command that only reads
    therefore calls `is_missing` first. Raises TargetError if the path in the URL is not absolute.
    """
    path = make_url(url).database
    if not path or not os.path.isabs(path):
        raise TargetError("a SQLite target needs a file", hint="write sqlite:////absolute/path/target.db")
    was_there, is_checked = os.path.exists(path), False
    engine = create_engine(url, connect_args={"timeout": BUSY_TIMEOUT_MS / 1000}, hide_parameters=True)

    @event.listens_for(engine, "do_connect")
    def _refuse_a_new_file(*_: object) -> None:
        """Raise TargetError if the file existed before and is missing now, for example after an unmount.

        An empty file must not replace the target's file. Only the first connection of a new target creates the file.
        """
        nonlocal was_there, is_checked
        if was_there and not os.path.exists(path):
            raise TargetError(
                f"the target's file {path} does not exist any more",
                errno=er.FILE_NOT_FOUND,
                transient=True,
                hint=target_gone(path),
            )
        if not is_checked:  # afterwards, SQLite reports problems such as a read-only file system
            if make_folders is not None:
                make_folders()
            _make_file(path)
        was_there = is_checked = True

    @event.listens_for(engine, "connect")
    def _configure(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute(written("PRAGMA cache_size=-{}", CACHE_BYTES >> 10))
        except sqlite3.Error as error:
            raise target_error(error) from error

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        run(connection, connection.get_execution_options().get(BEGIN, "BEGIN"))

    return engine


def _make_file(path: str) -> None:
    """Create the file if it is missing, with mode 0600, because it may contain a password.

    An existing file is not opened. Closing its descriptor would release all fcntl locks that SQLite has on the file in
    this process, and a reader could lose its write-ahead log. Raises TargetError if the file cannot be used.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        reason = "Is a directory" if os.path.isdir(path) else "Permission denied"
        if not os.path.isfile(path) or not os.access(path, os.R_OK | os.W_OK):
            raise TargetError(
                f"cannot open the target {path}: {reason}",
                errno=er.FILE_NOT_FOUND,
                transient=True,
                hint=target_gone(path),
            ) from None
    except OSError as error:
        text = f"cannot open the target {path}: {error.strerror}"
        raise TargetError(text, errno=er.FILE_NOT_FOUND, transient=True, hint=target_gone(path)) from error


class SqliteTarget(OneConnection):
    """A SQLite file as a target (target.base.Target)."""

    kind = "sqlite"
    bulk_rows = 0
    takes_length_prefixed = False
    mapped_errors = staticmethod(mapped_errors)

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._interrupted = self._is_waiting = False

    @property
    def connection(self) -> Connection:
        if self._connection is None:
            self._connection = self.engine.connect()
            self._driver.set_progress_handler(lambda: self._interrupted, STEPS_BETWEEN_CHECKS)
        return self._connection

    @property
    def _driver(self) -> SqliteDriver:
        return driver_of(self.connection)

    def begin(self, *, foreign_keys: bool) -> None:
        connection = self.connection
        driver = self._driver
        # SQLite ignores `foreign_keys` inside a transaction, so it is set before. Violations are checked at COMMIT,
        # because net changes are applied table by table and not in the source's order.
        driver.execute(written("PRAGMA foreign_keys={}", written("ON") if foreign_keys else written("OFF")))
        self._is_waiting = True
        try:
            with mapped_errors():
                _begin_when_unlocked(connection, driver, BUSY_TIMEOUT_MS, lambda: self._interrupted)
        finally:
            self._is_waiting = False
        driver.execute(written("PRAGMA defer_foreign_keys=ON"))

    def commit(self) -> None:
        forget_foreign_keys(self._driver)
        super().commit()

    def follow_foreign_keys(self, wanted: bool, models: Mapping[tuple[str, str], TableModel]) -> bool:
        with mapped_errors():
            follow_foreign_keys(self._driver, wanted, models.values())
        return True

    def rollback(self) -> None:
        self._interrupted = False
        super().rollback()

    def fence(self, channel: str) -> None:
        """Do nothing, because SQLite permits one writer at a time. Each transaction also compares the stored position,
        and so notices a second applier.
        """

    def lock_wait(self) -> str:
        return "Waiting for the write lock of the database file" if self._is_waiting else ""

    def interrupt(self) -> None:
        """Set a flag, so that SQLite's progress handler ends the running statement. Another thread calls this method.

        The function `sqlite3_interrupt` is not used, because it has no effect between two short statements.
        """
        self._interrupted = True

    def abort(self) -> None:
        """Interrupt the running statement. This also ends a wait for a lock, so the connection can stay open."""
        self.interrupt()

    def check_table(self, model: TableModel) -> None:
        present = {row[1] for row in self._driver.execute(written("PRAGMA table_info({})", table(model)))}
        check_columns(model, present, table(model))

    def takes_multisets(self, model: TableModel) -> bool:
        return is_all_there_is(self._driver, physical_name(model.database, model.name), len(model.columns))

    def apply_chunks(self, chunks: Sequence[TableChunk], models: Mapping[tuple[str, str], TableModel]) -> None:
        work = [(chunk, models[chunk.database, chunk.table]) for chunk in chunks]
        try:
            for chunk, model in work:
                if chunk.takes_copies(model):
                    with keyless_mismatch(chunk, model, sqlite3.Error, target_error):
                        remove_copies(self._driver, model, chunk.deletes)
                    continue
                self._expect(_delete(model), chunk.absent, 0)
                self._expect(_delete(model), chunk.deletes, len(chunk.deletes))
            for chunk, model in work:
                for update in chunk.updates:
                    self._update(model, update, chunk.has_views)
            for chunk, model in work:
                with keyless_mismatch(chunk, model, sqlite3.Error, target_error):
                    for insert in chunk.inserts:
                        self._insert_rows(model, insert, chunk.has_views)
            for chunk, model in work:
                self._apply_in_order(model, chunk)
        except sqlite3.IntegrityError as error:
            raise CountMismatch(str(error)) from error
        except (sqlite3.Error, UnicodeEncodeError) as error:
            raise target_error(error) from error

    def _apply_in_order(self, model: TableModel, chunk: TableChunk) -> None:
        for change in inserts_together(chunk.ordered):
            if isinstance(change, RowSet):
                self._insert_rows(model, change, chunk.has_views)
            else:
                self.apply_change(change, model)

    def _insert_rows(self, model: TableModel, rows: RowSet, has_views: bool) -> None:
        sql, count, width = _insert(model, rows.columns), len(rows.rows), len(rows.columns)
        if has_views or count < _MANY or not width:
            self._expect(sql, rows.rows, count, BoundColumns(model=model, columns=rows.columns) if has_views else None)
            return
        at_once = max(1, min(_AT_ONCE, self._driver.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER) // width))
        values, whole = values_of(rows.rows), count - count % at_once
        step = at_once * width
        pieces = (values[at : at + step] for at in range(0, whole * width, step))
        found = self._driver.executemany(_insert_many(model, rows.columns, at_once), pieces).rowcount
        expect_rows(sql, found, whole)
        self._expect(sql, rows.rows[whole:], count - whole)

    def _expect(self, sql: Sql, rows: Sequence[Row], count: int, bound: BoundColumns | None = None) -> None:
        if rows:
            expect_rows(sql, execute_rows(self._driver, sql, rows, bound), count)

    def _update(self, model: TableModel, update: RowSet, has_views: bool) -> None:
        """Update rows, which are found by their key. `update`: the new values, followed by the key in each row.

        If rows exchange values of another unique key, an UPDATE fails. Then all rows are deleted and inserted again,
        which is possible only for complete rows with unchanged keys.
        """
        driver, key = self._driver, key_of(model)
        bound = BoundColumns(model=model, columns=update.columns, key=key) if has_views else None
        sql, count = _update_by_key(model, update.columns), len(update.rows)
        if has_one_unique_key(model):
            self._expect(sql, update.rows, count, bound)
            return
        driver.execute(written("SAVEPOINT rplctl_update"))  # costly: SQLite copies every page that changes after it
        try:
            self._expect(sql, update.rows, count, bound)
        except sqlite3.IntegrityError:
            if len(update.columns) + len(key) != len(model.columns):
                raise  # incomplete rows or changed keys: the applier continues with one transaction at a time
            driver.execute(written("ROLLBACK TO rplctl_update"))
            self._expect(_delete(model), [row[len(update.columns) :] for row in update.rows], count)
            self._expect(_insert(model, update.columns + key), update.rows, count)
        driver.execute(written("RELEASE rplctl_update"))

    def apply_change(self, change: RowChange, model: TableModel) -> None:
        try:
            found = self._run_change(change, model)
        except sqlite3.IntegrityError as error:
            raise integrity_error(error, change, model) from error
        except (sqlite3.Error, UnicodeEncodeError) as error:
            raise target_error(error) from error
        if found != 1:
            raise no_record(change.before, model)

    def _run_change(self, change: RowChange, model: TableModel) -> int:
        if change.kind is ChangeKind.INSERT:
            assert change.after is not None
            bound = BoundColumns(model=model, columns=change.after.columns)
            return execute_rows(self._driver, _insert(model, bound.columns), change.after.rows, bound)
        assert change.before is not None
        where, parameters = self._where(model, change.before)
        name = table(model)
        if change.kind is ChangeKind.DELETE:
            return self._driver.execute(written("DELETE FROM {} WHERE {}", name, where), parameters).rowcount
        assert change.after is not None
        sql = written("UPDATE {} SET {} WHERE {}", name, _assignments(model, change.after.columns), where)
        return self._driver.execute(sql, change.after.rows[0] + parameters).rowcount

    def stored_value(self, image: RowSet, column: int, model: TableModel) -> Value:
        where, parameters = self._where(model, image)
        sql = written("SELECT {} FROM {} WHERE {}", quote(model.columns[column].name), table(model), where)
        try:
            found = self._driver.execute(sql, parameters).fetchone()
        except sqlite3.Error as error:
            raise target_error(error) from error
        if found is None:
            raise no_record(image, model)
        return cast(Value, found[0])

    def _where(self, model: TableModel, image: RowSet) -> tuple[Sql, Row]:
        """Return the condition that selects the row of an image, and the parameters of the condition.

        If the image has the key, the condition compares the key. Otherwise, it compares all columns of the image and
        selects only one row, as a MySQL replica does.
        """
        at = {column: i for i, column in enumerate(image.columns)}
        key = key_of(model)
        if key and all(column in at for column in key):
            return _equal(model, key), tuple(image.rows[0][at[column]] for column in key)
        terms = [written("{} IS ?", quote(model.columns[i].name)) for i in image.columns]
        # in brackets, because SQLite limits the depth of an expression to 1,000
        match = joined(
            " AND ", (written("({})", joined(" AND ", terms[at : at + 100])) for at in range(0, len(terms), 100))
        )
        row = row_number(model.columns)
        return written("{} IN (SELECT {} FROM {} WHERE {} LIMIT 1)", row, row, table(model), match), image.rows[0]

    def execute_ddl(self, plan: DdlPlan, catalog: Catalog) -> None:
        try:
            DDL.carry_out(plan, catalog, self._driver.execute)
        except sqlite3.Error as error:
            raise target_error(error) from error


# SQL texts, one for each table and set of columns


@lru_cache(_TEXTS)
def _delete(model: TableModel) -> Sql:
    return written("DELETE FROM {} WHERE {}", table(model), _equal(model, key_of(model)))


@lru_cache(_TEXTS)
def _update_by_key(model: TableModel, columns: tuple[int, ...]) -> Sql:
    return written(
        "UPDATE {} SET {} WHERE {}", table(model), _assignments(model, columns), _equal(model, key_of(model))
    )


@lru_cache(_TEXTS)
def _insert(model: TableModel, columns: tuple[int, ...]) -> Sql:
    if not columns:
        return written("INSERT INTO {} DEFAULT VALUES", table(model))
    return _insert_of(model, columns, 1)


@lru_cache(_LONG_TEXTS)
def _insert_many(model: TableModel, columns: tuple[int, ...], rows: int) -> Sql:
    return _insert_of(model, columns, rows)


def _insert_of(model: TableModel, columns: tuple[int, ...], rows: int) -> Sql:
    names = joined(", ", (quote(model.columns[i].name) for i in _values(model, columns)))
    every = (joined(", ", _values(model, columns, 1 + row * len(columns)).values()) for row in range(rows))
    return written(
        "INSERT INTO {} ({}) VALUES {}",
        table(model),
        names,
        joined(", ", (written("({})", values) for values in every)),
    )


def _begin_when_unlocked(
    connection: Connection, driver: SqliteDriver, patience_ms: int, is_interrupted: Callable[[], bool]
) -> None:
    """Execute BEGIN IMMEDIATE, which waits for the write lock of another program.

    The wait has short steps, because STOP cannot interrupt a wait in SQLite. Raises SQLAlchemy's OperationalError if
    the lock is not free after `patience_ms`, or after STOP. Afterwards, busy_timeout is `patience_ms`.
    """
    deadline = time.monotonic() + patience_ms / 1000
    driver.execute(written("PRAGMA busy_timeout={}", STEP_MS))
    connection.execution_options(**TO_WRITE)
    try:
        while True:
            try:
                connection.begin()
                return
            except OperationalError as error:
                is_busy = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
                if not is_busy or is_interrupted() or time.monotonic() > deadline:
                    raise
    finally:
        connection.execution_options(**{BEGIN: "BEGIN"})
        driver.execute(written("PRAGMA busy_timeout={}", patience_ms))


def _values(model: TableModel, columns: Sequence[int], first: int = 1) -> dict[int, Sql]:
    """Return the SQL of the values that a row gets, by the index of the column.

    A value is a parameter, from number `first` on. If the image lacks a generated column, its value is the expression
    of the column.
    """
    given = {column: written("?{}", number) for number, column in enumerate(columns, first)}
    return given | computed_values(model, given, lambda c: given.get(c, quote(model.columns[c].name)), lambda sql: sql)


def _assignments(model: TableModel, columns: Sequence[int]) -> Sql:
    return joined(
        ", ", (written("{}={}", quote(model.columns[c].name), value) for c, value in _values(model, columns).items())
    )


def _equal(model: TableModel, columns: tuple[int, ...]) -> Sql:
    return joined(" AND ", (written("{}=?", quote(model.columns[i].name)) for i in columns))
