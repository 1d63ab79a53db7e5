"""Executes SQL text with SQLAlchemy, but only text of the type `Sql` (design D27).

The expressions of SQLAlchemy do not need this module: they are built from table definitions, with bound parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rplctl.sql_text import Sql

if TYPE_CHECKING:
    from sqlalchemy import Connection, CursorResult, TextClause

    Found = CursorResult[*tuple[Any, ...]]


def run(connection: Connection, sql: Sql, values: tuple[Any, ...] | None = None) -> Found:
    """Execute SQL text whose parameters have the form of the driver, for example `%s` or `?`."""
    return connection.exec_driver_sql(sql, values) if values else connection.exec_driver_sql(sql)


def ask(connection: Connection, sql: Sql, values: Mapping[str, object] | None = None) -> Found:
    """Execute SQL text whose parameters have SQLAlchemy's form, `:name`."""
    return connection.execute(clause(sql), values)


def clause(sql: Sql) -> TextClause:
    """Return SQL text as an SQLAlchemy clause, which can be executed or be a part of an expression."""
    from sqlalchemy import text

    return text(sql)
