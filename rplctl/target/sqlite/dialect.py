"""SQLite: one file of this machine with one namespace for all tables; positions lie beside the replicated tables."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path

from sqlalchemy import Connection, Engine

from rplctl.target.dialect import Dialect
from rplctl.target.doctor_line import DoctorLine
from rplctl.target.engine_log import EngineLog
from rplctl.target.own_types import OwnTypes
from rplctl.target.sqlite.ddl import DDL
from rplctl.target.sqlite.doctor import power_cut
from rplctl.target.sqlite.engine_log import open_sqlite_log
from rplctl.target.sqlite.errors import mapped_errors
from rplctl.target.sqlite.target import SqliteTarget, open_engine


class SqliteDialect(Dialect):
    name = "sqlite"
    own_schema = None
    is_one_file = True
    ddl = DDL

    def open_engine(self, url: str) -> Engine:
        return open_engine(url)

    def open_target(self, engine: Engine) -> SqliteTarget:
        return SqliteTarget(engine)

    def mapped_errors(self) -> AbstractContextManager[None]:
        return mapped_errors()

    def open_log(self, engine: Engine) -> EngineLog | None:
        return open_sqlite_log(engine)

    def power_cut(self, connection: Connection, lost: str) -> Iterable[DoctorLine]:
        return power_cut(connection)

    def own_types(self, rep_engine: str = "") -> OwnTypes:
        return OwnTypes(no_case="NOCASE")

    def quoted(self, name: str) -> str:
        return f'"{name}"'

    def is_missing(self, engine: Engine) -> bool:
        database = engine.url.database
        if not database or database == ":memory:" or database.startswith("file:"):
            return False
        return not Path(database).exists()

    def wait_at_most(self, connection: Connection, milliseconds: int) -> None:
        connection.exec_driver_sql(f"PRAGMA busy_timeout={milliseconds}")
        connection.rollback()


DIALECT = SqliteDialect()
