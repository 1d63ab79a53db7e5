"""Reads the position of PostgreSQL's write-ahead log (WL#9452), in PostgreSQL's format, for example 0/16B3748."""

from __future__ import annotations

from contextlib import nullcontext

from sqlalchemy import Connection

from rplctl.sql_run import ask
from rplctl.sql_text import written
from rplctl.target.engine_log import LONGEST_WAIT_S, Figures, ServerLog, access_denied


class PostgresqlLog(ServerLog):
    name = "PostgreSQL"

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection, nullcontext)
        wait = LONGEST_WAIT_S * 1000
        ask(connection, written("SET statement_timeout = {}", wait))
        ask(connection, written("SET lock_timeout = {}", wait))
        connection.commit()
        may_back_up = written(
            "SELECT bool_or(has_function_privilege(oid, 'EXECUTE')) FROM pg_proc"
            " WHERE proname IN ('pg_backup_start', 'pg_start_backup')"  # pg_start_backup until PostgreSQL 14
            " AND pronamespace = 'pg_catalog'::regnamespace"
        )
        if not ask(connection, may_back_up).scalar():
            raise access_denied(
                "on the target, grant the user of the target's URL: GRANT EXECUTE ON FUNCTION pg_backup_start TO USER"
            )
        self.collect()

    def _figures(self) -> Figures:
        row = self._row(
            written("SELECT pg_current_wal_lsn()::text, (SELECT redo_lsn::text FROM pg_control_checkpoint())")
        )
        return {"LSN": str(row[0]), "LSN_checkpoint": str(row[1])}
