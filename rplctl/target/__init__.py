"""Target databases, one folder for each kind; `open_engine` and `open_target` choose by the URL (`registry`).

    sqlite:///PATH                  sqlite/         the embedded default
    duckdb:///PATH                  duckdb/         DuckDB ≥ 2.0
    mysql://USER@HOST:PORT/         mysql/          MySQL ≥ 5.7 and MariaDB ≥ 10.5; also mariadb://, +pymysql
    postgresql://USER@HOST:PORT/DB  postgresql/     PostgreSQL ≥ 12; also postgres://, +psycopg, ?sslmode=verify-full …

    registry     which kinds there are           dialect      interface of a kind
    base         interface of a target           value_form   in which form it takes values
    own_types    types of our own tables         engine_log   position of a target's log (WL#9452)
    asked_once   a question of many channels     one_connection   its transaction, and its end
    compared     rows of it as verify reads      undo         and as SQL text, for repair

DDL of kinds that do not speak MySQL is made of a `schema.plan.DdlPlan` in their folders; what they share:

    ddl          what a kind must say of it      ddl_parts          names, keys, foreign keys
    conversion   values under MODIFY             computed_columns   values of columns that are added
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
    """Return an engine whose transactions are real ones on every kind (SQLite: DDL included). Raises ConfigError."""
    return dialect_of(target_kind(url)).open_engine(url)


def open_target(url: str) -> Target:
    """Return the target that the URL names, connected. Raises ConfigError, TargetError."""
    dialect = dialect_of(target_kind(url))
    return dialect.open_target(dialect.open_engine(url))


def open_engine_log(engine: Engine) -> EngineLog | None:
    """Return the log of the database of the engine; None when there is none yet (no SQLite file).

    Raises TargetError 1227 without the privilege, and what connecting raises.
    """
    return dialect_of(engine.dialect.name).open_log(engine)


def statement_target(target: Target) -> StatementTarget | None:
    """Return the target as one that executes statements, if it does; else None."""
    return cast("StatementTarget", target) if dialect_of(target.kind).executes_statements else None


def two_phase_verbs(dialect: str) -> TwoPhaseVerbs | None:
    """Return the operations for two-phase commit of a kind of database; None when it cannot prepare."""
    return dialect_of(dialect).two_phase


def mapped_errors(dialect: str) -> AbstractContextManager[None]:
    """Map the errors of code that uses a target's connection outside of the target's folder. `dialect` is SQLAlchemy's
    name of the kind.
    """
    return dialect_of(dialect).mapped_errors()
