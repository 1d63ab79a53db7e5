"""The dialect of the toy: SQLite's properties under another name, which SQLAlchemy knows too."""

from __future__ import annotations

from sqlalchemy import Engine
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

from rplctl.target.sqlite.dialect import SqliteDialect
from rplctl.target.sqlite.target import SqliteTarget


class SqlalchemyToy(SQLiteDialect_pysqlite):
    name = "toy"
    supports_statement_cache = True


class ToyTarget(SqliteTarget):
    """A file of the toy as a target (target.base.Target)."""

    kind = "toy"


class ToyDialect(SqliteDialect):
    name = "toy"
    title = "Toy"

    def open_engine(self, url: str) -> Engine:
        registry.register("toy", __name__, "SqlalchemyToy")
        return super().open_engine(url)

    def open_target(self, engine: Engine) -> ToyTarget:
        return ToyTarget(engine)


DIALECT = ToyDialect()
