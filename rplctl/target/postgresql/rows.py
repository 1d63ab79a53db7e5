"""Row changes as SQL for PostgreSQL: by parameters for a few rows, by a staged table for many.

Pure: texts in, texts out. Texts with parameters have psycopg's `%(cN)s` for the row's N-th value; its type is taken
from where it stands, so a column that an operator gave another type takes what fits into it. A staged table has the
columns c0, c1, … in the order of the rows. Generated columns that a row leaves out are computed (MINIMAL images).
"""

from __future__ import annotations

from collections.abc import Sequence

from rplctl.schema.model import TableModel
from rplctl.target.base import COPIES, key_of
from rplctl.target.ddl_parts import computed_values, quote
from rplctl.target.postgresql.ddl_type import declared, table

ROWS_BY_PARAMETER = 50  # as many changes of a table go without COPY
MOST_PARAMETERS = 30_000  # of 65,535 that the protocol takes


def select_list(model: TableModel, columns: Sequence[int]) -> str:
    return ", ".join(quote(model.columns[c].name) for c in columns)


def stage(model: TableModel, columns: Sequence[int], name: str, *, is_temporary: bool) -> str:
    """CREATE of a staged table: the columns' own types, no rows; a temporary one goes with the transaction."""
    names = ("0" if c == COPIES else quote(model.columns[c].name) for c in columns)
    columns_sql = ", ".join(f"{name} AS c{i}" for i, name in enumerate(names))
    kind, end = ("TEMP", " ON COMMIT DROP") if is_temporary else ("UNLOGGED", "")
    return f"CREATE {kind} TABLE {name}{end} AS SELECT {columns_sql} FROM {table(model)} WITH NO DATA"


def copy_into(name: str, columns: str) -> str:
    return f"COPY {name} ({columns}) FROM STDIN"


def delete_staged(model: TableModel, name: str, first: int = 0) -> str:
    """The staged table holds keys from column `first` on."""
    return f"DELETE FROM {table(model)} AS t USING {name} AS s WHERE {_joined(model, first)}"


def count_staged(model: TableModel, name: str) -> str:
    return f"SELECT count(*) FROM {table(model)} AS t JOIN {name} AS s ON {_joined(model, 0)}"


def delete_copies(model: TableModel, nulls: Sequence[bool], name: str) -> str:
    """Of staged whole rows with NULLs in exactly these columns as many as the number behind them. JSON is compared as
    text, as in `by_row`.
    """
    terms = []
    for i, (column, is_null) in enumerate(zip(model.columns, nulls, strict=True)):
        cast = "::text" if column.type == "json" else ""
        one, other = f"t.{quote(column.name)}", f"s.c{i}"
        terms.append(f"{one} IS NULL AND {other} IS NULL" if is_null else f"{one}{cast} = {other}{cast}")
    found = (
        f"SELECT t.ctid AS r, s.c{len(nulls)} AS n, row_number() OVER (PARTITION BY s.ctid) AS k"
        f" FROM {table(model)} AS t JOIN {name} AS s ON {' AND '.join(terms)}"
    )
    return f"DELETE FROM {table(model)} WHERE ctid = ANY (ARRAY(SELECT r FROM ({found}) AS f WHERE k <= n))"


def update_staged(model: TableModel, columns: Sequence[int], name: str) -> str:
    """The staged table holds the new values, then the keys."""
    values = {c: f"s.c{i}" for i, c in enumerate(columns)}
    assignments = ", ".join(
        f"{quote(model.columns[c].name)} = {value}"
        for c, value in (values | _computed(model, values, values, prefix="t.")).items()
    )
    return f"UPDATE {table(model)} AS t SET {assignments} FROM {name} AS s WHERE {_joined(model, len(columns))}"


def insert_staged(model: TableModel, columns: Sequence[int], name: str) -> str:
    values = {c: f"s.c{i}" for i, c in enumerate(columns)}
    values |= _computed(model, values, values, prefix="")
    chosen = ", ".join(values.values())
    return f"INSERT INTO {table(model)} ({select_list(model, list(values))}) SELECT {chosen} FROM {name} AS s"


def insert_rows(model: TableModel, columns: Sequence[int], count: int) -> str:
    """INSERT of `count` rows; their values follow each other in the parameters."""
    width = len(columns)
    rows = []
    for row in range(count):
        values = {c: f"%(c{row * width + i})s" for i, c in enumerate(columns)}
        typed = {c: f"{value}::{declared(model.columns[c])}" for c, value in values.items()}
        values |= _computed(model, values, typed, prefix="")
        rows.append("(" + ", ".join(values.values()) + ")")
    names = escaped(select_list(model, list(values) if count else []))
    if not columns:
        return f"INSERT INTO {escaped(table(model))} DEFAULT VALUES"
    return f"INSERT INTO {escaped(table(model))} ({names}) VALUES {', '.join(rows)}"


def where_keys(model: TableModel, count: int) -> str:
    """Rows with one of `count` keys."""
    names = [escaped(quote(model.columns[c].name)) for c in key_of(model)]
    if len(names) == 1:
        return f"{names[0]} IN ({', '.join(f'%(c{i})s' for i in range(count))})"
    keys = (
        " AND ".join(f"{name} = %(c{row * len(names) + i})s" for i, name in enumerate(names)) for row in range(count)
    )
    return " OR ".join(f"({key})" for key in keys)


def update_row(model: TableModel, columns: Sequence[int], where: str) -> str:
    """UPDATE of one row: c0, c1, … are the new values."""
    values = {c: f"%(c{i})s" for i, c in enumerate(columns)}
    typed = {c: f"{value}::{declared(model.columns[c])}" for c, value in values.items()}
    values |= _computed(model, values, typed, prefix="")
    assignments = ", ".join(f"{escaped(quote(model.columns[c].name))} = {value}" for c, value in values.items())
    return f"UPDATE {escaped(table(model))} SET {assignments} WHERE {where}"


def by_key(model: TableModel, first: int) -> str:
    """The row whose key is in the parameters from number `first` on."""
    names = (escaped(quote(model.columns[c].name)) for c in key_of(model))
    return " AND ".join(f"{name} = %(c{first + i})s" for i, name in enumerate(names))


def by_row(model: TableModel, columns: Sequence[int], nulls: Sequence[bool], first: int) -> str:
    """One row that is equal in all these columns; NULL equals NULL. JSON is compared as text."""
    terms = []
    for i, (c, is_null) in enumerate(zip(columns, nulls, strict=True)):
        name = escaped(quote(model.columns[c].name))
        cast = "::text" if model.columns[c].type == "json" else ""
        terms.append(f"{name} IS NULL" if is_null else f"{name}{cast} = %(c{first + i})s")
    where = " AND ".join(terms) or "TRUE"
    return f"ctid = (SELECT ctid FROM {escaped(table(model))} WHERE {where} LIMIT 1)"


def leaves_out_computed(model: TableModel, columns: Sequence[int]) -> bool:
    """True when rows of these columns bring generated columns that are to be computed."""
    values = dict.fromkeys(columns, "")
    return bool(_computed(model, values, values, prefix=""))


def escaped(sql: str) -> str:
    """Names in a text with parameters: psycopg reads percent signs."""
    return sql.replace("%", "%%")


def _joined(model: TableModel, first: int) -> str:
    key = key_of(model)
    return " AND ".join(f"t.{quote(model.columns[c].name)} = s.c{first + i}" for i, c in enumerate(key))


def _computed(model: TableModel, given: dict[int, str], typed: dict[int, str], *, prefix: str) -> dict[int, str]:
    """Generated column → its expression over the given values and the row's own."""
    return computed_values(model, given, lambda c: typed.get(c, prefix + quote(model.columns[c].name)))
