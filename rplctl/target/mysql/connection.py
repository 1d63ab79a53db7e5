"""Connections to a MySQL or MariaDB target: what every one of them is set to, and the driver's errors as ours.

Invariant: a password is told by the rules that hold for sources too (handshake/), and no file of this machine is ever
sent because a server asked for it: LOAD DATA LOCAL gets `LoadingConnection.local_data` and nothing else (design D14).
A text is one statement: the server refuses what follows it, unless `take_several` announced a batch of ours (D27).
Until the session is set up every answer is bounded in bytes and time, after that in bytes.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol, cast

from pymysql import err
from pymysql.connections import MySQLResult
from pymysql.constants import CLIENT, COMMAND
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError

from rplctl import mysql_errors as er
from rplctl.errors import TargetError
from rplctl.handshake import Allowance, GuardedConnection, Protection, Security
from rplctl.sql_text import Sql, SqlBytes, written
from rplctl.target.aborted import watch_connections
from rplctl.target.mysql.security import connection_options
from rplctl.target.mysql.settings import ROWS, assignments

# at the door: an account that is repaired, or a server with room again, lets us in (as a replica waits for its source)
REFUSALS = frozenset({
    er.ACCESS_DENIED_ERROR, er.HOST_IS_BLOCKED, er.HOST_NOT_PRIVILEGED, er.TOO_MANY_USER_CONNECTIONS,
    er.USER_LIMIT_REACHED, er.ACCESS_DENIED_NO_PASSWORD_ERROR, er.MUST_CHANGE_PASSWORD_LOGIN,
    er.ACCOUNT_HAS_BEEN_LOCKED,
})  # fmt: skip
_SEVERAL, _ONE = struct.pack("<H", 0), struct.pack("<H", 1)  # MYSQL_OPTION_MULTI_STATEMENTS_ON, _OFF
_PACKET = 1 << 20
_CAPABILITIES_LENGTH = 32  # bytes in which a client says what it can do
_MARIADB_BULK_OPERATIONS = 1 << 2  # of the upper 32 capabilities (manual: client/server protocol, handshake)
SILENCE_S = 10  # a server that hangs takes the connection and says nothing: the kernel does the taking
SIGN_IN_S = 60
MOST_BYTES = 2 << 30  # of one answer: a row has at most half of that
_KEEPALIVE = (
    *((socket.TCP_KEEPIDLE, 15), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3)),
    (socket.TCP_USER_TIMEOUT, 30_000),
)
HINTS = {
    er.DBACCESS_DENIED_ERROR: "grant the target's user the rights on this database",
    er.ACCESS_DENIED_ERROR: "check the target's user and password: rplctl init --target URL "
    "--target-password-file FILE",
    er.CR_SSL_CONNECTION_ERROR: "check the ssl words behind the ? of the target's URL, and that the server offers TLS",
    er.CR_AUTH_PLUGIN_CANNOT_LOAD: "give the target's account another authentication plugin: see TARGET CONNECTIONS "
    "in rplctl(1)",
    er.CR_AUTH_PLUGIN_ERR: "say how the password may travel: '?ssl_ca=FILE' behind the target's URL encrypts and "
    "checks the server's certificate, '?ssl_mode=REQUIRED' encrypts and believes whoever answers; see TARGET "
    "CONNECTIONS in rplctl(1)",
    er.TABLEACCESS_DENIED_ERROR: "grant the target's user the rights on this table",
    er.SPECIFIC_ACCESS_DENIED_ERROR: "grant the target's user this privilege",
    er.OPTION_PREVENTS_STATEMENT: "make the target writable (read_only, super_read_only), then rplctl start",
    er.NET_PACKET_TOO_LARGE: "raise max_allowed_packet on the target",
    er.RECORD_FILE_FULL: "free space on the target",
    er.CLIENT_LOCAL_FILES_DISABLED: "set local_infile=1 on the target",
    er.NOT_ALLOWED_COMMAND: "set local_infile=1 on the target",
    er.LOAD_INFILE_CAPABILITY_DISABLED: "set local_infile=1 on the target",
}


class MysqlCursor(Protocol):
    """The cursor of PyMySQL as this package speaks to it: it takes nothing but typed SQL (design D27)."""

    @property
    def rowcount(self) -> int: ...

    def execute(self, query: Sql | SqlBytes) -> object: ...

    def nextset(self) -> object: ...

    def fetchone(self) -> tuple[Any, ...] | None: ...

    def fetchall(self) -> Sequence[tuple[Any, ...]]: ...


class _Result(MySQLResult):
    def _read_load_local_packet(self, first_packet: Any) -> None:
        """Send what the caller gave, whatever file name the server asks for."""
        connection: Any = self.connection
        data, connection.local_data = connection.local_data, None
        if data is None:
            raise err.OperationalError(
                er.NOT_ALLOWED_COMMAND, "The target asked for a local file, which no statement of ours offered"
            )
        size = min(_PACKET, connection.most_bytes // 2)
        for piece in data:
            for start in range(0, len(piece), size):
                connection.write_packet(piece[start : start + size])
        connection.write_packet(b"")
        result: Any = self
        result._read_ok_packet(connection._read_packet())


class LoadingConnection(GuardedConnection):
    """PyMySQL's connection, whose LOAD DATA LOCAL reads `local_data`, set right before the statement.

    `takes_frames`: it is a MariaDB that executes a statement for many rows of parameters at once (`bulk_execute`).
    A statement longer than `most_bytes` is refused here: the server would close the connection while it is sent, which
    looks like a lost one and would be tried again.
    `before_own`: called before anything is said on it; leaves the session of a statement of the source (D21).
    `take_several`: whether a text may hold several statements. Never while one of the source is executed.
    """

    before_own: Callable[[], None] | None = None
    local_data: Iterable[bytes | memoryview] | None = None
    most_bytes = 1 << 30
    takes_frames = False
    _is_greeting = False
    _takes_several = False

    def _request_authentication(self) -> None:
        capabilities: int = self.server_capabilities  # type: ignore[attr-defined]
        self.takes_frames = self._is_greeting = not capabilities & CLIENT.LONG_PASSWORD  # each MySQL sets that bit
        super()._request_authentication()  # type: ignore[misc]

    def write_packet(self, payload: Any) -> None:
        if self._is_greeting:  # said before TLS begins and again in it
            self._is_greeting = len(payload) == _CAPABILITIES_LENGTH
            flags = (
                int.from_bytes(payload[:4], "little") & ~CLIENT.LONG_PASSWORD
            )  # clear: bytes 28-31 are MariaDB's own
            payload = struct.pack("<I24sI", flags, payload[4:28], _MARIADB_BULK_OPERATIONS) + payload[32:]
        super().write_packet(payload)

    def _execute_command(self, command: int, sql: Any) -> None:
        if self.before_own is not None:
            self.before_own()
        if len(sql) >= self.most_bytes:
            text = (
                f"Got a packet bigger than 'max_allowed_packet' bytes: {len(sql)}, the target takes {self.most_bytes}"
            )
            raise err.OperationalError(er.NET_PACKET_TOO_LARGE, text)
        if isinstance(sql, bytes):  # the driver cuts off packet by packet, and would copy the rest each time
            sql = memoryview(sql)
        super()._execute_command(command, sql)

    def cursor(self, cursor: Any = None) -> AbstractContextManager[MysqlCursor]:  # type: ignore[override]
        """Return PyMySQL's own cursor, which SQLAlchemy asks for too."""
        return cast("AbstractContextManager[MysqlCursor]", super().cursor(cursor))

    def last_message(self) -> bytes:
        """Return the server's words on the last statement. PyMySQL shows them nowhere else."""
        result: Any = self._result
        message: bytes = result.message
        return message

    def take_several(self, *, wanted: bool) -> None:
        """Allow several statements in one text, or forbid them. The server is asked only when this changes."""
        if self._takes_several is wanted:
            return
        self._execute_command(COMMAND.COM_SET_OPTION, _SEVERAL if wanted else _ONE)
        self._read_packet()
        self._takes_several = wanted

    def _read_query_result(self, unbuffered: bool = False) -> Any:
        self._result = None
        result = _Result(self)
        result.read()
        self._result = result
        if result.server_status is not None:
            self.server_status = result.server_status
        return result.affected_rows


def open_engine(url: str) -> Engine:
    """An engine whose connections count matched rows, are in UTC and store values as they are. Raises ConfigError."""
    parsed = make_url(url)
    security, options = connection_options(parsed)
    options |= {
        "charset": "utf8mb4",
        "client_flag": CLIENT.FOUND_ROWS,
        "local_infile": True,
        "program_name": "rplctl",
    }
    engine = create_engine(
        with_driver(parsed).set(query={}),
        connect_args=options,
        hide_parameters=True,
        pool_pre_ping=True,
        max_overflow=-1,  # who commits by sixteen connections needs more
    )
    watch_connections(engine)

    @event.listens_for(engine, "do_connect")
    def _connect(_dialect: object, _record: object, _arguments: list[Any], given: dict[str, Any]) -> Any:
        return connect(given, security)

    return engine


def connect(options: dict[str, Any], security: Security) -> LoadingConnection:
    """Signed in, and set up as each of our sessions is. Raises the driver's errors, ConfigError."""
    connection = LoadingConnection(**options, security=security, sign_in_s=SIGN_IN_S, silence_s=SILENCE_S)
    try:
        connection.connect()
    except err.Error as error:
        error.is_refusal = error.args[:1] and error.args[0] in REFUSALS  # type: ignore[attr-defined]
        raise
    try:
        _notice_a_vanished_server(connection)
        with connection.cursor() as cursor:
            cursor.execute(assignments(ROWS))
            cursor.execute(written("SELECT @@max_allowed_packet"))
            connection.most_bytes = int((cursor.fetchone() or (connection.most_bytes,))[0])
    except BaseException:
        connection._force_close()  # type: ignore[attr-defined]
        raise
    connection.allow(Allowance(MOST_BYTES, None))  # a statement may take hours
    return connection


def _notice_a_vanished_server(connection: Any) -> None:
    """Within half a minute, although a statement may take hours: an applier must not wait for an answer for ever."""
    link: socket.socket = connection._sock
    if link.family == socket.AF_UNIX:
        return
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE:
        link.setsockopt(socket.IPPROTO_TCP, option, value)


def protection(connection: Any) -> Protection:
    """Return how an engine's connection is protected."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, GuardedConnection)
    return driver.protection


def with_driver(url: URL) -> URL:
    """mysql:// and mariadb:// mean PyMySQL, the only driver whose socket and errors we know."""
    return url.set(drivername=f"{url.drivername.partition('+')[0]}+pymysql")


def target_error(error: err.Error | OSError) -> TargetError:
    """The server's number and text; `transient` when trying again may help."""
    arguments = error.args
    errno = arguments[0] if arguments and isinstance(arguments[0], int) else 0
    text = str(arguments[1]) if len(arguments) > 1 else str(error)
    if isinstance(error, err.InterfaceError | OSError) and errno not in er.TRANSIENT:
        errno, text = er.CR_SERVER_LOST, text or "Lost connection to the target"
    transient = errno in er.TRANSIENT or getattr(error, "is_refusal", False)
    return TargetError(text, errno=errno, transient=transient, hint=HINTS.get(errno, ""))


@contextmanager
def mapped_errors() -> Iterator[None]:
    """Errors of the driver, bare or wrapped by SQLAlchemy, become TargetError without the statement: it holds data."""
    try:
        yield
    except DBAPIError as error:
        cause = error.orig
        raise target_error(cause if isinstance(cause, err.Error | OSError) else err.Error(0, str(cause))) from None
    except (err.Error, OSError) as error:
        raise target_error(error) from None
