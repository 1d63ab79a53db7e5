"""What the toy says of itself: SQLAlchemy knows it as `toy`, so nothing can take it for SQLite by the engine's name."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine import make_url

from rplctl.target.dialect import BEGIN
from rplctl.target.sqlite.dialect import SqliteDialect
from rplctl.target.sqlite.target import SqliteTarget


class SqlalchemyToy(SQLiteDialect_pysqlite):
    name = "toy"
    supports_statement_cache = True


class ToyTarget(SqliteTarget):
    kind = "toy"


class ToyDialect(SqliteDialect):
    name = "toy"

    def open_engine(self, url: str) -> Engine:
        registry.register("toy", __name__, "SqlalchemyToy")
        engine = create_engine(make_url(url), connect_args={"timeout": 5.0}, hide_parameters=True)

        @event.listens_for(engine, "connect")
        def configure(connection: Any, _record: object) -> None:
            connection.isolation_level = None
            connection.execute("PRAGMA journal_mode=WAL")

        @event.listens_for(engine, "begin")
        def begin(connection: Any) -> None:
            connection.exec_driver_sql(connection.get_execution_options().get(BEGIN, "BEGIN"))

        return engine

    def open_target(self, engine: Engine) -> ToyTarget:
        return ToyTarget(engine)


DIALECT = ToyDialect()
