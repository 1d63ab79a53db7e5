"""A SQLite target in miniature for the tests: plan, guard, execute, keep the catalog."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from rplctl.errors import RplError
from rplctl.schema.context import DdlContext
from rplctl.schema.plan import Catalog, DdlPlan, plan_ddl
from rplctl.sql_text import Sql
from rplctl.target.ddl_parts import quote
from rplctl.target.sqlite import ddl

DATABASE = "sd"


class ReplicaTables:
    def __init__(self, context: DdlContext | None = None) -> None:
        self.context = context or DdlContext()
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.catalog = Catalog()
        self.last_plan: DdlPlan | None = None

    def run(self, sql: str, database: str = DATABASE, context: DdlContext | None = None) -> list[Sql]:
        """Carry out one statement in one transaction; returns what was executed."""
        plan = plan_ddl(sql, database, context or self.context, self.catalog)
        statements = ddl.DDL.emit(plan, self.catalog)
        for guard in ddl.DDL.guards(plan):
            if self.connection.execute(guard.query).fetchall():
                raise RplError(guard.message, hint=guard.hint)
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in statements:
                self.connection.execute(statement)
        except sqlite3.Error:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")
        self.catalog = self.catalog.after(plan)
        self.last_plan = plan
        return statements

    def insert(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        model = self.catalog.tables[DATABASE, table]
        marks = ", ".join("?" * len(model.columns))
        self.connection.executemany(f"INSERT INTO {ddl.table(model)} VALUES ({marks})", rows)

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        model = self.catalog.tables[DATABASE, table]
        names = ", ".join(quote(column.name) for column in model.columns)
        return sorted(self.connection.execute(f"SELECT {names} FROM {ddl.table(model)}").fetchall(), key=repr)

    def indexes(self) -> list[Sql]:
        rows = self.connection.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL")
        return sorted(name for (name,) in rows)
