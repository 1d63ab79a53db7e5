"""Queries a live server, for example for its settings, the end of its log, or its tables.

The queries have a session of their own, in addition to the session of the receiver. They change nothing on the server.
The size and the time of each answer are limited.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol

from rplctl import mysql_errors as er
from rplctl.config import Config
from rplctl.errors import SourceError, UsageError
from rplctl.handshake import Allowance
from rplctl.info import MasterInfo
from rplctl.position import BinlogPosition
from rplctl.source.base import NOT_THE_PROTOCOL
from rplctl.source.connection import HINT_MARIADB_GTID, HINT_MYSQL_GTID, log_in, map_errors
from rplctl.sql_text import Sql, joined, written


class Ask(Protocol):
    """A function that executes a query at a source, and returns its rows.

    `more`: further statements, which are sent in the same packet, so that the server executes them without delay. The
    result then has the rows of all statements.
    """

    def __call__(self, sql: Sql, *more: Sql) -> list[tuple[Any, ...]]: ...


MOST_BYTES = 512 << 20  # of one answer; enough for the columns of a million tables
PATIENCE = 10  # an answer may take this many times replica_net_timeout, from its first to its last byte
_COM_SET_OPTION: Final = 0x1B
_SEVERAL, _ONE = struct.pack("<H", 0), struct.pack("<H", 1)  # MYSQL_OPTION_MULTI_STATEMENTS_ON, _OFF


@contextmanager
def survey(info: MasterInfo, password: str, config: Config) -> Iterator[Ask]:
    """Open a session at the source for the block, and yield a function that executes queries in this session.

    Raises SourceError if the source does not answer or rejects rplctl. The function raises SourceError, too.
    """
    with session(info, password, config) as (_, query):
        yield query


@contextmanager
def session(info: MasterInfo, password: str, config: Config) -> Iterator[tuple[Any, Ask]]:
    """Open a session like `survey`, and yield its PyMySQL connection together with the function.

    The connection is for SelectedRows (select.py), which reads whole tables.
    """
    address = f"{info.user_name}@{info.host}:{info.port}"
    with map_errors(address):
        mysql = log_in(info, password, config.replica_net_timeout)
        mysql.allow(Allowance(MOST_BYTES, config.replica_net_timeout * PATIENCE))

    def query(sql: Sql, *more: Sql) -> list[tuple[Any, ...]]:
        # MariaDB prints the default of a BINARY column as raw bytes, which may not be UTF-8.
        mysql.use_unicode = not sql.startswith("SHOW CREATE")
        if more:
            return together(joined("; ", (sql, *more)))
        with map_errors(address), mysql.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall()) if mysql.use_unicode else [_as_text(row) for row in cursor.fetchall()]

    def together(text: Sql) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = []
        with map_errors(address), mysql.cursor() as cursor:
            _set_option(mysql, _SEVERAL)
            cursor.execute(text)
            rows += cursor.fetchall()
            while cursor.nextset():
                rows += cursor.fetchall()
            _set_option(mysql, _ONE)
        return rows

    try:
        yield mysql, query
    finally:
        mysql._force_close()


def _set_option(mysql: Any, option: bytes) -> None:
    mysql._execute_command(_COM_SET_OPTION, option)
    mysql._read_packet()


def _as_text(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell for cell in row)


def executed_gtids(query: Ask, *, of_mysql: bool) -> str:
    """Return the executed GTIDs of a server, in the notation of MySQL or MariaDB.

    For MariaDB, the result is the text of a GtidHistory. `of_mysql`: True for a MySQL server. Raises SourceError 1193
    if the server is of the other vendor.
    """
    variable = written("gtid_executed") if of_mysql else written("gtid_binlog_state")
    try:
        return str(query(written("SELECT @@GLOBAL.{}", variable))[0][0]).replace("\n", "")
    except SourceError as error:
        if error.errno != er.UNKNOWN_SYSTEM_VARIABLE:
            raise
        hint = HINT_MARIADB_GTID if of_mysql else HINT_MYSQL_GTID
        raise SourceError(error.message, errno=error.errno, hint=hint) from None


def log_end(query: Ask) -> BinlogPosition:
    """Return the end of the server's binary log.

    Raises SourceError if the server has no binary log, or if the account lacks the privilege to see it.
    """
    try:
        rows = _log_status(query)
    except SourceError as error:
        if error.errno != er.SPECIFIC_ACCESS_DENIED_ERROR:
            raise
        raise SourceError(
            f"cannot read the end of the source's binary log: {error.message}",
            errno=error.errno,
            hint="on the source, run: GRANT REPLICATION CLIENT ON *.* TO 'USER'@'HOST'\n"
            "On MariaDB, run: GRANT BINLOG MONITOR ON *.* TO 'USER'@'HOST'",
        ) from None
    if not rows:
        raise SourceError(
            "Got fatal error 1236 from master when reading data from binary log: 'Binary log is not open'",
            errno=er.MASTER_FATAL_ERROR_READING_BINLOG,
            hint="to continue after you have started the source's server with the option log_bin, run: rplctl start",
        )
    return answered_place(rows[0][0], rows[0][1])


def answered_place(name: Any, offset: Any) -> BinlogPosition:
    """Return the position with the name and the offset that the source has reported.

    Raises SourceError if they are not valid.
    """
    try:
        return BinlogPosition.parse(f"{name}:{offset}")
    except UsageError as error:
        raise SourceError(
            f"cannot read the source's position: {error.message[:200]}",
            errno=er.CR_MALFORMED_PACKET,
            hint=NOT_THE_PROTOCOL,
        ) from None


def _log_status(query: Ask) -> list[tuple[Any, ...]]:
    try:
        return query(written("SHOW MASTER STATUS"))
    except SourceError as error:
        if error.errno != er.PARSE_ERROR:
            raise
    return query(written("SHOW BINARY LOG STATUS"))  # MySQL 8.4 removed SHOW MASTER STATUS
