"""Execute SQL text with SQLAlchemy: only `Sql` is accepted (design D27).

SQLAlchemy's own expressions do not need this module: they come from models, with bound parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rplctl.sql_text import Sql

if TYPE_CHECKING:
    from sqlalchemy import Connection, CursorResult, TextClause

    Found = CursorResult[*tuple[Any, ...]]


def run(connection: Connection, sql: Sql, values: tuple[Any, ...] | None = None) -> Found:
    """Execute the text in the driver's own form."""
    return connection.exec_driver_sql(sql, values) if values else connection.exec_driver_sql(sql)


def ask(connection: Connection, sql: Sql, values: Mapping[str, object] | None = None) -> Found:
    """Execute the text with SQLAlchemy's parameters, `:name`."""
    return connection.execute(clause(sql), values)


def clause(sql: Sql) -> TextClause:
    """Return the text as a part of an expression, or as a whole one."""
    from sqlalchemy import text

    return text(sql)
