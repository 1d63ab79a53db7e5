"""The interface by which a kind of target describes itself; one object for each kind, `DIALECT` in its folder's
`dialect`.

What most kinds have in common is said here. Invariant: who asks a dialect needs not know which one it is.
"""

# ruff: noqa: B027 - what a kind has no need of it leaves empty

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

OWN_SCHEMA = "rplctl"  # database or schema of rplctl's own tables
OK, WARN, FAIL = "OK", "WARN", "FAIL"
POWER_CUT = "power cut"
RESTORE = "the target may be damaged: restore it from a backup then"


@dataclass(frozen=True, slots=True)
class DoctorLine:
    """One line of `rplctl doctor`: field names are columns."""

    Check: str
    Result: str  # OK | WARN | FAIL
    Detail: str
    Hint: str = ""


class Dialect(ABC):
    name: ClassVar[str]
    title: ClassVar[str]  # the product's name, in messages
    own_schema: ClassVar[str | None] = OWN_SCHEMA  # None: beside the replicated tables
    two_phase: TwoPhaseVerbs | None = None  # None: it cannot prepare
    is_one_file: ClassVar[bool] = False  # a file of this machine, with one namespace for all tables
    is_held: ClassVar[bool] = False  # such a file as one process opens, and then no other
    loads_alone: ClassVar[bool] = False  # one writer, or a transaction never sees what others commit meanwhile
    ddl: ClassVar[Ddl | None] = None  # None: it executes the source's own
    ddl_commits: ClassVar[bool] = False  # DDL commits by itself
    executes_statements: ClassVar[bool] = False  # as the source logs them (D11): its Target is a StatementTarget
    error_ends_transaction: ClassVar[bool] = False  # but for a savepoint before it
    has_savepoints: ClassVar[bool] = True
    to_crash_safe: ClassVar[str] = ""  # statement that makes `{table}` crash safe
    view_security: ClassVar[Sql] = NOTHING  # who asks a view of ours needs rights of his own on its tables
    cascade: ClassVar[Sql] = NOTHING  # behind a DROP: with what depends on it
    verified_by: ClassVar[str] = ""  # word of a URL that has the server's certificate checked
    follows_foreign_keys: ClassVar[bool] = True  # their actions, on rows of other tables
    commits_per_table: ClassVar[bool] = False  # no transaction spans two: its Target is a LakeTarget
    schema_word: ClassVar[Sql] = written("SCHEMA")  # what holds tables, in its DROP
    makes_primary_keys_late: ClassVar[bool] = False  # of tables with rows: they do not lie in its order

    def own_name(self, table: str) -> Sql:
        """Return the name of a table of rplctl's own, as SQL has it."""
        return written("{}.{}", word(self.own_schema), word(table)) if self.own_schema else word(table)

    @abstractmethod
    def open_engine(self, url: str) -> Engine:
        """Return an engine whose transactions are real ones, DDL included where the kind can. Raises ConfigError."""

    @abstractmethod
    def open_target(self, engine: Engine) -> Target:
        """Return the target, connected through the engine. Raises TargetError."""

    @abstractmethod
    def mapped_errors(self) -> AbstractContextManager[None]:
        """The driver's errors become TargetError, with MySQL's number and whether trying again may help."""

    @abstractmethod
    def open_log(self, engine: Engine) -> EngineLog | None:
        """Return its own log (WL#9452); None when there is none yet. Raises TargetError 1227 without the privilege."""

    def has_rows(self, url: str) -> bool:
        """True if its tables hold the source's rows, not their changes. Raises ConfigError."""
        return True

    def lake_tables(self, engine: Engine) -> LakeTables:
        """Return the tables of a lake; only a kind that commits per table has them."""
        raise NotImplementedError

    def protection(self, connection: Connection) -> Protection | None:
        """Return how the connection is protected; None when there is no server."""
        return None

    def rights(self, connection: Connection) -> Iterable[DoctorLine]:
        """Return the lines of `doctor` about the account and the server's settings."""
        return ()

    def time_zone(self, connection: Connection, zone: SystemZone) -> str:
        """Return the time zone in which statements of a source are executed whose SYSTEM is `zone`; '' for none."""
        return SYSTEM

    def foreign_key_grant(self, connection: Connection) -> str:
        """Return the statement without which the account cannot load children before their parents; '' for none."""
        return ""

    def power_cut(self, connection: Connection, lost: str) -> Iterable[DoctorLine]:
        """Return lines about settings that let a power cut take a commit; `lost`: what is missing then."""
        return ()

    def beside(self, url: str) -> Iterable[DoctorLine]:
        """Return the lines of `doctor` about files that belong to the target. The target need not be open for this."""
        return ()

    def log_syncs(self, target: Target) -> int:
        """Return how often the target has synced its log. Raises RplError when it does not count."""
        raise RplError("not counted: the target has no counter of its log's fsyncs")

    # rplctl's own tables

    @abstractmethod
    def own_types(self, rep_engine: str = "") -> OwnTypes:
        """Return the column types, for a table of the engine `rep_engine`."""

    def stored_name(self, name: str) -> str:
        """Return a column's name as it is written in SQL that nobody quotes."""
        return name

    def quoted(self, name: str) -> Sql:
        """Return a column of `rplctl_…` tables, quoted; their names are as declared."""
        return double_quoted(name)

    def place_of(self, database: str, table: str) -> tuple[str | None, str]:
        """Return (schema, name) of a table of the source."""
        return database, table

    def is_missing(self, engine: Engine) -> bool:
        """True if there is no database yet, and a question to it would make it."""
        return False

    def is_missing_at(self, url: str) -> bool:
        """True if there is no database yet: as `is_missing`, for a kind whose state is in a file, before anything is
        opened.
        """
        return False

    def table_options(self, rep_engine: str) -> dict[str, Any]:
        """Return SQLAlchemy's options of a repository table in that engine."""
        return {}

    def engine_of(self, connection: Connection, table: str) -> str:
        """Return the value of `rep_engine` that gives a table this table's engine; '' for the default."""
        return ""

    def is_crash_safe(self, connection: Connection, table: str) -> bool:
        """True if the own table takes part in transactions and keeps its rows in a crash."""
        return True

    def let_everyone_read(self, connection: Connection, table: Sql, columns: Sequence[str] = ()) -> None:
        """Let any user read these columns of the table, or all (REQ-1). Does nothing if SQL cannot say that once, or if
        the account may not.
        """

    def statements_for_readers(self, connection: Connection, tables: Mapping[Sql, Sequence[str]]) -> list[str]:
        """Return the statements that an administrator executes for REQ-1 if `let_everyone_read` did nothing. `tables`:
        each table with its columns that any user can read; without any, all columns.
        """
        return []

    def bytewise(self, column: Sql) -> Sql:
        """Return a text column of our tables as one that is compared byte by byte, whatever the table's charset."""
        return column

    def make_own_schema(self, connection: Connection) -> None:
        """Create the schema or database of the own tables, before the tables are created."""

    def lock_installation(self, connection: Connection) -> None:
        """Admit one installer at a time, until the transaction or the session ends. Raises LockBusy after a minute."""

    def add_key_column(self, connection: Connection, table: Sql) -> bool:
        """Add `Piece` to the key of rplctl_prepared_xa in one ALTER. False if the caller must make the table again in
        the transaction.
        """
        return False

    def wait_at_most(self, connection: Connection, milliseconds: int) -> None:
        """Limit the wait for a lock, on a connection that is thrown away after it."""
