"""The receiver and applier processes as `start` and `stop` see them: spawn, wait for the lock, signal, reap.

Invariant: a thread counts as running when its lock is held, never because a pid exists (channel.py). A child gets
a session of its own, no password in its environment, and its log in the channel's run folder.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from rplctl import errors
from rplctl.channel import Channel, lock_holder
from rplctl.command.instance import RECEIVER
from rplctl.durable import private_folder
from rplctl.errors import LockBusy, RplError
from rplctl.secret import PASSWORD_VARIABLE
from rplctl.status import read_status

START_TIMEOUT_S = 120.0  # until a child holds its lock: imports and the first compilation of the kernels
STOP_TIMEOUT_S = 60.0  # until SIGTERM is followed by SIGKILL
MAX_LOG_BYTES = 16 << 20
NO_VARIABLES: Mapping[str, str] = {}
_POLL_S = 0.02
_ERROR_OF_EXIT_CODE = {
    error.exit_code: error
    for error in (
        errors.UsageError,
        errors.NotRunning,
        errors.NotConfigured,
        errors.RepositoryConflict,
        errors.SourceError,
        errors.TargetError,
        errors.RelayLogError,
        errors.WaitTimeout,
        errors.LockBusy,
        errors.ConfigError,
    )
}


_background: list[subprocess.Popen[bytes]] = []  # left running on purpose; reaped when this process starts another


@dataclass(frozen=True, slots=True)
class Child:
    role: str
    channel: Channel
    popen: subprocess.Popen[bytes]
    started: float  # Unix seconds

    def exit_code(self) -> int | None:
        return self.popen.poll()


def spawn(
    channel: Channel,
    role: str,
    arguments: Sequence[str] = (),
    *,
    keep_variable: str = "",
    variables: Mapping[str, str] = NO_VARIABLES,
) -> Child:
    """Start `python -m rplctl.<role>` in its own session, `variables` in its environment. `keep_variable` is what a
    stored `env:` password names.
    """
    private_folder(channel.run_folder)
    environment = dict(os.environ)
    if keep_variable != PASSWORD_VARIABLE:
        environment.pop(PASSWORD_VARIABLE, None)
    environment.update(variables)
    command = [sys.executable, "-m", f"rplctl.{role}", str(channel.datadir.resolve()), channel.name, *arguments]
    started = time.time()
    with _open_log(channel.log_path(role)) as log:
        popen = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
        )
    return Child(role, channel, popen, started)


def leave_running(children: Sequence[Child]) -> None:
    """They go on without this process, which only reaps them if it is still there when they end."""
    _background[:] = [popen for popen in _background if popen.poll() is None]
    _background.extend(child.popen for child in children)


def _open_log(path: Path) -> IO[bytes]:
    """Append, 0600; a log that has grown large is begun anew."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    if os.fstat(descriptor).st_size > MAX_LOG_BYTES:
        os.ftruncate(descriptor, 0)
    return os.fdopen(descriptor, "ab")


def wait_until_it_runs(child: Child, timeout_s: float = START_TIMEOUT_S) -> None:
    """Until the child holds its lock, or has already done its work. Raises the child's error, RplError on timeout."""
    deadline = time.monotonic() + timeout_s
    while lock_holder(child.channel, child.role) != child.popen.pid:
        code = child.exit_code()
        if code == 0:
            return
        if code is not None:
            raise error_of(child, code)
        if time.monotonic() > deadline:
            terminate(child)
            raise RplError(
                f"the {child.role} of channel '{child.channel.name}' did not come up within {timeout_s:.0f} s",
                channel=child.channel.name,
                hint=f"see {child.channel.log_path(child.role)}",
            )
        time.sleep(_POLL_S)


def error_of(child: Child, code: int) -> RplError:
    """Why a child ended, in the words of its status file; else the last line of its log."""
    status = read_status(child.channel.status_path(child.role))
    log = child.channel.log_path(child.role)
    kind = _ERROR_OF_EXIT_CODE.get(code, RplError)
    if status.last_errno and status.last_error_timestamp >= child.started - 1:
        message, errno = status.last_error, status.last_errno
    else:
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        thread = f"the {child.role} of channel '{child.channel.name}'"
        message, errno = f"{thread} {how}: {last_line(log) or 'it said nothing'}", 0
    return kind(message, errno=errno, channel=child.channel.name, hint=f"see {log}")


def last_line(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
            lines = file.read().decode(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1] if lines else ""


def terminate(child: Child, timeout_s: float = STOP_TIMEOUT_S) -> bool:
    """SIGTERM, then SIGKILL after the timeout (safe: everything is crash-safe); True when it had to be killed."""
    child.popen.terminate()
    try:
        child.popen.wait(timeout_s)
    except subprocess.TimeoutExpired:
        child.popen.kill()
        child.popen.wait()
        return True
    return False


def stop_running(channel: Channel, role: str, timeout_s: float) -> bool | None:
    """Stop whoever holds the lock; None when nobody does, True when SIGKILL was needed. Raises LockBusy."""
    pid = _holder(channel, role)
    if pid is None:
        return None
    deadline = time.monotonic() + timeout_s
    _signal(pid, signal.SIGTERM, channel, role)
    while lock_holder(channel, role) == pid:
        if time.monotonic() > deadline:
            break
        time.sleep(_POLL_S)
    else:
        return False
    _signal(pid, signal.SIGKILL, channel, role)
    deadline = time.monotonic() + 10
    while lock_holder(channel, role) == pid:
        if time.monotonic() > deadline:
            raise LockBusy(f"process {pid}, the {role} of channel '{channel.name}', does not die", channel=channel.name)
        time.sleep(_POLL_S)
    return True


def _holder(channel: Channel, role: str) -> int | None:
    """The holder's pid; a process that has just taken the lock may not have written it yet."""
    for _ in range(100):
        pid = lock_holder(channel, role)
        if pid != 0:
            return pid
        time.sleep(_POLL_S)
    raise LockBusy(f"the {role} of channel '{channel.name}' is held by an unknown process", channel=channel.name)


def _signal(pid: int, number: signal.Signals, channel: Channel, role: str) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass  # it ended meanwhile, its lock with it
    except PermissionError:
        raise RplError(
            f"process {pid}, the {role} of channel '{channel.name}', belongs to another user",
            channel=channel.name,
            hint="run this command as the user who started it",
        ) from None


def order_of_stop(roles: Sequence[str]) -> list[str]:
    """The receiver first: nothing new arrives while the applier ends its transaction."""
    return sorted(roles, key=lambda role: role != RECEIVER)
