"""`lock-instance`, `lock-tables` and their opposites: the locks of a backup (WL#9452 F-4).

    LOCK INSTANCE FOR BACKUP         no command changes files or channels, no relay log is purged; data go on
    FLUSH TABLES WITH READ LOCK      the batches in work end, no applier writes to the target; receivers go on

Both may be held by a command that is run under them, or by a process that outlives us until `unlock-…` or a timeout.
Invariant: the lock is an flock that this process has taken and left to the holder: there is no instant without it, and
a killed holder frees it. log-status and backup work inside either, and without.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rplctl.command.instance.journal import append_journal
from rplctl.config import Config
from rplctl.errors import LockBusy, NotConfigured, RplError
from rplctl.locks import FileLock, InstanceLock, RwLock, lock_wait_timeout, read_lock
from rplctl.own_process import signal_holder

INSTANCE, TABLES = "instance", "tables"
HOLDER_TIMEOUT_S = 3600.0
_UNLOCK_PATIENCE_S = 10.0
_HOLDER = "import sys, time; time.sleep(float(sys.argv[2]))"
_NAMES = {INSTANCE: "LOCK INSTANCE FOR BACKUP", TABLES: "FLUSH TABLES WITH READ LOCK"}
_WAITED_FOR = {INSTANCE: "a command that changes files runs", TABLES: "an applier is in a batch, or the lock is held"}


@dataclass(frozen=True, slots=True)
class HeldLock:
    kind: str
    pid: int
    timeout_s: float


def lock_detached(config: Config, kind: str, wait_s: float, timeout_s: float = HOLDER_TIMEOUT_S) -> HeldLock:
    """Take the lock and leave it to a process of its own. Raises LockBusy 1205, or when such a process holds it."""
    _check_folder(config)
    seat = _seat(config, kind)
    try:
        if not seat.acquire(patience_s=0):
            raise LockBusy(
                f"{_NAMES[kind]} is held by process {seat.noted().strip()} already", hint=f"rplctl unlock-{kind}"
            )
        with _taken(config, kind, wait_s) as lock:
            holder = subprocess.Popen(
                [sys.executable, "-c", _HOLDER, f"rplctl lock-{kind}", str(timeout_s)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(seat.descriptor, *lock.descriptors()),
                start_new_session=True,
            )
            seat.note(f"{holder.pid}\n")
    finally:
        seat.close()
    append_journal(config, f"'{_NAMES[kind]}' by process {holder.pid}, for {timeout_s:g} s at most")
    _children.append(holder)
    return HeldLock(kind, holder.pid, timeout_s)


_children: list[subprocess.Popen[bytes]] = []  # left running on purpose


def run_under_lock(config: Config, kind: str, wait_s: float, command: Sequence[str]) -> int:
    """Run the command while we hold the lock; its exit code. SIGTERM goes on to it."""
    _check_folder(config)
    children: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def pass_on(number: int) -> None:
        children[0].send_signal(number) if children else early.append(number)

    with _taken(config, kind, wait_s), _passing_on(signal.SIGTERM, pass_on):
        try:
            children.append(subprocess.Popen(list(command)))
        except OSError as error:
            raise RplError(f"{command[0]}: {error.strerror}", hint=f"rplctl lock-{kind} -- COMMAND") from None
        for number in early:
            pass_on(number)
        code = children[0].wait()
    return 128 - code if code < 0 else code


def unlock(config: Config, kind: str) -> int | None:
    """End the process that `lock_detached` left; its pid, None when there is none. Raises RplError."""
    _check_folder(config)
    seat = _seat(config, kind)
    try:
        if seat.acquire(patience_s=0):
            return None
        text = seat.noted().strip()
        pid = int(text) if text.isdecimal() else 0
        if pid:
            signal_holder(pid, signal.SIGTERM, seat.path, "which holds the lock")
        if not seat.acquire(patience_s=_UNLOCK_PATIENCE_S):
            raise LockBusy(f"process {pid} still holds the lock", hint=f"rplctl unlock-{kind}")
    finally:
        seat.close()
    _children[:] = [child for child in _children if child.poll() is None]
    append_journal(config, f"'UNLOCK {kind.upper()}', process {pid}")
    return pid


@contextmanager
def _taken(config: Config, kind: str, wait_s: float) -> Iterator[InstanceLock | RwLock]:
    lock: InstanceLock | RwLock = InstanceLock(config.datadir) if kind == INSTANCE else read_lock(config.datadir)
    try:
        is_held = lock.acquire_backup(wait_s) if isinstance(lock, InstanceLock) else lock.acquire_exclusive(wait_s)
        if not is_held:
            raise lock_wait_timeout(_WAITED_FOR[kind], "rplctl show-status, or more time with --wait")
        yield lock
    finally:
        lock.close()


def _seat(config: Config, kind: str) -> FileLock:
    """Held by the detached process, with its pid inside: there is one at most."""
    return FileLock(config.datadir / "run" / f"{kind}.holder")


@contextmanager
def _passing_on(number: int, send: Callable[[int], None]) -> Iterator[None]:
    previous = signal.signal(number, lambda n, _: send(n))
    try:
        yield
    finally:
        signal.signal(number, previous)


def _check_folder(config: Config) -> None:
    from rplctl.target.engine_log import access_denied

    if not config.datadir.is_dir():
        raise NotConfigured(f"{config.datadir} is no instance folder", errno=1200, hint="rplctl init")
    if not os.access(config.datadir, os.R_OK | os.W_OK | os.X_OK):
        raise access_denied(f"run as the owner of {config.datadir}")
