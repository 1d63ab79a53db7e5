"""SQL text on its way into SQLAlchemy: nothing but `Sql` (design D27).

Expressions of SQLAlchemy need no such way: they are made of models, with bound parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rplctl.sql_text import Sql

if TYPE_CHECKING:
    from sqlalchemy import Connection, CursorResult, TextClause

    Found = CursorResult[*tuple[Any, ...]]


def run(connection: Connection, sql: Sql, values: tuple[Any, ...] | None = None) -> Found:
    """Execute the text as the driver takes it."""
    return connection.exec_driver_sql(sql, values) if values else connection.exec_driver_sql(sql)


def ask(connection: Connection, sql: Sql, values: Mapping[str, object] | None = None) -> Found:
    """Execute the text with SQLAlchemy's parameters, `:name`."""
    return connection.execute(clause(sql), values)


def clause(sql: Sql) -> TextClause:
    """A part of an expression, or a whole one."""
    from sqlalchemy import text

    return text(sql)
