"""Where a target's own log stands: the storage engines' part of WL#9452 (Step-5: lock, collect, unlock).

    kind         key          what
    mysql        InnoDB       LSN, LSN_checkpoint: bytes; MySQL ≥ 8.0 says them itself (performance_schema.log_status)
    mariadb      InnoDB       LSN, LSN_checkpoint: bytes, of its status variables
    postgresql   PostgreSQL   LSN (pg_current_wal_lsn), LSN_checkpoint, as PostgreSQL writes them: 0/16B3748
    sqlite       SQLite       see sqlite_log.py

Invariant: `lock` and `collect` never wait for a transaction of the target (design D8: appliers hold one when they wait
for us), and for nothing else longer than LONGEST_WAIT_S. Whether the target's user may ask at all is checked by
`open_engine_log`, before any lock: without BACKUP_ADMIN there is error 1227 and nothing else. What counts as that is
what the server asks for a backup of its own: MySQL the privilege itself, MariaDB and MySQL 5.7 RELOAD (BACKUP STAGE,
FLUSH TABLES WITH READ LOCK), PostgreSQL the right to call pg_backup_start.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import SQLAlchemyError

from rplctl.errors import TargetError
from rplctl.target.mysql.connection import mapped_errors

if TYPE_CHECKING:
    from pathlib import Path

LONGEST_WAIT_S = 2
ACCESS_DENIED = 1227
_DENIED_TEXT = "Access denied; you need (at least one of) the BACKUP_ADMIN privilege(s) for this operation"
_NO_TABLE = frozenset({1049, 1146})  # MySQL 5.7 has no performance_schema.log_status
_BACKUP_RIGHTS = re.compile(r"\b(?:ALL PRIVILEGES|RELOAD|SUPER)\b.* ON \*\.\* ")

Figures = dict[str, int | str]


class EngineLog(Protocol):
    name: str  # the key in STORAGE_ENGINES

    def lock(self) -> None: ...

    def collect(self) -> Figures:
        """Raises TargetError."""
        ...

    def unlock(self) -> None: ...

    def close(self) -> None: ...


def open_engine_log(engine: Engine) -> EngineLog | None:
    """The log of the database behind the engine; None when there is none yet (no SQLite file).

    Raises TargetError 1227 without the privilege, and what connecting raises.
    """
    kind = engine.dialect.name
    if kind == "sqlite":
        from rplctl.target.sqlite.engine_log import open_sqlite_log

        return open_sqlite_log(engine)
    with _errors(kind):
        connection = engine.connect()
    try:
        with _errors(kind):
            return PostgresqlLog(connection) if kind == "postgresql" else _mysql_log(connection)
    except BaseException:
        connection.close()
        raise


def access_denied(hint: str) -> TargetError:
    """WL#9452 I-2, in its words."""
    return TargetError(_DENIED_TEXT, errno=ACCESS_DENIED, hint=hint)


class _ServerLog:
    """A server locks its log inside one statement of ours: there is nothing to hold in between."""

    name = ""
    kind = ""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def lock(self) -> None: ...

    def unlock(self) -> None: ...

    def collect(self) -> Figures:
        with _errors(self.kind):
            figures = self._figures()
            self._connection.rollback()
        return figures

    def close(self) -> None:
        self._connection.close()

    def _figures(self) -> Figures:
        raise NotImplementedError

    def _row(self, sql: str) -> Any:
        return self._connection.execute(text(sql)).first()


class MysqlLog(_ServerLog):
    """MySQL ≥ 8.0: the row of its own log_status, which asks for BACKUP_ADMIN itself."""

    name = "InnoDB"
    kind = "mysql"

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._row(f"SET SESSION max_execution_time = {LONGEST_WAIT_S * 1000}, lock_wait_timeout = {LONGEST_WAIT_S}")
        self._figures()

    def _row(self, sql: str) -> Any:
        result = self._connection.execute(text(sql))
        return result.first() if result.returns_rows else None

    def _figures(self) -> Figures:
        row = self._row("SELECT STORAGE_ENGINES FROM performance_schema.log_status")
        found = json.loads(row[0]) if isinstance(row[0], str) else row[0]
        return dict(found.get("InnoDB", {}))


class InnodbStatusLog(MysqlLog):
    """MariaDB and MySQL 5.7: status variables, else what SHOW ENGINE INNODB STATUS says."""

    def __init__(self, connection: Connection, *, is_mariadb: bool) -> None:
        _ServerLog.__init__(self, connection)
        if is_mariadb:
            self._row(f"SET SESSION max_statement_time = {LONGEST_WAIT_S}, lock_wait_timeout = {LONGEST_WAIT_S}")
        grants = connection.execute(text("SHOW GRANTS")).scalars().all()
        if not any(_BACKUP_RIGHTS.search(f"{grant} ") for grant in grants):
            raise access_denied("GRANT RELOAD, PROCESS ON *.* to the target's user, then rplctl log-status")
        self._figures()

    def _figures(self) -> Figures:
        rows = self._connection.execute(text("SHOW GLOBAL STATUS LIKE 'Innodb_lsn%'")).all()
        found = {str(name).lower(): int(value) for name, value in rows}
        if "innodb_lsn_current" in found and "innodb_lsn_last_checkpoint" in found:
            return {"LSN": found["innodb_lsn_current"], "LSN_checkpoint": found["innodb_lsn_last_checkpoint"]}
        return innodb_status_figures(str(self._row("SHOW ENGINE INNODB STATUS")[2]))


class PostgresqlLog(_ServerLog):
    name = "PostgreSQL"
    kind = "postgresql"

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        wait = LONGEST_WAIT_S * 1000
        connection.execute(text(f"SET statement_timeout = {wait}"))
        connection.execute(text(f"SET lock_timeout = {wait}"))
        connection.commit()
        if not self._may_back_up():
            raise access_denied("GRANT EXECUTE ON FUNCTION pg_backup_start TO the target's user")
        self.collect()

    def _may_back_up(self) -> bool:
        """pg_start_backup until 14."""
        return bool(
            self._connection.execute(
                text(
                    "SELECT bool_or(has_function_privilege(oid, 'EXECUTE')) FROM pg_proc"
                    " WHERE proname IN ('pg_backup_start', 'pg_start_backup')"
                    " AND pronamespace = 'pg_catalog'::regnamespace"
                )
            ).scalar()
        )

    def _figures(self) -> Figures:
        row = self._row("SELECT pg_current_wal_lsn()::text, (SELECT redo_lsn::text FROM pg_control_checkpoint())")
        return {"LSN": str(row[0]), "LSN_checkpoint": str(row[1])}


def innodb_status_figures(status: str) -> Figures:
    """LSN and checkpoint of SHOW ENGINE INNODB STATUS. Raises TargetError when it does not say."""
    lsn = re.search(r"^Log sequence number\s+(\d+)", status, re.MULTILINE)
    checkpoint = re.search(r"^Last checkpoint at\s+(\d+)", status, re.MULTILINE)
    if not lsn or not checkpoint:
        raise TargetError("SHOW ENGINE INNODB STATUS says no log sequence number")
    return {"LSN": int(lsn[1]), "LSN_checkpoint": int(checkpoint[1])}


def _mysql_log(connection: Connection) -> EngineLog:
    version = str(connection.execute(text("SELECT version()")).scalar())
    if "mariadb" in version.lower():
        return InnodbStatusLog(connection, is_mariadb=True)
    try:
        with mapped_errors():
            return MysqlLog(connection)
    except TargetError as error:
        if error.errno not in _NO_TABLE and not version.startswith("5."):
            raise
    connection.rollback()
    return InnodbStatusLog(connection, is_mariadb=False)


@contextmanager
def _errors(kind: str) -> Iterator[None]:
    """What the driver raises, as TargetError without the statement."""
    try:
        if kind == "postgresql":
            yield
        else:
            with mapped_errors():
                yield
    except SQLAlchemyError as error:
        orig = getattr(error, "orig", None)
        raise TargetError(str(orig or type(error).__name__).strip().partition("\n")[0]) from None


def snapshot_of(log: EngineLog | None, path: Path) -> bool:
    """Copy the database as it was when `log` was locked, if it is a file of ours (SQLite)."""
    from rplctl.target.sqlite.engine_log import SqliteLog

    if not isinstance(log, SqliteLog):
        return False
    log.copy_to(path)
    return True
