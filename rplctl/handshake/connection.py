"""Extend PyMySQL's connection with rules for sending the password, and with limits for a server's answers.

PyMySQL alone answers every plugin that a server names, and sends a sha256_password to any server that offers TLS. Here,
each plugin must be in `authentication.PLUGINS`. Invariant: every answer, even the greeting, has a limit in bytes that
counts all its packets. The time for an answer is also limited, unless `allow` removes this limit. Announced bytes are
counted before memory is allocated for them.

This module uses private names of PyMySQL, so pyproject.toml allows only one minor version of PyMySQL.
"""

from __future__ import annotations

import socket
import ssl
import time
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from pymysql import err
from pymysql.connections import Connection
from pymysql.constants import CLIENT

from rplctl import mysql_errors as er
from rplctl.handshake.authentication import Security, Trust, plugin_for
from rplctl.handshake.tls import TlsMode, tls_context
from rplctl.sql_text import Sql

LONGEST_WAIT_S = ((1 << 31) - 1) // 1000  # the system counts milliseconds in 31 bits; practically no limit
_PER_PACKET = 100  # bytes that each packet counts in addition, because an empty row also takes memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """The protection of this session against an eavesdropper or a man in the middle."""

    is_remote: bool  # the peer is not on this machine
    encrypted: bool
    verified: bool  # the server's certificate was checked against a CA


@dataclass(frozen=True, slots=True)
class Allowance:
    """The limits of one answer of a server, from its first to its last byte."""

    most_bytes: int
    seconds: float | None  # None: no limit, because a statement may take hours


SIGN_IN_BYTES = 1 << 20  # greeting, plugins and keys are a few kilobytes


class GuardedConnection(Connection):
    """A connection to a server. Only `connect` opens it and signs in.

    `sign_in_s` is the time limit for `connect`. `silence_s` is the time limit for a server that sends nothing. Raises
    ConfigError if a TLS file is not usable, and the driver's errors if the server rejects the connection.
    """

    def __init__(
        self,
        *,
        security: Security,
        sign_in_s: float,
        silence_s: float | None = None,
        password: str | None = "",
        **options: Any,
    ) -> None:
        context = tls_context(security.tls)
        sign_in_s = min(sign_in_s, LONGEST_WAIT_S)
        super().__init__(
            **options,
            password=(password or "").encode(),
            ssl=context,
            ssl_disabled=context is None,
            read_timeout=silence_s or sign_in_s,
            write_timeout=silence_s or sign_in_s,
            defer_connect=True,
        )
        driver: Any = self
        if security.tls.mode is TlsMode.PREFERRED:
            driver._ssl_required = False
            driver.client_flag &= ~CLIENT.SSL  # set only if the server offers TLS
        self._security = security
        self._allowance = Allowance(SIGN_IN_BYTES, sign_in_s)
        self._left = 0
        self._deadline = 0.0

    @property
    def trust(self) -> Trust:
        """The conditions for sending secrets to the current peer."""
        mode, link = self._security.tls.mode, self._link
        over_tls = isinstance(link, ssl.SSLSocket)
        is_local = link is not None and link.family == socket.AF_UNIX  # chosen by the operator, without eavesdroppers
        return Trust(
            encrypted=over_tls and mode >= TlsMode.REQUIRED or is_local,
            verified=over_tls and mode >= TlsMode.VERIFY_CA,
            public_key_path=self._security.public_key_path,
            get_public_key=self._security.get_public_key,
        )

    @property
    def protection(self) -> Protection:
        """The protection of the session in its current state."""
        link = self._link
        assert link is not None
        is_local = link.family == socket.AF_UNIX or ip_address(link.getpeername()[0].partition("%")[0]).is_loopback
        over_tls = isinstance(link, ssl.SSLSocket)
        return Protection(
            is_remote=not is_local,
            encrypted=over_tls,
            verified=over_tls and self._security.tls.mode >= TlsMode.VERIFY_CA,
        )

    @property
    def _link(self) -> socket.socket | None:
        driver: Any = self
        link: socket.socket | None = driver._sock
        return link

    def allow(self, allowance: Allowance) -> None:
        """Set the limits of the next command and all later commands."""
        self._allowance = allowance
        if allowance.seconds is None:
            driver: Any = self
            driver._read_timeout = driver._write_timeout = None

    def connect(self, sock: Any = None) -> None:
        self._begin_answer()
        super().connect(sock)

    def _begin_answer(self) -> None:
        self._left = self._allowance.most_bytes
        self._deadline = time.monotonic() + (self._allowance.seconds or 0)

    def _get_server_information(self) -> None:
        super()._get_server_information()  # type: ignore[misc]
        driver: Any = self
        if driver._auth_plugin_name == "sha256_password":  # PyMySQL would send the password in its first packet
            driver._auth_plugin_name = ""

    def _get_auth_plugin_handler(self, plugin_name: bytes | str) -> Any:
        return plugin_for(plugin_name, self)

    def _process_auth(self, plugin_name: bytes, auth_packet: Any, handler: Any = None) -> Any:
        handler = handler or plugin_for(plugin_name, self)
        if handler is None:
            name = plugin_name.decode("ascii", "backslashreplace")
            raise err.OperationalError(
                er.CR_AUTH_PLUGIN_CANNOT_LOAD,
                f"Authentication plugin '{name}' cannot be loaded: rplctl does not have it; "
                "give the account another plugin",
            )
        return handler.authenticate(auth_packet)

    def query(self, sql: Sql, unbuffered: bool = False) -> int:
        """Execute the statement as PyMySQL does. The type of the parameter permits only typed SQL (design D27)."""
        return super().query(sql, unbuffered)

    def _execute_command(self, command: int, sql: Any) -> None:
        self._begin_answer()
        super()._execute_command(command, sql)  # type: ignore[misc]

    def _read_packet(self, *arguments: Any) -> Any:
        self._left -= _PER_PACKET
        return super()._read_packet(*arguments)  # type: ignore[no-untyped-call]

    def _read_bytes(self, num_bytes: int) -> bytes:
        self._left -= num_bytes
        if self._left < 0:
            text = f"the server's answer exceeds the limit of {self._allowance.most_bytes} bytes"
            raise self._ended(er.CR_NET_PACKET_TOO_LARGE, text)
        if self._allowance.seconds is None:
            data: bytes = super()._read_bytes(num_bytes)  # type: ignore[misc]
            return data
        return self._read_in_time(num_bytes)

    def _read_in_time(self, num_bytes: int) -> bytes:
        driver: Any = self
        pieces: list[bytes] = []
        while num_bytes:
            try:
                driver._sock.settimeout(self._patience())
                piece = driver._rfile.read1(num_bytes)
            except OSError as error:
                if time.monotonic() >= self._deadline:
                    raise self._too_late() from None
                raise self._ended(
                    er.CR_SERVER_LOST, f"Lost connection to MySQL server during query ({error})"
                ) from None
            if not piece:
                raise self._ended(er.CR_SERVER_LOST, "Lost connection to MySQL server during query")
            pieces.append(piece)
            num_bytes -= len(piece)
        driver._current_timeout = -1  # the socket has rplctl's timeout: the driver sets its own before its next read
        return b"".join(pieces)

    def _patience(self) -> float:
        driver: Any = self
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise self._too_late()
        return min(left, driver._read_timeout or left, LONGEST_WAIT_S)

    def _too_late(self) -> err.OperationalError:
        text = f"the server did not finish its answer within {self._allowance.seconds:g} seconds"
        return self._ended(er.CR_SERVER_LOST, text)

    def _ended(self, number: int, text: str) -> err.OperationalError:
        driver: Any = self
        driver._force_close()
        return err.OperationalError(number, text)
