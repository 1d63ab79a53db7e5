"""The layouts of the repository tables, and the change of a table from one layout to another, which never loses a row.

    wl2775     the worklog's: Master_id, Lines, User, Ssl …, 32-bit positions
    mysql      the shipped server's (8.0.32): Channel_name, Number_of_lines, Enabled_ssl …
    rplctl     the server's columns and rplctl's: Using_gtid … Master_id (UNIQUE), Gtid_executed

The revision in migrations/versions that introduced a layout lists the columns, in the words of the servers' own
scripts. These lists never change. They differ from the scripts of the servers in two points. Heartbeat is DOUBLE,
because FLOAT is too inexact for 4294967.123. If a database lacks a type, the column has the nearest type that can store
all values (`ColumnTypes`).

Invariant: if the process is killed during a rebuild, the rebuild is complete or the next start repeats it. SQLite and
PostgreSQL rebuild a table in the caller's transaction. On MySQL and MariaDB, DDL commits implicitly. So rplctl fills a
new table there, and exchanges the two tables with one RENAME.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, MetaData, Table, inspect, select

from rplctl.repository.next_event import drop_next_event_view, own_name
from rplctl.sql_run import ask, clause
from rplctl.sql_text import standard_literal, written
from rplctl.target.registry import dialect_of

NAMES = ("slave_master_info", "slave_relay_log_info")
WL2775, MYSQL_LAYOUT, OURS = "wl2775", "mysql", "rplctl"
COMMENTS = dict(zip(NAMES, ("Master Information", "Relay Log Information"), strict=True))
_OURS_ONLY = {"using_gtid", "gtid_executed"}
_NEW, _OLD = "__rplctl_new", "__rplctl_old"

Columns = list[sa.Column[Any]]
Row = dict[str, Any]


class ColumnTypes:
    """The column types for the repository tables in the target's database.

    For MySQL and MariaDB they are MySQL's own types for a table of the engine `rep_engine`. For other databases they
    are the nearest types (target/own_types.py).
    """

    def __init__(self, dialect: str, rep_engine: str = "") -> None:
        self._dialect = dialect_of(dialect)
        self._types = types = self._dialect.own_types(rep_engine)
        self.text, self.long_text, self.switch = types.text, types.long_text, types.switch
        self.unsigned, self.position = types.unsigned, types.position
        self.seconds, self.short_seconds = types.seconds, types.short_seconds
        self.name, self.choice = types.name, types.choice

    def column(self, name: str, type_: Any, default: str | None = None, *, null: bool = True, **key: Any) -> Any:
        """Return the column of this name and type.

        `default`: '0' or a word in quotes. `key`: the argument `primary_key` or `unique` of SQLAlchemy's `Column`.
        """
        sql = self._types.off if default == "0" else standard_literal((default or "").strip("'"))
        stored = self._dialect.stored_name(name)
        return sa.Column(
            stored, type_, nullable=null, server_default=clause(sql) if default else None, autoincrement=False, **key
        )


def layout_of(connection: Connection, name: str) -> str | None:
    """Return the table's layout, which follows from its columns, or None if there is no such table.

    A table with columns of no known layout counts as `mysql` if it has a channel name, and as `wl2775` otherwise.
    """
    dialect = connection.dialect.name
    inspector = inspect(connection)
    if not inspector.has_table(name, schema=dialect_of(dialect).own_schema):
        return None
    columns = {str(column["name"]).lower() for column in inspector.get_columns(name, dialect_of(dialect).own_schema)}
    if columns & _OURS_ONLY:
        return OURS
    return MYSQL_LAYOUT if "channel_name" in columns else WL2775


def read_rows(connection: Connection, name: str) -> list[Row]:
    """Return every row of the table, with column names in lower case."""
    found = ask(connection, written("SELECT * FROM {}", own_name(connection, name)))
    return [{key.lower(): value for key, value in row.items()} for row in found.mappings()]


def create(connection: Connection, name: str, columns: Columns, rep_engine: str) -> Table:
    """Create the table in the given engine, with the server's comment.

    If the target supports column privileges, everyone may read all columns except the password. RENAME TABLE does not
    move these privileges, so `rebuild_table` grants them again after its RENAME.
    """
    dialect = dialect_of(connection.dialect.name)
    options: dict[str, Any] = {"comment": COMMENTS[name.partition("__")[0]]}
    options |= dialect.table_options(rep_engine)
    table = Table(name, MetaData(schema=dialect.own_schema), *columns, **options)
    table.create(connection)
    if not name.endswith(_NEW):
        dialect.let_everyone_read(connection, own_name(connection, name), _readable(column.name for column in columns))
    return table


def statements_for_readers(connection: Connection) -> list[str]:
    """Return the statements by which an administrator lets every user read the tables (REQ-1).

    The list is empty if everyone can already read the tables.
    """
    dialect = dialect_of(connection.dialect.name)
    found = {name: inspect(connection).get_columns(name, dialect.own_schema) for name in NAMES}
    tables = {own_name(connection, name): _readable(str(c["name"]) for c in found[name]) for name in NAMES}
    return dialect.statements_for_readers(connection, tables)


def _readable(columns: Iterable[str]) -> list[str]:
    return [name for name in columns if name.lower() not in ("user_password", "password")]


def rebuild_table(
    connection: Connection,
    name: str,
    columns_of: Callable[[str, str], dict[str, Columns]],
    convert: Callable[[Row], Row],
    rep_engine: str,
) -> None:
    """Rebuild the table with the columns of another layout, and convert each of its rows.

    `columns_of`: returns the columns of both tables for a database and an engine. `convert`: returns the new row for an
    old row. The table keeps its engine, except if `rep_engine` names another one.
    """
    drop_next_event_view(connection)  # PostgreSQL does not drop a table that a view depends on
    dialect = dialect_of(connection.dialect.name)
    rep_engine = rep_engine or dialect.engine_of(connection, name)
    columns = columns_of(connection.dialect.name, rep_engine)[name]
    rows = [convert(row) for row in read_rows(connection, name)]
    if not dialect.ddl_commits:
        ask(connection, written("DROP TABLE {}", own_name(connection, name)))
        _insert(connection, create(connection, name, columns, rep_engine), rows)
        return
    new, old, now = (own_name(connection, name + suffix) for suffix in (_NEW, _OLD, ""))
    _insert(connection, create(connection, name + _NEW, columns, rep_engine), rows)
    ask(connection, written("COMMIT"))
    ask(connection, written("RENAME TABLE {} TO {}, {} TO {}", now, old, new, now))
    ask(connection, written("DROP TABLE {}", old))
    dialect.let_everyone_read(connection, now, _readable(column.name for column in columns))


def sweep(connection: Connection, name: str) -> None:
    """Drop the temporary tables of a rebuild that was killed. None of them ever was the only copy of the rows."""
    if dialect_of(connection.dialect.name).ddl_commits:
        for suffix in (_NEW, _OLD):
            ask(connection, written("DROP TABLE IF EXISTS {}", own_name(connection, name + suffix)))


def _insert(connection: Connection, table: Table, rows: list[Row]) -> None:
    for row in rows:
        connection.execute(table.insert().values({column: row[column.name.lower()] for column in table.columns}))
    count = connection.execute(select(sa.func.count()).select_from(table)).scalar_one()
    assert count == len(rows), f"{count} of {len(rows)} rows arrived in {table.name}"
