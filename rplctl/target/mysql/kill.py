"""KILL from a second connection: how a statement that runs on MySQL or MariaDB ends at once.

Killing the connection, not the statement, leaves nothing to chance: between two statements it counts too, and the
server rolls back by itself while we go.
"""

from __future__ import annotations

import time

from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError

from rplctl import mysql_errors as er
from rplctl.errors import TargetError
from rplctl.sql_run import run
from rplctl.sql_text import written
from rplctl.target.mysql.connection import mapped_errors

GONE_WITHIN_SECONDS = 1.0


class Killer:
    """The means to kill one target connection at a time."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._identifier = 0
        self._killed = 0

    def watch(self, identifier: int) -> None:
        """Set the connection that a kill is meant for."""
        self._identifier = identifier

    def kill(self) -> None:
        """Kill the connection, from another thread and only once. A server that is away needs no killing."""
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
        """Return the server's words for the lock that the connection waits for, or ''. Raises TargetError.

        Every account sees its own threads. Locks of rows are in INNODB_TRX, which requires PROCESS.
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
        """True if the present connection is killed."""
        return bool(self._killed) and self._killed == self._identifier

    def is_gone(self) -> bool:
        """True if the server has rolled back the changes of the killed connection; waits for a second at most."""
        deadline = time.monotonic() + GONE_WITHIN_SECONDS
        while self._killed:
            try:
                with mapped_errors(), self._engine.connect() as connection:
                    sql = written("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = {}", self._killed)
                    if not run(connection, sql).scalar():
                        break
            except TargetError:
                return False
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True
