"""STOP while a large transaction is in work: it is cut off, rolled back and forgotten, within moments.

Invariant: only work that a rollback undoes as a whole is cut off, and never a COMMIT: `work` opens the door for the
watching thread, `before_commit` shuts it. What STOP interrupts is no error: the next start begins with it again (D8).
What does not end although it was cut off (a library waits for a lock) ends with the process: for the target that is
the crash it is made for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Self

AGAIN_SECONDS = 0.1  # what came between two statements or two jobs is not cut off by the first try
CLOSED_SECONDS = 5.0  # within which the watching thread ends with its block
GRACE_SECONDS = 1.0  # to roll back; then the process ends as it is


class Stopped(Exception):
    """STOP came while a batch was in work; it is rolled back. Never leaves the applier."""


class Interrupter:
    """A context whose thread carries out `actions` once `stop` is set, if work is in progress then.

    `leave` ends the process: for work that may be lost at any time (`abortable`), and for work that does not end when
    it is cut off. Where the process has other work to do, `leave` only makes an end likely, as an action does.
    """

    def __init__(
        self, stop: threading.Event, actions: Sequence[Callable[[], None]] = (), leave: Callable[[], None] | None = None
    ) -> None:
        self.stop = stop
        self.actions = actions
        self._leave = leave
        self._lock = threading.Lock()
        self._may_cut = self._has_cut = False
        self._patience: float | None = None  # seconds that `abortable` work may go on after STOP
        self._closed = threading.Event()

    def __enter__(self) -> Self:
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._closed.set()

    @contextmanager
    def abortable(self, patience: float = 0.0) -> Iterator[None]:
        """Before anything is applied: STOP ends the process, after `patience` seconds. Raises Stopped."""
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
        """Let STOP cut off the block, up to `before_commit`. After a cut, Stopped is raised in place of any error."""
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
        """Nothing is cut off from here on. Raises Stopped when something was."""
        self._set(may_cut=False)
        if self._has_cut:
            raise Stopped

    def check(self) -> None:
        """Between two transactions. Raises Stopped once STOP came."""
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
        """No lock: an action may be what hangs. Again: the process may end once its other work has."""
        while not self._closed.wait(GRACE_SECONDS):
            if self._may_cut:
                self._end()

    def _end(self) -> None:
        if self._leave is not None:
            self._leave()
