"""Ends a running statement on MySQL or MariaDB at once, with KILL from a second connection.

KILL ends the whole connection of the statement. So it also works between two statements, and the server rolls back the
transaction without help of this process.
"""

from __future__ import annotations

from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError

from rplctl import mysql_errors as er
from rplctl.attempts import attempts
from rplctl.errors import TargetError
from rplctl.sql_run import run
from rplctl.sql_text import written
from rplctl.target.mysql.connection import mapped_errors

GONE_WITHIN_SECONDS = 1.0
_PAUSE_SECONDS = 0.02


class Killer:
    """Kills the target's connection that is in use, from another thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._identifier = 0
        self._killed = 0

    def watch(self, identifier: int) -> None:
        """Set the connection that `kill` ends. `identifier`: the server's id of the connection (CONNECTION_ID)."""
        self._identifier = identifier

    def kill(self) -> None:
        """Kill the watched connection, at most once. Any thread may call this. Ignore an unreachable server."""
        if not self._identifier or self._killed == self._identifier:
            return
        self._killed = self._identifier
        try:
            with mapped_errors(), self._engine.connect() as connection:
                run(connection, written("KILL {}", self._killed))
        except TargetError as error:
            if error.errno != er.NO_SUCH_THREAD and not error.transient:
                raise

    def lock_wait(self) -> str:
        """Return a text about the lock for which the watched connection waits, or '' if it does not wait. Raises
        TargetError if the server reports an error.

        Every account sees the state of its own threads. Locks of rows are in the table INNODB_TRX, which requires the
        privilege PROCESS. Without this privilege, return '' for a row lock.
        """
        if not self._identifier:
            return ""
        with mapped_errors(), self._engine.connect() as connection:
            sql = written("SELECT STATE FROM information_schema.PROCESSLIST WHERE ID = {}", self._identifier)
            state = str(run(connection, sql).scalar() or "")
            if state.startswith("Waiting for"):
                return state
            query = written(
                "SELECT trx_state FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id = {}", self._identifier
            )
            try:
                state = str(run(connection, query).scalar() or "")
            except OperationalError:  # without PROCESS
                return ""
        return "Waiting for a row lock of another session" if state == "LOCK WAIT" else ""

    @property
    def has_killed(self) -> bool:
        """True if `kill` has ended the watched connection, so that the target must connect again."""
        return bool(self._killed) and self._killed == self._identifier

    def is_gone(self) -> bool:
        """True if the killed connection has ended, so that its changes are rolled back. Wait at most one second."""
        if not self._killed:
            return True
        sql = written("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = {}", self._killed)
        try:
            for _ in attempts(GONE_WITHIN_SECONDS, _PAUSE_SECONDS):
                with mapped_errors(), self._engine.connect() as connection:
                    if not run(connection, sql).scalar():
                        return True
        except TargetError:
            return False
        return False
