"""The part of DuckDB's connection that this package uses. Its `execute` accepts only typed SQL (design D27)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import duckdb

from rplctl.sql_text import Sql


class DuckdbDriver(Protocol):
    """The part of `duckdb.DuckDBPyConnection` that this package uses. Typed SQL is important, because DuckDB accepts
    several statements in one text.
    """

    @property
    def description(self) -> Any: ...

    def execute(self, query: Sql, parameters: Sequence[Any] | None = None) -> duckdb.DuckDBPyConnection: ...

    def fetchall(self) -> list[Any]: ...

    def register(self, view_name: str, python_object: object) -> object: ...

    def unregister(self, view_name: str) -> object: ...

    def interrupt(self) -> None: ...

    def close(self) -> None: ...
