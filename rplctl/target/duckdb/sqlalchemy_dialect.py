"""A dialect of DuckDB for SQLAlchemy. It has only the parts that rplctl's own tables need.

The package duckdb_engine 0.17 is not used, because it treats DuckDB as PostgreSQL, queries missing catalogs
(pg_collation), and reports no row counts. Invariant: only SQLAlchemy sends BEGIN and COMMIT. Results are read
completely, because a connection of DuckDB has only one result at a time. DuckDB has no savepoints. Therefore SAVEPOINT
does nothing, and ROLLBACK TO fails (error 1235).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import duckdb
import sqlalchemy as sa
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.engine.reflection import cache
from sqlalchemy.sql.compiler import GenericTypeCompiler

from rplctl import mysql_errors as er
from rplctl.errors import TargetError
from rplctl.sql_run import run
from rplctl.sql_text import NOTHING, Sql, written
from rplctl.target.duckdb.driver import DuckdbDriver

_COUNTS = re.compile(r"\s*(INSERT|UPDATE|DELETE)\b", re.IGNORECASE)
_SAVEPOINT = re.compile(r"\s*(ROLLBACK\s+TO|SAVEPOINT|RELEASE)\b", re.IGNORECASE)


class Cursor:
    """A cursor of the Python database API (PEP 249). It stores the complete result of its last statement."""

    arraysize = 1
    lastrowid = None

    def __init__(self, driver: DuckdbDriver) -> None:
        self._driver = driver
        self._rows: list[tuple[Any, ...]] = []
        self.description: Any = None
        self.rowcount = -1

    def execute(self, sql: Sql, parameters: Sequence[Any] = ()) -> Cursor:
        self._rows, self.description, self.rowcount = [], None, -1
        if (found := _SAVEPOINT.match(sql)) is not None:
            if found[1].upper().startswith("ROLLBACK"):
                raise TargetError(
                    "DuckDB has no savepoints, so replica_skip_errors and IDEMPOTENT cannot ignore an error: it ends "
                    "the transaction",
                    errno=er.NOT_SUPPORTED_YET,
                    hint="to skip the whole transaction, whose changes the target then lacks, run: rplctl skip "
                    "--yes; rplctl start",
                )
            return self
        self._driver.execute(sql, list(parameters))
        rows = self._driver.fetchall() if self._driver.description else []
        if _COUNTS.match(sql) and [name for name, *_ in self._driver.description or ()] == ["Count"]:
            self.rowcount = int(rows[0][0])
        else:
            self._rows, self.description = rows[::-1], self._driver.description
        return self

    def executemany(self, sql: Sql, rows: Sequence[Sequence[Any]]) -> Cursor:
        total = 0
        for row in rows:
            total += self.execute(sql, row).rowcount
        self.rowcount = total
        return self

    def fetchone(self) -> tuple[Any, ...] | None:
        return self._rows.pop() if self._rows else None

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        return [self._rows.pop() for _ in range(min(len(self._rows), size or 1))]

    def fetchall(self) -> list[tuple[Any, ...]]:
        rows, self._rows = self._rows[::-1], []
        return rows

    def close(self) -> None:
        self._rows = []


class DriverConnection:
    """A connection of the Python database API (PEP 249), for SQLAlchemy. `driver` is DuckDB's own connection."""

    def __init__(self, driver: DuckdbDriver) -> None:
        self.driver = driver
        self.in_transaction = False

    def cursor(self) -> Cursor:
        return Cursor(self.driver)

    def begin(self) -> None:
        self.driver.execute(written("BEGIN TRANSACTION"))
        self.in_transaction = True

    def commit(self) -> None:
        """Commit the open transaction, if there is one. If COMMIT fails, DuckDB has rolled the transaction back."""
        if self.in_transaction:
            self.in_transaction = False
            self.driver.execute(written("COMMIT"))

    def rollback(self) -> None:
        if self.in_transaction:
            self.in_transaction = False
            self.driver.execute(written("ROLLBACK"))

    def close(self) -> None:
        self.driver.close()


DBAPI = SimpleNamespace(
    paramstyle="qmark", threadsafety=1, apilevel="2.0", Binary=bytes, Error=duckdb.Error,
    **{name: getattr(duckdb, name) for name in (
        "InterfaceError", "DatabaseError", "DataError", "OperationalError", "IntegrityError", "InternalError",
        "ProgrammingError", "NotSupportedError",
    ) if hasattr(duckdb, name)},
)  # fmt: skip


class _Types(GenericTypeCompiler):
    def visit_FLOAT(self, type_: Any, **_: Any) -> str:
        return "FLOAT" if (type_.precision or 53) <= 24 else "DOUBLE"

    def visit_large_binary(self, type_: Any, **_: Any) -> str:
        return "BLOB"


class SqlalchemyDuckdb(DefaultDialect):
    name = "duckdb"
    driver = "duckdb"
    default_paramstyle = "qmark"
    supports_statement_cache = True
    supports_native_boolean = True
    supports_default_values = True
    supports_multivalues_insert = True
    supports_comments = False
    postfetch_lastrowid = False
    type_compiler_cls = _Types
    default_schema_name = "main"

    @classmethod
    def import_dbapi(cls) -> Any:
        return DBAPI

    def initialize(self, connection: Any) -> None:
        """Do nothing, because this dialect does not depend on properties of a server."""

    def do_begin(self, dbapi_connection: Any) -> None:
        getattr(dbapi_connection, "driver_connection", dbapi_connection).begin()

    def is_disconnect(self, e: Any, connection: Any, cursor: Any) -> bool:
        return isinstance(e, duckdb.FatalException)

    # Inspection of tables. Names of tables and schemas are compared without case, as in DuckDB.

    def _asked(self, connection: Any, what: Sql, of: Sql, where: Sql = NOTHING, *values: Any) -> list[Any]:
        sql = written("SELECT {} FROM duckdb_{}() WHERE database_name = current_catalog() {}", what, of, where)
        return [*run(connection, sql, values)]

    def has_table(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> bool:
        sql = written(
            "SELECT 1 FROM information_schema.tables WHERE table_catalog = current_catalog()"
            " AND lower(table_schema) = lower(?) AND lower(table_name) = lower(?)"
        )
        return bool(run(connection, sql, (schema or "main", table_name)).fetchall())

    def has_schema(self, connection: Any, schema_name: str, **kw: Any) -> bool:
        return schema_name.lower() in (name.lower() for name in self.get_schema_names(connection))

    def get_schema_names(self, connection: Any, **kw: Any) -> list[str]:
        return [name for (name,) in self._asked(connection, written("schema_name"), written("schemas"))]

    @cache
    def get_table_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        found = self._asked(
            connection, written("table_name"), written("tables"), written("AND schema_name = ?"), schema or "main"
        )
        return [name for (name,) in found]

    @cache
    def get_view_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        found = self._asked(
            connection,
            written("view_name"),
            written("views"),
            written("AND schema_name = ? AND NOT internal"),
            schema or "main",
        )
        return [name for (name,) in found]

    @cache
    def get_view_definition(self, connection: Any, view_name: str, schema: str | None = None, **kw: Any) -> str:
        where = written("AND schema_name = ? AND view_name = ?")
        return "".join(
            text
            for (text,) in self._asked(connection, written("sql"), written("views"), where, schema or "main", view_name)
        )

    @cache
    def get_columns(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        what = written("column_name, is_nullable, column_default")
        where = written("AND schema_name = ? AND table_name = ? ORDER BY column_index")
        found = self._asked(connection, what, written("columns"), where, schema or "main", table_name)
        if not found:
            raise sa.exc.NoSuchTableError(table_name)
        return [
            {"name": name, "type": sa.types.NULLTYPE, "nullable": nullable, "default": default}
            for name, nullable, default in found
        ]

    @cache
    def get_pk_constraint(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        where = written("AND schema_name = ? AND table_name = ? AND constraint_type = 'PRIMARY KEY'")
        found = self._asked(
            connection, written("constraint_column_names"), written("constraints"), where, schema or "main", table_name
        )
        return {"constrained_columns": found[0][0] if found else [], "name": None}
