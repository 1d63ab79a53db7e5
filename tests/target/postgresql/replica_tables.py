"""A PostgreSQL target in miniature for the tests: plan, guard, execute, keep the catalog; rows in neutral form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rplctl.errors import RplError
from rplctl.schema.context import DdlContext
from rplctl.schema.model import INTEGER_BITS, Column
from rplctl.schema.plan import Catalog, plan_ddl
from rplctl.sql_text import Sql
from rplctl.target.ddl_parts import quote
from rplctl.target.postgresql.conversion import bit_number, shown
from rplctl.target.postgresql.ddl import DDL
from rplctl.target.postgresql.ddl_type import table
from rplctl.target.postgresql.values import copy_lines
from tests.kit.servers import PostgresqlServer

DATABASE = "sd"


class PostgresqlTables:
    """Everything in one transaction that is rolled back at the end."""

    def __init__(self, server: PostgresqlServer, context: DdlContext | None = None) -> None:
        self.context = context or DdlContext()
        self.connection = server.connect()
        self.connection.autocommit = False
        self.connection.execute("SET timezone='UTC'")
        self.catalog = Catalog()

    def close(self) -> None:
        self.connection.rollback()
        self.connection.close()

    def run(self, sql: str, database: str = DATABASE, context: DdlContext | None = None) -> list[Sql]:
        """Carry out one statement, or nothing of it; returns what was executed."""
        plan = plan_ddl(sql, database, context or self.context, self.catalog)
        statements = DDL.emit(plan, self.catalog)
        with self.connection.transaction():
            for guard in DDL.guards(plan):
                if self.connection.execute(guard.query.encode()).fetchone():
                    raise RplError(guard.message, hint=guard.hint)
            for statement in statements:
                self.connection.execute(statement.encode())
        self.catalog = self.catalog.after(plan)
        return statements

    def insert(self, name: str, rows: Iterable[Sequence[Any]]) -> None:
        model = self.catalog.tables[DATABASE, name]
        names = ", ".join(quote(column.name) for column in model.columns)
        with self.connection.cursor() as cursor, cursor.copy(f"COPY {table(model)} ({names}) FROM STDIN".encode()) as c:
            bits = [column.type == "bit" for column in model.columns]  # recorded as SQLite keeps BIT(64)
            plain = [tuple(int(v) if bit and v else v for v, bit in zip(r, bits, strict=True)) for r in rows]
            for piece in copy_lines(model.columns, plain):
                c.write(piece)

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        model = self.catalog.tables[DATABASE, name]
        parts = ", ".join(_neutral(column) for column in model.columns)
        found = self.connection.execute(f"SELECT {parts} FROM {table(model)}".encode())
        wide = [column.type == "bit" or column.is_unsigned_64 for column in model.columns]
        rows = (tuple(int(v) if w and v else v for v, w in zip(row, wide, strict=True)) for row in found)
        return sorted(rows, key=repr)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql.encode()).fetchall()


def _neutral(column: Column) -> str:
    """The column as `event.values` gives it."""
    name = quote(column.name)
    if column.type == "bit":
        return f"{bit_number(column, name)}::text"
    if column.type in INTEGER_BITS and not column.is_unsigned_64:
        return f"{name}::bigint"
    if column.type == "float":
        return f"{name}::double precision"
    if column.type in ("year", "double", "binary", "varbinary", "vector", "geometry"):
        return name
    return name if column.type.endswith("blob") else shown(column, name)
