"""Ends all connections of an SQLAlchemy engine from another thread. To the target, the process seems to have died.

Invariant: after `abort`, a call that waits for the target gets an error, and the engine never connects again.
"""

from __future__ import annotations

import contextlib
import os
import socket
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

from rplctl import mysql_errors as er
from rplctl.errors import TargetError
from rplctl.weak_members import members_of

if TYPE_CHECKING:
    from sqlalchemy import Engine

_connections: WeakKeyDictionary[Engine, WeakSet[Any]] = WeakKeyDictionary()
_aborted: WeakSet[Engine] = WeakSet()


def watch_connections(engine: Engine) -> None:
    """Record every connection that the engine opens from now on, so that `abort` can end it. Call this directly after
    the engine is created, before any other event listener is added.
    """
    from sqlalchemy import event

    made = _connections[engine] = WeakSet()

    @event.listens_for(engine, "do_connect")
    def refuse(*_: object) -> None:
        if engine in _aborted:
            raise TargetError(
                "the connection to the target was terminated: the running work exceeded the timeout of STOP",
                errno=er.CONNECTION_KILLED,
                hint="when the target answers again, run: rplctl start",
            )

    event.listen(engine, "connect", lambda connection, _: made.add(connection))


def abort(engine: Engine) -> None:
    """Terminate the connections of the engine. Any thread may call this function. Calls that wait for an answer get an
    error, and the server rolls back as after a crash. Later attempts to connect fail with an error that is not
    transient. An applier in this process then ends as if the process had died.
    """
    _aborted.add(engine)
    for connection in members_of(_connections.get(engine, ())):
        link = getattr(connection, "_sock", connection)  # PyMySQL's socket has fileno(), as has psycopg's connection
        with contextlib.suppress(Exception), socket.socket(fileno=os.dup(link.fileno())) as wire:  # closed already
            wire.shutdown(socket.SHUT_RDWR)


def cut_off_target(url: str) -> None:
    """Terminate the connections of every engine in this process that belongs to the target of this URL."""
    from sqlalchemy.engine import make_url

    wanted = make_url(url)
    for engine in members_of(_connections):
        if (engine.url.host, engine.url.port, engine.url.database) == (wanted.host, wanted.port, wanted.database):
            abort(engine)


def is_aborted(engine: Engine) -> bool:
    """True if `abort` was called for the engine. The applier must then end as after a crash."""
    return engine in _aborted
