"""Defines the methods of psycopg's connection and cursor that this package uses.

The type checker then refuses a statement that is a plain string and not an `Sql` (design D27).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, cast

import psycopg

from rplctl.sql_text import Sql

Values = Sequence[Any] | Mapping[str, Any]


class PostgresqlCursor(Protocol):
    """The methods of `psycopg.Cursor`, and of a named cursor on the server, that this package uses."""

    @property
    def rowcount(self) -> int: ...

    def execute(self, query: Sql, params: Values | None = None) -> object: ...

    def executemany(self, query: Sql, params_seq: Iterable[Values]) -> None: ...

    def fetchone(self) -> tuple[Any, ...] | None: ...

    def fetchmany(self, size: int = 0) -> list[tuple[Any, ...]]: ...

    def fetchall(self) -> list[tuple[Any, ...]]: ...

    def __iter__(self) -> Any: ...

    def copy(self, statement: Sql) -> AbstractContextManager[psycopg.Copy]: ...


class PostgresqlDriver(Protocol):
    """The methods of `psycopg.Connection` that this package uses."""

    @property
    def closed(self) -> bool: ...

    @property
    def info(self) -> psycopg.ConnectionInfo: ...

    def execute(self, query: Sql, params: Values | None = None) -> PostgresqlCursor: ...

    def cursor(self, name: str = "") -> AbstractContextManager[PostgresqlCursor]: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def cancel_safe(self, *, timeout: float) -> None: ...


def driver_of(connection: Any) -> PostgresqlDriver:
    """Return psycopg's connection, which a SQLAlchemy connection contains."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    return typed(driver)


def typed(connection: psycopg.Connection[Any]) -> PostgresqlDriver:
    return cast("PostgresqlDriver", connection)
