"""Row changes as SQL for PostgreSQL: with parameters for a few rows, with a staged table for many rows.

The functions only build text. In texts with parameters, psycopg's `%(cN)s` is the row's N-th value; PostgreSQL infers
its type from the statement, so a column to which an operator gave another type accepts all values that fit this type. A
staged table has the columns c0, c1, … in the order of the rows. Generated columns that an image lacks (MINIMAL) are
computed.
"""

from __future__ import annotations

from collections.abc import Sequence

from rplctl.schema.model import TableModel
from rplctl.sql_text import NOTHING, Sql, joined, percent_doubled, written
from rplctl.target.base import COPIES, key_of
from rplctl.target.ddl_parts import computed_values, quote
from rplctl.target.postgresql.ddl_type import declared, table

ROWS_BY_PARAMETER = 50  # at most so many changes of a table are sent without COPY
_AS_TEXT = written("::text")
MOST_PARAMETERS = 30_000  # the protocol allows 65,535


def select_list(model: TableModel, columns: Sequence[int]) -> Sql:
    return joined(", ", (quote(model.columns[c].name) for c in columns))


def stage(model: TableModel, columns: Sequence[int], name: Sql, *, is_temporary: bool) -> Sql:
    """Return the CREATE statement of an empty stage, a table for rows with these columns; a temporary one is dropped at
    COMMIT.
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
    """Return the DELETE of the rows whose keys are in the stage, from its column number `first` on."""
    return written("DELETE FROM {} AS t USING {} AS s WHERE {}", table(model), name, _joined(model, first))


def count_staged(model: TableModel, name: Sql) -> Sql:
    return written("SELECT count(*) FROM {} AS t JOIN {} AS s ON {}", table(model), name, _joined(model, 0))


def delete_copies(model: TableModel, nulls: Sequence[bool], name: Sql) -> Sql:
    """Return the DELETE of copies of those staged rows that have NULLs in exactly these columns (`nulls`). In the
    stage, the number of copies to delete follows each row's values. JSON is compared as text, as in `by_row`.
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
    """Return the UPDATE with the rows in the stage, which have the new values, then the keys."""
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
    """Return the INSERT of `count` rows, whose values are consecutive parameters."""
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
    """Return the condition for rows with one of `count` keys, whose values are consecutive parameters."""
    names = [escaped(quote(model.columns[c].name)) for c in key_of(model)]
    if len(names) == 1:
        return written("{} IN ({})", names[0], joined(", ", (written("%(c{})s", i) for i in range(count))))
    keys = (
        joined(" AND ", (written("{} = %(c{})s", name, row * len(names) + i) for i, name in enumerate(names)))
        for row in range(count)
    )
    return joined(" OR ", (written("({})", key) for key in keys))


def update_row(model: TableModel, columns: Sequence[int], where: Sql) -> Sql:
    """Return the UPDATE of one row; the parameters c0, c1, … are the new values."""
    values = {c: written("%(c{})s", i) for i, c in enumerate(columns)}
    typed = {c: written("{}::{}", value, declared(model.columns[c])) for c, value in values.items()}
    values |= _computed(model, values, typed, prefix=NOTHING)
    assignments = joined(
        ", ", (written("{} = {}", escaped(quote(model.columns[c].name)), value) for c, value in values.items())
    )
    return written("UPDATE {} SET {} WHERE {}", escaped(table(model)), assignments, where)


def by_key(model: TableModel, first: int) -> Sql:
    """Return the condition that selects a row by its key, whose values begin at parameter number `first`."""
    names = (escaped(quote(model.columns[c].name)) for c in key_of(model))
    return joined(" AND ", (written("{} = %(c{})s", name, first + i) for i, name in enumerate(names)))


def by_row(model: TableModel, columns: Sequence[int], nulls: Sequence[bool], first: int) -> Sql:
    """Return the condition that selects one row by these columns; NULL equals NULL. JSON is compared as text."""
    terms = []
    for i, (c, is_null) in enumerate(zip(columns, nulls, strict=True)):
        name = escaped(quote(model.columns[c].name))
        cast = _AS_TEXT if model.columns[c].type == "json" else NOTHING
        terms.append(written("{} IS NULL", name) if is_null else written("{}{} = %(c{})s", name, cast, first + i))
    where = joined(" AND ", terms) or written("TRUE")
    return written("ctid = (SELECT ctid FROM {} WHERE {} LIMIT 1)", escaped(table(model)), where)


def leaves_out_computed(model: TableModel, columns: Sequence[int]) -> bool:
    """True if rows with these columns lack generated columns that must be computed."""
    values = dict.fromkeys(columns, NOTHING)
    return bool(_computed(model, values, values, prefix=NOTHING))


def escaped(sql: Sql) -> Sql:
    """Double the percent signs in names, because psycopg reads a percent sign as the start of a parameter."""
    return percent_doubled(sql)


def _joined(model: TableModel, first: int) -> Sql:
    key = key_of(model)
    return joined(
        " AND ", (written("t.{} = s.c{}", quote(model.columns[c].name), first + i) for i, c in enumerate(key))
    )


def _computed(model: TableModel, given: dict[int, Sql], typed: dict[int, Sql], *, prefix: Sql) -> dict[int, Sql]:
    """Return generated column index → its expression over the given values and the row's other columns."""
    return computed_values(
        model, given, lambda c: typed.get(c) or written("{}{}", prefix, quote(model.columns[c].name))
    )
