"""Opens connections to a MySQL or MariaDB target with common settings, and converts the driver's errors.

Invariants: a password is sent by the same rules as to a source (handshake/). A server can never request a local file:
LOAD DATA LOCAL sends only `LoadingConnection.local_data` (design D14). The server refuses a text with two statements,
except if `take_several` has allowed several statements of rplctl (D27). Every answer of the server is limited in bytes.
Until the session is set up, answers are also limited in time.
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

# login errors that may disappear later: someone repairs the account, or the server has a free connection again
REFUSALS = frozenset({
    er.ACCESS_DENIED_ERROR, er.HOST_IS_BLOCKED, er.HOST_NOT_PRIVILEGED, er.TOO_MANY_USER_CONNECTIONS,
    er.USER_LIMIT_REACHED, er.ACCESS_DENIED_NO_PASSWORD_ERROR, er.MUST_CHANGE_PASSWORD_LOGIN,
    er.ACCOUNT_HAS_BEEN_LOCKED,
})  # fmt: skip
_SEVERAL, _ONE = struct.pack("<H", 0), struct.pack("<H", 1)  # MYSQL_OPTION_MULTI_STATEMENTS_ON, _OFF
_PACKET = 1 << 20
_CAPABILITIES_LENGTH = 32  # bytes of the client's capabilities
_MARIADB_BULK_OPERATIONS = 1 << 2  # in the upper 32 capabilities (manual: client/server protocol, handshake)
SILENCE_S = 10  # limit for a server that sends nothing: the kernel accepts connections to a server that hangs
SIGN_IN_S = 60
MOST_BYTES = 2 << 30  # maximum of one answer; a row has at most half of that
_KEEPALIVE = (
    *((socket.TCP_KEEPIDLE, 15), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3)),
    (socket.TCP_USER_TIMEOUT, 30_000),
)
_LOCAL_INFILE = (
    "to allow the command with which rplctl loads rows, run on the target: SET GLOBAL local_infile=1\n"
    "To continue after that, run: rplctl start"
)
LARGE_PACKETS = (
    "to allow the largest packets, run on the target: SET GLOBAL max_allowed_packet=1073741824\n"
    "To continue after that, run: rplctl start"
)
HINTS = {
    er.DBACCESS_DENIED_ERROR: "to continue after you have granted privileges on this database to the user of the "
    "target's URL, run: rplctl start",
    er.ACCESS_DENIED_ERROR: "to change the target's user or password, run: rplctl change-target URL "
    "--target-password-file FILE; rplctl start",
    er.CR_SSL_CONNECTION_ERROR: "check the ssl options in the target's URL, and that the server supports TLS",
    er.CR_AUTH_PLUGIN_CANNOT_LOAD: "use another authentication plugin for the target's account; see TARGET CONNECTIONS "
    "in rplctl(1)",
    er.CR_AUTH_PLUGIN_ERR: "append '?ssl_ca=FILE' to the target's URL to encrypt the connection and verify the "
    "server's certificate, or '?ssl_mode=REQUIRED' to encrypt without verification; see TARGET CONNECTIONS in "
    "rplctl(1)",
    er.TABLEACCESS_DENIED_ERROR: "to continue after you have granted privileges on this table to the user of the "
    "target's URL, run: rplctl start",
    er.SPECIFIC_ACCESS_DENIED_ERROR: "to continue after you have granted this privilege to the user of the target's "
    "URL, run: rplctl start",
    er.OPTION_PREVENTS_STATEMENT: "to continue after you have made the target writable (read_only, super_read_only), "
    "run: rplctl start",
    er.NET_PACKET_TOO_LARGE: LARGE_PACKETS,
    er.RECORD_FILE_FULL: "to continue after you have freed space on the target's disk, run: rplctl start",
    er.CLIENT_LOCAL_FILES_DISABLED: _LOCAL_INFILE,
    er.NOT_ALLOWED_COMMAND: _LOCAL_INFILE,
    er.LOAD_INFILE_CAPABILITY_DISABLED: _LOCAL_INFILE,
}


class MysqlCursor(Protocol):
    """The part of PyMySQL's cursor that this package uses. Its `execute` accepts only typed SQL (design D27)."""

    @property
    def rowcount(self) -> int: ...

    def execute(self, query: Sql | SqlBytes) -> object: ...

    def nextset(self) -> object: ...

    def fetchone(self) -> tuple[Any, ...] | None: ...

    def fetchall(self) -> Sequence[tuple[Any, ...]]: ...


class _Result(MySQLResult):
    def _read_load_local_packet(self, first_packet: Any) -> None:
        """Send `local_data` to the server, and ignore the file name that the server requests. Raises the driver's error
        if there is no `local_data`.
        """
        connection: Any = self.connection
        data, connection.local_data = connection.local_data, None
        if data is None:
            raise err.OperationalError(
                er.NOT_ALLOWED_COMMAND, "the target requested a local file that rplctl had not offered"
            )
        size = min(_PACKET, connection.most_bytes // 2)
        for piece in data:
            for start in range(0, len(piece), size):
                connection.write_packet(piece[start : start + size])
        connection.write_packet(b"")
        result: Any = self
        result._read_ok_packet(connection._read_packet())


class LoadingConnection(GuardedConnection):
    """PyMySQL's connection, except that LOAD DATA LOCAL sends `local_data` and never a file. The caller sets
    `local_data` before the statement.

    `takes_length_prefixed`: True if the server is a MariaDB with bulk execution (`bulk_execute`). A statement of
    `most_bytes` or more is refused before it is sent. Otherwise, the server would close the connection, and rplctl
    would try again as after a network error. `before_own`: a function that is called before each command. It restores
    rplctl's own session after a statement of the source (D21). While a statement of the source is executed,
    `take_several` must not allow several statements.
    """

    before_own: Callable[[], None] | None = None
    local_data: Iterable[bytes | memoryview] | None = None
    most_bytes = 1 << 30
    takes_length_prefixed = False
    _is_greeting = False
    _takes_several = False

    def _request_authentication(self) -> None:
        capabilities: int = self.server_capabilities  # type: ignore[attr-defined]
        self.takes_length_prefixed = self._is_greeting = (
            not capabilities & CLIENT.LONG_PASSWORD
        )  # every MySQL sets this bit
        super()._request_authentication()  # type: ignore[misc]

    def write_packet(self, payload: Any) -> None:
        if self._is_greeting:  # this packet is sent before TLS begins, and again inside TLS
            self._is_greeting = len(payload) == _CAPABILITIES_LENGTH
            flags = (
                int.from_bytes(payload[:4], "little") & ~CLIENT.LONG_PASSWORD
            )  # a clear bit means that bytes 28-31 are MariaDB's
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
        if isinstance(sql, bytes):  # the driver slices off each packet, which would copy the remaining bytes each time
            sql = memoryview(sql)
        super()._execute_command(command, sql)

    def cursor(self, cursor: Any = None) -> AbstractContextManager[MysqlCursor]:  # type: ignore[override]
        """Return a cursor of PyMySQL, typed so that it accepts only typed SQL. SQLAlchemy also calls this method."""
        return cast("AbstractContextManager[MysqlCursor]", super().cursor(cursor))

    def last_message(self) -> bytes:
        """Return the server's message about the last statement. PyMySQL itself has no method for this message."""
        result: Any = self._result
        message: bytes = result.message
        return message

    def take_several(self, *, wanted: bool) -> None:
        """Allow (`wanted`) or forbid several statements in one text. A command is sent only if the setting changes."""
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
    """Return an SQLAlchemy engine for the target. Its connections count matched rows (not changed rows), use UTC and
    store bytes unchanged. Raises ConfigError if the URL is not valid.
    """
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
        max_overflow=-1,  # a parallel commit can use sixteen connections
    )
    watch_connections(engine)

    @event.listens_for(engine, "do_connect")
    def _connect(_dialect: object, _record: object, _arguments: list[Any], given: dict[str, Any]) -> Any:
        return connect(given, security)

    return engine


def connect(options: dict[str, Any], security: Security) -> LoadingConnection:
    """Connect, log in and set the common session variables. Raises ConfigError if a TLS file is not usable, and the
    driver's errors if the server rejects the connection.
    """
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
    connection.allow(Allowance(MOST_BYTES, None))  # no time limit, because a statement may take hours
    return connection


def _notice_a_vanished_server(connection: Any) -> None:
    """Turn on TCP keepalive, so that rplctl notices a lost server within half a minute. Without keepalive, rplctl could
    wait forever, because statements have no time limit.
    """
    link: socket.socket = connection._sock
    if link.family == socket.AF_UNIX:
        return
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE:
        link.setsockopt(socket.IPPROTO_TCP, option, value)


def protection(connection: Any) -> Protection:
    """Return the protection of an SQLAlchemy connection to the target: TLS or none."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, GuardedConnection)
    return driver.protection


def with_driver(url: URL) -> URL:
    """Return the URL with PyMySQL as driver. This package can handle the socket and the errors of no other driver."""
    return url.set(drivername=f"{url.drivername.partition('+')[0]}+pymysql")


def target_error(error: err.Error | OSError) -> TargetError:
    """Convert a driver's error to a TargetError with the server's number and text. `transient` is True if another
    attempt may succeed.
    """
    arguments = error.args
    errno = arguments[0] if arguments and isinstance(arguments[0], int) else 0
    text = str(arguments[1]) if len(arguments) > 1 else str(error)
    if isinstance(error, err.InterfaceError | OSError) and errno not in er.TRANSIENT:
        errno, text = er.CR_SERVER_LOST, text or "Lost connection to the target"
    transient = errno in er.TRANSIENT or getattr(error, "is_refusal", False)
    return TargetError(text, errno=errno, transient=transient, hint=HINTS.get(errno, ""))


@contextmanager
def mapped_errors() -> Iterator[None]:
    """Convert errors of the driver or SQLAlchemy to TargetError, without the statement, which may contain data."""
    try:
        yield
    except DBAPIError as error:
        cause = error.orig
        raise target_error(cause if isinstance(cause, err.Error | OSError) else err.Error(0, str(cause))) from None
    except (err.Error, OSError) as error:
        raise target_error(error) from None
