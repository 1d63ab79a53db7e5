"""Interrupts a thread that waits for its source's socket, from another thread or a signal handler.

Invariant: `now` never waits, not even for a lock. A socket that is registered after `now` is interrupted at once. A
name resolution is not interrupted, because the system's resolver does not allow it.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from contextvars import ContextVar


class Interruption:
    """Interrupts one run of a receiver, in all of its consecutive connections."""

    def __init__(self) -> None:
        self._held: socket.socket | None = None
        self._is_over = False

    @contextlib.contextmanager
    def heeded(self) -> Iterator[None]:
        """Make `hold` register this thread's sockets in this object during the block."""
        token = _heeded.set(self)
        try:
            yield
        finally:
            _heeded.reset(token)

    def hold(self, connection: socket.socket) -> None:
        """Register a socket before it connects, in place of the last one. A duplicate is kept, because TLS replaces the
        socket.
        """
        self.release()
        self._held = connection.dup()
        if self._is_over:
            self.now()

    def release(self) -> None:
        """Release the registered socket, which would otherwise stay open."""
        held, self._held = self._held, None
        if held is not None:
            held.close()

    def now(self) -> None:
        """Interrupt the run for good: a thread that waits gets an error or the end of the stream."""
        self._is_over = True
        held = self._held
        if held is not None:
            with contextlib.suppress(OSError):  # the socket is not connected, or was just closed
                held.shutdown(socket.SHUT_RDWR)


_heeded: ContextVar[Interruption | None] = ContextVar("heeded", default=None)


def hold(connection: socket.socket) -> None:
    """Register the socket in the `Interruption` of the current block, if there is one."""
    interruption = _heeded.get()
    if interruption is not None:
        interruption.hold(connection)
