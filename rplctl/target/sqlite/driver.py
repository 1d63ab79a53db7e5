"""Defines the methods of sqlite3's connection that this package uses.

The type checker then refuses a statement that is a plain string and not an `Sql` (design D27).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from rplctl.sql_text import Sql


class SqliteDriver(Protocol):
    """The methods of `sqlite3.Connection` that this package uses. Each `execute` gets one statement."""

    text_factory: Any

    @property
    def in_transaction(self) -> bool: ...

    def execute(self, sql: Sql, parameters: Sequence[Any] = ..., /) -> sqlite3.Cursor: ...

    def executemany(self, sql: Sql, parameters: Iterable[Sequence[Any]], /) -> sqlite3.Cursor: ...

    def blobopen(self, table: str, column: str, row: int, /) -> sqlite3.Blob: ...

    def getlimit(self, category: int, /) -> int: ...

    def set_progress_handler(self, handler: Callable[[], int | None] | None, n: int) -> None: ...

    def backup(self, target: sqlite3.Connection) -> None: ...

    def close(self) -> None: ...


def driver_of(connection: Any) -> SqliteDriver:
    """Return sqlite3's connection, which a SQLAlchemy connection contains."""
    driver: sqlite3.Connection = connection.connection.driver_connection
    return driver
