"""The state that all connections share: channels, flavor, counters, and the list of sessions."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from rplctl import __version__, mysql_errors as er
from rplctl.command.channel.context import Note
from rplctl.errors import RplError
from rplctl.front.dump.logs import SendableLogs
from rplctl.front.dump.request import DumpRequest, Replica
from rplctl.front.looks import Looks
from rplctl.front.sign_in import Client
from rplctl.front.wire import Link

FLAVORS: Final = ("mysql", "mariadb")


@dataclass(slots=True, kw_only=True)
class ClientSession:
    """The state that the statements of one connection share."""

    number: int
    client: Client
    link: Link
    database: str = ""
    notes: tuple[Note, ...] = ()
    has_failed: bool = False  # True if the statement that wrote the notes has failed
    variables: dict[str, object] = field(default_factory=dict)  # user variables, such as @x
    prepared: dict[int, tuple[str, int]] = field(default_factory=dict)  # id → statement, number of parameters
    last_prepared: int = 0
    since: float = field(default_factory=time.time)
    statement: str = ""  # the masked text of the statement that runs now
    gtid_next: str = ""  # the GTID that COMMIT skips; '': AUTOMATIC
    replica: Replica | None = None  # set by COM_REGISTER_SLAVE
    dump: DumpRequest | None = None  # the dump that runs now


class Front:
    """The shared state. `flavor` decides the version that clients see, the syntax of channels and the columns."""

    def __init__(self, looks: Looks, flavor: str) -> None:
        self.looks, self.flavor = looks, flavor
        base = "10.11.0-MariaDB" if flavor == "mariadb" else "8.0.36"
        self.version = f"{base}-rplctl-{__version__}"
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
        return (
            f"Uptime: {self.counters['Uptime']()}  Threads: {len(self.sessions)}  Questions: {self.questions}  "
            "Slow queries: 0  Opens: 0  Open tables: 0  Queries per second avg: 0.000"
        )

    def kill(self, number: int) -> None:
        """End a connection of this front. Raises RplError 1094 if no connection has the number."""
        session = self.sessions.get(number)
        if session is None:
            raise RplError(f"Unknown thread id: {number}", errno=er.NO_SUCH_THREAD)
        with suppress(OSError):
            socket.socket.shutdown(session.link.connection, socket.SHUT_RDWR)


def denied(privileges: str = "SUPER, REPLICATION_SLAVE_ADMIN") -> RplError:
    text = f"Access denied; you need (at least one of) the {privileges} privilege(s) for this operation"
    return RplError(text, errno=er.SPECIFIC_ACCESS_DENIED_ERROR)
