"""Interrupts a receiver that waits for its source, from another thread or from a signal handler.

Invariants: `Interruption.now` never waits, not even for a lock. A socket that is registered after this call is
interrupted at once. A name resolution is not interrupted, because the system's resolver does not permit this.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from contextvars import ContextVar


class Interruption:
    """Interrupts one run of a receiver, which may have several connections one after the other."""

    def __init__(self) -> None:
        self._held: socket.socket | None = None
        self._is_over = False

    @contextlib.contextmanager
    def heeded(self) -> Iterator[None]:
        """Register all sockets that this thread passes to the function `hold` in this object, during the block."""
        token = _heeded.set(self)
        try:
            yield
        finally:
            _heeded.reset(token)

    def hold(self, connection: socket.socket) -> None:
        """Register a socket before it connects. It replaces the socket that was registered before.

        The object stores a duplicate of the socket, because TLS replaces the original.
        """
        self.release()
        self._held = connection.dup()
        if self._is_over:
            self.now()

    def release(self) -> None:
        """Close the duplicate of the registered socket. Without this, the connection would stay open."""
        held, self._held = self._held, None
        if held is not None:
            held.close()

    def now(self) -> None:
        """Interrupt the present and all later connections: a waiting thread gets an error, or the end of the data."""
        self._is_over = True
        held = self._held
        if held is not None:
            with contextlib.suppress(OSError):  # the socket is not connected, or was just closed
                held.shutdown(socket.SHUT_RDWR)


_heeded: ContextVar[Interruption | None] = ContextVar("heeded", default=None)


def hold(connection: socket.socket) -> None:
    """Register the socket in the `Interruption` whose `heeded` block this thread executes.

    Do nothing if the thread executes no such block.
    """
    interruption = _heeded.get()
    if interruption is not None:
        interruption.hold(connection)
