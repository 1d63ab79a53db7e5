"""The interface `Dialect`, which describes a kind of target. Each kind defines one object, `DIALECT`, in its folder.

The base class has the defaults that most kinds share. Invariant: a caller never needs to know the kind of a dialect.
"""

# ruff: noqa: B027 - a kind leaves the methods empty that it does not need

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from rplctl.errors import RplError
from rplctl.sql_text import NOTHING, Sql, double_quoted, word, written
from rplctl.system_zone import SYSTEM, SystemZone

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from rplctl.handshake import Protection
    from rplctl.target.base import Target, TwoPhaseVerbs
    from rplctl.target.ddl import Ddl
    from rplctl.target.engine_log import EngineLog
    from rplctl.target.lake import LakeTables
    from rplctl.target.own_types import OwnTypes

BEGIN = "rplctl_begin"  # SQLAlchemy's execution option with the statement that begins a transaction of SQLite
# For a transaction that reads and then writes. Without the write lock at its start, SQLite could reject the write.
TO_WRITE = {BEGIN: "BEGIN IMMEDIATE"}
OWN_SCHEMA = "rplctl"  # database or schema of rplctl's tables
OK, WARN, FAIL = "OK", "WARN", "FAIL"
POWER_CUT = "power cut"
RESTORE = "the target may be damaged: restore it from a backup then"


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorLine:
    """A line in the output of `rplctl doctor`. The names of the fields are the column headers."""

    Check: str
    Result: str  # OK | WARN | FAIL
    Detail: str
    Hint: str = ""


class Dialect(ABC):
    name: ClassVar[str]
    title: ClassVar[str]  # the name of the product in messages
    own_schema: ClassVar[str | None] = OWN_SCHEMA  # None: the kind has no schemas
    two_phase: TwoPhaseVerbs | None = None  # None: the kind cannot prepare transactions
    is_one_file: ClassVar[bool] = False  # the target is a local file with one namespace for all tables
    is_held: ClassVar[bool] = False  # only one process at a time can open the target's file
    loads_alone: ClassVar[bool] = False  # no parallel load: one writer at a time, or commits of others are invisible
    ddl: ClassVar[Ddl | None] = None  # None: the kind executes the source's DDL
    ddl_commits: ClassVar[bool] = False  # DDL commits the transaction
    executes_statements: ClassVar[bool] = False  # can execute the source's statements (D11), with a StatementTarget
    error_ends_transaction: ClassVar[bool] = False  # an error aborts the transaction, except after a savepoint
    has_savepoints: ClassVar[bool] = True
    to_crash_safe: ClassVar[str] = ""  # the statement that makes `{table}` crash safe
    view_security: ClassVar[Sql] = NOTHING  # clause of CREATE VIEW: a reader needs privileges on the view's tables
    cascade: ClassVar[Sql] = NOTHING  # suffix of DROP that also drops dependent objects
    verified_by: ClassVar[str] = ""  # the URL parameter that makes the driver verify the server's certificate
    follows_foreign_keys: ClassVar[bool] = True  # executes foreign key actions on rows of other tables
    commits_per_table: ClassVar[bool] = False  # a lake: each table commits separately, and the Target is a LakeTarget
    schema_word: ClassVar[Sql] = written("SCHEMA")  # SQL's word for a container of tables, as in DROP SCHEMA
    makes_primary_keys_late: ClassVar[bool] = False  # clone adds primary keys last: rows are not stored by key

    def own_name(self, table: str) -> Sql:
        """Return the quoted name of one of rplctl's own tables, with its schema if the kind has one."""
        return written("{}.{}", word(self.own_schema), word(table)) if self.own_schema else word(table)

    @abstractmethod
    def open_engine(self, url: str) -> Engine:
        """Return an SQLAlchemy engine for the URL. The engine uses real transactions, also for DDL if the kind supports
        transactional DDL. Raises ConfigError if the URL is not valid.
        """

    @abstractmethod
    def open_target(self, engine: Engine) -> Target:
        """Connect to the target through the engine, and return the target. Raises TargetError if the target does not
        answer.
        """

    @abstractmethod
    def mapped_errors(self) -> AbstractContextManager[None]:
        """Convert the errors that the driver raises in a `with` block to TargetError, with MySQL's error number. The
        TargetError of a transient error has `transient=True`.
        """

    @abstractmethod
    def open_log(self, engine: Engine) -> EngineLog | None:
        """Return the object that reads the position of the database's own log (WL#9452). Return None if the database
        does not exist yet. Raises TargetError 1227 if the account lacks the privilege for a backup (`engine_log`).
        """

    def has_rows(self, url: str) -> bool:
        """True if the target's tables contain the source's rows. False for a lake of change logs. Raises ConfigError if
        the URL is not valid.
        """
        return True

    def lake_tables(self, engine: Engine) -> LakeTables:
        """Return the tables of a lake. Only a kind with `commits_per_table` implements this method."""
        raise NotImplementedError

    def protection(self, connection: Connection) -> Protection | None:
        """Return the connection's protection (TLS or none). Return None if the kind of target has no server."""
        return None

    def rights(self, connection: Connection) -> Iterable[DoctorLine]:
        """Return the lines of `rplctl doctor` about the account's privileges and the server's settings."""
        return ()

    def time_zone(self, connection: Connection, zone: SystemZone) -> str:
        """Return the value of the session variable time_zone that means the source's system time zone `zone` on the
        target. Return '' if the target has no equal time zone.
        """
        return SYSTEM

    def foreign_key_grant(self, connection: Connection) -> str:
        """Return the GRANT statement that allows the account to load child rows before their parents. Return '' if the
        account needs no further privilege.
        """
        return ""

    def power_cut(self, connection: Connection, lost: str) -> Iterable[DoctorLine]:
        """Yield lines of `rplctl doctor` about settings with which a power cut can lose commits. `lost`: text about the
        consequence of a loss, for these lines.
        """
        return ()

    def beside(self, url: str) -> Iterable[DoctorLine]:
        """Yield the lines of `rplctl doctor` about files in the folder of the target. This needs no connection."""
        return ()

    def log_syncs(self, target: Target) -> int:
        """Return how many times the target has synced its log. Raises RplError if the target does not count syncs."""
        raise RplError("not counted: the target has no counter of its log's fsyncs")

    # rplctl's tables

    @abstractmethod
    def own_types(self, rep_engine: str = "") -> OwnTypes:
        """Return the column types for the tables that rplctl creates for itself, in the storage engine `rep_engine`."""

    def stored_name(self, name: str) -> str:
        """Return the form in which the target stores the name of a column if SQL has the name without quotes."""
        return name

    def quoted(self, name: str) -> Sql:
        """Return the quoted name of a column in one of rplctl's own tables, spelled as in the target's catalog."""
        return double_quoted(name)

    def place_of(self, database: str, table: str) -> tuple[str | None, str]:
        """Return the schema and the name that a table of the source has on the target. The schema is None if the kind
        of target has no schemas.
        """
        return database, table

    def is_missing(self, engine: Engine) -> bool:
        """True if the target's database does not exist yet, and a first query would create it."""
        return False

    def is_missing_at(self, url: str) -> bool:
        """True if the target's database does not exist yet. Unlike `is_missing`, this method needs no engine."""
        return False

    def table_options(self, rep_engine: str) -> dict[str, Any]:
        """Return the options with which SQLAlchemy creates a repository table in the storage engine `rep_engine`."""
        return {}

    def engine_of(self, connection: Connection, table: str) -> str:
        """Return the storage engine of `table` as a value of the option `rep_engine`. '' means the default engine."""
        return ""

    def is_crash_safe(self, connection: Connection, table: str) -> bool:
        """True if this table of rplctl is transactional, so that its rows survive a crash."""
        return True

    def let_everyone_read(self, connection: Connection, table: Sql, columns: Sequence[str] = ()) -> None:
        """Let every user of the target read these columns of the table; () means all columns (REQ-1). Do nothing if the
        kind has no GRANT to all users, or if the account lacks the privilege.
        """

    def statements_for_readers(self, connection: Connection, tables: Mapping[Sql, Sequence[str]]) -> list[str]:
        """Return statements for an administrator that let every user read these tables (REQ-1). The list is empty if
        `let_everyone_read` can do this. `tables`: table → its readable columns; () means all columns.
        """
        return []

    def bytewise(self, column: Sql) -> Sql:
        """Return SQL that compares a text column of rplctl's tables byte by byte, in any character set."""
        return column

    def make_own_schema(self, connection: Connection) -> None:
        """Create the schema or database of rplctl's tables, before the tables are created."""

    def lock_installation(self, connection: Connection) -> None:
        """Take a lock so that only one process creates rplctl's tables. The lock ends with the transaction or the
        session. Raises LockBusy if another process has the lock for one minute.
        """

    def add_key_column(self, connection: Connection, table: Sql) -> bool:
        """Add the column `Piece` to the primary key of the table rplctl_prepared_xa, with one ALTER TABLE. Return False
        if the kind cannot do this, so that the caller must create the table again.
        """
        return False

    def wait_at_most(self, connection: Connection, milliseconds: int) -> None:
        """Limit the wait for a lock on this connection. Nothing restores the setting, so the caller must not use the
        connection for other work later.
        """
