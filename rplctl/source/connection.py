"""Connects to a live server: socket, TLS, authentication, and the session settings before a dump.

PyMySQL does the handshake. The package handshake restricts PyMySQL, so that a malicious source cannot get files or
passwords (design D14). Before the dump, the size and the time of each answer are limited. rplctl never answers LOAD
DATA LOCAL, and TLS never falls back to plain text. This module converts the exceptions of PyMySQL to SourceError, with
MySQL's number.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final
from weakref import WeakSet

from pymysql import err

from rplctl import mysql_errors as er
from rplctl.config import UINT_MAX, Config
from rplctl.errors import SourceError
from rplctl.event.gtid import MariadbGtidState
from rplctl.handshake import LONGEST_WAIT_S, GuardedConnection, Security, TlsMode, TlsSettings
from rplctl.info import MasterInfo
from rplctl.source import flavor
from rplctl.source.base import NOT_THE_PROTOCOL, DumpStart, ReplicaIdentity, SourceIdentity
from rplctl.source.clock import clock_of
from rplctl.source.interruption import hold
from rplctl.source.network_namespace import network_namespace
from rplctl.sql_text import Sql, written
from rplctl.system_zone import SystemZone, read_zone
from rplctl.weak_members import members_of

# A retry cannot help after these errors. All other errors are retried, as in MySQL, even a wrong password (1045).
_FATAL = frozenset({er.CR_AUTH_PLUGIN_CANNOT_LOAD, er.CR_AUTH_PLUGIN_ERR})
HINT_MARIADB_GTID = (
    "the source is a MariaDB server. To use its GTIDs, run: rplctl change-master --master-use-gtid slave_pos"
)
HINT_MYSQL_GTID = "the source is a MySQL server. To use its GTIDs, run: rplctl change-master --master-auto-position 1"
_NEEDS_SECURE = "requires secure connection"
_HINT_SECURE = (
    "to encrypt the connection and check the certificate, run: "
    "rplctl change-master --master-ssl 1 --master-ssl-ca FILE\n"
    "To encrypt the connection without a check, run: rplctl change-master --master-ssl 1\n"
    "To encrypt only the password, run: rplctl change-master --master-public-key-path FILE\n"
    "To encrypt only the password, with the key of any server that answers, run: "
    "rplctl change-master --get-master-public-key 1"
)
_UUID: Final = r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
_MOMENT: Final = r"\d{1,12}(\.\d{1,6})?"
_signed_in: WeakSet[GuardedConnection] = WeakSet()
_LONGEST_VERSION, _SHOWN = 200, 100  # characters
_KEEPALIVE = ((socket.TCP_KEEPIDLE, 15), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3))


@dataclass(frozen=True, slots=True)
class ServerConnection:
    """The session of a replica that has signed in and registered at the source.

    `mysql`: the connection of PyMySQL, whose private methods are used.
    """

    mysql: Any
    identity: SourceIdentity
    prefix: str  # the first words of messages: the action, the account and the retry settings

    @property
    def socket(self) -> socket.socket:
        raw: socket.socket = self.mysql._sock
        return raw

    def send_command(self, code: int, payload: bytes) -> None:
        with map_errors(self.prefix):
            self.mysql._execute_command(code, payload)

    def close(self) -> None:
        self.mysql._force_close()


def connect(
    info: MasterInfo, password: str, start: DumpStart, replica: ReplicaIdentity, config: Config
) -> ServerConnection:
    """Connect to the source, sign in, check its identity, and register as its replica.

    `replica`: the ids with which rplctl registers. Raises SourceError if the source does not answer, rejects rplctl, or
    is another server than before. Raises ConfigError if a TLS file is not usable.
    """
    prefix = (
        f"error connecting to master '{info.user_name}@{info.host}:{info.port}' - retry-time: {info.connect_retry}  "
        f"maximum-retries: {info.retry_count}  message"
    )
    with map_errors(prefix):
        mysql = log_in(info, password, config.replica_net_timeout)
        try:
            identity = _identify(mysql)
            check_identity(identity, info, start, None if config.replicate_same_server_id else replica)
            if start.zones is not None:
                identity = replace(identity, system_zone=_system_zone(mysql, start.zones.last))
            _set_up_session(mysql, identity, info, start, replica)
            _register(mysql, identity, info, replica)
            has_checksums = _value(mysql, written("SELECT @master_binlog_checksum")).upper() != "NONE"
        except BaseException:
            mysql._force_close()
            raise
    return ServerConnection(mysql, replace(identity, has_checksums=has_checksums), prefix)


def _register(mysql: Any, identity: SourceIdentity, info: MasterInfo, replica: ReplicaIdentity) -> None:
    """Register as a replica at the server (COM_REGISTER_SLAVE).

    Raises SourceError if the account lacks the privilege, with the number that a replica of this vendor and version
    reports.
    """
    try:
        mysql._execute_command(flavor.COM_REGISTER_SLAVE, flavor.register_request(replica))
        mysql._read_packet()
    except err.OperationalError as error:
        number, text = error.args[:2]
        if number != er.ACCESS_DENIED_ERROR:
            raise
        is_new = _has_new_numbers(identity)
        said = "Source command COM_REGISTER_REPLICA" if is_new else "Master command COM_REGISTER_SLAVE"
        raise SourceError(
            f"{said} failed: {text} (Errno: {number})",
            errno=er.RPL_SLAVE_MASTER_COM_FAILURE if is_new else er.SLAVE_MASTER_COM_FAILURE,
            transient=True,
            hint=f"on the source, run: GRANT REPLICATION SLAVE ON *.* TO '{info.user_name}'@'HOST'",
        ) from None


def _has_new_numbers(source: SourceIdentity) -> bool:
    """True if the source is MySQL 8 or later. In these versions, the errors of a replica's threads are above 13000."""
    return not source.is_mariadb and not source.version.startswith("5.")


def log_in(info: MasterInfo, password: str, timeout_s: int) -> Any:
    """Connect to the source, sign in, and return the new PyMySQL connection.

    The caller uses `map_errors`, which converts the errors of PyMySQL. `timeout_s`: seconds after which the connection
    counts as lost. A value above LONGEST_WAIT_S is reduced, because the system counts milliseconds in 31 bits.
    """
    timeout_s = min(timeout_s, LONGEST_WAIT_S)
    mysql = GuardedConnection(
        security=security_of(info),
        sign_in_s=timeout_s,
        host=info.host,
        port=info.port,
        user=info.user_name,
        password=password,
        program_name="rplctl",
        charset="utf8mb4",
        autocommit=None,
        local_infile=False,
    )
    mysql.connect(_open_socket(info, timeout_s))
    _signed_in.add(mysql)
    return mysql


def cut_off(info: MasterInfo) -> None:
    """Shut down all connections to this source, so that each thread that waits for the source gets an error.

    The function may be called from any thread.
    """
    for one in members_of(_signed_in):
        mysql: Any = one
        link: socket.socket | None = mysql._sock
        if (mysql.host, mysql.port) == (info.host, info.port) and link is not None:
            with contextlib.suppress(OSError), socket.socket(fileno=os.dup(link.fileno())) as wire:
                wire.shutdown(socket.SHUT_RDWR)


def _open_socket(info: MasterInfo, timeout_s: int) -> socket.socket:
    """Open a TCP connection to the source, or a Unix socket if the host is a path.

    The TCP connection detects a lost peer: keepalive detects a silent peer, and TCP_USER_TIMEOUT detects a peer that
    does not acknowledge data.
    """
    if info.host.startswith("/"):  # a Unix socket, for verify.offline_source
        local = socket.socket(socket.AF_UNIX)
        local.settimeout(timeout_s)
        try:
            local.connect(info.host)
        except OSError:
            local.close()
            raise
        return local
    try:
        with network_namespace(info.network_namespace):
            connection = _connected(info, timeout_s)
    except socket.gaierror as error:
        raise err.OperationalError(
            er.CR_UNKNOWN_HOST, f"Unknown MySQL server host '{info.host}' ({error.errno})"
        ) from error
    except OSError as error:
        reason = f"({error.errno})" if error.errno else f"({error})"
        raise err.OperationalError(
            er.CR_CONN_HOST_ERROR, f"Can't connect to MySQL server on '{info.host}:{info.port}' {reason}"
        ) from error
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE:
        connection.setsockopt(socket.IPPROTO_TCP, option, value)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(timeout_s * 1000))
    return connection


def _connected(info: MasterInfo, timeout_s: int) -> socket.socket:
    """Return a connected socket, like socket.create_connection. Raises OSError if no address accepts the connection.

    socket.create_connection cannot be used, because the socket must be registered with `hold` before it connects.
    """
    failure = OSError(f"'{info.host}' has no address")
    for network, kind, protocol, _, address in socket.getaddrinfo(info.host, info.port, 0, socket.SOCK_STREAM):
        connection = socket.socket(network, kind, protocol)
        try:
            hold(connection)
            connection.settimeout(timeout_s)
            if info.bind:
                connection.bind((info.bind, 0))
            connection.connect(address)
            return connection
        except BaseException as error:
            connection.close()
            if not isinstance(error, OSError):
                raise
            failure = error
    raise failure


def _identify(mysql: Any) -> SourceIdentity:
    version = str(mysql.server_version).removeprefix("5.5.5-")  # MariaDB 10 adds this prefix for old replicas
    is_mariadb = "mariadb" in version.lower()
    asked = time.time()
    clock = clock_of(asked, float(_matching(mysql, written("SELECT UNIX_TIMESTAMP(NOW(6))"), _MOMENT)), time.time())
    server_id = _matching(mysql, written("SELECT @@GLOBAL.server_id"), r"\d{1,10}")
    uuid = "" if is_mariadb else _matching(mysql, written("SELECT @@GLOBAL.server_uuid"), _UUID)
    if int(server_id) > UINT_MAX or not version.isprintable() or len(version) > _LONGEST_VERSION:
        raise _no_answer(f"is version {version[:_SHOWN]!r} with server_id {server_id}")
    return SourceIdentity(
        server_id=int(server_id),
        uuid=uuid,
        version=version,
        is_mariadb=is_mariadb,
        clock_difference=clock.difference,
        clock_error=clock.error,
    )


def check_identity(found: SourceIdentity, info: MasterInfo, start: DumpStart, replica: ReplicaIdentity | None) -> None:
    """Raise SourceError if the source is not the right server.

    The source is wrong if it has the same server id as the replica, unless `replica` is None. For a dump by position,
    the source is also wrong if it is another server than at the last connection (`info`).
    """
    if replica is not None and found.server_id == replica.server_id:
        raise SourceError(
            "Fatal error: The slave I/O thread stops because master and slave have equal MySQL server ids; "
            "these ids must be different for replication to work (or the --replicate-same-server-id option must be "
            "used on slave but this does not always make sense; please check the manual before using it).",
            errno=er.RPL_SLAVE_FATAL_ERROR if _has_new_numbers(found) else er.SLAVE_FATAL_ERROR,
            hint="to give this instance another id (init changes only this setting), run: rplctl init --server-id "
            "4711; rplctl start",
        )
    if start.by_gtid or not start.position.log_name:
        return  # another server is permitted: with GTIDs, or before the first position is known
    other_uuid = bool(info.uuid and found.uuid and info.uuid != found.uuid)
    other_id = bool(info.master_server_id and info.master_server_id != found.server_id)
    if other_uuid or other_id:
        raise SourceError(
            f"Fatal error: the server at {info.host}:{info.port} is not the one that {start.position} belongs to: "
            f"server_id {found.server_id}, uuid '{found.uuid}' instead of {info.master_server_id}, '{info.uuid}'",
            errno=er.SLAVE_FATAL_ERROR,
            hint="to correct the address if this is the wrong server, run: rplctl change-master --master-host HOST; "
            "rplctl start\n"
            "To replicate from this server after the last applied transaction, whose position in its log you must know "
            f"(a wrong one loses or repeats transactions), run: rplctl change-master --master-host {info.host} "
            "--master-log-file FILE --master-log-pos POSITION; rplctl start",
        )


def _set_up_session(
    mysql: GuardedConnection,
    identity: SourceIdentity,
    info: MasterInfo,
    start: DumpStart,
    replica: ReplicaIdentity,
) -> None:
    for statement in flavor.session_statements(identity.is_mariadb, info.heartbeat, replica):
        mysql.query(statement)
    if start.mariadb_gtid is not None:
        _require(identity.is_mariadb, "MASTER_USE_GTID needs a MariaDB source", HINT_MYSQL_GTID)
        for statement in flavor.mariadb_gtid_statements(_past_ignored_domains(mysql, info, start.mariadb_gtid)):
            mysql.query(statement)
    if start.mysql_gtid_set is not None:
        _require(not identity.is_mariadb, "MASTER_AUTO_POSITION needs a MySQL source", HINT_MARIADB_GTID)
        mode = _value(mysql, written("SELECT @@GLOBAL.gtid_mode"))
        _require(
            mode == "ON",
            "The replication receiver thread cannot start in AUTO_POSITION mode: "
            f"the source has GTID_MODE = {mode} instead of ON",
            "to continue after you have set gtid_mode=ON on the source, run: rplctl start\n"
            "To replicate by position instead, run: rplctl change-master --master-auto-position 0 "
            "--master-log-file FILE --master-log-pos POSITION; rplctl start",
        )


def _past_ignored_domains(mysql: Any, info: MasterInfo, state: str) -> str:
    """Add the source's present GTIDs of the domains that the channel ignores to the GTIDs after which a dump begins.

    None of their transactions is applied. Without these GTIDs, the source needs its first log of such a domain for each
    dump, and refuses the dump after this log is purged.
    """
    if not (info.do_domain_ids or info.ignore_domain_ids):
        return state
    known = MariadbGtidState.parse(_value(mysql, written("SELECT @@GLOBAL.gtid_binlog_pos"))).domains
    ignored = {
        domain: last
        for domain, last in known.items()
        if domain in info.ignore_domain_ids or (info.do_domain_ids and domain not in info.do_domain_ids)
    }
    return str(MariadbGtidState.parse(state).add_last(ignored))


def _require(condition: bool, otherwise: str, hint: str = "") -> None:
    if not condition:
        raise SourceError(f"Fatal error: {otherwise}", errno=er.SLAVE_FATAL_ERROR, hint=hint)


def _system_zone(mysql: Any, known: SystemZone | None) -> SystemZone | None:
    """Return the server's time zone SYSTEM. Return None if the answer is invalid, for example from a proxy.

    `known`: the last known zone, which makes the query faster. If the zone is unknown, DDL that depends on the zone
    stops the channel.
    """

    def rows(query: Sql) -> list[tuple[Any, ...]]:
        with mysql.cursor() as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())

    try:
        return read_zone(rows, known=known)
    except (ValueError, LookupError, err.ProgrammingError, err.InternalError):
        return None
    except err.OperationalError as error:
        if error.args[:1] == (er.SP_DOES_NOT_EXIST,):  # the source is `serve --mysql` of another rplctl
            return None
        raise


def _value(mysql: Any, query: Sql) -> str:
    """Return the first value of a query's first row as text. Raises SourceError if there is no row, or for NULL."""
    with mysql.cursor() as cursor:
        cursor.execute(query)
        row = cursor.fetchone()
    if not row or row[0] is None:
        raise SourceError(
            f"cannot read the answer of the source: it returned no row for {query}",
            errno=er.CR_MALFORMED_PACKET,
            hint=NOT_THE_PROTOCOL,
        )
    cell = row[0]
    return cell.decode(errors="replace") if isinstance(cell, bytes) else str(cell)


def _matching(mysql: Any, query: Sql, pattern: str) -> str:
    """Return the first value of a query's first row. Raises SourceError if the value does not match the pattern."""
    text = _value(mysql, query)
    if re.fullmatch(pattern, text, re.ASCII) is None:
        raise _no_answer(f"answers {query} with {text[:_SHOWN]!r}")
    return text


def _no_answer(what: str) -> SourceError:
    return SourceError(
        f"cannot read the answer of the source: it {what}", errno=er.CR_MALFORMED_PACKET, hint=NOT_THE_PROTOCOL
    )


@contextlib.contextmanager
def map_errors(prefix: str) -> Iterator[None]:
    """Convert the errors of PyMySQL and of the socket in the block to SourceError.

    `prefix`: the first words of the message. The error is transient if a MySQL replica would retry after it.
    """
    try:
        yield
    except err.MySQLError as error:
        number = error.args[0] if error.args and isinstance(error.args[0], int) else er.CR_SERVER_LOST
        text = str(error.args[1]) if len(error.args) > 1 else str(error)
        hint = _HINT_SECURE if _NEEDS_SECURE in text and number in _FATAL else ""
        raise SourceError(f"{prefix}: {text}", errno=number, transient=number not in _FATAL, hint=hint) from None
    except OSError as error:  # also ssl.SSLError
        number = er.CR_SSL_CONNECTION_ERROR if type(error).__module__ == "ssl" else er.CR_CONN_HOST_ERROR
        raise SourceError(f"{prefix}: {error}", errno=number, transient=True) from None
    except (RuntimeError, ValueError, ArithmeticError, LookupError, struct.error, AssertionError, TypeError) as error:
        # PyMySQL raises these errors for bytes that are not MySQL's protocol, and for a request for a local file
        reason = (
            "the server asks for a local file (LOAD DATA LOCAL)"
            if "LOAD_LOCAL" in str(error)
            else f"the server does not speak the MySQL protocol: {error!r}"
        )
        raise SourceError(f"{prefix}: {reason}", errno=er.CR_MALFORMED_PACKET, hint=NOT_THE_PROTOCOL) from None


def security_of(info: MasterInfo) -> Security:
    """Return the settings for TLS and RSA keys of a connection to the source. The result depends on CHANGE MASTER:

    MASTER_SSL=1 alone encrypts (REQUIRED). MASTER_SSL=1 with a CA also verifies the certificate chain (VERIFY_CA).
    MASTER_SSL_VERIFY_SERVER_CERT=1 also verifies the host name (VERIFY_IDENTITY), and without a CA uses the system's
    CAs. As in MySQL, TLS never falls back to plain text.
    """
    settings = TlsSettings(
        mode=_mode(info),
        ca=info.ssl_ca,
        capath=info.ssl_capath,
        cert=info.ssl_cert,
        key=info.ssl_key,
        cipher=info.ssl_cipher,
        crl=info.ssl_crl,
        crlpath=info.ssl_crlpath,
        version=info.tls_version,
        ciphersuites=info.tls_ciphersuites or "",
        option="MASTER_",
    )
    return Security(settings, info.public_key_path, info.get_public_key)


def _mode(info: MasterInfo) -> TlsMode:
    if not info.enabled_ssl:
        return TlsMode.DISABLED
    if info.ssl_verify_server_cert:
        return TlsMode.VERIFY_IDENTITY
    return TlsMode.VERIFY_CA if info.ssl_ca or info.ssl_capath else TlsMode.REQUIRED
