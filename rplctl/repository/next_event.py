"""`rplctl_next_event`: a view on the target that shows the next event to execute, with one row per channel (WL#4621).

SQL clients can read this view, which is the information schema of WL#4621. For a channel with a commit marker, the view
reads the position of the marker. For other channels, the view reads `slave_relay_log_info`. The marker, or the row of
this table, is committed together with the rows of the replicated tables. So a reader always sees the position that
belongs to the rows that it sees. With commit_mode=xa and a FILE, only the file has the position, and the view has no
row for the channel.

Invariant: the view never prevents a change of a table. It is dropped before one of its tables is rebuilt, and created
again afterwards. If the account may not create views, there is no view.
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
    """Create the view, or replace an outdated one, in the caller's transaction.

    If the target refuses the view, the function only logs a warning.
    """
    if not (there := lacks_next_event_view(connection)):
        return
    try:
        # On a target where DDL commits, the DDL would end the savepoint, so there is none.
        with nullcontext() if dialect_of(connection.dialect.name).ddl_commits else connection.begin_nested():
            drop_next_event_view(connection)
            _create(connection, there)
    except DBAPIError as error:
        log.warning("the view %s is not there: %s", VIEW, error.orig)


def lacks_next_event_view(connection: Connection) -> list[str]:
    """Return the tables that a new view must read, or [] if no new view is necessary.

    No new view is necessary if the view is up to date, or if none of the tables exists.
    """
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
    if dialect.view_security and _MARKER in tables:  # a reader of the view needs the privilege on both of its tables
        dialect.let_everyone_read(connection, own_name(connection, _MARKER))


def _column(connection: Connection, table: str, name: str) -> Sql:
    """Return the column's name in SQL, as this table spells it.

    PostgreSQL's slave_relay_log_info has column names in lower case; those of the commit marker keep their capital
    letters.
    """
    dialect = dialect_of(connection.dialect.name)
    return dialect.quoted(name) if table == _MARKER else word(dialect.stored_name(name))


def _as_text(connection: Connection, column: Sql, number: int) -> Sql:
    """Return the column in a form in which the view can compare and combine both tables.

    On MySQL and MariaDB, the two tables have different character sets and collations. So a text column gets a bytewise
    collation. `number`: the index of the column in COLUMNS.
    """
    if COLUMNS[number] == "Relay_log_name":  # slave_relay_log_info contains ./name, as the server writes it
        column = written("CASE WHEN SUBSTR({}, 1, 2) = './' THEN SUBSTR({}, 3) ELSE {} END", column, column, column)
    is_number = COLUMNS[number].endswith("_pos")
    return column if is_number else dialect_of(connection.dialect.name).bytewise(column)


def own_name(connection: Connection, name: str) -> Sql:
    """Return the SQL for the qualified name of one of rplctl's internal tables or views."""
    return dialect_of(connection.dialect.name).own_name(name)
