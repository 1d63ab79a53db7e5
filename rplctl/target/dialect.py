"""The interface that describes a kind of target. Each kind has one object of it, `DIALECT` in the `dialect` of its
folder.

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

BEGIN = "rplctl_begin"  # execution option: the statement that begins a transaction of SQLite
# for a transaction that reads and then writes: SQLite takes the write lock first, or it could reject the write at once
TO_WRITE = {BEGIN: "BEGIN IMMEDIATE"}
OWN_SCHEMA = "rplctl"  # database or schema of rplctl's tables
OK, WARN, FAIL = "OK", "WARN", "FAIL"
POWER_CUT = "power cut"
RESTORE = "the target may be damaged: restore it from a backup then"


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorLine:
    """A line of `rplctl doctor`; the field names are the column headers."""

    Check: str
    Result: str  # OK | WARN | FAIL
    Detail: str
    Hint: str = ""


class Dialect(ABC):
    name: ClassVar[str]
    title: ClassVar[str]  # the product's name in messages
    own_schema: ClassVar[str | None] = OWN_SCHEMA  # None: rplctl's tables are next to the replicated tables
    two_phase: TwoPhaseVerbs | None = None  # None: the kind cannot prepare transactions
    is_one_file: ClassVar[bool] = False  # the target is a local file with one namespace for all tables
    is_held: ClassVar[bool] = False  # only one process at a time can open the target's file
    loads_alone: ClassVar[bool] = False  # one writer at a time, or transactions do not see each other's commits
    ddl: ClassVar[Ddl | None] = None  # None: the kind executes the source's DDL
    ddl_commits: ClassVar[bool] = False  # DDL commits the transaction
    executes_statements: ClassVar[bool] = False  # executes logged statements (D11): its Target is a StatementTarget
    error_ends_transaction: ClassVar[bool] = False  # an error aborts the transaction, except after a savepoint
    has_savepoints: ClassVar[bool] = True
    to_crash_safe: ClassVar[str] = ""  # statement that makes `{table}` crash safe
    view_security: ClassVar[Sql] = NOTHING  # clause of CREATE VIEW: a reader needs privileges on the view's tables
    cascade: ClassVar[Sql] = NOTHING  # suffix of DROP that also drops dependent objects
    verified_by: ClassVar[str] = ""  # URL parameter with which the server's certificate is verified
    follows_foreign_keys: ClassVar[bool] = True  # executes foreign key actions on rows of other tables
    commits_per_table: ClassVar[bool] = False  # no transaction spans two tables: its Target is a LakeTarget
    schema_word: ClassVar[Sql] = written("SCHEMA")  # SQL's word for a container of tables, as in DROP SCHEMA
    makes_primary_keys_late: ClassVar[bool] = False  # adds primary keys after loading: rows are not in key order

    def own_name(self, table: str) -> Sql:
        """Return the quoted name of one of rplctl's own tables, with its schema if the kind has one."""
        return written("{}.{}", word(self.own_schema), word(table)) if self.own_schema else word(table)

    @abstractmethod
    def open_engine(self, url: str) -> Engine:
        """Return an engine that uses real transactions, also for DDL if the kind supports transactional DDL. Raises
        ConfigError if the URL is not valid.
        """

    @abstractmethod
    def open_target(self, engine: Engine) -> Target:
        """Connect to the target through the engine, and return the target. Raises TargetError if the target does not
        answer.
        """

    @abstractmethod
    def mapped_errors(self) -> AbstractContextManager[None]:
        """Convert the driver's errors in the block to TargetError, with MySQL's number; transient errors are marked as
        such.
        """

    @abstractmethod
    def open_log(self, engine: Engine) -> EngineLog | None:
        """Return the database's own log (WL#9452); None if there is no database yet. Raises TargetError 1227 without
        the privilege BACKUP_ADMIN.
        """

    def has_rows(self, url: str) -> bool:
        """True if the target's tables contain the source's rows, not logs of changes. Raises ConfigError if the URL is
        not valid.
        """
        return True

    def lake_tables(self, engine: Engine) -> LakeTables:
        """Return the tables of a lake. Only a kind with `commits_per_table` implements this."""
        raise NotImplementedError

    def protection(self, connection: Connection) -> Protection | None:
        """Return how the connection is protected (TLS); None if the kind has no server."""
        return None

    def rights(self, connection: Connection) -> Iterable[DoctorLine]:
        """Return the lines of `doctor` about the account and the server's settings."""
        return ()

    def time_zone(self, connection: Connection, zone: SystemZone) -> str:
        """Return the session time zone for statements of a source whose system time zone is `zone`; '' for none."""
        return SYSTEM

    def foreign_key_grant(self, connection: Connection) -> str:
        """Return the GRANT that the account needs to load child rows before their parents; '' if none is needed."""
        return ""

    def power_cut(self, connection: Connection, lost: str) -> Iterable[DoctorLine]:
        """Yield lines of `doctor` about settings under which a power cut can lose commits. `lost`: text that names the
        loss.
        """
        return ()

    def beside(self, url: str) -> Iterable[DoctorLine]:
        """Yield the lines of `doctor` about files next to the target. The target need not be open for this."""
        return ()

    def log_syncs(self, target: Target) -> int:
        """Return how often the target has synced its log. Raises RplError if the target has no such counter."""
        raise RplError("not counted: the target has no counter of its log's fsyncs")

    # rplctl's tables

    @abstractmethod
    def own_types(self, rep_engine: str = "") -> OwnTypes:
        """Return the column types of rplctl's tables in the storage engine `rep_engine`."""

    def stored_name(self, name: str) -> str:
        """Return a column's name in the form that unquoted SQL uses."""
        return name

    def quoted(self, name: str) -> Sql:
        """Return the quoted name of a column of a `rplctl_…` table, in the spelling with which the column
        was created.
        """
        return double_quoted(name)

    def place_of(self, database: str, table: str) -> tuple[str | None, str]:
        """Return the schema and name that a table of the source has on the target; None if the kind has no schemas."""
        return database, table

    def is_missing(self, engine: Engine) -> bool:
        """True if the database does not exist yet and a query would create it."""
        return False

    def is_missing_at(self, url: str) -> bool:
        """True if the database does not exist yet, as in `is_missing`, but without an open engine."""
        return False

    def table_options(self, rep_engine: str) -> dict[str, Any]:
        """Return SQLAlchemy's options for a repository table in the storage engine `rep_engine`."""
        return {}

    def engine_of(self, connection: Connection, table: str) -> str:
        """Return the storage engine of `table`, as a value of the option `rep_engine`; '' for the default engine."""
        return ""

    def is_crash_safe(self, connection: Connection, table: str) -> bool:
        """True if this table of rplctl is transactional, and its rows survive a crash."""
        return True

    def let_everyone_read(self, connection: Connection, table: Sql, columns: Sequence[str] = ()) -> None:
        """Let every user of the target read these columns of the table, or all columns (REQ-1). Does nothing if no
        single GRANT can do this, or if the account lacks the privilege.
        """

    def statements_for_readers(self, connection: Connection, tables: Mapping[Sql, Sequence[str]]) -> list[str]:
        """Return the statements with which an administrator lets users read these tables if `let_everyone_read` did
        nothing (REQ-1). `tables`: the readable columns of each table; an empty sequence means all columns.
        """
        return []

    def bytewise(self, column: Sql) -> Sql:
        """Return SQL that compares a text column of rplctl's tables byte by byte, in any character set."""
        return column

    def make_own_schema(self, connection: Connection) -> None:
        """Create the schema or database of rplctl's tables, before the tables are created."""

    def lock_installation(self, connection: Connection) -> None:
        """Take the lock under which rplctl's tables are created, until the transaction or the session ends. Raises
        LockBusy after one minute.
        """

    def add_key_column(self, connection: Connection, table: Sql) -> bool:
        """Add the column `Piece` to the key of rplctl_prepared_xa in one ALTER. Return False if the caller must instead
        create the table again in the transaction.
        """
        return False

    def wait_at_most(self, connection: Connection, milliseconds: int) -> None:
        """Limit the wait for a lock. The setting is not restored, so the caller must not use the connection again."""
