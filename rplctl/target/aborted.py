"""Connections that are cut off from another thread, for the target as if the process had died.

Invariant: once an engine is severed, whoever waits for an answer of it gets an error, and it makes no connection again.
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
    """Keep the connections of the engine so that `abort` finds them. The caller has just made the engine and listens to
    nothing yet.
    """
    from sqlalchemy import event

    made = _connections[engine] = WeakSet()

    @event.listens_for(engine, "do_connect")
    def refuse(*_: object) -> None:
        if engine in _aborted:
            raise TargetError(
                "cut off from the target: the running work did not end within the timeout of STOP",
                errno=er.CONNECTION_KILLED,
                hint="when the target answers again, run: rplctl start",
            )

    event.listen(engine, "connect", lambda connection, _: made.add(connection))


def abort(engine: Engine) -> None:
    """Cut off the engine, from any thread. Calls that wait for an answer get an error, and the server rolls back as
    after a crash. No other connection is made: a call that would begin one ends with an error that is not tried again.
    An applier that shares its process ends as if it had died.
    """
    _aborted.add(engine)
    for connection in members_of(_connections.get(engine, ())):
        link = getattr(connection, "_sock", connection)  # PyMySQL's socket; psycopg's connection knows its descriptor
        with contextlib.suppress(Exception), socket.socket(fileno=os.dup(link.fileno())) as wire:  # closed already
            wire.shutdown(socket.SHUT_RDWR)


def cut_off_target(url: str) -> None:
    """Cut off every engine of this process on the target of that URL."""
    from sqlalchemy.engine import make_url

    wanted = make_url(url)
    for engine in members_of(_connections):
        if (engine.url.host, engine.url.port, engine.url.database) == (wanted.host, wanted.port, wanted.database):
            abort(engine)


def is_aborted(engine: Engine) -> bool:
    """True if nothing can be asked or written any more: the applier ends as after a crash."""
    return engine in _aborted
