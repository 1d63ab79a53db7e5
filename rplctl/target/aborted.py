"""Ends the connections of an engine from another thread, in a way that looks to the target as if the process had died.

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
    """Record the engine's connections from now on, so that `abort` can end them. The caller has just created the
    engine, and has not added event listeners yet.
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
    """Terminate the connections of the engine; any thread may call this. Calls that wait for an answer get an error,
    and the server rolls back as after a crash. Later attempts to connect fail with an error that is not transient. An
    applier in this process ends as if it had died.
    """
    _aborted.add(engine)
    for connection in members_of(_connections.get(engine, ())):
        link = getattr(connection, "_sock", connection)  # PyMySQL's socket; psycopg's connection has fileno() itself
        with contextlib.suppress(Exception), socket.socket(fileno=os.dup(link.fileno())) as wire:  # closed already
            wire.shutdown(socket.SHUT_RDWR)


def cut_off_target(url: str) -> None:
    """Call `abort` for every engine of this process that is connected to the target of this URL."""
    from sqlalchemy.engine import make_url

    wanted = make_url(url)
    for engine in members_of(_connections):
        if (engine.url.host, engine.url.port, engine.url.database) == (wanted.host, wanted.port, wanted.database):
            abort(engine)


def is_aborted(engine: Engine) -> bool:
    """True if `abort` was called for the engine, so that the applier must end as after a crash."""
    return engine in _aborted
