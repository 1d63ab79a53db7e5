"""The server of `serve --mysql`: it listens on a TCP address and a Unix socket, and has one thread per connection.

The server has at most MOST_CONNECTIONS connections. When a client opens one more, the server closes the oldest
connection that has not signed in. If all connections have signed in, the new client gets error 1040, unless it is an
administrator.
"""

from __future__ import annotations

import os
import socket
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rplctl import mysql_errors as er
from rplctl.accounts import ADMIN
from rplctl.command.serve import address_of, is_local, tls_context_of
from rplctl.command.user import refuse_missing_folder
from rplctl.errors import RplError, UsageError, file_error
from rplctl.front import wire
from rplctl.front.front import FLAVORS, ClientSession, Front
from rplctl.front.locks import release_locks
from rplctl.front.looks import ConfigOf, Looks
from rplctl.front.session import converse
from rplctl.front.sign_in import SIGN_IN_S, SignIns, sign_in
from rplctl.front.table_columns import DATABASES
from rplctl.front.wire import ClientConnection, Closed
from rplctl.history import done_by

MOST_CONNECTIONS: Final = 64
_OF_ADMINISTRATORS: Final = 2  # further connections, so that an administrator can always sign in, for example for KILL


@dataclass(frozen=True, slots=True, kw_only=True)
class MysqlRequest:
    """The options of `serve --mysql`. The values '' and None mean that an option is not set."""

    listen: str = ""
    socket: Path | None = None
    flavor: str = "mysql"
    require_tls: bool = False
    tls_cert: Path | None = None
    tls_key: Path | None = None


class MysqlServer:
    """The server of `serve --mysql`, which answers clients during `running`.

    The constructor opens the listeners. It raises UsageError if an option is not valid, RplError if an address is in
    use, and NotConfigured if there is no instance folder.
    """

    def __init__(self, request: MysqlRequest, config_of: ConfigOf) -> None:
        if request.flavor not in FLAVORS:
            raise UsageError(f"--mysql-flavor {request.flavor}: the flavor must be one of {', '.join(FLAVORS)}")
        refuse_missing_folder(config_of(""))
        tls = tls_context_of(request.tls_cert, request.tls_key)
        if request.require_tls and not tls:
            raise UsageError("--require-tls requires --tls-cert")
        is_remote = bool(request.listen) and not is_local(request.listen, "--mysql")
        if is_remote and not tls:
            raise UsageError(
                f"--mysql {request.listen}: clients on other machines need TLS for their passwords",
                hint="add --tls-cert FILE, or listen on 127.0.0.1",
            )
        self.front = Front(Looks(config_of), request.flavor)
        self.front.door = self._door = SignIns(
            config_of("").datadir, self.front.version, tls, require_tls=request.require_tls or is_remote
        )
        self._links: dict[int, ClientConnection] = {}
        self._changing = threading.Lock()
        self._listeners = [listener for listener in (_tcp(request.listen), _unix(request.socket)) if listener]
        self._socket = request.socket
        self.front.port = self.port if request.listen else 0

    @property
    def port(self) -> int:
        return int(self._listeners[0].getsockname()[1])

    @contextmanager
    def running(self) -> Iterator[MysqlServer]:
        """Answer clients during the block, then end all connections."""
        for listener in self._listeners:
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        try:
            yield self
        finally:
            for listener in self._listeners:
                with suppress(OSError):
                    listener.shutdown(socket.SHUT_RDWR)
                listener.close()
            for link in list(self._links.values()):
                _end(link)
            if self._socket:
                self._socket.unlink(missing_ok=True)
            self.front.looks.close()
            self.front.logs.close()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                if listener.fileno() < 0:
                    return
                time.sleep(0.1)  # the process has no free descriptor until a connection ends
                continue
            if connection.family != socket.AF_UNIX:
                _keep_alive(connection)
            self._admit(ClientConnection(connection))

    def _admit(self, link: ClientConnection) -> None:
        with self._changing:
            self.front.connections += 1
            number = self.front.connections
            if len(self._links) >= MOST_CONNECTIONS + _OF_ADMINISTRATORS:
                oldest = next((one for one in self._links if one not in self.front.sessions), None)
                if oldest is None:
                    with suppress(Closed):
                        link.send(wire.error(er.CON_COUNT_ERROR, "Too many connections"))
                    link.connection.close()
                    return
                _end(self._links.pop(oldest))
            self._links[number] = link
        try:
            threading.Thread(target=self._serve, args=(number, link), daemon=True).start()
        except RuntimeError:  # the system permits no more threads
            with self._changing:
                self._links.pop(number, None)
            link.connection.close()

    def _serve(self, number: int, link: ClientConnection) -> None:
        try:
            link.deadline = time.monotonic() + SIGN_IN_S
            try:
                with self.front.bugs.as_rpl_errors():
                    client = sign_in(link, self._door, number)
            except RplError as error:
                link.send(wire.error(error.errno or er.UNKNOWN_ERROR, error.message))
                return
            if client.role != ADMIN and len(self.front.sessions) >= MOST_CONNECTIONS:
                link.send(wire.error(er.CON_COUNT_ERROR, "Too many connections"))
                return
            if client.database and client.database.lower() not in DATABASES:
                link.send(wire.error(er.BAD_DB_ERROR, f"Unknown database '{client.database}'"))
                return
            link.send(wire.ok())
            link.deadline = None
            session = ClientSession(
                number=number, client=client, link=link, database=client.database, charsets=client.charsets
            )
            self.front.sessions[number] = session
            try:
                converse(session, self.front)
            finally:
                with done_by(f"{session.client.name} over SQL"):
                    release_locks(self.front, session)
        except Closed:
            pass
        finally:
            self.front.sessions.pop(number, None)
            with self._changing:
                self._links.pop(number, None)
            with suppress(OSError):
                link.connection.close()


def _keep_alive(connection: socket.socket) -> None:
    """Let the system end the connection of a client whose host is gone, so that its locks are released."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, 60), (socket.TCP_KEEPINTVL, 10), (socket.TCP_KEEPCNT, 6)):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)


def _end(link: ClientConnection) -> None:
    with suppress(OSError):
        socket.socket.shutdown(link.connection, socket.SHUT_RDWR)


def _tcp(listen: str) -> socket.socket | None:
    if not listen:
        return None
    host, port = address_of(listen, "--mysql")
    try:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=128
        )
    except OSError as error:
        hint = "to listen on another address, run: rplctl serve --mysql HOST:PORT"
        raise RplError(f"cannot listen on {listen}: {error.strerror or error}", hint=hint) from error


def _refuse_live(path: Path) -> None:
    """Raise RplError if a server answers on the Unix socket, because this socket must not be replaced."""
    with socket.socket(socket.AF_UNIX) as client, suppress(ConnectionRefusedError):
        client.settimeout(1)
        client.connect(str(path))
        hint = "to use another socket, run: rplctl serve --mysql-socket ANOTHER_FILE"
        raise RplError(f"a server answers on {path}", hint=hint)


def _unix(path: Path | None) -> socket.socket | None:
    if path is None:
        return None
    try:
        if path.exists() and stat.S_ISSOCK(path.lstat().st_mode):
            _refuse_live(path)
            path.unlink()  # its process has ended
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        os.chmod(path, 0o666)  # every user may connect: the sign-in decides about the privileges
        listener.listen(128)
    except OSError as error:
        raise file_error(error if error.filename else OSError(error.errno, error.strerror, str(path))) from error
    return listener
