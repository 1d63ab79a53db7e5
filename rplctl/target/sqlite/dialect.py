"""Defines the properties of the target kind SQLite.

A target is a local file. It has one namespace for all tables, including rplctl's internal tables.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sqlalchemy import Connection, Engine

from rplctl.schema.naming import physical_name
from rplctl.sql_run import run
from rplctl.sql_text import written
from rplctl.target.dialect import POWER_CUT, WARN, Dialect, DoctorLine
from rplctl.target.own_types import OwnTypes
from rplctl.target.sqlite.ddl import DDL
from rplctl.target.sqlite.engine_log import open_sqlite_log
from rplctl.target.sqlite.errors import mapped_errors
from rplctl.target.sqlite.target import SqliteTarget, open_engine


class SqliteDialect(Dialect):
    name = "sqlite"
    title = "SQLite"
    own_schema = None
    is_one_file = True
    loads_alone = True
    ddl = DDL

    mapped_errors = staticmethod(mapped_errors)
    open_target = staticmethod(SqliteTarget)
    open_log = staticmethod(open_sqlite_log)

    def open_engine(self, url: str) -> Engine:
        return open_engine(url)

    def power_cut(self, connection: Connection, lost: str) -> Iterable[DoctorLine]:
        """Yield a warning if a power cut can lose the last commits.

        No commit is lost if synchronous is FULL (2) or EXTRA (3), because SQLite then syncs its log at each commit.
        """
        synchronous = str(run(connection, written("PRAGMA synchronous")).scalar())
        if synchronous not in ("2", "3"):
            text = f"synchronous is {synchronous}: loses the last commits"
            yield DoctorLine(Check=POWER_CUT, Result=WARN, Detail=text, Hint="PRAGMA synchronous=FULL")

    def own_types(self, rep_engine: str = "") -> OwnTypes:
        return OwnTypes(no_case="NOCASE")

    def place_of(self, database: str, table: str) -> tuple[str | None, str]:
        return None, physical_name(database, table)

    def is_missing(self, engine: Engine) -> bool:
        database = engine.url.database
        if not database or database == ":memory:" or database.startswith("file:"):
            return False
        return not Path(database).exists()

    def wait_at_most(self, connection: Connection, milliseconds: int) -> None:
        run(connection, written("PRAGMA busy_timeout={}", milliseconds))
        connection.rollback()


DIALECT = SqliteDialect()
