"""Reads the position of a target's own log, for `rplctl log-status` (WL#9452, Step-5: lock, collect, unlock).

    kind         key          figures
    mysql        InnoDB       LSN, LSN_checkpoint in bytes; from performance_schema.log_status (MySQL ≥ 8.0)
    mariadb      InnoDB       LSN, LSN_checkpoint in bytes; from status variables
    postgresql   PostgreSQL   LSN (pg_current_wal_lsn), LSN_checkpoint in PostgreSQL's format: 0/16B3748
    sqlite       SQLite       see sqlite/engine_log.py

Invariant: `lock` and `collect` never wait for a transaction of the target. An applier may have an open transaction
while it waits for this process (design D8). For anything else, `lock` and `collect` wait at most LONGEST_WAIT_S
seconds.

`Dialect.open_log` checks that the account has the privilege that the server requires for a backup. It raises error 1227
before any lock if the account lacks this privilege:

    MySQL ≥ 8.0           BACKUP_ADMIN
    MariaDB, MySQL 5.7    RELOAD, for BACKUP STAGE or FLUSH TABLES WITH READ LOCK
    PostgreSQL            EXECUTE on pg_backup_start
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from rplctl import mysql_errors as er
from rplctl.errors import TargetError
from rplctl.sql_run import ask
from rplctl.sql_text import Sql

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sqlalchemy import Connection, Engine

LONGEST_WAIT_S = 2
_DENIED_TEXT = "Access denied; you need (at least one of) the BACKUP_ADMIN privilege(s) for this operation"

Figures = dict[str, int | str]


class EngineLog(Protocol):
    name: str  # the key in STORAGE_ENGINES

    def lock(self) -> None: ...

    def collect(self) -> Figures:
        """Return the positions of the log, by name (LSN, LSN_checkpoint). Raises TargetError if the database fails."""

    def copy_to(self, path: Path) -> bool:
        """Copy the database, in its state at the call of `lock`, to the file `path`. Return False if the database is
        not a local file.
        """
        return False

    def unlock(self) -> None: ...

    def close(self) -> None: ...


def access_denied(hint: str) -> TargetError:
    """Return error 1227 for a missing privilege, with the text that WL#9452 I-2 defines."""
    return TargetError(_DENIED_TEXT, errno=er.SPECIFIC_ACCESS_DENIED_ERROR, hint=hint)


class ServerLog(EngineLog):
    """The log of a database server. The server locks its log within one statement, so `lock` does nothing."""

    name = ""

    def __init__(self, connection: Connection, errors: Callable[[], AbstractContextManager[None]]) -> None:
        self._connection, self._errors = connection, errors

    def lock(self) -> None: ...

    def unlock(self) -> None: ...

    def collect(self) -> Figures:
        with log_errors(self._errors):
            figures = self._figures()
            self._connection.rollback()
        return figures

    def close(self) -> None:
        self._connection.close()

    def _figures(self) -> Figures:
        raise NotImplementedError

    def _row(self, sql: Sql) -> Any:

        result = ask(self._connection, sql)
        return result.first() if result.returns_rows else None


def open_server_log(
    engine: Engine, errors: Callable[[], AbstractContextManager[None]], make: Callable[[Connection], EngineLog]
) -> EngineLog:
    """Connect to a server, and return its log. `errors` converts the driver's errors. Raises TargetError 1227 if the
    account lacks the privilege for a backup, and TargetError if the connection fails.
    """
    with log_errors(errors):
        connection = engine.connect()
    try:
        with log_errors(errors):
            return make(connection)
    except BaseException:
        connection.close()
        raise


@contextmanager
def log_errors(mapped: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
    """Convert the errors that the driver raises in a `with` block to TargetError, without the text of the statement."""
    from sqlalchemy.exc import SQLAlchemyError

    try:
        with mapped():
            yield
    except SQLAlchemyError as error:
        orig = getattr(error, "orig", None)
        raise TargetError(str(orig or type(error).__name__).strip().partition("\n")[0]) from None
