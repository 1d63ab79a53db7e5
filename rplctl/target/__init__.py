"""Target databases, one folder for each kind. `open_engine` and `open_target` choose the kind by the URL (`registry`).

    sqlite:///PATH                  sqlite/         the embedded default
    duckdb:///PATH                  duckdb/         DuckDB ≥ 2.0
    mysql://USER@HOST:PORT/         mysql/          MySQL ≥ 5.7 and MariaDB ≥ 10.5; also mariadb://, +pymysql
    postgresql://USER@HOST:PORT/DB  postgresql/     PostgreSQL ≥ 12; also postgres://, +psycopg, ?sslmode=verify-full …

    registry         the list of the kinds                dialect      the interface of a kind
    base             the interface of a target            value_form   the form in which a kind takes values
    own_types        column types of rplctl's tables      engine_log   the position of a target's log (WL#9452)
    asked_once       answers that channels share          one_connection   the base of targets with one connection
    compared         a target's rows, for verify          undo         a target's rows as SQL text, for repair

Kinds that do not speak MySQL translate a `schema.plan.DdlPlan` into their own DDL. Their folders share these modules:

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
    """Return an engine for the target's URL. It uses real transactions on every kind (on SQLite also for DDL). Raises
    ConfigError if the URL is not valid.
    """
    return dialect_of(target_kind(url)).open_engine(url)


def open_target(url: str) -> Target:
    """Connect to the target that the URL names, and return the target. Raises ConfigError if the URL is not valid, and
    TargetError if the target does not answer.
    """
    dialect = dialect_of(target_kind(url))
    return dialect.open_target(dialect.open_engine(url))


def open_engine_log(engine: Engine) -> EngineLog | None:
    """Return the log of the engine's database; None if the database does not exist yet (no SQLite file).

    Raises TargetError 1227 without the privilege BACKUP_ADMIN, and TargetError if the connection fails.
    """
    return dialect_of(engine.dialect.name).open_log(engine)


def statement_target(target: Target) -> StatementTarget | None:
    """Return the target as a StatementTarget; None if its kind does not execute statements."""
    return cast("StatementTarget", target) if dialect_of(target.kind).executes_statements else None


def two_phase_verbs(dialect: str) -> TwoPhaseVerbs | None:
    """Return a kind's operations for two-phase commit; None if the kind cannot prepare transactions."""
    return dialect_of(dialect).two_phase


def mapped_errors(dialect: str) -> AbstractContextManager[None]:
    """Map driver errors of the block to TargetError, in code that uses a target's connection outside of the target's
    folder. `dialect` is SQLAlchemy's name of the kind.
    """
    return dialect_of(dialect).mapped_errors()
