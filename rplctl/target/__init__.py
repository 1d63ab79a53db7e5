"""Target databases, with one folder for each kind. `open_engine` and `open_target` choose the kind by the target's URL.

    sqlite:///PATH                  sqlite/         the embedded default
    duckdb:///PATH                  duckdb/         DuckDB ≥ 2.0
    mysql://USER@HOST:PORT/         mysql/          MySQL ≥ 5.7 and MariaDB ≥ 10.5; also mariadb://, +pymysql
    postgresql://USER@HOST:PORT/DB  postgresql/     PostgreSQL ≥ 12; also postgres://, +psycopg, ?sslmode=verify-full …

    registry         the list of the kinds                dialect      the interface of a kind
    base             the interface of a target            value_form   the format of the values that a kind accepts
    own_types        column types of rplctl's tables      engine_log   the position of a target's own log (WL#9452)
    asked_once       a cache that channels share          one_connection   the base of targets with one connection
    compared         a target's rows, for verify          undo         a target's rows as SQL text, for repair

Most kinds except mysql translate the source's DDL (a `schema.plan.DdlPlan`) into their own SQL. These kinds share:

    ddl          the interface of a kind's DDL            ddl_parts          names, keys, foreign keys
    conversion   values after MODIFY                      computed_columns   values of added columns
    partition    the rows of a partition

SQLAlchemy is imported only when an engine is opened (design D16).
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, cast

from rplctl.target.registry import dialect_of, target_kind

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from rplctl.target.base import StatementTarget, Target, TwoPhaseVerbs
    from rplctl.target.engine_log import EngineLog

__all__ = [
    "dialect_of",
    "mapped_errors",
    "open_engine",
    "open_engine_log",
    "open_target",
    "statement_target",
    "target_kind",
    "two_phase_verbs",
]


def open_engine(url: str) -> Engine:
    """Return an SQLAlchemy engine for the target's URL. The engine uses real transactions on every kind of target (on
    SQLite also for DDL). Raises ConfigError if the URL is not valid.
    """
    return dialect_of(target_kind(url)).open_engine(url)


def open_target(url: str) -> Target:
    """Connect to the target that the URL names, and return the connected target. Raises ConfigError if the URL is not
    valid, and TargetError if the target does not answer.
    """
    dialect = dialect_of(target_kind(url))
    return dialect.open_target(dialect.open_engine(url))


def open_engine_log(engine: Engine) -> EngineLog | None:
    """Return the target's own log, or None if the database does not exist yet (for SQLite: no file).

    Raises TargetError 1227 if the account lacks the privilege BACKUP_ADMIN, and TargetError if the connection fails.
    """
    return dialect_of(engine.dialect.name).open_log(engine)


def statement_target(target: Target) -> StatementTarget | None:
    """Return the target itself if it can execute statements of the source (MySQL, MariaDB), else None."""
    return cast("StatementTarget", target) if dialect_of(target.kind).executes_statements else None


def two_phase_verbs(dialect: str) -> TwoPhaseVerbs | None:
    """Return the operations of two-phase commit for a kind of target, or None if the kind cannot prepare transactions.
    `dialect` is SQLAlchemy's name of the kind.
    """
    return dialect_of(dialect).two_phase


def mapped_errors(dialect: str) -> AbstractContextManager[None]:
    """Convert the errors that a database driver raises in a `with` block to TargetError. `dialect` is SQLAlchemy's name
    of the kind of target.
    """
    return dialect_of(dialect).mapped_errors()
