"""Writes row changes as SQL for DuckDB. In the SQL, `t` is the target's table, and `s` has the given rows (`relation`).

If a row image lacks a generated column (binlog_row_image=MINIMAL), the SQL computes the column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from rplctl.schema.model import Column, TableModel
from rplctl.schema.row_key import key_of
from rplctl.sql_text import NOTHING, Sql, joined, written
from rplctl.target.ddl_parts import computed_values, quote
from rplctl.target.duckdb.conversion import shown
from rplctl.target.duckdb.ddl_type import table
from rplctl.target.duckdb.driver import DuckdbDriver
from rplctl.target.duckdb.relation import Relation


def insert(model: TableModel, columns: Sequence[int], given: Relation) -> Sql:
    values = _values(model, columns, NOTHING)
    names = joined(", ", (quote(model.columns[c].name) for c in values))
    return written(
        "INSERT INTO {} ({}) SELECT {} FROM {}", table(model), names, joined(", ", values.values()), given.sql
    )


def update_by_key(model: TableModel, columns: Sequence[int], given: Relation) -> Sql:
    """Return an UPDATE statement that finds rows by key. Each row in `given` has the new values, and then the key. If
    `columns` is empty, the statement only counts the existing rows.
    """
    key = key_of(model)
    if not columns:  # only key columns: check that the rows exist
        return count_by_key(model, given)
    where = joined(
        " AND ", (written("t.{} = s.c{}", quote(model.columns[c].name), len(columns) + i) for i, c in enumerate(key))
    )
    return written(
        "UPDATE {} AS t SET {} FROM {} WHERE {}", table(model), _assignments(model, columns), given.sql, where
    )


def update_row(model: TableModel, columns: Sequence[int], given: Relation, row: int) -> Sql:
    return written(
        "UPDATE {} AS t SET {} FROM {} WHERE t.rowid = {}", table(model), _assignments(model, columns), given.sql, row
    )


def delete_by_key(model: TableModel, given: Relation) -> Sql:
    return written("DELETE FROM {} AS t USING {} WHERE {}", table(model), given.sql, _by_key(model))


def count_by_key(model: TableModel, given: Relation) -> Sql:
    return written("SELECT count(*) FROM {} AS t, {} WHERE {}", table(model), given.sql, _by_key(model))


def delete_copies(model: TableModel, given: Relation) -> Sql:
    """Return a DELETE statement for equal rows in a table without a key. Each row in `given` has the values of all
    columns, and then the number of rows to delete.
    """
    width = len(model.columns)
    same = same_row(model, range(width))
    found = written(
        "SELECT t.rowid AS r, s.c{} AS n, row_number() OVER (PARTITION BY s.i) AS k FROM {} AS "
        "t, (SELECT *, row_number() OVER () AS i FROM {}) AS s WHERE {}",
        width,
        table(model),
        given.sql,
        same,
    )
    return written("DELETE FROM {} WHERE rowid IN (SELECT r FROM ({}) WHERE k <= n)", table(model), found)


def same_row(model: TableModel, columns: Sequence[int]) -> Sql:
    """Return the SQL condition that a row of `t` and a row of `s` are equal in these columns. NULL equals NULL."""
    key = set(key_of(model))
    terms = []
    for i, c in enumerate(columns):
        operator = written("=") if c in key else written("IS NOT DISTINCT FROM")
        terms.append(written("t.{} {} s.c{}", quote(model.columns[c].name), operator, i))
    return joined(" AND ", terms) or written("TRUE")


def identifying(model: TableModel, columns: Sequence[int]) -> tuple[int, ...]:
    """Return the columns (indexes) that identify the row of an image. These are the columns of the key, or all columns
    of the image if it lacks a column of the key.
    """
    key = key_of(model)
    return key if key and set(key) <= set(columns) else tuple(columns)


def unique_keys(model: TableModel) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield MySQL's name and the column indexes of each unique key that the target's table has."""
    at = {column.name: i for i, column in enumerate(model.columns)}
    for key in model.keys:
        if key.kind in ("primary", "unique") and not key.has_expression:
            yield "PRIMARY" if key.kind == "primary" else key.name, tuple(at[part.column] for part in key.parts)


def hides_numbers(model: TableModel) -> bool:
    """True if the table has a column named rowid, which hides DuckDB's row numbers of the same name."""
    return any(column.name.lower() == "rowid" for column in model.columns)


def decoded(column: Column, prefix: Sql = NOTHING) -> Sql:
    """Return SQL that reads a column and converts the value to the form in which the source's values are decoded."""
    value = written("{}{}", prefix, quote(column.name))
    return shown(column, value) if column.type in _SHOWN else value


_SHOWN = frozenset({"decimal", "date", "datetime", "timestamp", "time", "json", "uuid"})


def present_columns(driver: DuckdbDriver, model: TableModel) -> dict[str, str]:
    """Return the columns of the target's table in order (name → DuckDB's type), or {} if the table is missing."""
    sql = written(
        "SELECT column_name, data_type FROM duckdb_columns() WHERE database_name = current_catalog()"
        " AND lower(schema_name) = lower(?) AND lower(table_name) = lower(?) ORDER BY column_index"
    )
    return dict(driver.execute(sql, [model.database, model.name]).fetchall())


def is_all_there_is(driver: DuckdbDriver, model: TableModel) -> bool:
    """True if the target's table has as many columns as the model, and no trigger. Then no value is lost if a row is
    deleted and inserted again.
    """
    sql = written(
        "SELECT 1 FROM duckdb_triggers() WHERE lower(schema_name) = lower(?) AND lower(table_name) = lower(?)"
    )
    if driver.execute(sql, [model.database, model.name]).fetchone() is not None:
        return False
    return len(present_columns(driver, model)) == len(model.columns)


def _by_key(model: TableModel) -> Sql:
    return joined(
        " AND ", (written("t.{} = s.c{}", quote(model.columns[c].name), i) for i, c in enumerate(key_of(model)))
    )


def _assignments(model: TableModel, columns: Sequence[int]) -> Sql:
    return joined(
        ", ",
        (
            written("{} = {}", quote(model.columns[c].name), v)
            for c, v in _values(model, columns, written("t.")).items()
        ),
    )


def _values(model: TableModel, columns: Sequence[int], prefix: Sql) -> dict[int, Sql]:
    """Return the SQL of each value to write, by column index. A value comes from `s`, or is the expression of a
    generated column that the image lacks. `prefix`: the SQL before names of columns in such an expression.
    """
    given = {column: written("s.c{}", number) for number, column in enumerate(columns)}
    return given | computed_values(
        model,
        given,
        lambda c: given.get(c) or written("{}{}", prefix, quote(model.columns[c].name)),
        partial(written, "CAST({} AS HUGEINT)"),
    )
