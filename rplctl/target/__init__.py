"""Target databases, one module per kind; `open_engine` and `open_target` choose by the URL.

    sqlite:///PATH                  sqlite.py       the embedded default
    mysql://USER@HOST:PORT/         mysql.py        MySQL ≥ 5.7 and MariaDB ≥ 10.5; also mariadb://, +pymysql
    postgresql://USER@HOST:PORT/DB  postgresql.py   PostgreSQL ≥ 12; also postgres://, +psycopg, ?sslmode=verify-full …

SQLAlchemy is imported only when an engine is opened (design D16).
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from rplctl.errors import ConfigError

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from rplctl.handshake import Protection
    from rplctl.target.base import Target, TwoPhaseVerbs


def open_engine(url: str) -> Engine:
    """An engine whose transactions are real ones on every kind (SQLite: DDL included). Raises ConfigError."""
    kind = target_kind(url)
    if kind == "sqlite":
        from rplctl.target.sqlite import target as sqlite

        return sqlite.open_engine(url)
    if kind == "mysql":
        from rplctl.target.mysql import connection as mysql_connection

        return mysql_connection.open_engine(url)
    if kind == "postgresql":
        from rplctl.target.postgresql import connection as postgresql_connection

        return postgresql_connection.open_engine(url)
    raise _unknown(url)


def open_target(url: str) -> Target:
    """The target behind the URL, connected. Raises ConfigError, TargetError."""
    kind = target_kind(url)
    if kind == "sqlite":
        from rplctl.target.sqlite import target as sqlite

        return sqlite.SqliteTarget(open_engine(url))
    if kind == "mysql":
        from rplctl.target.mysql import target as mysql

        return mysql.MysqlTarget(open_engine(url))
    if kind == "postgresql":
        from rplctl.target.postgresql import target as postgresql

        return postgresql.PostgresqlTarget(open_engine(url))
    raise _unknown(url)


def two_phase_verbs(dialect: str) -> TwoPhaseVerbs | None:
    """What a kind of database has for two-phase commit, by SQLAlchemy's name of it; None when it cannot prepare."""
    if dialect in ("mysql", "mariadb"):
        from rplctl.target.mysql import two_phase as mysql_xa

        return mysql_xa
    if dialect == "postgresql":
        from rplctl.target.postgresql import two_phase as postgresql_xa

        return postgresql_xa
    return None


def mapped_errors(dialect: str) -> AbstractContextManager[None]:
    """For what runs on a target's connection outside of its module: its driver's errors become TargetError, with
    MySQL's number and whether trying again may help. `dialect` as SQLAlchemy names it.
    """
    if dialect == "postgresql":
        from rplctl.target.postgresql import connection as postgresql_connection

        return postgresql_connection.mapped_errors()
    if dialect == "sqlite":
        from rplctl.target.sqlite import errors as sqlite_error

        return sqlite_error.mapped_errors()
    from rplctl.target.mysql import connection as mysql_connection

    return mysql_connection.mapped_errors()


def protection(connection: Connection) -> Protection | None:
    """What protects a target's connection; None when there is no server."""
    if connection.dialect.name == "postgresql":
        from rplctl.target.postgresql import connection as postgresql_connection

        return postgresql_connection.protection(connection)
    if connection.dialect.name == "sqlite":
        return None
    from rplctl.target.mysql import connection as mysql_connection

    return mysql_connection.protection(connection)


def target_kind(url: str) -> str:
    """`sqlite:///x` → `sqlite`, `mariadb+pymysql://…` → `mysql`; drivers after a plus sign do not count."""
    scheme = url.partition("://")[0].partition("+")[0]
    return {"mariadb": "mysql", "postgres": "postgresql"}.get(scheme, scheme)


def _unknown(url: str) -> ConfigError:
    return ConfigError(
        f"target '{target_kind(url)}' is not a kind of database that rplctl can apply to",
        hint="write sqlite:///PATH, mysql://USER@HOST:PORT/ or postgresql://USER@HOST:PORT/DATABASE",
    )
