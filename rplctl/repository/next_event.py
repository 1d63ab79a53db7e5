"""`rplctl_next_event`: the next event to execute, one row per channel, readable by SQL on the target (WL#4621).

The worklog's information schema. A view over what is committed with the rows: the commit marker where there is one,
else `slave_relay_log_info`; so it is exact at every moment that a reader of the rows can see. With commit_mode=xa and a
FILE the position is in that file, and the view has no row for the channel.
Invariant: the view stands in no table's way. It is dropped before a table under it is made anew, made again afterwards,
and an account that may not create views goes without it.
"""

from __future__ import annotations

import logging
from contextlib import nullcontext

from sqlalchemy import Connection, inspect
from sqlalchemy.exc import DBAPIError

from rplctl.sql_run import ask
from rplctl.sql_text import Sql, joined, word, written
from rplctl.target.registry import dialect_of

VIEW = "rplctl_next_event"
COLUMNS = ("Channel_name", "Master_log_name", "Master_log_pos", "Relay_log_name", "Relay_log_pos", "Gtid_executed")
KEPT_IN = "Kept_in"
_MARKER, _INFO = "rplctl_commit_marker", "slave_relay_log_info"

log = logging.getLogger(__name__)


def create_next_event_view(connection: Connection) -> None:
    """Make the view of the tables that are there, unless it is as it should be. In the caller's transaction."""
    if not (there := lacks_next_event_view(connection)):
        return
    try:
        # where DDL commits there is nothing to undo, and no savepoint left
        with nullcontext() if dialect_of(connection.dialect.name).ddl_commits else connection.begin_nested():
            drop_next_event_view(connection)
            _create(connection, there)
    except DBAPIError as error:
        log.warning("the view %s is not there: %s", VIEW, error.orig)


def lacks_next_event_view(connection: Connection) -> list[str]:
    """The tables that it is to be made of; [] where it is as it should be, or there is none of them."""
    schema = dialect_of(connection.dialect.name).own_schema
    inspector = inspect(connection)
    there = []
    for table in (_MARKER, _INFO):
        if inspector.has_table(table, schema):
            names = {str(column["name"]).lower() for column in inspector.get_columns(table, schema)}
            if {name.lower() for name in COLUMNS} <= names:
                there.append(table)
    if there and VIEW in inspector.get_view_names(schema):
        definition = str(inspector.get_view_definition(VIEW, schema))
        if [table for table in (_MARKER, _INFO) if table in definition] == there:
            return []
    return there


def drop_next_event_view(connection: Connection) -> None:
    ask(connection, written("DROP VIEW IF EXISTS {}", own_name(connection, VIEW)))


def _create(connection: Connection, tables: list[str]) -> None:
    parts: list[Sql] = []
    for table in tables:
        names = [_column(connection, table, name) for name in COLUMNS]
        chosen = joined(
            ", ",
            (
                written("{} AS {}", _as_text(connection, name, number), word(COLUMNS[number]))
                for number, name in enumerate(names)
            ),
        )
        part = written("SELECT {}, '{}' AS {} FROM {}", chosen, word(table), word(KEPT_IN), own_name(connection, table))
        if parts:
            first = _as_text(connection, _column(connection, _MARKER, COLUMNS[0]), 0)
            known = written("SELECT {} FROM {}", first, own_name(connection, _MARKER))
            part = written("{} WHERE {} NOT IN ({})", part, _as_text(connection, names[0], 0), known)
        parts.append(part)
    dialect = dialect_of(connection.dialect.name)
    view = own_name(connection, VIEW)
    ask(connection, written("CREATE {}VIEW {} AS {}", dialect.view_security, view, joined(" UNION ALL ", parts)))
    dialect.let_everyone_read(connection, view)
    if dialect.view_security and _MARKER in tables:  # who reads the view needs the right on both of its tables
        dialect.let_everyone_read(connection, own_name(connection, _MARKER))


def _column(connection: Connection, table: str, name: str) -> Sql:
    """Return the column as the table spells it: one of our two kinds of tables in PostgreSQL has its names in lower
    case.
    """
    dialect = dialect_of(connection.dialect.name)
    return dialect.quoted(name) if table == _MARKER else word(dialect.stored_name(name))


def _as_text(connection: Connection, column: Sql, number: int) -> Sql:
    """The two tables differ in charset and collation on MySQL and MariaDB: names are compared bytewise."""
    if COLUMNS[number] == "Relay_log_name":  # the table has it as the server writes it, ./name
        column = written("CASE WHEN SUBSTR({}, 1, 2) = './' THEN SUBSTR({}, 3) ELSE {} END", column, column, column)
    is_number = COLUMNS[number].endswith("_pos")
    return column if is_number else dialect_of(connection.dialect.name).bytewise(column)


def own_name(connection: Connection, name: str) -> Sql:
    """A table of rplctl's own, as SQL has it there."""
    return dialect_of(connection.dialect.name).own_name(name)
