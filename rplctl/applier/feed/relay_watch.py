"""Wakes appliers when their receivers have written, by one inotify watch of the instance folder per process.

Invariant: a wake-up is only a hint, and this module reads no relay log. An applier that is woken without a reason finds
nothing new. Without inotify, appliers poll every `look_s` seconds. This is the case if the files are on another host,
or if the machine permits no more watches.
"""

from __future__ import annotations

import ctypes
import logging
import os
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

IDLE_LOOK_S: Final = 1.0  # between polls of an applier that inotify wakes
POLL_S: Final = 0.02  # between polls without inotify
_POLL_EACH_S: Final = 0.002  # between polls, for each channel: the process polls at most 500 times a second
_SETTLED_S: Final = 0.05  # a pause between two transactions is shorter
_REST_S: Final = 0.002  # after each read, because a receiver at full speed writes thousands of times a second
_IN_MODIFY, _IN_MOVED_TO, _IN_Q_OVERFLOW = 0x2, 0x80, 0x4000  # inotify(7)
_HEAD: Final = struct.Struct("iIII")  # wd, mask, cookie, length of the name that follows
_BUFFER_BYTES: Final = 1 << 16
log = logging.getLogger(__name__)


class RelayWatch:
    """The watch of one process for the relay logs of its channels.

    `woken` returns an event for the base name of a channel's relay logs. The event is set whenever a file with this
    base name is written or replaced.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._woken: dict[str, threading.Event] = {}
        self._descriptor = -1

    def woken(self, base: str) -> threading.Event:
        """Return the event for the files `base.*`. Call this method before `start`.

        The event is set whenever one of these files is written. The caller clears the event before each poll.
        """
        return self._woken.setdefault(base, threading.Event())

    def start(self) -> None:
        """Start to watch the folder, until the end of the process. A second call has no effect.

        If inotify is not available, the appliers poll instead.
        """
        if self._descriptor >= 0:
            return
        try:
            self._descriptor = _watched(self._folder)
        except OSError as error:
            log.info("no inotify (%s): the applier polls for new events every %g s", error.strerror, self.look_s)
            return
        threading.Thread(target=self._listen, name="rplctl-relay-watch", daemon=True).start()

    @property
    def look_s(self) -> float:
        return IDLE_LOOK_S if self._descriptor >= 0 else max(POLL_S, _POLL_EACH_S * len(self._woken))

    def wait(self, woken: threading.Event, settled: Callable[[], None]) -> None:
        """Wait until the event `woken` is set, or until the next poll is due.

        `settled`: called once if the wait lasts longer than a moment. The caller then writes its status.
        """
        if not woken.wait(min(self.look_s, _SETTLED_S)):
            settled()
            woken.wait(max(self.look_s - _SETTLED_S, 0.0))

    def _listen(self) -> None:
        while True:
            for base in written(os.read(self._descriptor, _BUFFER_BYTES)):
                for woken in self._woken.values() if base is None else filter(None, [self._woken.get(base)]):
                    woken.set()
            time.sleep(_REST_S)


def written(events: bytes) -> set[str | None]:
    """Return the base names of the written files, from the bytes of inotify events.

    A base name is a file's name without the part after the last dot. None in the set means that events were lost.
    """
    found: set[str | None] = set()
    at = 0
    while at < len(events):
        _, mask, _, length = _HEAD.unpack_from(events, at)
        at += _HEAD.size + length
        name = os.fsdecode(events[at - length : at].rstrip(b"\0"))
        found.add(None if mask & _IN_Q_OVERFLOW else name.rpartition(".")[0])
    return found


def _watched(folder: Path) -> int:
    """Return an inotify descriptor that watches the folder. Raises OSError if the kernel refuses to create it."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = _checked(libc.inotify_init1(os.O_CLOEXEC))
    try:
        _checked(libc.inotify_add_watch(descriptor, os.fsencode(folder), _IN_MODIFY | _IN_MOVED_TO))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
