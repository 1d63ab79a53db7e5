"""Ends what a thread waits for in its source's socket, from another thread or a signal handler.

Invariant: `now` waits for nothing, no lock either. A socket that is held after it is ended at once. A name that is
being resolved is not ended: the system's resolver cannot be.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from contextvars import ContextVar


class Interruption:
    """The interruption of one receiver's run, for all its connections, one after the other."""

    def __init__(self) -> None:
        self._held: socket.socket | None = None
        self._is_over = False

    @contextlib.contextmanager
    def heeded(self) -> Iterator[None]:
        """By this thread for the block: it holds what `hold` is told."""
        token = _heeded.set(self)
        try:
            yield
        finally:
            _heeded.reset(token)

    def hold(self, connection: socket.socket) -> None:
        """From before it is connected; in the place of the one before. A duplicate, since TLS takes the socket over."""
        self.release()
        self._held = connection.dup()
        if self._is_over:
            self.now()

    def release(self) -> None:
        """The connection is over: it stays open as long as it is held."""
        held, self._held = self._held, None
        if held is not None:
            held.close()

    def now(self) -> None:
        """Once and for all: whoever waits there gets an error or the end of the stream."""
        self._is_over = True
        held = self._held
        if held is not None:
            with contextlib.suppress(OSError):  # not connected, or just closed
                held.shutdown(socket.SHUT_RDWR)


_heeded: ContextVar[Interruption | None] = ContextVar("heeded", default=None)


def hold(connection: socket.socket) -> None:
    """By whose block this is, if anyone's: see `Interruption.hold`."""
    interruption = _heeded.get()
    if interruption is not None:
        interruption.hold(connection)
