"""Applies changes to a MySQL or MariaDB target: rows with plain SQL, and statements of the source as they are.

Invariants: one connection commits data and position, autocommit is off, and every value is stored byte for byte
(`values`). DDL commits the transaction, so the position of a batch with DDL is stored afterwards (REQ-5, commit mode
`after`). rplctl reads the table definitions from the target and does not store them (D18 is for other targets). Row
changes fire no triggers and write no history, as on any replica. For this reason, tables with triggers or system
versioning receive their rows through the BINLOG statement.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from pymysql import err
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from rplctl import mysql_errors as er
from rplctl.errors import TargetError
from rplctl.event.format_description import FormatDescription
from rplctl.event.query import Query
from rplctl.schema.affected import ServerObject
from rplctl.schema.context import DdlContext
from rplctl.schema.model import TableModel
from rplctl.schema.plan import Catalog, DdlPlan
from rplctl.schema.row_key import key_of
from rplctl.sql_run import run
from rplctl.sql_text import Sql, SqlBytes, as_bytes, word, written, written_bytes
from rplctl.target.base import (
    CountMismatch,
    Definition,
    Row,
    RowChange,
    RowSet,
    SourceStatement,
    TableChunk,
    Value,
    chunk_model,
    expect_rows,
    inserts_together,
    keyless_mismatch,
    no_record,
)
from rplctl.target.mysql import fence as mysql_fence, rows as rows_sql, statement as mysql_statement
from rplctl.target.mysql.bulk import BulkLoader
from rplctl.target.mysql.collations import Collations
from rplctl.target.mysql.connection import LoadingConnection, mapped_errors, target_error
from rplctl.target.mysql.definitions import read_definitions, read_row_states
from rplctl.target.mysql.event_replay import EventReplay
from rplctl.target.mysql.kill import Killer
from rplctl.target.mysql.large import SingleChanges
from rplctl.target.mysql.multiset import compares
from rplctl.target.mysql.session import ServerKind, Session, collations_sql, primary_key_settings
from rplctl.target.mysql.table_facts import ServerTables, read_model, without_generated_key
from rplctl.target.mysql.time_zone import TimeZones
from rplctl.target.mysql.translation import Translation, translated
from rplctl.target.mysql.values import VALUE_ERRORS, quote
from rplctl.target.one_connection import OneConnection

BULK_ROWS = 200  # for fewer net changes of a table, the temporary tables of a bulk load cost too much
_SEQUENCE = ("next_not_cached_value", "minimum_value", "maximum_value", "start_value", "increment", "cache_size")
log = logging.getLogger(__name__)


class MysqlTarget(OneConnection):
    """A connected MySQL or MariaDB target. It implements `target.base.StatementTarget` and `TwoPhaseTarget`."""

    kind = "mysql"
    mapped_errors = staticmethod(mapped_errors)

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._session: Session | None = None
        self._killer = Killer(engine)
        self._fenced: str | None = None
        self._fence_holder = 0  # the server's id of the connection that last had the lock
        self._foreign_keys = True
        self._key_policy = "STREAM"
        self._replay = EventReplay(self._send)
        self._facts = ServerTables(self._ask)
        self._bulk = BulkLoader(self._send, lambda: self._driver, self._query)
        self._single = SingleChanges(self._send, lambda: self._driver)
        self._collations = Collations(self._read_collations)
        self.server, self.server_version, self.bulk_rows = ServerKind(False, 0), "", 0
        self._zones = TimeZones(self._ask)
        self.loads_prepared = self.takes_length_prefixed = False
        self._may_load = self._may_stage = False

    # connection and transaction

    @property
    def connection(self) -> Connection:
        self._open()
        assert self._connection is not None
        self._rows_session()
        return self._connection

    def _open(self) -> Session:
        if self._connection is None or self._session is None:
            with mapped_errors():
                self._connection = self.engine.connect()
                version, local_infile = self._query(written("SELECT @@version, @@local_infile"))[0]
                self.server_version = str(version)
                self.bulk_rows = BULK_ROWS if local_infile else 0
                self.takes_length_prefixed = self._driver.takes_length_prefixed
                self._connection.rollback()
            self._killer.watch(self._driver.thread_id())  # type: ignore[no-untyped-call]
            context = DdlContext(server_version=self.server_version)
            self.server = ServerKind(context.is_mariadb, context.version_number)
            self.loads_prepared = self._lets_stages_be_prepared()
            connection_id = self._driver.thread_id()  # type: ignore[no-untyped-call]
            self._session = Session(self._send, self.server, self._collations.name_of, connection_id)
            self._session.follow(self._key_policy, self._query)
            self._driver.before_own = self._session.before_own
            self._replay.forget()
            if self._fenced is not None:
                try:
                    self._fence_holder = mysql_fence.take(self._driver, self._fenced, self._fence_holder)
                except BaseException:
                    self.reconnect()  # a connection without the lock must not be used
                    raise
        return self._session

    @property
    def _driver(self) -> LoadingConnection:
        assert self._connection is not None
        driver: Any = self._connection.connection.driver_connection
        assert isinstance(driver, LoadingConnection)
        return driver

    def fence(self, channel: str) -> None:
        self._fenced, self._fence_holder = channel, 0
        self.reconnect()  # from now on, every new connection first takes the lock
        self._open()

    def begin(self, *, foreign_keys: bool, xid: str = "") -> None:
        self._open()
        assert self._connection is not None
        self._foreign_keys = foreign_keys
        self._may_stage = self.loads_prepared or not xid
        self._may_load = bool(self.bulk_rows) and self._may_stage
        with mapped_errors():
            self._rows_session()
            self._connection.begin_twophase(xid) if xid else self._connection.begin()

    def _lets_stages_be_prepared(self) -> bool:
        """True if a transaction that will be prepared (XA) may use temporary tables. MySQL permits them only if the
        prepared transaction stays attached to its connection. So this method sets xa_detach_on_prepare=OFF (MySQL ≥
        8.0.29), and returns False if the server refuses.
        """
        if self.server.is_mariadb:
            return True
        try:
            self._send(written_bytes(b"SET SESSION xa_detach_on_prepare = OFF"))
        except err.Error:  # an older server, or no SESSION_VARIABLES_ADMIN
            return False
        return True

    def rollback(self) -> None:
        if self._killer.has_killed:
            return self.reconnect()  # the next use connects again
        try:
            super().rollback()
        except TargetError as error:
            if error.errno != er.SPECIFIC_ACCESS_DENIED_ERROR:
                raise
            self.reconnect()  # the account may not restore rplctl's session after a statement of the source

    def reconnect(self) -> None:
        super().reconnect()
        self._session = None

    def lock_wait(self) -> str:
        return self._killer.lock_wait()

    def interrupt(self) -> None:
        self._killer.kill()

    def is_idle(self) -> bool:
        return self._killer.is_gone()

    def _rows_session(self, *, lenient: bool = False) -> None:
        session = self._open()
        with mapped_errors():
            session.rows(foreign_keys=self._foreign_keys, lenient=lenient)

    def _send(self, sql: SqlBytes, data: Iterable[bytes] | None = None) -> list[int]:
        """Execute the SQL text, and return the number of matched rows for each statement in the text. `data`: the file
        that LOAD DATA LOCAL reads.
        """
        driver = self._driver
        driver.local_data = data
        try:
            with driver.cursor() as cursor:
                cursor.execute(sql)
                counts = [int(cursor.rowcount)]
                while cursor.nextset():
                    counts.append(int(cursor.rowcount))
                return counts
        finally:
            driver.local_data = None

    def _query(self, sql: Sql | SqlBytes, *, as_bytes: bool = False) -> list[tuple[Any, ...]]:
        """Execute a query, and return its rows. `as_bytes`: True to return texts as bytes. After a query outside of a
        transaction, roll back, so that no snapshot and no metadata lock remains.
        """
        with self._driver.cursor() as cursor:
            self._driver.use_unicode = not as_bytes  # MariaDB prints the default of a BINARY column as raw bytes
            try:
                cursor.execute(sql)
            finally:
                self._driver.use_unicode = True
            rows = list(cursor.fetchall())
        assert self._connection is not None
        if not self._connection.in_transaction():
            self._driver.rollback()
        return rows

    # rows

    def check_table(self, model: TableModel) -> None:
        """Do nothing, because the model was read from the target."""

    def takes_multisets(self, model: TableModel) -> bool:
        return compares(model) and not self._facts.is_referenced(model)

    def apply_chunks(self, chunks: Sequence[TableChunk], models: Mapping[tuple[str, str], TableModel]) -> None:
        work = [(chunk, chunk_model(chunk, models)) for chunk in rows_sql.parents_first(chunks, models)]
        lenient = any(rows_sql.has_empty_enum(model, [*c.inserts, *c.updates]) for c, model in work)
        self._rows_session(lenient=lenient)
        try:
            for chunk, model in reversed(work):
                if chunk.bulk is not None and chunk.takes_copies(model):
                    with keyless_mismatch(chunk, model, err.Error, target_error):
                        self._bulk.remove_copies(chunk.bulk.deletes, model)
                    continue
                if chunk.bulk is not None:
                    self._bulk.remove(chunk, model)
                self._delete(model, chunk.absent, 0)
                self._delete(model, chunk.deletes, len(chunk.deletes))
            for chunk, model in work:
                if chunk.bulk is not None:
                    self._bulk.update(chunk, model, is_parent=self._facts.is_referenced(model))
                for update in chunk.updates:
                    is_large = chunk.has_views and self._may_load
                    self._update(model, self._single.update(model, update) if is_large else update)
            for chunk, model in work:
                with keyless_mismatch(chunk, model, err.Error, target_error):
                    if chunk.bulk is not None:
                        self._bulk.insert(chunk, model)
                    for insert in chunk.inserts:
                        self._insert_rows(model, insert, chunk.has_views)
            for chunk, model in work:
                self._apply_in_order(model, chunk)
        except err.IntegrityError as error:
            raise CountMismatch(str(error.args[-1])) from error
        except (err.Error, OSError) as error:
            raise target_error(error) from error

    def _apply_in_order(self, model: TableModel, chunk: TableChunk) -> None:
        for change in inserts_together(chunk.ordered):
            if isinstance(change, RowSet):
                self._rows_session(lenient=rows_sql.has_empty_enum(model, [change]))
                self._insert_rows(model, change, chunk.has_views)
            else:
                self.apply_change(change, model)

    def _insert_rows(self, model: TableModel, rows: RowSet, has_views: bool) -> None:
        is_large = has_views and self._may_load
        self._insert(model, self._single.insert(model, rows) if is_large else rows)

    def _delete(self, model: TableModel, keys: Sequence[Row], expected: int) -> None:
        found = sum(sum(self._send(sql)) for sql, _ in rows_sql.delete_statements(model, keys))
        expect_rows(f"delete from {model.qualified_name}", found, expected)

    def _insert(self, model: TableModel, rows: RowSet) -> None:
        for sql, count in rows_sql.insert_statements(model, rows):
            expect_rows(f"insert into {model.qualified_name}", sum(self._send(sql)), count)

    def _update(self, model: TableModel, update: RowSet) -> None:
        """Update rows by key. If rows exchange values of another unique key, delete these rows and insert them again.
        Raises CountMismatch if a row is missing.
        """
        self._send(written_bytes(b"SAVEPOINT rplctl_update"))
        try:
            for sql, count in rows_sql.update_statements(model, update):
                if count > 1:
                    self._driver.take_several(wanted=True)
                if (found := self._send(sql)) != [1] * count:
                    raise CountMismatch(f"update of {model.qualified_name}: {sum(found)} rows, expected {count}")
        except err.IntegrityError as error:
            key = key_of(model)
            if error.args[0] != er.DUP_ENTRY or set(update.columns) | set(key) != set(range(len(model.columns))):
                raise  # the rows are incomplete, so the applier must try a slower strategy
            self._send(written_bytes(b"ROLLBACK TO SAVEPOINT rplctl_update"))
            self._delete(model, [row[len(update.columns) :] for row in update.rows], len(update.rows))
            self._insert(model, RowSet(update.columns + key, update.rows))
        self._send(written_bytes(b"RELEASE SAVEPOINT rplctl_update"))

    def apply_change(self, change: RowChange, model: TableModel) -> None:
        try:
            self._rows_session(lenient=rows_sql.has_empty_enum(model, [change.after] if change.after else []))
            found = self._apply_single(self._whole_sequence(change, model), model)
        except (err.Error, OSError) as error:
            raise target_error(error) from error
        if found != 1:
            raise no_record(change.before, model)

    def _apply_single(self, change: RowChange, model: TableModel) -> int:
        """Apply one change, and return the number of changed rows. If strict mode refuses a value, apply the change
        without strict mode, but only if the table's columns then store each value exactly.
        """
        try:
            return self._single.apply(change, model, may_load=self._may_load)
        except err.Error as error:
            if error.args[0] not in VALUE_ERRORS:
                raise
            self._rows_session(lenient=True)
            if change.after is not None and not (self._may_stage and self._bulk.keeps_exactly(change.after, model)):
                raise
        return self._single.apply(change, model, may_load=self._may_load)

    def _whole_sequence(self, change: RowChange, model: TableModel) -> RowChange:
        """Complete a change of a MariaDB sequence: add the columns that a MINIMAL image lacks, with their present
        values. MariaDB refuses an incomplete row of a sequence (error 4085). Return changes of other tables unchanged.
        """
        after = change.after
        if after is None or len(after.columns) == len(model.columns):
            return change
        if tuple(column.name for column in model.columns[: len(_SEQUENCE)]) != _SEQUENCE:
            return change
        stored = list(self._query(written_bytes(b"SELECT * FROM %s", rows_sql.table_name(model)))[0])
        for number, value in zip(after.columns, after.rows[0], strict=True):
            stored[number] = value
        return RowChange(
            kind=change.kind, before=change.before, after=RowSet(tuple(range(len(stored))), [tuple(stored)])
        )

    def stored_value(self, image: RowSet, column: int, model: TableModel) -> Value:
        """Return one column, as text, of the row that the image identifies. Raises TargetError 1032 if the row does not
        exist.
        """
        name, where = quote(model.columns[column].name), rows_sql.where_row(model, image)
        sql = written_bytes(b"SELECT CAST(%s AS CHAR) FROM %s WHERE %s", name, rows_sql.table_name(model), where)
        self._rows_session()
        with mapped_errors():
            rows = self._query(sql)
        if len(rows) != 1:
            raise no_record(image, model)
        return cast(Value, rows[0][0])

    def roll_back_to(self, savepoint: str) -> None:
        self._rows_session()
        with mapped_errors():
            try:
                self._send(as_bytes(written("ROLLBACK TO SAVEPOINT {}", word(savepoint))))
            except err.Error as error:
                if error.args[0] != er.SP_DOES_NOT_EXIST:
                    raise
                self._send(written_bytes(b"ROLLBACK"))

    def check_foreign_keys(self, wanted: bool) -> None:
        self._foreign_keys = wanted

    def introduce(self, description: FormatDescription) -> None:
        self._rows_session()
        self._replay.introduce(description, self.server)

    def is_of_vendor(self, description: FormatDescription) -> bool:
        return description.is_mariadb == self.server.is_mariadb

    def can_replay(self, description: FormatDescription) -> bool:
        return self._replay.is_ready(description, self.server)

    def replay_rows(self, table_map: bytes, rows: bytes, description: FormatDescription) -> None:
        self._rows_session()
        self._replay.rows(table_map, rows, description, self.server)

    # statements

    def set_primary_key_policy(self, policy: str) -> None:
        self._open().follow(policy, self._query)
        self._key_policy = policy

    def execute_ddl(self, plan: DdlPlan, catalog: Catalog) -> None:
        """Raise TargetError, because this target cannot execute a DDL plan. Instead, `run_statement` executes the text
        of the source's statement.
        """
        raise TargetError(
            "cannot create tables from a dump's definitions on a MySQL target",
            errno=er.NOT_SUPPORTED_YET,
            hint="to load the dump into the target, run: mysql < FILE",
        )

    def make_tables(self, statements: Sequence[Sql]) -> None:
        with mapped_errors(), self.engine.connect() as connection:
            run(connection, written("SET SESSION sql_mode='', SESSION foreign_key_checks=0"))
            if self._key_policy != "ON":  # with ON, the source's existing tables without a key are copied nevertheless
                for name, value in primary_key_settings(self._key_policy, self.server).items():
                    run(connection, written("SET SESSION {} = {}", word(name), value))
            connection.execution_options(no_parameters=True)
            for statement in statements:
                try:
                    run(connection, statement)
                except DBAPIError as error:
                    own, notes = mysql_statement.printed_by_other_vendor(statement, str(error.orig), self.server)
                    if own == statement:
                        raise
                    run(connection, own)
                    for note in notes:
                        log.warning("%s", note)
        self._facts.forget()

    def run_statement(self, statement: SourceStatement) -> Sequence[str]:
        session = self._open()
        logged = statement.query if isinstance(statement.query, Query) else statement.query.query
        context = DdlContext(sql_mode=logged.context.sql_mode or 0, server_version=statement.server_version)
        source = ServerKind(context.is_mariadb, context.version_number)
        query = mysql_statement.as_executed(logged, context, self.server)
        query = self._zones.of_source(query, context, statement.system_zone, self.table_model)
        mysql_statement.refuse_inexact(query, context, self.server, self.table_model, self._ask)
        is_ddl = self.is_ddl(query, context)
        words = Translation((query,))
        if is_ddl:
            words = translated(query, context, self.server, self.table_model, lambda: self._collations.names)
        dropped = mysql_statement.drop_with_if_exists(query, wanted=statement.drops_missing)
        failure = None
        try:
            self._driver.take_several(wanted=False)
            with session.foreign():
                session.statement(query, statement.variables, source, is_ddl=is_ddl)
                with session.own_commits(wanted=mysql_statement.needs_autocommit(query.sql_bytes)):
                    for each in words.queries:
                        text = each if isinstance(statement.query, Query) else replace(statement.query, query=each)
                        self._send(dropped or mysql_statement.text_of(text), statement.file or None)
        except (err.Error, OSError) as error:
            failure = target_error(session.missing_database or error)
        if is_ddl:
            self._facts.follow(query.sql_bytes)
            session.forget_database()
        if dropped is None or failure is not None:
            mysql_statement.judge(logged, failure)
        return words.notes

    def is_ddl(self, query: Query, context: DdlContext) -> bool:
        return not mysql_statement.changes_only_rows(mysql_statement.text_executed(query, context))

    def definitions(self, objects: Iterable[ServerObject], *, identity: bool) -> dict[ServerObject, Definition | None]:
        self._open()
        return read_definitions(self._ask, objects, self.server, identity=identity)

    def row_states(self, tables: Iterable[tuple[str, str]]) -> dict[ServerObject, Definition | None]:
        return read_row_states(self._ask, tables)

    def _read_collations(self) -> list[tuple[Any, ...]]:
        self._open().leave()
        return self._query(collations_sql(self.server))

    # facts about the target's tables

    def table_model(self, database: str, table: str) -> TableModel | None:
        self._rows_session()
        model = read_model(lambda sql: self._query(sql, as_bytes=True), database, table, self.server_version)
        return without_generated_key(model) if model is not None and self._key_policy == "GENERATE" else model

    def wants_replay(self, model: TableModel) -> bool:
        return model.system_versioned or self._facts.has_triggers(model)

    def prefers_replay(self, model: TableModel) -> bool:
        return any(column.type == "json" for column in model.columns)

    def foreign_keys(self) -> list[tuple[tuple[str, str], tuple[str, str]]]:
        self._open()
        return self._facts.foreign_keys()

    def cascading_parents(self) -> frozenset[tuple[str, str]]:
        return self._facts.cascading_parents()

    def is_transactional(self, model: TableModel) -> bool:
        return self._facts.is_transactional(model.engine)

    def other_nontransactional(self, named: Collection[TableModel], statement: bytes) -> frozenset[tuple[str, str]]:
        return self._facts.other_nontransactional(named, statement)

    def _ask(self, sql: Sql) -> list[tuple[Any, ...]]:
        self._rows_session()
        with mapped_errors():
            return self._query(sql)
