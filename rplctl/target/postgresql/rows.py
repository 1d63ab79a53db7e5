"""Writes row changes as SQL for PostgreSQL. A few rows are parameters, and many rows are in a table called the stage.

The functions only build text. In a text with parameters, psycopg's `%(cN)s` is the row's value number N. PostgreSQL
infers its type from the statement. So if an operator has given a column another type, the column accepts all values
that fit this type. A stage has the columns c0, c1, … in the order of the values in its rows. If a row image lacks
generated columns (binlog_row_image=MINIMAL), they are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from rplctl.schema.model import TableModel
from rplctl.schema.row_key import key_of
from rplctl.sql_text import NOTHING, Sql, joined, percent_doubled, written
from rplctl.target.base import COPIES
from rplctl.target.ddl_parts import computed_values, quote
from rplctl.target.postgresql.ddl_type import declared, table

ROWS_BY_PARAMETER = 50  # the limit for changes of a table that are sent as parameters, without COPY
_AS_TEXT = written("::text")
MOST_PARAMETERS = 30_000  # the protocol allows 65,535


def select_list(model: TableModel, columns: Sequence[int]) -> Sql:
    return joined(", ", (quote(model.columns[c].name) for c in columns))


def stage(model: TableModel, columns: Sequence[int], name: Sql, *, is_temporary: bool) -> Sql:
    """Return the statement that creates an empty stage, the table into which rows with these columns are loaded.

    `columns`: the indexes of the columns; COPIES is a column with a number of copies. PostgreSQL drops a temporary
    stage at COMMIT.
    """
    names = (written("0") if c == COPIES else quote(model.columns[c].name) for c in columns)
    columns_sql = joined(", ", (written("{} AS c{}", name, i) for i, name in enumerate(names)))
    if is_temporary:
        head = written("CREATE TEMP TABLE {} ON COMMIT DROP", name)
    else:
        head = written("CREATE UNLOGGED TABLE {}", name)
    return written("{} AS SELECT {} FROM {} WITH NO DATA", head, columns_sql, table(model))


def copy_into(name: Sql, columns: Sql) -> Sql:
    return written("COPY {} ({}) FROM STDIN", name, columns)


def delete_staged(model: TableModel, name: Sql, first: int = 0) -> Sql:
    """Return the statement that deletes the rows whose keys are in the stage `name`, in its columns from `first` on."""
    return written("DELETE FROM {} AS t USING {} AS s WHERE {}", table(model), name, _joined(model, first))


def count_staged(model: TableModel, name: Sql) -> Sql:
    return written("SELECT count(*) FROM {} AS t JOIN {} AS s ON {}", table(model), name, _joined(model, 0))


def delete_copies(model: TableModel, nulls: Sequence[bool], name: Sql) -> Sql:
    """Return the statement that deletes copies of rows from a table without a key.

    It deletes copies of the rows in the stage `name` that have NULL in exactly the columns which `nulls` marks as True.
    In the stage, the number of copies to delete follows the values of each row. JSON is compared as text.
    """
    terms = []
    for i, (column, is_null) in enumerate(zip(model.columns, nulls, strict=True)):
        cast = _AS_TEXT if column.type == "json" else NOTHING
        one, other = written("t.{}", quote(column.name)), written("s.c{}", i)
        terms.append(
            written("{} IS NULL AND {} IS NULL", one, other)
            if is_null
            else written("{}{} = {}{}", one, cast, other, cast)
        )
    found = written(
        "SELECT t.ctid AS r, s.c{} AS n, row_number() OVER (PARTITION BY s.ctid) AS k FROM {} AS t JOIN {} AS s ON {}",
        len(nulls),
        table(model),
        name,
        joined(" AND ", terms),
    )
    return written("DELETE FROM {} WHERE ctid = ANY (ARRAY(SELECT r FROM ({}) AS f WHERE k <= n))", table(model), found)


def update_staged(model: TableModel, columns: Sequence[int], name: Sql) -> Sql:
    """Return the statement that updates the table's rows from the stage `name`.

    A row of the stage has the new values of `columns`, and then the key of the row to update.
    """
    values = {c: written("s.c{}", i) for i, c in enumerate(columns)}
    assignments = joined(
        ", ",
        (
            written("{} = {}", quote(model.columns[c].name), value)
            for c, value in (values | _computed(model, values, values, prefix=written("t."))).items()
        ),
    )
    return written(
        "UPDATE {} AS t SET {} FROM {} AS s WHERE {}", table(model), assignments, name, _joined(model, len(columns))
    )


def insert_staged(model: TableModel, columns: Sequence[int], name: Sql) -> Sql:
    values = {c: written("s.c{}", i) for i, c in enumerate(columns)}
    values |= _computed(model, values, values, prefix=NOTHING)
    chosen = joined(", ", values.values())
    return written(
        "INSERT INTO {} ({}) SELECT {} FROM {} AS s", table(model), select_list(model, list(values)), chosen, name
    )


def insert_rows(model: TableModel, columns: Sequence[int], count: int) -> Sql:
    """Return the statement that inserts `count` rows, whose values are consecutive parameters, from c0 on."""
    width = len(columns)
    rows = []
    for row in range(count):
        values = {c: written("%(c{})s", row * width + i) for i, c in enumerate(columns)}
        typed = {c: written("{}::{}", value, declared(model.columns[c])) for c, value in values.items()}
        values |= _computed(model, values, typed, prefix=NOTHING)
        rows.append(written("({})", joined(", ", values.values())))
    names = escaped(select_list(model, list(values) if count else []))
    if not columns:
        return written("INSERT INTO {} DEFAULT VALUES", escaped(table(model)))
    return written("INSERT INTO {} ({}) VALUES {}", escaped(table(model)), names, joined(", ", rows))


def where_keys(model: TableModel, count: int) -> Sql:
    """Return the condition that selects the rows with one of `count` keys.

    The values of the keys are consecutive parameters, from c0 on.
    """
    names = [escaped(quote(model.columns[c].name)) for c in key_of(model)]
    if len(names) == 1:
        return written("{} IN ({})", names[0], joined(", ", (written("%(c{})s", i) for i in range(count))))
    keys = (
        joined(" AND ", (written("{} = %(c{})s", name, row * len(names) + i) for i, name in enumerate(names)))
        for row in range(count)
    )
    return joined(" OR ", (written("({})", key) for key in keys))


def update_row(model: TableModel, columns: Sequence[int], where: Sql) -> Sql:
    """Return the statement that updates the row which the condition `where` selects.

    The parameters c0, c1, … are the new values of `columns`.
    """
    values = {c: written("%(c{})s", i) for i, c in enumerate(columns)}
    typed = {c: written("{}::{}", value, declared(model.columns[c])) for c, value in values.items()}
    values |= _computed(model, values, typed, prefix=NOTHING)
    assignments = joined(
        ", ", (written("{} = {}", escaped(quote(model.columns[c].name)), value) for c, value in values.items())
    )
    return written("UPDATE {} SET {} WHERE {}", escaped(table(model)), assignments, where)


def by_key(model: TableModel, first: int) -> Sql:
    """Return the condition that selects a row by its key, whose values are the parameters from `first` on."""
    names = (escaped(quote(model.columns[c].name)) for c in key_of(model))
    return joined(" AND ", (written("{} = %(c{})s", name, first + i) for i, name in enumerate(names)))


def by_row(model: TableModel, columns: Sequence[int], nulls: Sequence[bool], first: int) -> Sql:
    """Return the condition that selects one row by the values of these columns.

    The values are the parameters from `first` on. `nulls`: True for each column that must be NULL. JSON is compared as
    text.
    """
    terms = []
    for i, (c, is_null) in enumerate(zip(columns, nulls, strict=True)):
        name = escaped(quote(model.columns[c].name))
        cast = _AS_TEXT if model.columns[c].type == "json" else NOTHING
        terms.append(written("{} IS NULL", name) if is_null else written("{}{} = %(c{})s", name, cast, first + i))
    where = joined(" AND ", terms) or written("TRUE")
    return written("ctid = (SELECT ctid FROM {} WHERE {} LIMIT 1)", escaped(table(model)), where)


def leaves_out_computed(model: TableModel, columns: Sequence[int]) -> bool:
    """True if rows that have only these columns lack a generated column, which must be computed."""
    values = dict.fromkeys(columns, NOTHING)
    return bool(_computed(model, values, values, prefix=NOTHING))


def escaped(sql: Sql) -> Sql:
    """Double the percent signs in the SQL text, because psycopg reads a percent sign as the start of a parameter."""
    return percent_doubled(sql)


def _joined(model: TableModel, first: int) -> Sql:
    key = key_of(model)
    return joined(
        " AND ", (written("t.{} = s.c{}", quote(model.columns[c].name), first + i) for i, c in enumerate(key))
    )


def _computed(model: TableModel, given: dict[int, Sql], typed: dict[int, Sql], *, prefix: Sql) -> dict[int, Sql]:
    """Return the SQL of the generated columns that must be computed, by the index of the column.

    `given`: the SQL of the values that the row has. `typed`: the same with a type, for use in an expression. A column
    that is not in `typed` is read from the table, with `prefix` before its name.
    """
    return computed_values(
        model,
        given,
        lambda c: typed.get(c) or written("{}{}", prefix, quote(model.columns[c].name)),
        partial(written, "{}::numeric"),
    )
