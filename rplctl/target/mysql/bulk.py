"""Applies net changes to MySQL and MariaDB in bulk, with LOAD DATA LOCAL from memory, without a file on either side.
For length-prefixed rows, which only MariaDB receives, bulk execution (`bulk_execute`) replaces LOAD DATA.

Invariant (design D2): nothing is upserted unnoticed. With LOCAL, the server skips duplicates and turns errors into
warnings, so rplctl checks the counts in the server's answer. All records that were sent must have arrived, without a
skipped record or a warning. The number of replaced, deleted or matched rows must equal the number of changes. If a
count differs, CountMismatch is raised; the applier then rolls back and tries a slower strategy.

    deletes   load the keys into a temporary table, then DELETE … JOIN; without a key, see `multiset`
    inserts   bulk execution of INSERT, or LOAD DATA
    updates   A or B if the table has one unique key and the rows have all its columns, otherwise C:
              A   for two or more length-prefixed rows: bulk execution of INSERT … ON DUPLICATE KEY UPDATE
              B   for rows that are not length-prefixed, if no foreign key references the table: LOAD DATA REPLACE;
                  then C if the server replaced fewer rows than sent, because it does not count unchanged rows
              C   load the rows into a temporary table, then UPDATE … JOIN; if rows exchange values of another
                  unique key, DELETE and INSERT instead

Bulk execution costs the server less than LOAD DATA, which scans every byte of a row for the end of the row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pymysql import err

from rplctl import mysql_errors as er
from rplctl.event.cells import LARGE_CELL
from rplctl.schema.model import Column, TableModel
from rplctl.schema.row_key import key_of
from rplctl.sql_text import NO_BYTES, SqlBytes, joined_bytes, written_bytes
from rplctl.target.base import (
    COPIES,
    CountMismatch,
    EncodedRows,
    RowSet,
    TableChunk,
    expect_rows,
    has_one_unique_key,
)
from rplctl.target.mysql.bulk_execute import BulkCounts, execute_length_prefixed
from rplctl.target.mysql.connection import LoadingConnection
from rplctl.target.mysql.multiset import COPIES_COLUMN, STAGE, MultisetRemover
from rplctl.target.mysql.rows import implicit_zeros, kept_times, table_name
from rplctl.target.mysql.values import is_equal, literal, quote

_STAGE = written_bytes(b"`rplctl`.`rplctl_stage`")  # the account has privileges in this database
_UNUSED = written_bytes(b"@rplctl_unused")
_PARAMETER = written_bytes(b"?")
_STAGES = frozenset({_STAGE, STAGE})
_NUMBERED = frozenset({"bit", "enum", "set"})  # LOAD DATA would read digits as text
_READ_AS_TEXT = frozenset({"json", "inet4", "inet6", "uuid"})  # the server would read bytes as the internal format


class BulkLoader:
    """Applies net changes in bulk. `send`: executes SQL and returns the number of matched rows for each statement.
    `ask`: executes a query and returns its rows.
    """

    def __init__(
        self,
        send: Callable[[SqlBytes], Sequence[int]],
        driver: Callable[[], LoadingConnection],
        ask: Callable[[SqlBytes], list[tuple[Any, ...]]],
    ) -> None:
        self._send = send
        self._driver = driver
        self._ask = ask
        self._multiset = MultisetRemover(send, ask)

    def remove_copies(self, rows: EncodedRows, model: TableModel) -> None:
        """Delete copies of rows in a table without a key. Each of `rows` has the values of a row, and then the number
        of copies to delete. Raises CountMismatch if the table has fewer copies of a row.
        """
        with self._multiset.stage(model) as stage:
            self._into(stage, rows, model)
            self._multiset.remove(model, rows.count)

    def remove(self, chunk: TableChunk, model: TableModel) -> None:
        """Delete the rows that the chunk deletes, and check that its keys in `absent` do not exist. Raises
        CountMismatch if a row is missing, or if a key in `absent` exists.
        """
        assert chunk.bulk is not None
        for keys, expected in ((chunk.bulk.absent, 0), (chunk.bulk.deletes, chunk.bulk.deletes.count)):
            if keys.count:
                with self._staged(keys, model):
                    expect_rows(f"delete from {model.qualified_name}", self._delete_staged(model), expected)

    def update(self, chunk: TableChunk, model: TableModel, *, is_parent: bool) -> None:
        """Set the chunk's new values in existing rows. `is_parent`: True if a foreign key references the table. REPLACE
        is then forbidden, because it deletes a row before it inserts the new row. Raises CountMismatch if a row is
        missing.
        """
        assert chunk.bulk is not None
        rows = chunk.bulk.updates
        if not rows.count:
            return
        if has_one_unique_key(model) and _are_whole(rows, model):
            if rows.length_prefixed and rows.count > 1:
                replaced = self._insert_length_prefixed(
                    table_name(model), rows, model, _values_of(rows, model)
                ).replaced
                return expect_rows(f"update of {model.qualified_name}", replaced, rows.count)
            if not rows.length_prefixed and not is_parent:
                self._send(written_bytes(b"SAVEPOINT rplctl_bulk"))
                if self._into(table_name(model), rows, model, written_bytes(b" REPLACE")).replaced == rows.count:
                    return
                self._send(written_bytes(b"ROLLBACK TO SAVEPOINT rplctl_bulk"))
        with self._staged(rows, model):
            self._update_staged(rows, model)

    def insert(self, chunk: TableChunk, model: TableModel) -> None:
        """Insert the chunk's rows, whose keys must be absent."""
        assert chunk.bulk is not None
        if chunk.bulk.inserts.count:
            self._into(table_name(model), chunk.bulk.inserts, model)

    def keeps_exactly(self, rows: RowSet, model: TableModel) -> bool:
        """True if the table's columns store the values of one row exactly without strict mode. The test inserts the row
        into a temporary table. If the row has a large value, return False without a test.
        """
        written = [(value, model.columns[c]) for value, c in zip(rows.rows[0], rows.columns, strict=True)]
        written = [(value, column) for value, column in written if column.generated is None]
        if any(isinstance(value, bytes | memoryview) and len(value) > LARGE_CELL for value, _ in written):
            return False
        with self._stage(rows.columns, model):
            values = joined_bytes(b", ", (literal(value, column) for value, column in written))
            self._send(written_bytes(b"INSERT INTO %s VALUES (%s)", _STAGE, values))
            same = joined_bytes(b" AND ", (is_equal(value, column) for value, column in written))
            return self._ask(written_bytes(b"SELECT COUNT(*) FROM %s WHERE %s", _STAGE, same)) == [(1,)]

    @contextmanager
    def _staged(self, rows: EncodedRows, model: TableModel) -> Iterator[None]:
        """Load the rows into the stage, a temporary table that exists during the `with` block."""
        with self._stage(rows.columns, model):
            self._into(_STAGE, rows, model)
            yield

    @contextmanager
    def _stage(self, columns: Sequence[int], model: TableModel) -> Iterator[None]:
        """Create the stage: a temporary table with these columns of the table. Equal types let joins use indexes."""
        names = joined_bytes(b", ", (quote(model.columns[c].name) for c in columns if c not in _generated(model)))
        empty = written_bytes(b"SELECT %s FROM %s WHERE FALSE", names, table_name(model))
        self._send(written_bytes(b"CREATE TEMPORARY TABLE %s %s", _STAGE, empty))
        try:
            yield
        finally:
            self._send(written_bytes(b"DROP TEMPORARY TABLE %s", _STAGE))

    def _into(self, table: SqlBytes, rows: EncodedRows, model: TableModel, how: SqlBytes = NO_BYTES) -> BulkCounts:
        if rows.length_prefixed:
            return self._insert_length_prefixed(table, rows, model)
        places, sets = [], []
        for number in rows.columns:
            if number == COPIES:
                places.append(COPIES_COLUMN)
                continue
            column = model.columns[number]
            if column.generated is not None:
                places.append(_UNUSED)
                continue
            value = _converted(column, written_bytes(b"@rplctl_%d", number))
            places.append(quote(column.name) if value is None else written_bytes(b"@rplctl_%d", number))
            if value is not None:
                sets.append(written_bytes(b"%s=%s", quote(column.name), value))
        if table not in _STAGES:
            zeros = implicit_zeros(model, rows.columns)
            sets += [written_bytes(b"%s=%s", quote(column.name), zero) for column, zero in zeros]
        return _whole(load_local(self._driver(), table, places, rows.pieces, sets=sets, how=how), rows, model)

    def _insert_length_prefixed(
        self, table: SqlBytes, rows: EncodedRows, model: TableModel, how: SqlBytes = NO_BYTES
    ) -> BulkCounts:
        columns = [model.columns[number] for number in rows.columns if number != COPIES]
        places = [(quote(column.name), _converted(column, _PARAMETER) or _PARAMETER) for column in columns]
        places += [(COPIES_COLUMN, _PARAMETER)] * (COPIES in rows.columns)
        if table not in _STAGES:
            places += [(quote(column.name), zero) for column, zero in implicit_zeros(model, rows.columns)]
        names = joined_bytes(b", ", (name for name, _ in places))
        sql = written_bytes(
            b"INSERT INTO %s (%s) VALUES (%s)%s", table, names, joined_bytes(b", ", (value for _, value in places)), how
        )
        return _whole(execute_length_prefixed(self._driver(), sql, rows), rows, model)

    def _delete_staged(self, model: TableModel) -> int:
        table = table_name(model)  # without an alias, which MySQL would look up in the default database
        how = written_bytes(b"%s AS s STRAIGHT_JOIN %s ON %s", _STAGE, table, _same_key(model))
        return self._send(written_bytes(b"DELETE FROM %s USING %s", table, how))[0]

    def _update_staged(self, rows: EncodedRows, model: TableModel) -> None:
        key = key_of(model)
        table = table_name(model)
        names = [quote(model.columns[c].name) for c in rows.columns if c not in key and c not in _generated(model)]
        sets = [written_bytes(b"%s.%s=s.%s", table, name, name) for name in names]
        stay = (quote(column.name) for column in kept_times(model, rows.columns))
        sets += [written_bytes(b"%s.%s=%s.%s", table, name, table, name) for name in stay]
        if not sets:  # only key columns: the UPDATE just checks that the rows exist
            name = quote(model.columns[key[0]].name)
            sets.append(written_bytes(b"%s.%s=s.%s", table, name, name))
        both = written_bytes(b"%s AS s STRAIGHT_JOIN %s ON %s", _STAGE, table, _same_key(model))
        self._send(written_bytes(b"SAVEPOINT rplctl_bulk"))
        try:
            found = self._send(written_bytes(b"UPDATE %s SET %s", both, joined_bytes(b", ", sets)))[0]
            expect_rows(f"update of {model.qualified_name}", found, rows.count)
        except err.IntegrityError as error:
            if error.args[0] != er.DUP_ENTRY or not _are_whole(rows, model):
                raise
            self._send(written_bytes(b"ROLLBACK TO SAVEPOINT rplctl_bulk"))
            expect_rows(f"delete from {model.qualified_name}", self._delete_staged(model), rows.count)
            columns = joined_bytes(
                b", ", (quote(model.columns[c].name) for c in rows.columns if c not in _generated(model))
            )
            copy = written_bytes(b"INSERT INTO %s (%s) SELECT %s FROM %s", table, columns, columns, _STAGE)
            expect_rows(f"insert into {model.qualified_name}", self._send(copy)[0], rows.count)


def _whole(loaded: BulkCounts, rows: EncodedRows, model: TableModel) -> BulkCounts:
    """Check the counts that the server reported for a load, and return them if all rows were loaded. Raises the
    driver's error 1265 if the server loaded all rows with a warning, and CountMismatch if it did not load all rows.
    """
    if loaded.warnings and (loaded.records, loaded.skipped) == (rows.count, 0):
        raise err.DataError(er.WARN_DATA_TRUNCATED, f"Data truncated in a load into {model.qualified_name}")
    if (loaded.records, loaded.skipped, loaded.warnings) != (rows.count, 0, 0):
        raise CountMismatch(f"load into {model.qualified_name}: {loaded}, expected {rows.count} records")
    return loaded


def _values_of(rows: EncodedRows, model: TableModel) -> SqlBytes:
    names = [quote(model.columns[number].name) for number in rows.columns]
    values = joined_bytes(b", ", (written_bytes(b"%s=VALUES(%s)", name, name) for name in names))
    return written_bytes(b" ON DUPLICATE KEY UPDATE %s", values)


def load_local(  # noqa: PLR0913 - the parts of one statement
    driver: LoadingConnection,
    table: SqlBytes,
    places: Iterable[SqlBytes],
    data: Iterable[bytes | memoryview],
    *,
    sets: Sequence[SqlBytes] = (),
    how: SqlBytes = NO_BYTES,
) -> BulkCounts:
    """Load `data`, the fields of rows as bytes, into a table with LOAD DATA LOCAL. Return the server's counts.

    `places`: the columns or user variables that receive the fields. `sets`: the assignments of the SET clause. `how`:
    empty, or ` REPLACE`.
    """
    given = written_bytes(b" SET %s", joined_bytes(b", ", sets)) if sets else NO_BYTES
    sql = written_bytes(
        b"LOAD DATA LOCAL INFILE 'rplctl'%s INTO TABLE %s CHARACTER SET binary (%s)%s",
        how,
        table,
        joined_bytes(b", ", places),
        given,
    )
    driver.local_data = data
    try:
        with driver.cursor() as cursor:
            cursor.execute(sql)
            message = driver.last_message()
    finally:
        driver.local_data = None
    return BulkCounts(*map(int, re.findall(rb": *(\d+)", message)))


def _are_whole(rows: EncodedRows, model: TableModel) -> bool:
    return len(rows.columns) == len(model.columns)


def _generated(model: TableModel) -> frozenset[int]:
    return frozenset(i for i, column in enumerate(model.columns) if column.generated is not None)


def _same_key(model: TableModel) -> SqlBytes:
    names = [quote(model.columns[c].name) for c in key_of(model)]
    return joined_bytes(b" AND ", (written_bytes(b"%s.%s=s.%s", table_name(model), name, name) for name in names))


def _converted(column: Column, variable: SqlBytes) -> SqlBytes | None:
    """Return SQL that converts a field from a variable to the column's type, or None if no conversion is needed.
    Without the conversion, LOAD DATA would misread fields of some types.
    """
    if column.type in _NUMBERED:
        return written_bytes(b"CAST(%s AS UNSIGNED)", variable)
    if column.type in _READ_AS_TEXT:
        return written_bytes(b"CONVERT(%s USING utf8mb4)", variable)
    return None
