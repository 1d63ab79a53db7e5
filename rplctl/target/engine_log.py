"""The position of a target's own log: the storage engines' part of WL#9452 (Step-5: lock, collect, unlock).

    kind         key          what
    mysql        InnoDB       LSN, LSN_checkpoint: bytes; MySQL ≥ 8.0 says them itself (performance_schema.log_status)
    mariadb      InnoDB       LSN, LSN_checkpoint: bytes, of its status variables
    postgresql   PostgreSQL   LSN (pg_current_wal_lsn), LSN_checkpoint, as PostgreSQL writes them: 0/16B3748
    sqlite       SQLite       see sqlite/engine_log.py

Invariant: `lock` and `collect` never wait for a transaction of the target (design D8: appliers hold one when they wait
for us), and for nothing else longer than LONGEST_WAIT_S. Whether the target's user may ask at all is checked by
`Dialect.open_log`, before any lock: without BACKUP_ADMIN there is error 1227 and nothing else. What counts as that is
what the server asks for a backup of its own: MySQL the privilege itself, MariaDB and MySQL 5.7 RELOAD (BACKUP STAGE,
FLUSH TABLES WITH READ LOCK), PostgreSQL the right to call pg_backup_start.
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
        """Return the figures of the log. Raises TargetError."""

    def copy_to(self, path: Path) -> bool:
        """Copy the database as it was when the log was locked; False for one that is no file of ours."""
        return False

    def unlock(self) -> None: ...

    def close(self) -> None: ...


def access_denied(hint: str) -> TargetError:
    """Return the error of WL#9452 I-2, in its words."""
    return TargetError(_DENIED_TEXT, errno=er.SPECIFIC_ACCESS_DENIED_ERROR, hint=hint)


class ServerLog(EngineLog):
    """A server locks its log inside one statement of ours: there is nothing to hold in between."""

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
    """Open the log of a server. Raises TargetError: 1227 without the privilege, and what connecting raises."""
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
    """Raise errors of the driver as TargetError, without the statement."""
    from sqlalchemy.exc import SQLAlchemyError

    try:
        with mapped():
            yield
    except SQLAlchemyError as error:
        orig = getattr(error, "orig", None)
        raise TargetError(str(orig or type(error).__name__).strip().partition("\n")[0]) from None
