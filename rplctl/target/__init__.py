"""Target databases, with one folder for each kind. `open_engine` and `open_target` choose the kind by the target's URL.

SQLAlchemy is imported only when an engine is opened (design D16).

The kinds, and the URLs of their targets:

sqlite/           sqlite:///PATH, one local file; this kind is the default
duckdb/           duckdb:///PATH, one file of DuckDB ≥ 2.0
mysql/            mysql://USER@HOST:PORT/ for MySQL ≥ 5.7 and MariaDB ≥ 10.5; also mariadb://
postgresql/       postgresql://USER@HOST:PORT/DB for PostgreSQL ≥ 12; also postgres://
delta/            delta+file:///FOLDER or delta+s3://BUCKET/PREFIX, a lake of Delta tables
parquet/          parquet+file:///FOLDER, a lake of plain Parquet files

The interfaces of all kinds, and their common parts:

registry          the list of the kinds and of their modules
dialect           the interface that describes a kind, with common defaults
own_types         the column types of the tables that rplctl creates
base              the interface of a target: transactions, row changes and DDL
lake              the interface of targets that store rows in files
one_connection    the base class of targets that use one connection
value_form        the format of the values that a kind accepts
column_rows       rows that are stored as columns, for statements with many rows
compared          reads a target's rows for `rplctl verify`
undo              writes a target's rows as SQL text, for `rplctl repair`
engine_log        the position of a target's own log, for `rplctl log-status`
aborted           ends all connections of an engine from another thread
asked_once        caches answers for commands that check many channels

Most kinds, but not mysql, translate the source's DDL (a `schema.plan.DdlPlan`) into their own SQL. They share these
modules:

ddl               the base class that translates a plan into SQL
ddl_parts         names, keys, foreign keys, and the order of rows
computed_columns  computes the values of added columns for existing rows
computed_text     computes generated columns that use functions of texts
conversion        the rules that convert stored values after MODIFY
typed_conversion  these rules for PostgreSQL and DuckDB, which have typed columns
known_values      computes the values that a target's SQL cannot compute exactly
partition         conditions for the rows of a dropped partition
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
    """Return the object that reads the position of the database's own log, such as InnoDB's redo log.

    Return None if the database does not exist yet (for SQLite: no file). Raises TargetError 1227 if the account lacks
    the privilege for a backup, such as BACKUP_ADMIN. Raises TargetError if the connection fails.
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
