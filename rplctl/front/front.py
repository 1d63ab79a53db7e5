"""The state of `serve --mysql`: the part that all connections share, and the part of each signed-in connection."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from rplctl import __version__, mysql_errors as er
from rplctl.accounts import ADMIN
from rplctl.command.channel.context import Note
from rplctl.errors import RplError
from rplctl.front.bugs import Bugs
from rplctl.front.charset import ConnectionCharsets
from rplctl.front.dump.logs import SendableLogs
from rplctl.front.dump.request import DumpRequest, Replica
from rplctl.front.looks import Looks
from rplctl.front.sign_in import Client, SignIns
from rplctl.front.wire import ClientConnection
from rplctl.locks import InstanceLock, RwLock

MOST_HELD: Final = 4 << 20  # bytes of prepared statements that one connection keeps
FLAVORS: Final = ("mysql", "mariadb")


@dataclass(slots=True)
class PreparedStatement:
    """A prepared statement from COM_STMT_PREPARE, with the data that the client has sent for it.

    A client may send the types of the parameters only with the first execution, so they are kept in `kinds`.
    """

    sql: str
    count: int  # the number of its parameters
    kinds: list[tuple[int, int]] = field(default_factory=list)  # type and flags of each parameter
    long_data: dict[int, bytearray] = field(default_factory=dict)  # by parameter, from COM_STMT_SEND_LONG_DATA
    error: RplError | None = None  # an error of COM_STMT_SEND_LONG_DATA, which the next execution reports

    def forget_long_data(self) -> None:
        self.long_data.clear()
        self.error = None


@dataclass(slots=True, kw_only=True)
class ClientSession:
    """The state of one signed-in connection, from its sign-in to its end."""

    number: int
    client: Client
    link: ClientConnection
    database: str = ""
    charsets: ConnectionCharsets = ConnectionCharsets()
    notes: tuple[Note, ...] = ()
    has_failed: bool = False  # True if the statement that wrote the notes has failed
    variables: dict[str, object] = field(default_factory=dict)  # user variables, such as @x
    prepared: dict[int, PreparedStatement] = field(default_factory=dict)  # by statement id
    named: dict[str, str] = field(default_factory=dict)  # name in lower case → statement of PREPARE
    locks: dict[str, InstanceLock | RwLock] = field(default_factory=dict)  # by the kind of a BackupLock
    last_rows: int = 0  # of the last result set
    last_prepared: int = 0
    since: float = field(default_factory=time.time)
    statement: str = ""  # the masked text of the statement that runs now
    is_cancelled: bool = False  # True if KILL QUERY must end this statement
    gtid_next: str = ""  # the GTID that COMMIT skips; '': AUTOMATIC
    replica: Replica | None = None  # set by COM_REGISTER_SLAVE
    dump: DumpRequest | None = None  # the dump that runs now

    def check_held(self, more: int) -> None:
        """Raise RplError if `more` bytes would make the connection's prepared statements larger than MOST_HELD bytes.

        The size of a prepared statement includes the long data of its parameters.
        """
        held = sum(map(len, self.named.values()))
        for each in self.prepared.values():
            held += len(each.sql) + sum(map(len, each.long_data.values()))
        if held + more > MOST_HELD:
            raise RplError(f"the prepared statements of a connection have at most {MOST_HELD} bytes")


class Front:
    """The state that all connections of one server share.

    `looks`: the state of the channels. `flavor`: "mysql" or "mariadb". The flavor decides three things: the server
    version that clients see, the syntax of channel names, and the columns of SHOW REPLICA STATUS.
    """

    def __init__(self, looks: Looks, flavor: str) -> None:
        self.looks, self.flavor = looks, flavor
        self.bugs = Bugs(looks.config_of("").datadir)
        base = "10.11.0-MariaDB" if flavor == "mariadb" else "8.0.36"
        self.version = f"{base}-rplctl-{__version__}"
        self.port = 0  # of the TCP address
        self.door: SignIns | None = None  # None = COM_CHANGE_USER is refused
        self.sessions: dict[int, ClientSession] = {}
        self.questions = self.connections = 0
        self.logs = SendableLogs(looks)
        self._began = time.time()
        self._changing = threading.Lock()
        self.counters = {
            "Uptime": lambda: int(time.time() - self._began),
            "Threads_connected": lambda: len(self.sessions),
            "Threads_running": lambda: sum(bool(each.statement) for each in list(self.sessions.values())),
            "Questions": lambda: self.questions,
            "Queries": lambda: self.questions,
            "Connections": lambda: self.connections,
        }

    @property
    def is_mariadb(self) -> bool:
        return self.flavor == "mariadb"

    def statistics(self) -> str:
        per_second = self.questions / max(1, self.counters["Uptime"]())
        return (
            f"Uptime: {self.counters['Uptime']()}  Threads: {len(self.sessions)}  Questions: {self.questions}  "
            f"Slow queries: 0  Opens: 0  Open tables: 0  Queries per second avg: {per_second:.3f}"
        )

    def kill(self, number: int, by: Client, *, is_query: bool) -> None:
        """End the connection with this number, or only its statement if `is_query`.

        Raises RplError 1094 if there is no such connection, and 1095 if `by` is no administrator and the connection is
        of another account.
        """
        session = self.sessions.get(number)
        if session is None:
            raise RplError(f"Unknown thread id: {number}", errno=er.NO_SUCH_THREAD)
        if by.role != ADMIN and by.account != session.client.account:
            raise RplError(f"You are not owner of thread {number}", errno=er.KILL_DENIED_ERROR)
        if is_query:
            session.is_cancelled = bool(session.statement)
        else:
            self.disconnect(session)

    def disconnect(self, session: ClientSession) -> None:
        with suppress(OSError):
            socket.socket.shutdown(session.link.connection, socket.SHUT_RDWR)


def not_yet(what: str) -> RplError:
    return RplError(f"This version of rplctl doesn't yet support '{what}'", errno=er.NOT_SUPPORTED_YET)


def denied(privileges: str = "SUPER, REPLICATION_SLAVE_ADMIN") -> RplError:
    text = f"Access denied; you need (at least one of) the {privileges} privilege(s) for this operation"
    return RplError(text, errno=er.SPECIFIC_ACCESS_DENIED_ERROR)
