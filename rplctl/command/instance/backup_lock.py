"""Take and release the two locks of a backup (WL#9452 F-4), for `lock-instance`, `lock-tables` and the unlock commands.

A lock has one of these holders:

* a command that runs under the lock
* a separate process, which ends by `unlock-instance` or `unlock-tables`, or after a timeout
* a connection to `serve --mysql`

Invariant: the lock is an flock that this process acquires and passes on to the holder. So it is held without a gap, and
the death of the holder releases it. log-status and backup work with and without these locks.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rplctl import mysql_errors as er
from rplctl.config import Config
from rplctl.errors import LockBusy, NotConfigured, RplError, no_instance
from rplctl.history import note_event
from rplctl.locks import FileLock, InstanceLock, RwLock, lock_wait_timeout
from rplctl.own_process import signal_holder, signals_to, start_beside
from rplctl.target.engine_log import access_denied

HOLDER_TIMEOUT_S = 3600.0
_UNLOCK_PATIENCE_S = 10.0
_HOLDER = "import sys, time; time.sleep(float(sys.argv[2]))"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupLock:
    """The properties of one of the two locks. lock_instance.py and lock_tables.py define the two instances."""

    kind: str  # as in the verb's name
    statement: str
    waited_for: str  # the reason for which the lock may be busy
    open: Callable[[Path], InstanceLock | RwLock]  # instance folder → the lock, not yet held
    acquire: Callable[[Any, float], bool]  # (lock, seconds to wait) → True if it is now held


@dataclass(frozen=True, slots=True)
class HeldLock:
    kind: str = field(metadata={"column": "Lock"})
    pid: int
    timeout_s: float = field(metadata={"column": "Timeout"})


@dataclass(frozen=True, slots=True)
class ReleasedLock:
    kind: str = field(metadata={"column": "Lock"})
    pid: int | None  # the process that held the lock; None if the lock was free


def lock_detached(config: Config, lock: BackupLock, wait_s: float, timeout_s: float = HOLDER_TIMEOUT_S) -> HeldLock:
    """Take the lock and pass it on to a separate process, which holds it for at most `timeout_s` seconds.

    Raises LockBusy 1205 if the lock is not free within `wait_s` seconds, and LockBusy if such a process already holds
    it.
    """
    check_folder(config)
    with closing(_holder_file(config, lock)) as seat:
        if not seat.acquire(patience_s=0):
            raise LockBusy(
                f"process {seat.noted().strip()} already holds {lock.statement}",
                hint=f"to release the lock, run: rplctl unlock-{lock.kind}",
            )
        with _taken(config, lock, wait_s) as taken:
            arguments = ("-c", _HOLDER, f"rplctl lock-{lock.kind}", str(timeout_s))
            pid = start_beside(arguments, (seat.descriptor, *taken.descriptors()))
            seat.note(f"{pid}\n")
    note_event(config.datadir, None, "lock", f"{lock.statement}: process {pid}, {timeout_s:g} s at most")
    return HeldLock(lock.kind, pid, timeout_s)


def run_under_lock(config: Config, lock: BackupLock, wait_s: float, command: Sequence[str]) -> int:
    """Run the command while this process holds the lock, and return its exit code. SIGTERM is passed on to the
    command.
    """
    check_folder(config)
    children: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def pass_on(number: int, _: object = None) -> None:
        children[0].send_signal(number) if children else early.append(number)

    with _taken(config, lock, wait_s), signals_to(pass_on, signal.SIGTERM):
        try:
            children.append(subprocess.Popen(list(command)))
        except OSError as error:
            raise RplError(
                f"cannot run {command[0]}: {error.strerror}",
                hint=f"to hold the lock during a command, run: rplctl lock-{lock.kind} -- COMMAND",
            ) from None
        for number in early:
            pass_on(number)
        code = children[0].wait()
    return 128 - code if code < 0 else code


def unlock(config: Config, lock: BackupLock) -> ReleasedLock:
    """End the process that `lock_detached` started, which releases the lock.

    Raises LockBusy if the process does not end in time, and RplError if it cannot be signalled.
    """
    check_folder(config)
    with closing(_holder_file(config, lock)) as seat:
        if seat.acquire(patience_s=0):
            return ReleasedLock(lock.kind, None)
        text = seat.noted().strip()
        pid = int(text) if text.isdecimal() else 0
        if pid:
            signal_holder(pid, signal.SIGTERM, seat.path, "which holds the lock")
        if not seat.acquire(patience_s=_UNLOCK_PATIENCE_S):
            raise LockBusy(
                f"process {pid} still holds the lock", hint=f"to release the lock, run: rplctl unlock-{lock.kind}"
            )
    note_event(config.datadir, None, "unlock", f"UNLOCK {lock.kind.upper()}: process {pid}")
    return ReleasedLock(lock.kind, pid)


def hold_backup_lock(config: Config, lock: BackupLock, wait_s: float) -> InstanceLock | RwLock:
    """Take the lock and return it. The caller releases it by `close`.

    Raises LockBusy 1205 after `wait_s` seconds, NotConfigured if the folder is not an instance folder, and RplError
    1227 if this user may not access it.
    """
    check_folder(config)
    taken = lock.open(config.datadir)
    if lock.acquire(taken, wait_s):
        return taken
    taken.close()
    hint = f"to see who holds locks, run: rplctl history\nTo wait longer, run: rplctl lock-{lock.kind} --wait SECONDS"
    raise lock_wait_timeout(lock.waited_for, hint)


def _taken(config: Config, lock: BackupLock, wait_s: float) -> closing[InstanceLock | RwLock]:
    return closing(hold_backup_lock(config, lock, wait_s))


def _holder_file(config: Config, lock: BackupLock) -> FileLock:
    """Return the file lock that allows only one separate process for each backup lock.

    The process of `lock_detached` holds it, and writes its process id into it. So `unlock` finds the process.
    """
    return FileLock(config.datadir / "run" / f"{lock.kind}.holder")


def check_folder(config: Config) -> None:
    """Raise NotConfigured if the folder is not an instance folder, and RplError 1227 if this user may not access it.
    Raises PermissionError if its parent cannot be read.
    """
    if not config.datadir.is_dir():
        raise NotConfigured(
            f"{config.datadir} is not an instance folder", errno=er.BAD_SLAVE, hint=no_instance(config.datadir)
        )
    if not os.access(config.datadir, os.R_OK | os.W_OK | os.X_OK):
        raise access_denied(f"run the command as the owner of {config.datadir}")
