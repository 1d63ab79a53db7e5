"""Locks between the processes of an instance.

Each lock is a flock on a file in `<datadir>/run`. The system releases the lock when its holder is killed.
All processes take the locks in the order of this list (WL#9452, design D8). A process that holds a lock never waits for
a lock above it in the list:

    backup           held by LOCK INSTANCE FOR BACKUP, several at a time, but never together with `verbs`
    verbs            held by commands that change files, several at a time, but never together with `backup`
    log_status       held by one `rplctl log-status` at a time
    channels         the channel map: commands on channels share it, log-status holds it exclusively
    CHAN/admin       held by one command per channel (channel.py)
    CHAN/data        held while the receiver makes a new MasterInfo visible, or begins a new relay log
    gtids            appliers share it while they commit a position, log-status holds it exclusively
    options          held while a command changes rplctl.toml

The lock `read` (FLUSH TABLES WITH READ LOCK) is not in this order. Appliers share it during a batch, and its exclusive
holder takes no other lock. A process that holds `gtids` never waits for a lock of the target.
Invariant: a process that waits for an exclusive lock gets it, even if other processes share the lock all the time. Each
process first passes a second lock, the gate, and the waiting process holds this gate.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rplctl import mysql_errors as er
from rplctl.durable import note, private_folder
from rplctl.errors import LockBusy
from rplctl.plain_file import open_plain, read_if_there

PATIENCE_S = 50.0  # innodb_lock_wait_timeout's default
_FIRST_PAUSE_S = 0.0002
_LONGEST_PAUSE_S = 0.01

Stop = Callable[[], bool]


def flock(descriptor: int, *, shared: bool = False, wait: bool = True) -> bool:
    """Lock an open file until it is closed, and return True.

    Return False if `wait` is False and another process holds the lock. Raises OSError for any other error.
    """
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def unlock(descriptor: int) -> None:
    """Release the lock, even if a duplicate of the descriptor is still open."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)


def is_in_use(path: Path) -> bool:
    """True if another process holds an fcntl lock on the file, as database servers do for their files.

    Raises OSError if the file cannot be opened.
    """
    with path.open("rb") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return True
    return False


class FileLock:
    """A flock on one file, for one thread of this process.

    The holder may call `acquire` again, and must then call `release` as often as `acquire`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1
        self._depth = 0

    def open(self) -> None:
        """Open the file, so that a later `acquire` is faster. Raises OSError if the file cannot be opened."""
        if self._descriptor < 0:
            private_folder(self.path.parent)
            self._descriptor = open_plain(self.path, os.O_RDWR | os.O_CREAT, follow=False)

    def acquire(self, *, shared: bool = False, patience_s: float | None = None, stop: Stop = lambda: False) -> bool:
        """Take the lock, and return True. Wait for the lock at most `patience_s` seconds. None means no limit.

        Return False if the time is over, or if `stop`, which is called repeatedly, returns True. Raises OSError if the
        file cannot be opened.
        """
        if self._depth:
            self._depth += 1
            return True
        self.open()
        deadline = None if patience_s is None else time.monotonic() + patience_s
        pause = _FIRST_PAUSE_S
        while not flock(self._descriptor, shared=shared, wait=False):
            if stop() or (deadline is not None and time.monotonic() >= deadline):
                return False
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_S)
        self._depth = 1
        return True

    def release(self) -> None:
        self._depth -= 1
        if not self._depth:
            unlock(self._descriptor)

    def close(self) -> None:
        """Release the lock and close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor, self._depth = -1, 0

    def __del__(self) -> None:
        self.close()  # an applier creates a new PositionStore, with a new lock, after each outage of its target

    @property
    def descriptor(self) -> int:
        """The descriptor of the open file, to pass on to a child process.

        The child process then holds the lock, too, even after `close` in this process.
        """
        return self._descriptor

    def note(self, text: str) -> None:
        """Replace the content of the lock file by a text about the holder, for people.

        Raises OSError, which names the path, if the file cannot be written.
        """
        note(self._descriptor, self.path, text)

    def noted(self) -> str:
        """Return the text that the last holder of the lock wrote with `note`. Return '' if there is no text."""
        return read_if_there(self.path, follow=False).decode("utf-8", "replace")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Wait for the lock without a limit, and hold it exclusively during the block."""
        self.acquire()
        try:
            yield
        finally:
            self.release()


class RwLock:
    """A lock with many shared holders or one exclusive holder.

    A process that waits for the exclusive lock holds a gate, which keeps new shared holders away. So the process gets
    the lock after the present holders.
    """

    def __init__(self, datadir: Path, name: str) -> None:
        self._gate = FileLock(datadir / "run" / f"{name}.gate")
        self._lock = FileLock(datadir / "run" / f"{name}.lock")
        self.name = name

    def acquire_shared(self, patience_s: float | None = None, stop: Stop = lambda: False) -> bool:
        if not self._gate.acquire(shared=True, patience_s=patience_s, stop=stop):
            return False
        try:
            return self._lock.acquire(shared=True, patience_s=patience_s, stop=stop)
        finally:
            self._gate.release()

    def acquire_exclusive(self, patience_s: float | None = None) -> bool:
        if not self._gate.acquire(patience_s=patience_s):
            return False
        if self._lock.acquire(patience_s=patience_s):
            return True
        self._gate.release()
        return False

    def release_shared(self) -> None:
        self._lock.release()

    @contextmanager
    def shared(self, patience_s: float | None = None, stop: Stop = lambda: False) -> Iterator[bool]:
        """Take the shared lock for the block, and yield True.

        If the lock is not free in time, the block also runs, but gets False.
        """
        is_held = self.acquire_shared(patience_s, stop)
        try:
            yield is_held
        finally:
            if is_held:
                self.release_shared()

    def descriptors(self) -> tuple[int, ...]:
        return self._gate.descriptor, self._lock.descriptor

    def close(self) -> None:
        self._lock.close()
        self._gate.close()


class InstanceLock:
    """The lock of LOCK INSTANCE FOR BACKUP, which separates backups from commands that change files.

    Any number of backups, or any number of such commands, hold the lock at the same time, but never both kinds.
    """

    def __init__(self, datadir: Path) -> None:
        folder = datadir / "run"
        self._gate = FileLock(folder / "instance.gate")
        self._backups = FileLock(folder / "backup.lock")
        self._verbs = FileLock(folder / "verbs.lock")

    def acquire_backup(self, patience_s: float) -> bool:
        return self._enter(self._backups, self._verbs, patience_s)

    def acquire_verb(self, patience_s: float) -> bool:
        return self._enter(self._verbs, self._backups, patience_s)

    def close(self) -> None:
        """Release all locks that this object holds, and close their files."""
        for lock in (self._backups, self._verbs, self._gate):
            lock.close()

    def descriptors(self) -> tuple[int, ...]:
        """Return the descriptors of the backup lock, to pass on to a child process (see `FileLock.descriptor`)."""
        return (self._backups.descriptor,)

    def _enter(self, mine: FileLock, theirs: FileLock, patience_s: float) -> bool:
        """Take the lock `mine` as soon as nobody holds the lock `theirs`. Return False after `patience_s` seconds.

        The gate makes the check and the taking one step: only the process that holds the gate takes one of the locks.
        """
        deadline = time.monotonic() + patience_s
        while True:
            left = max(0.0, deadline - time.monotonic())
            if not self._gate.acquire(patience_s=left):
                return False
            try:
                if theirs.acquire(patience_s=0):
                    theirs.release()
                    return mine.acquire(shared=True, patience_s=0)
            finally:
                self._gate.release()
            if time.monotonic() >= deadline:
                return False
            time.sleep(_LONGEST_PAUSE_S)


def lock_wait_timeout(what: str, hint: str) -> LockBusy:
    """Return MySQL's error 1205 for a lock that was not free in time. `what`: the reason, for the message."""
    return LockBusy(
        f"Lock wait timeout exceeded; try restarting transaction ({what})", errno=er.LOCK_WAIT_TIMEOUT, hint=hint
    )


def channel_map(datadir: Path) -> RwLock:
    return RwLock(datadir, "channels")


def gtid_map(datadir: Path) -> RwLock:
    return RwLock(datadir, "gtids")


def read_lock(datadir: Path) -> RwLock:
    return RwLock(datadir, "read")


def options_lock(datadir: Path) -> FileLock:
    return FileLock(datadir / "run" / "options.lock")


def collector_lock(datadir: Path) -> FileLock:
    return FileLock(datadir / "run" / "log_status.lock")
