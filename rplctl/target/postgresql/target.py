"""Applies rows and DDL to a PostgreSQL database, in which each database of the source is a schema.

Many rows are written with COPY. DDL is part of the same transaction as the position. Invariant: data and position
commit together, also with DDL. Nothing is applied without the channel's advisory lock in the target, which this
connection has (design D4). Foreign keys are checked at COMMIT, because net changes are applied table by table. If the
source ran with foreign_key_checks=0, rplctl also turns the checks off. For this, the target's user needs the privilege
to set session_replication_role. `ddl_type.py` describes the stored values.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import cast

import psycopg
from psycopg import errors
from sqlalchemy import Connection, Engine

from rplctl import mysql_errors as er
from rplctl.errors import COPY_ALL, LOSES_CHANNEL, TargetError
from rplctl.schema.model import TableModel
from rplctl.schema.plan import Catalog, DdlPlan
from rplctl.schema.row_key import key_of
from rplctl.sql_run import run
from rplctl.sql_text import standard_literal, written
from rplctl.target.aborted import is_aborted
from rplctl.target.base import (
    CountMismatch,
    RowChange,
    RowSet,
    TableChunk,
    Value,
    another_applier,
    check_columns,
    inserts_together,
    keyless_mismatch,
    no_record,
)
from rplctl.target.ddl_parts import quote
from rplctl.target.one_connection import OneConnection
from rplctl.target.postgresql import rows as rows_sql
from rplctl.target.postgresql.bulk import RowWriter
from rplctl.target.postgresql.connection import mapped_errors, nul_in_text, target_error
from rplctl.target.postgresql.ddl import DDL
from rplctl.target.postgresql.ddl_type import table
from rplctl.target.postgresql.driver import PostgresqlDriver, driver_of
from rplctl.target.postgresql.errors import change_error, ddl_error

LOCK_WAIT = "10s"  # enough time for the server to notice that a client was killed
BULK_ROWS = 200  # if a table has at least this number of net changes, Spark tasks encode the rows
_BEGIN = written("SET CONSTRAINTS ALL DEFERRED")
_BEGIN_AT_REST = written("{}; SET LOCAL session_replication_role = replica", _BEGIN)
_IS_ALL_THERE_IS = written("""
SELECT relkind = 'r' AND NOT relhassubclass AND NOT EXISTS (SELECT FROM pg_rewrite WHERE ev_class = c.oid)
AND NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal)
AND %s = (SELECT count(*) FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped)
FROM pg_class AS c WHERE oid = to_regclass(%s)""")
_GRANT = (
    "to let the target ignore foreign keys, as the source did, run on the target: GRANT SET ON PARAMETER "
    "session_replication_role TO {}\n"
    "To continue after that, run: rplctl start"
)


class PostgresqlTarget(OneConnection):
    """A PostgreSQL database as a target (target.base.Target)."""

    kind = "postgresql"
    takes_length_prefixed = False
    loads_prepared = True
    mapped_errors = staticmethod(mapped_errors)

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._fenced: str | None = None
        self._fence_holder = 0  # the process id of the backend that last had the lock
        self._may_rest_foreign_keys = self._may_make_tables = False
        self.bulk_rows = 0
        self._foreign_keys_wanted = True
        self._rows = RowWriter(lambda: self._driver, lambda: self._may_make_tables, nul_in_text(engine))

    # connection and transaction

    @property
    def connection(self) -> Connection:
        if self._connection is None:
            with mapped_errors():
                self._connection = self.engine.connect()
            try:
                self._greet()
                if self._fenced is not None:
                    self._take_fence(self._fenced)
            except BaseException:
                self.reconnect()  # a connection without the lock must not be used
                raise
        return self._connection

    @property
    def _driver(self) -> PostgresqlDriver:
        return driver_of(self.connection)

    def _greet(self) -> None:
        """Check the database's encoding, and read the account's privileges, before the first transaction.

        Raises TargetError if the encoding is not UTF-8.
        """
        info = self._driver.info
        encoding = info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise TargetError(
                f"the target's database has the encoding {encoding}, which cannot store every text",
                errno=er.CANT_AGGREGATE_2COLLATIONS,
                hint=f"to create another database and to copy all tables into it {LOSES_CHANNEL}, run: "
                f"createdb -E UTF8 -T template0 NAME; {COPY_ALL}",
            )
        may = written("false")
        if info.server_version >= 150000:
            may = written("has_parameter_privilege('session_replication_role', 'SET')")
        with mapped_errors():
            sql = written(
                "SELECT current_setting('is_superuser') = 'on' OR {}, "
                "has_database_privilege(current_database(), 'TEMP'), quote_ident(current_user)",
                may,
            )
            found = self._driver.execute(sql).fetchone()
            self._driver.commit()
        self._may_rest_foreign_keys, self._may_make_tables, role = found or (False, False, "")
        self._role: str = role
        self.bulk_rows = BULK_ROWS if self._may_make_tables else 0

    def begin(self, *, foreign_keys: bool, xid: str = "") -> None:
        self._foreign_keys_wanted = foreign_keys
        self._rows.begin(is_to_be_prepared=bool(xid))
        try:
            with mapped_errors():
                if xid:  # the queries of check_table began a transaction, and PREPARE needs a new one
                    self._driver.rollback()
                self.connection.begin_twophase(xid) if xid else self.connection.begin()
                rests = not foreign_keys and self._may_rest_foreign_keys  # set while connecting
                self._driver.execute(_BEGIN_AT_REST if rests else _BEGIN)
        except TargetError:
            self.rollback()
            raise

    def follow_foreign_keys(self, wanted: bool, models: Mapping[tuple[str, str], TableModel]) -> bool:
        if self._may_rest_foreign_keys:
            self._rows.run(
                written("SET LOCAL session_replication_role = {}", written("origin") if wanted else written("replica"))
            )
        return self._may_rest_foreign_keys

    def prepare(self) -> None:
        with mapped_errors():
            self._rows.drop_stages()
        with self._deferred_checks():
            super().prepare()

    def commit(self) -> None:
        with self._deferred_checks():
            super().commit()

    @contextmanager
    def _deferred_checks(self) -> Iterator[None]:
        """Convert errors of foreign keys that the `with` block raises to errors with MySQL's text and a hint.

        The block commits or prepares the transaction, because PostgreSQL checks the foreign keys then.
        """
        try:
            yield
        except TargetError as error:
            if error.errno in (er.ROW_IS_REFERENCED_2, er.NO_REFERENCED_ROW_2):
                what = (
                    "add or update a child row"
                    if error.errno == er.NO_REFERENCED_ROW_2
                    else "delete or update a parent row"
                )
                hint = "" if self._foreign_keys_wanted else _GRANT.format(self._role)
                raise TargetError(
                    f"Cannot {what}: a foreign key constraint fails: {error.message}", errno=error.errno, hint=hint
                ) from error
            raise

    def rollback(self) -> None:
        if self._connection is None:
            return
        if self._connection.invalidated or self._driver.closed:
            return self.reconnect()  # the server has rolled back
        with mapped_errors():
            if (transaction := self._connection.get_transaction()) is not None:
                transaction.rollback()
            else:
                self._driver.rollback()  # ends the transaction that `check_table` began

    def fence(self, channel: str) -> None:
        self._fenced, self._fence_holder = channel, 0
        self.reconnect()  # from now on, every new connection first takes the lock
        _ = self.connection

    def _take_fence(self, channel: str) -> None:
        """Take the channel's lock in the target, so that no other applier can work on the channel (design D4).

        First terminate this applier's last connection, which may still be open on the server after a network fault.
        Raises LockBusy if another connection has the lock, and TargetError if the target reports an error.
        """
        number = int.from_bytes(hashlib.sha256(f"rplctl:{channel}".encode()).digest()[:8], "big", signed=True)
        driver = self._driver
        try:
            driver.execute(
                written(
                    "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid = %s"
                    " AND (classid::bigint << 32) | objid::bigint = %s AND granted"
                ),
                (self._fence_holder, number),
            )
            driver.execute(written("SET LOCAL lock_timeout = {}", standard_literal(LOCK_WAIT)))
            driver.execute(written("SELECT pg_advisory_lock({})", number))
            driver.commit()
        except errors.LockNotAvailable:
            driver.rollback()
            raise another_applier(channel, f"advisory lock {number}") from None
        except psycopg.Error as error:
            raise target_error(error) from None
        self._fence_holder = driver.info.backend_pid

    def lock_wait(self) -> str:
        if self._connection is None:
            return ""
        sql = written(
            "SELECT wait_event FROM pg_stat_activity WHERE pid = {} AND wait_event_type = 'Lock'",
            driver_of(self._connection).info.backend_pid,
        )
        with mapped_errors(), self.engine.connect() as connection:
            event = run(connection, sql).scalar()
        return f"Waiting for a lock of another session ({event})" if event else ""

    def interrupt(self) -> None:
        if self._connection is not None:
            driver = driver_of(self._connection)
            try:
                driver.cancel_safe(timeout=2)
            except psycopg.Error:
                return  # an unreachable server is not an error

    def is_idle(self) -> bool:
        """True except after `abort`, which ends the connections.

        A rollback in PostgreSQL takes effect at once, so no further check is necessary after `rollback`.
        """
        return not is_aborted(self.engine)

    # tables

    def check_table(self, model: TableModel) -> None:
        name = table(model)
        sql = written(
            "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped"
        )
        with mapped_errors():
            present = {row[0] for row in self._driver.execute(sql, (name,))}
        check_columns(model, present, name)

    def execute_ddl(self, plan: DdlPlan, catalog: Catalog) -> None:
        try:
            with mapped_errors():
                self._rows.drop_stages()
                DDL.carry_out(plan, catalog, lambda sql: self._driver.execute(sql))
        except TargetError as error:
            raise ddl_error(error, plan) from None

    # net changes

    def takes_multisets(self, model: TableModel) -> bool:
        with mapped_errors():
            found = self._driver.execute(_IS_ALL_THERE_IS, (len(model.columns), table(model))).fetchone()
        return bool(found and found[0])

    def apply_chunks(self, chunks: Sequence[TableChunk], models: Mapping[tuple[str, str], TableModel]) -> None:
        work = [(chunk, models[chunk.database, chunk.table]) for chunk in chunks]
        try:
            for chunk, model in work:
                if chunk.bulk is not None and chunk.takes_copies(model):
                    with keyless_mismatch(chunk, model, psycopg.Error, target_error):
                        if self._acts(model, models):
                            raise CountMismatch("rows of other tables reference these rows")
                        self._rows.remove_copies(model, chunk.bulk.deletes)
                    continue
                rows = chunk.bulk or chunk
                self._rows.refuse_present(model, rows.absent)
                self._rows.delete(model, rows.deletes)
            for chunk, model in work:
                if chunk.bulk is not None:
                    may_delete = not self._acts(model, models)
                    self._rows.update_encoded(model, chunk.bulk.updates, may_delete=may_delete)
                for update in chunk.updates:
                    self._update(model, update, models)
            for chunk, model in work:
                with keyless_mismatch(chunk, model, psycopg.Error, target_error):
                    if chunk.bulk is not None:
                        self._rows.insert_encoded(model, chunk.bulk.inserts)
                    for insert in chunk.inserts:
                        self._rows.insert(model, insert)
            for chunk, model in work:
                self._apply_in_order(model, chunk.ordered)
        except psycopg.IntegrityError as error:
            raise CountMismatch(str(error)) from error
        except psycopg.Error as error:
            raise target_error(error) from error

    def _apply_in_order(self, model: TableModel, changes: Sequence[RowChange]) -> None:
        """Apply changes of a table without a key in their order. Consecutive inserts are applied together.

        Raises an error with MySQL's number 1032 if a row to change is missing.
        """
        for change in inserts_together(changes):
            if isinstance(change, RowSet):
                self._rows.insert(model, change)
            elif self._rows.run_change(change, model) != 1:
                raise no_record(change.before, model)

    def _update(self, model: TableModel, update: RowSet, models: Mapping[tuple[str, str], TableModel]) -> None:
        """Update rows, which are found by their key. `update`: the new values, followed by the key in each row.

        If rows exchange values of another unique key, an UPDATE fails. Then all rows are deleted and inserted again.
        This way is possible only for complete rows with unchanged keys, and if DELETE causes no foreign key action.
        """
        if sum(key.is_unique for key in model.keys) < 2:
            return self._rows.update_by_key(model, update)
        self._rows.run(written("SAVEPOINT rplctl_update"))
        try:
            self._rows.update_by_key(model, update)
        except errors.UniqueViolation:
            key, width = key_of(model), len(update.columns)
            if set(update.columns) & set(key) or width + len(key) != len(model.columns) or self._acts(model, models):
                raise  # incomplete or referenced rows: the applier continues with one transaction at a time
            self._rows.run(written("ROLLBACK TO SAVEPOINT rplctl_update"))
            self._rows.delete(model, [row[width:] for row in update.rows])
            self._rows.insert(model, RowSet(update.columns + key, update.rows))
        self._rows.run(written("RELEASE SAVEPOINT rplctl_update"))

    def _acts(self, model: TableModel, models: Mapping[tuple[str, str], TableModel]) -> bool:
        """True if a DELETE of the table's rows would also change rows of other tables, by foreign key actions."""
        if not self._foreign_keys_wanted and self._may_rest_foreign_keys:
            return False
        return any(
            (key.ref_database, key.ref_table) == (model.database, model.name) and key.acts
            for other in models.values()
            for key in other.foreign_keys
        )

    # one change

    def apply_change(self, change: RowChange, model: TableModel) -> None:
        """Apply the change of one row. An error aborts the transaction, except if the caller has set a savepoint.

        Raises TargetError with MySQL's number if PostgreSQL refuses the row or if the row is missing.
        """
        try:
            found = self._rows.run_change(change, model)
        except (psycopg.Error, TargetError) as error:
            raise change_error(error, change, model) from error
        if found != 1:
            raise no_record(change.before, model)

    def stored_value(self, image: RowSet, column: int, model: TableModel) -> Value:
        where, values = self._rows.where(model, image, 0)
        name = rows_sql.escaped(quote(model.columns[column].name))
        sql = written("SELECT {}::text FROM {} WHERE {}", name, rows_sql.escaped(table(model)), where)
        with mapped_errors():
            found = self._driver.execute(sql, values).fetchone()
        if found is None:
            raise no_record(image, model)
        return cast(Value, found[0])
