"""Lets `rplctl stop` interrupt a large transaction, which is then rolled back within moments.

Invariant: a stop interrupts only work that a rollback undoes completely, and never a COMMIT. `Interrupter.work` permits
interruptions, and `before_commit` forbids them. An interrupted transaction is not an error: the next start applies it
again (D8). If a library waits for a lock, the interrupted work may not end. Then the process ends without waiting, and
the target handles this like any crash.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Self

AGAIN_SECONDS = 0.1  # between two attempts, because an attempt between two statements or two jobs interrupts nothing
CLOSED_SECONDS = 5.0  # the watching thread ends at most this long after its block
GRACE_SECONDS = 1.0  # the time for the rollback, after which the process ends without it


class Stopped(Exception):
    """The exception that ends a batch after a stop was requested. The batch was rolled back. No caller outside of the
    applier sees this exception.
    """


class Interrupter:
    """A context in which a thread waits for the event `stop`, and then interrupts the work of another thread.

    If work that may be interrupted is in progress at a stop, the thread runs `actions`, which interrupt this work.

    `leave`: ends the process. It is called if the work may be lost at any time (`abortable`), or if the work does not
    end after `actions`. If the process serves other channels, `leave` only ends this channel's work, as an action does.
    """

    def __init__(
        self, stop: threading.Event, actions: Sequence[Callable[[], None]] = (), leave: Callable[[], None] | None = None
    ) -> None:
        self.stop = stop
        self.actions = actions
        self._leave = leave
        self._lock = threading.Lock()
        self._may_cut = self._has_cut = False
        self._patience: float | None = None  # seconds that `abortable` work may continue after a stop
        self._closed = threading.Event()

    def __enter__(self) -> Self:
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._closed.set()

    @contextmanager
    def abortable(self, patience: float = 0.0) -> Iterator[None]:
        """Let a stop end the process while the block runs, `patience` seconds after the stop was requested.

        The block must apply nothing. Raises Stopped if a stop is requested before the end of the block.
        """
        self.check()
        self._patience = patience
        try:
            yield
        except Exception as error:
            if self._has_cut:
                raise Stopped from error
            raise
        finally:
            self._patience = None
        self.check()

    @contextmanager
    def work(self) -> Iterator[None]:
        """Let a stop interrupt the block until the block calls `before_commit`.

        If the interruption makes the block fail, Stopped replaces its error. Also raises Stopped if a stop was already
        requested.
        """
        self.check()
        self._set(may_cut=True)
        try:
            yield
        except Exception as error:
            self._set(may_cut=False)
            if self._has_cut:
                raise Stopped from error
            raise
        finally:
            self._set(may_cut=False)

    def before_commit(self) -> None:
        """Forbid interruptions until the end of the block of `work`.

        Raises Stopped if a stop has already interrupted the block.
        """
        self._set(may_cut=False)
        if self._has_cut:
            raise Stopped

    def check(self) -> None:
        """Raise Stopped if a stop was requested. The applier calls this between two transactions."""
        if self.stop.is_set():
            raise Stopped

    def _set(self, *, may_cut: bool) -> None:
        with self._lock:
            self._may_cut = may_cut

    def _watch(self) -> None:
        while not self._closed.is_set():
            if not self.stop.wait(CLOSED_SECONDS):
                continue
            if (patience := self._patience) is not None:
                self._closed.wait(patience)
                if self._patience is not None:
                    self._has_cut = True
                    self._end()
            with self._lock:
                if self._may_cut:
                    if not self._has_cut:
                        threading.Thread(target=self._end_if_it_hangs, daemon=True).start()
                    self._has_cut = True
                    for action in self.actions:
                        action()
            self._closed.wait(AGAIN_SECONDS)

    def _end_if_it_hangs(self) -> None:
        """Call `leave` if the interrupted work still runs after the grace period, and again after each further period.

        `leave` may return, because a process that serves other channels cannot end before these channels. This method
        takes no lock, because an action that hangs may hold the lock.
        """
        while not self._closed.wait(GRACE_SECONDS):
            if self._may_cut:
                self._end()

    def _end(self) -> None:
        if self._leave is not None:
            self._leave()
