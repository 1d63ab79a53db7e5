"""Applies changes to a DuckDB target: one file, opened by one process, with a schema for each database of the source.

Invariant: data and position commit together, also with DDL. In DuckDB, an error ends the transaction, and there are no
savepoints. Therefore a query checks for a duplicate key or a missing row before each single change. So the transaction
is still usable if the applier ignores such an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, cast

import duckdb
from sqlalchemy import Connection, Engine

from rplctl import mysql_errors as er
from rplctl.errors import TargetError
from rplctl.schema.model import TableModel
from rplctl.schema.plan import AlterStep, Catalog, CreateStep, DdlPlan
from rplctl.schema.row_key import key_of
from rplctl.sql_text import NOTHING, Sql, written
from rplctl.target.base import (
    COPIES,
    ChangeKind,
    CountMismatch,
    EncodedRows,
    Row,
    RowChange,
    RowSet,
    TableChunk,
    Value,
    check_columns,
    expect_rows,
    inserts_together,
    keyless_mismatch,
    no_record,
)
from rplctl.target.duckdb import rows as sql_of
from rplctl.target.duckdb.connection import driver_of, export_of
from rplctl.target.duckdb.ddl import DDL
from rplctl.target.duckdb.ddl_type import DATED, table
from rplctl.target.duckdb.driver import DuckdbDriver
from rplctl.target.duckdb.errors import change_error, hidden_numbers, mapped_errors, target_error
from rplctl.target.duckdb.foreign_keys import ForeignKeys
from rplctl.target.duckdb.relation import Relation, relation
from rplctl.target.one_connection import OneConnection

BULK_ROWS = 32  # from this number of net changes of a table on, tasks send length-prefixed rows
Rows = Sequence[Row] | EncodedRows


class DuckdbTarget(OneConnection):
    """A connection to a DuckDB file. The class implements `target.base.Target` and `ForeignKeyTarget`."""

    kind = "duckdb"
    bulk_rows = BULK_ROWS
    takes_length_prefixed = True
    mapped_errors = staticmethod(mapped_errors)

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._export = export_of(engine)
        self._keys: ForeignKeys | None = None
        self._interrupted = False
        self._changed_tables = False
        self._texts_of: dict[TableModel, frozenset[str]] = {}
        self._made: set[TableModel] = set()  # tables that this connection created, so that their columns are known

    @property
    def connection(self) -> Connection:
        if self._connection is None:
            self._connection = self.engine.connect()
            self._texts_of, self._made = {}, set()
            self._keys = ForeignKeys(driver_of(self._connection))
        return self._connection

    @property
    def _driver(self) -> DuckdbDriver:
        return driver_of(self.connection)

    @property
    def _foreign_keys(self) -> ForeignKeys:
        _ = self.connection
        assert self._keys is not None
        return self._keys

    def begin(self, *, foreign_keys: bool) -> None:
        with mapped_errors():
            self._check_interrupted()
            self.connection.begin()
        self._foreign_keys.begin(acts=foreign_keys)
        self._changed_tables = False

    def commit(self) -> None:
        with mapped_errors():
            self._foreign_keys.check()
        super().commit()
        self._changed_tables = False
        if self._export is not None:
            self._export.committed()

    def follow_foreign_keys(self, wanted: bool, models: Mapping[tuple[str, str], TableModel]) -> bool:
        self._foreign_keys.acts = wanted
        return True

    def rollback(self) -> None:
        self._interrupted = False
        if self._connection is not None and (transaction := self._connection.get_transaction()) is not None:
            with mapped_errors():
                transaction.rollback()
            if self._changed_tables:
                self._foreign_keys.forget()
                self._texts_of, self._made = {}, set()

    def fence(self, channel: str) -> None:
        """Take no lock, because no other process can open the file. Request a copy for readers, because the last copy
        may be outdated if the applier was killed.
        """
        if self._export is not None:
            _ = self.connection  # the first connection creates the file, which the copy needs
            self._export.committed()

    def close(self) -> None:
        if self._export is not None:
            self._export.finish()  # before the file is closed
        if self._connection is not None:
            with suppress(duckdb.Error):  # it fails if another channel has a transaction; then the log remains
                self._driver.execute(
                    written("CHECKPOINT")
                )  # DuckDB's own checkpoint would keep a log that was only read
        super().close()

    def lock_wait(self) -> str:
        return ""  # no other session can write

    def interrupt(self) -> None:
        """Interrupt the running statement. Later statements also fail until `rollback` is called."""
        self._interrupted = True
        if self._connection is not None:
            driver_of(self._connection).interrupt()

    def abort(self) -> None:
        """Interrupt the running statement. This is enough, because no statement in DuckDB waits for a lock: a conflict
        with another transaction is an error at once.
        """
        self.interrupt()

    def check_table(self, model: TableModel) -> None:
        driver = self._driver  # a new connection clears `_made`
        if model not in self._made:
            check_columns(model, sql_of.present_columns(driver, model), table(model))

    def takes_multisets(self, model: TableModel) -> bool:
        return not sql_of.hides_numbers(model) and sql_of.is_all_there_is(self._driver, model)

    def apply_chunks(self, chunks: Sequence[TableChunk], models: Mapping[tuple[str, str], TableModel]) -> None:
        work = [(chunk, models[chunk.database, chunk.table]) for chunk in chunks]
        try:
            for chunk, model in work:
                self._delete(chunk, model)
            for chunk, model in work:
                for columns, rows in _updates(chunk, model):
                    self._update(model, columns, rows)
            for chunk, model in work:
                with keyless_mismatch(chunk, model, duckdb.Error, target_error):
                    for columns, rows in _inserts(chunk):
                        self._insert(model, columns, rows)
            for chunk, model in work:
                for change in inserts_together(chunk.ordered):
                    if isinstance(change, RowSet):
                        self._insert(model, change.columns, change.rows)
                    else:
                        self.apply_change(change, model)
        except duckdb.ConstraintException as error:
            raise CountMismatch(str(error)) from error
        except duckdb.Error as error:
            raise target_error(error) from error

    def _delete(self, chunk: TableChunk, model: TableModel) -> None:
        rows = chunk.bulk or chunk
        if chunk.takes_copies(model):
            whole = (*range(len(model.columns)), COPIES)
            with (
                keyless_mismatch(chunk, model, duckdb.Error, target_error),
                self._given(model, whole, rows.deletes) as given,
            ):
                copies = self._count(
                    written("SELECT CAST(sum(c{}) AS BIGINT) FROM {}", len(model.columns), given.sql), given
                )
                expect_rows(
                    f"delete from {table(model)}", self._count(sql_of.delete_copies(model, given), given), copies
                )
            return
        key = key_of(model)
        if len(rows.absent):
            with self._given(model, key, rows.absent) as given:
                expect_rows(f"absent of {table(model)}", self._count(sql_of.count_by_key(model, given), given), 0)
        if len(rows.deletes):
            with self._given(model, key, rows.deletes) as given:
                found = self._count(sql_of.delete_by_key(model, given), given)
            expect_rows(f"delete from {table(model)}", found, len(rows.deletes))
            self._foreign_keys.note_parent_changes(model)

    def _update(self, model: TableModel, columns: tuple[int, ...], rows: Rows) -> None:
        """Update rows by key. Each of `rows` has the new values of `columns`, and then the key. Raises CountMismatch if
        a row is missing.
        """
        with self._given(model, columns + key_of(model), rows) as given:
            sql = sql_of.update_by_key(model, columns, given)
            expect_rows(f"update of {table(model)}", self._count(sql, given), len(rows))
            self._foreign_keys.note_child_changes(model, columns, given)
        self._foreign_keys.note_parent_changes(model, columns)

    def _insert(self, model: TableModel, columns: tuple[int, ...], rows: Rows) -> None:
        if not columns:
            for _ in range(len(rows)):
                self._count(written("INSERT INTO {} DEFAULT VALUES", table(model)))
            return
        with self._given(model, columns, rows) as given:
            found = self._count(sql_of.insert(model, columns, given), given)
            expect_rows(f"insert into {table(model)}", found, len(rows))
            self._foreign_keys.note_child_changes(model, columns, given)

    def apply_change(self, change: RowChange, model: TableModel) -> None:
        try:
            self._apply_change(change, model)
        except duckdb.Error as error:
            raise change_error(error, change, model) from error

    def _apply_change(self, change: RowChange, model: TableModel) -> None:
        if change.before is None:
            assert change.after is not None
            self._refuse_duplicate(model, change.after)
            return self._insert(model, change.after.columns, change.after.rows)
        if sql_of.hides_numbers(model):
            return self._change_unnumbered(change, model)
        row = self._of_row(model, change.before, written("t.rowid"))
        if change.kind is ChangeKind.DELETE:
            self._foreign_keys.follow_delete(model, row)
            found = self._count(written("DELETE FROM {} WHERE rowid = {}", table(model), row))
        else:
            assert change.after is not None
            self._refuse_duplicate(model, change.after, but=row)
            with self._given(model, change.after.columns, change.after.rows) as after:
                self._foreign_keys.follow_update(model, row, after, change.after.columns)
                row = self._of_row(model, change.before, written("t.rowid"))  # an action may have changed the number
                found = self._count(sql_of.update_row(model, change.after.columns, after, row), after)
                self._foreign_keys.note_child_changes(model, change.after.columns, after)
        expect_rows(f"change of {table(model)}", found, 1)
        return None

    def _change_unnumbered(self, change: RowChange, model: TableModel) -> None:
        """Apply an update or a delete to a table with a column named rowid. Such a column hides DuckDB's row numbers,
        so the row is found by its key or by all its values.
        """
        assert change.before is not None
        columns = sql_of.identifying(model, change.before.columns)
        if columns != key_of(model):
            return self._change_copies(change.before, change.after, model)
        at = {column: i for i, column in enumerate(change.before.columns)}
        key: Row = tuple(change.before.rows[0][at[column]] for column in columns)
        if change.after is None:
            with self._given(model, columns, [key]) as given:
                found = self._count(sql_of.delete_by_key(model, given), given)
        else:
            with self._given(model, change.after.columns + columns, [change.after.rows[0] + key]) as given:
                found = self._count(sql_of.update_by_key(model, change.after.columns, given), given)
        if found != 1:
            raise no_record(change.before, model)
        return None

    def _change_copies(self, before: RowSet, after: RowSet | None, model: TableModel) -> None:
        """Change or delete one of several equal rows without row numbers. Delete all rows that equal `before`, and
        insert all but one of them again. For an update, also insert the new row (`before` with the values of `after`).
        """
        if set(before.columns) != set(range(len(model.columns))) or not sql_of.is_all_there_is(self._driver, model):
            raise hidden_numbers(model, "the row image is incomplete")
        with self._given(model, before.columns, before.rows) as given:
            where = sql_of.same_row(model, before.columns)
            found = self._count(written("DELETE FROM {} AS t USING {} WHERE {}", table(model), given.sql, where), given)
        if not found:
            raise no_record(before, model)
        if found > 1:
            self._insert(model, before.columns, [*before.rows] * (found - 1))
        if after is not None:
            image = dict(zip(before.columns, before.rows[0], strict=True))
            image |= dict(zip(after.columns, after.rows[0], strict=True))
            self._insert(model, tuple(image), [tuple(image.values())])

    def _of_row(self, model: TableModel, image: RowSet, wanted: Sql) -> Any:
        """Return the value of the SQL expression `wanted` for the row that the image identifies. The row is found by
        its key, or by all values of the image if the image lacks the key. Raises TargetError 1032 if the row is
        missing.
        """
        columns = sql_of.identifying(model, image.columns)
        at = {column: i for i, column in enumerate(image.columns)}
        row: Row = tuple(image.rows[0][at[column]] for column in columns)
        with self._given(model, columns, [row]) as given:
            where = sql_of.same_row(model, columns)
            found = self._rows(
                written("SELECT {} FROM {} AS t, {} WHERE {} LIMIT 1", wanted, table(model), given.sql, where), given
            )
        if not found:
            raise no_record(image, model)
        return found[0][0]

    def _refuse_duplicate(self, model: TableModel, image: RowSet, but: int | None = None) -> None:
        """Raise TargetError 1062 if another row already has the image's values in a unique key. `but`: the row number
        of the row that the caller updates; this row may have the values.
        """
        for name, columns in sql_of.unique_keys(model):
            at = {column: i for i, column in enumerate(image.columns)}
            if not all(column in at for column in columns):
                continue
            values = tuple(image.rows[0][at[column]] for column in columns)
            if None in values:
                continue
            with self._given(model, columns, [values]) as given:
                same = sql_of.same_row(model, columns)
                other = NOTHING if but is None else written(" AND t.rowid <> {}", but)
                sql = written("SELECT 1 FROM {} AS t, {} WHERE {}{} LIMIT 1", table(model), given.sql, same, other)
                if self._rows(sql, given):
                    entry = "-".join(map(str, values))
                    raise TargetError(f"Duplicate entry '{entry}' for key '{name}'", errno=er.DUP_ENTRY)

    def stored_value(self, image: RowSet, column: int, model: TableModel) -> Value:
        try:
            return cast(Value, self._of_row(model, image, sql_of.decoded(model.columns[column], written("t."))))
        except duckdb.Error as error:
            raise target_error(error) from error

    def execute_ddl(self, plan: DdlPlan, catalog: Catalog) -> None:
        self._changed_tables = True
        known, made, self._texts_of, self._made = self._texts_of, self._made, {}, set()
        try:
            DDL.carry_out(plan, catalog, self._driver.execute)
        except duckdb.Error as error:
            raise target_error(error) from error
        finally:
            if self._foreign_keys.may_change([*catalog.tables.values(), *plan.model_changes.values()]):
                self._foreign_keys.forget()
        changed = plan.model_changes
        self._texts_of = {m: found for m, found in known.items() if (m.database, m.name) not in changed}
        self._made = {m for m in made if (m.database, m.name) not in changed}
        for step in plan.steps:
            if isinstance(step, CreateStep):
                self._made.add(step.model)
            elif isinstance(step, AlterStep) and step.old in made:
                self._made.add(step.new)

    @contextmanager
    def _given(self, model: TableModel, columns: Sequence[int], rows: Rows) -> Iterator[Relation]:
        self._check_interrupted()
        with relation(self._driver, model, columns, rows, self._texts(model)) as given:
            yield given

    def _texts(self, model: TableModel) -> frozenset[str]:
        """Return the names of date columns that an operator has changed to text on the target. The result is cached,
        because no other process can alter tables while the file is open.
        """
        if model in self._made:
            return frozenset()
        if (found := self._texts_of.get(model)) is None:
            dates = [column.name for column in model.columns if column.type in DATED]
            there = sql_of.present_columns(self._driver, model) if dates else {}
            found = self._texts_of[model] = frozenset(name for name in dates if there.get(name) == "VARCHAR")
        return found

    def _check_interrupted(self) -> None:
        if self._interrupted:
            raise TargetError("Query execution was interrupted", errno=er.QUERY_INTERRUPTED)

    def _count(self, sql: Sql, given: Relation | None = None) -> int:
        """Execute a statement that returns one number: the number of changed rows, or the result of SELECT count(*)."""
        (found,) = self._rows(sql, given)
        return cast(int, found[0])

    def _rows(self, sql: Sql, given: Relation | None = None) -> list[tuple[object, ...]]:
        rows: list[tuple[object, ...]] = self._driver.execute(sql, given.values if given else None).fetchall()
        return rows


def _updates(chunk: TableChunk, model: TableModel) -> Iterator[tuple[tuple[int, ...], Rows]]:
    """Yield the chunk's updates as pairs (columns, rows), one pair for each set of updated columns. A row has the new
    values of these columns, and then the key.
    """
    if chunk.bulk is None:
        yield from ((rows.columns, rows.rows) for rows in chunk.updates)
    elif chunk.bulk.updates.count:
        yield chunk.bulk.updates.columns[: -len(key_of(model))], chunk.bulk.updates


def _inserts(chunk: TableChunk) -> Iterator[tuple[tuple[int, ...], Rows]]:
    if chunk.bulk is None:
        yield from ((rows.columns, rows.rows) for rows in chunk.inserts)
    elif chunk.bulk.inserts.count:
        yield chunk.bulk.inserts.columns, chunk.bulk.inserts
