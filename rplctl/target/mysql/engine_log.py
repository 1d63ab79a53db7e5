"""Reads the position of InnoDB's log (WL#9452): from log_status on MySQL ≥ 8.0, else from the server's status."""

from __future__ import annotations

import json
import re
from typing import Final

from sqlalchemy import Connection

from rplctl import mysql_errors as er
from rplctl.errors import TargetError
from rplctl.sql_run import ask
from rplctl.sql_text import written
from rplctl.target.engine_log import LONGEST_WAIT_S, EngineLog, Figures, ServerLog, access_denied
from rplctl.target.mysql.connection import mapped_errors

_NO_TABLE: Final = frozenset({er.BAD_DB_ERROR, er.NO_SUCH_TABLE})  # MySQL 5.7 has no performance_schema.log_status
_BACKUP_RIGHTS: Final = re.compile(r"\b(?:ALL PRIVILEGES|RELOAD|SUPER)\b.* ON \*\.\* ")


def log_of_server(connection: Connection) -> EngineLog:
    version = str(ask(connection, written("SELECT version()")).scalar())
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


class MysqlLog(ServerLog):
    """The log of MySQL ≥ 8.0, read from performance_schema.log_status. The server requires BACKUP_ADMIN for this."""

    name = "InnoDB"

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection, mapped_errors)
        self._row(
            written(
                "SET SESSION max_execution_time = {}, lock_wait_timeout = {}", LONGEST_WAIT_S * 1000, LONGEST_WAIT_S
            )
        )
        self._figures()

    def _figures(self) -> Figures:
        row = self._row(written("SELECT STORAGE_ENGINES FROM performance_schema.log_status"))
        found = json.loads(row[0]) if isinstance(row[0], str) else row[0]
        return dict(found.get("InnoDB", {}))


class InnodbStatusLog(MysqlLog):
    """The log of MariaDB or MySQL 5.7, read from status variables, else from SHOW ENGINE INNODB STATUS."""

    def __init__(self, connection: Connection, *, is_mariadb: bool) -> None:
        ServerLog.__init__(self, connection, mapped_errors)
        if is_mariadb:
            self._row(
                written("SET SESSION max_statement_time = {}, lock_wait_timeout = {}", LONGEST_WAIT_S, LONGEST_WAIT_S)
            )
        grants = ask(connection, written("SHOW GRANTS")).scalars().all()
        if not any(_BACKUP_RIGHTS.search(f"{grant} ") for grant in grants):
            raise access_denied(
                "on the target, grant the user of the target's URL: GRANT RELOAD, PROCESS ON *.* TO 'USER'@'HOST'; "
                "then run: rplctl log-status"
            )
        self._figures()

    def _figures(self) -> Figures:
        rows = ask(self._connection, written("SHOW GLOBAL STATUS LIKE 'Innodb_lsn%'")).all()
        found = {str(name).lower(): int(value) for name, value in rows}
        if "innodb_lsn_current" in found and "innodb_lsn_last_checkpoint" in found:
            return {"LSN": found["innodb_lsn_current"], "LSN_checkpoint": found["innodb_lsn_last_checkpoint"]}
        return innodb_status_figures(str(self._row(written("SHOW ENGINE INNODB STATUS"))[2]))


def innodb_status_figures(status: str) -> Figures:
    """Return LSN and LSN_checkpoint (bytes) from the text of SHOW ENGINE INNODB STATUS. Raises TargetError if the text
    lacks one of these numbers.
    """
    lsn = re.search(r"^Log sequence number\s+(\d+)", status, re.MULTILINE)
    checkpoint = re.search(r"^Last checkpoint at\s+(\d+)", status, re.MULTILINE)
    if not lsn or not checkpoint:
        raise TargetError("SHOW ENGINE INNODB STATUS does not report a log sequence number")
    return {"LSN": int(lsn[1]), "LSN_checkpoint": int(checkpoint[1])}
