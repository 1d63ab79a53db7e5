"""Applies row changes over a connection to PostgreSQL: a few rows as parameters, and many rows with COPY.

Invariant: a statement that changes an unexpected number of rows raises CountMismatch, and the caller rolls back (design
D2). The text for COPY is an iterable of bytes, from `values.copy_lines` or from Spark tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import psycopg

from rplctl.schema.model import TableModel
from rplctl.schema.row_key import key_of
from rplctl.sql_text import Sql, joined, written
from rplctl.target.base import ChangeKind, CountMismatch, EncodedRows, Row, RowChange, RowSet, expect_rows
from rplctl.target.ddl_parts import quote
from rplctl.target.dialect import OWN_SCHEMA
from rplctl.target.postgresql import rows as rows_sql
from rplctl.target.postgresql.ddl_type import table
from rplctl.target.postgresql.driver import PostgresqlDriver
from rplctl.target.postgresql.large import Parameters, has_large, in_pieces
from rplctl.target.postgresql.values import NulInText, copy_lines, parameters, without_nul

MOST_PATTERNS = 50  # the limit for different sets of NULL columns in the rows of a table without a key


class RowWriter:
    """The writer of row changes over the target's connection.

    `driver` returns the current connection. `may_stage` returns True if temporary tables may be created. `nul`: the
    treatment of the character NUL in text.
    """

    def __init__(self, driver: Callable[[], PostgresqlDriver], may_stage: Callable[[], bool], nul: NulInText) -> None:
        self._nul = nul
        self._driver = driver
        self._may_stage = may_stage
        self._is_temporary = True
        self._stages: dict[tuple[str, str, tuple[int, ...]], Sql] = {}

    def begin(self, *, is_to_be_prepared: bool) -> None:
        """Choose the kind of stages for a new transaction. A stage is a table into which rows are loaded first.

        Stages are normally temporary tables. PostgreSQL cannot prepare a transaction that has used a temporary table,
        so a transaction that is to be prepared creates and drops ordinary tables.
        """
        self._is_temporary = not is_to_be_prepared
        self._stages.clear()  # the end of the previous transaction has dropped them

    def drop_stages(self) -> None:
        """Drop the stages, the tables into which rows were loaded.

        This is necessary before PREPARE, and before DDL, which may change the types of the columns.
        """
        if self._stages:
            self.run(written("DROP TABLE {}", joined(", ", self._stages.values())))
            self._stages.clear()

    def refuse_present(self, model: TableModel, keys: Sequence[Row] | EncodedRows) -> None:
        if not keys:
            return
        if isinstance(keys, EncodedRows) or self._is_staged(keys):
            found = self._count(rows_sql.count_staged(model, self._staged(model, key_of(model), keys)))
        else:
            found = sum(
                self._count(written("SELECT count(*) FROM {} WHERE {}", rows_sql.escaped(table(model)), where), values)
                for where, values in self._key_groups(model, keys)
            )
        expect_rows(f"{model.qualified_name}: keys that must be absent", found, 0)

    def delete(self, model: TableModel, keys: Sequence[Row] | EncodedRows) -> None:
        if not keys:
            return
        if isinstance(keys, EncodedRows) or self._is_staged(keys):
            found = self.run(rows_sql.delete_staged(model, self._staged(model, key_of(model), keys)))
        else:
            found = sum(
                self.run(written("DELETE FROM {} WHERE {}", rows_sql.escaped(table(model)), where), values)
                for where, values in self._key_groups(model, keys)
            )
        expect_rows(f"delete from {model.qualified_name}", found, len(keys))

    def insert(self, model: TableModel, rows: RowSet) -> None:
        found = 0
        if rows.columns and _is_many(rows.rows) and not rows_sql.leaves_out_computed(model, rows.columns):
            found = self._copy(table(model), rows_sql.select_list(model, rows.columns), self._lines(model, rows))
        elif rows.columns and self._is_staged(rows.rows):
            found = self.run(rows_sql.insert_staged(model, rows.columns, self._staged(model, rows.columns, rows.rows)))
        else:
            size = max(1, min(rows_sql.ROWS_BY_PARAMETER, rows_sql.MOST_PARAMETERS // max(len(rows.columns), 1)))
            size = size if rows.columns else 1
            for at in range(0, len(rows.rows), size):
                piece = rows.rows[at : at + size]
                sql = rows_sql.insert_rows(model, rows.columns, len(piece))
                found += self.run(sql, self._parameters(model, rows.columns, piece))
        expect_rows(f"insert into {model.qualified_name}", found, len(rows.rows))

    def update_by_key(self, model: TableModel, update: RowSet) -> None:
        key, width = key_of(model), len(update.columns)
        what = f"update of {model.qualified_name}"
        if self._is_staged(update.rows) and not set(update.columns) & set(key):
            staged = self._staged(model, update.columns + key, update.rows)
            return expect_rows(what, self.run(rows_sql.update_staged(model, update.columns, staged)), len(update.rows))
        sql = rows_sql.update_row(model, update.columns, rows_sql.by_key(model, width))
        values = [self._parameters(model, update.columns + key, [row]) for row in update.rows]
        if any(has_large(row.values()) for row in values):
            return expect_rows(what, sum(self.run(sql, row) for row in values), len(update.rows))
        with self._driver().cursor() as cursor:  # in order: a row may get a value that an earlier row has just lost
            cursor.executemany(sql, values)
            expect_rows(what, cursor.rowcount, len(update.rows))

    def remove_copies(self, model: TableModel, rows: EncodedRows) -> None:
        """Delete copies of rows from a table without a key. In `rows`, each row's values are followed by the number of
        its copies to delete.

        Each set of NULL columns needs one pass over the table, because PostgreSQL joins with IS NOT DISTINCT FROM only
        row by row. Raises CountMismatch if the table has fewer copies, or if there are more than MOST_PATTERNS sets.
        """
        staged, width = self._staged(model, rows.columns, rows), len(rows.columns) - 1
        self.run(written("ANALYZE {}", staged))
        tests = joined(", ", (written("c{} IS NULL", i) for i in range(width)))
        patterns = self._driver().execute(written("SELECT {} FROM {} GROUP BY {}", tests, staged, tests)).fetchall()
        if len(patterns) > MOST_PATTERNS:
            raise CountMismatch(f"{len(patterns)} sets of NULL columns")
        expected = self._count(written("SELECT sum(c{}) FROM {}", width, staged))
        found = sum(self.run(rows_sql.delete_copies(model, nulls, staged)) for nulls in patterns)
        expect_rows(f"delete from {model.qualified_name}", found, expected)

    def update_encoded(self, model: TableModel, rows: EncodedRows, *, may_delete: bool) -> None:
        """Update rows, which are found by their key, from COPY text that Spark tasks have encoded.

        If rows exchange values of another unique key, an UPDATE fails. `may_delete`: True if the rows may then be
        deleted and inserted again.
        """
        if not rows:
            return
        staged = self._staged(model, rows.columns, rows)
        width = len(rows.columns) - len(key_of(model))
        self.run(written("SAVEPOINT rplctl_update"))
        try:
            if width:
                found = self.run(rows_sql.update_staged(model, rows.columns[:width], staged))
            else:  # only key columns: check that the rows exist
                found = self._count(rows_sql.count_staged(model, staged))
            expect_rows(f"update of {model.qualified_name}", found, len(rows))
        except psycopg.errors.UniqueViolation:
            if not may_delete:
                raise
            self.run(written("ROLLBACK TO SAVEPOINT rplctl_update"))
            expect_rows(
                f"delete from {model.qualified_name}", self.run(rows_sql.delete_staged(model, staged, width)), len(rows)
            )
            inserted = self.run(rows_sql.insert_staged(model, rows.columns, staged))
            expect_rows(f"insert into {model.qualified_name}", inserted, len(rows))
        self.run(written("RELEASE SAVEPOINT rplctl_update"))

    def insert_encoded(self, model: TableModel, rows: EncodedRows) -> None:
        if rows:
            lines = without_nul(rows.pieces, self._nul)
            found = self._copy(table(model), rows_sql.select_list(model, rows.columns), lines)
            expect_rows(f"insert into {model.qualified_name}", found, len(rows))

    def run_change(self, change: RowChange, model: TableModel) -> int:
        if change.kind is ChangeKind.INSERT:
            assert change.after is not None
            sql = rows_sql.insert_rows(model, change.after.columns, 1)
            return self.run(sql, self._parameters(model, change.after.columns, change.after.rows))
        assert change.before is not None
        if change.kind is ChangeKind.DELETE:
            where, values = self.where(model, change.before, 0)
            return self.run(written("DELETE FROM {} WHERE {}", rows_sql.escaped(table(model)), where), values)
        assert change.after is not None
        where, values = self.where(model, change.before, len(change.after.columns))
        sql = rows_sql.update_row(model, change.after.columns, where)
        return self.run(sql, self._parameters(model, change.after.columns, change.after.rows) | values)

    def where(self, model: TableModel, image: RowSet, first: int) -> tuple[Sql, Parameters]:
        """Return the condition that selects the row of an image, and its parameters, whose numbers begin at `first`.

        If the image has the key, the condition compares the key. Otherwise, it compares all columns of the image and
        selects only one row, as a MySQL replica does.
        """
        at = {column: i for i, column in enumerate(image.columns)}
        row, key = image.rows[0], key_of(model)
        if key and all(column in at for column in key):
            values = self._parameters(model, key, [tuple(row[at[column]] for column in key)], first)
            return rows_sql.by_key(model, first), values
        nulls = [value is None for value in row]
        where = rows_sql.by_row(model, image.columns, nulls, first)
        values = self._parameters(model, image.columns, [row], first)
        return where, {name: value for name, value in values.items() if value is not None}

    def _is_staged(self, rows: Sequence[Row]) -> bool:
        return _is_many(rows) and self._may_stage()

    def run(self, sql: Sql, values: Parameters | None = None) -> int:
        if values is None or not has_large(values.values()):
            return self._driver().execute(sql, values).rowcount
        with in_pieces(self._driver(), sql, values) as (sql, sent):
            return self._driver().execute(sql, sent).rowcount

    def _count(self, sql: Sql, values: Parameters | None = None) -> int:
        found = self._driver().execute(sql, values).fetchone()
        return int(found[0]) if found else 0

    def _key_groups(self, model: TableModel, keys: Sequence[Row]) -> Iterator[tuple[Sql, Parameters]]:
        for at in range(0, len(keys), rows_sql.ROWS_BY_PARAMETER):
            piece = keys[at : at + rows_sql.ROWS_BY_PARAMETER]
            yield rows_sql.where_keys(model, len(piece)), self._parameters(model, key_of(model), piece)

    def _parameters(self, model: TableModel, columns: Sequence[int], rows: Iterable[Row], first: int = 0) -> Parameters:
        kinds = [model.columns[c] for c in columns]
        texts = (text for row in rows for text in parameters(row, kinds, self._nul))
        return {f"c{number}": text for number, text in enumerate(texts, first)}

    def _staged(self, model: TableModel, columns: tuple[int, ...], rows: Sequence[Row] | EncodedRows) -> Sql:
        """Load rows into a stage, a table whose columns have the types of `columns`, and return its name.

        There is one stage for each table and list of columns. New rows replace the rows that were loaded before.
        """
        asked = (model.database, model.name, columns)
        if (name := self._stages.get(asked)) is not None:
            self.run(written("TRUNCATE {}", name))
        else:
            name = written("rplctl_stage_{}", len(self._stages))
            if not self._is_temporary:
                name = written("{}.{}_{}", quote(OWN_SCHEMA), name, self._driver().info.backend_pid)
            self._stages[asked] = name
            self.run(rows_sql.stage(model, columns, name, is_temporary=self._is_temporary))
        names = joined(", ", (written("c{}", i) for i in range(len(columns))))
        lines = (
            without_nul(rows.pieces, self._nul)
            if isinstance(rows, EncodedRows)
            else self._lines(model, RowSet(columns, list(rows)))
        )
        self._copy(name, names, lines)
        return name

    def _lines(self, model: TableModel, rows: RowSet) -> Iterator[bytes]:
        return copy_lines([model.columns[c] for c in rows.columns], rows.rows, self._nul)

    def _copy(self, name: Sql, columns: Sql, lines: Iterable[bytes | memoryview]) -> int:
        """Load COPY text into a table, and return the number of rows."""
        with self._driver().cursor() as cursor:
            with cursor.copy(rows_sql.copy_into(name, columns)) as copy:
                for piece in lines:
                    copy.write(piece)
            return cursor.rowcount


def _is_many(rows: Sequence[Row]) -> bool:
    return len(rows) > rows_sql.ROWS_BY_PARAMETER
