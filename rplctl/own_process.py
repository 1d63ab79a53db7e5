"""rplctl's own processes: start one, send a signal to the holder of a lock file, describe its end.

Invariants: a process that rplctl starts imports nothing from the working directory, whoever owns it: its command,
environment and folder come from `own_python`, `own_environment` and OWN_FOLDER. Its files are private (OWN_UMASK). A
signal goes only to a process that has the lock file open at that moment. A pid in a file proves nothing: it may be
damaged, older than the last reboot, from another container, or reused for another process.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Final

from rplctl.errors import LockBusy, RplError

OWN_FOLDER: Final = "/"  # the working directory of rplctl's processes: only root can put a file there
OWN_UMASK: Final = 0o077  # also for files of libraries, for example in a lake
SAFE_PATH: Final = "PYTHONSAFEPATH"  # like `-P`, also for Python processes of a library
_SWITCH_S: Final = 0.1
_OBJECTS: Final = 50_000
_PATH_VARIABLES: Final = (
    *("RPLCTL_CONFIG", "JAVA_HOME", "SPARK_HOME", "SPARK_CONF_DIR", "NUMBA_CACHE_DIR", "TMPDIR"),
    *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "CREDENTIALS_DIRECTORY"),
)


def collect_seldom() -> None:
    """Make Python's garbage collector run after 50,000 new objects, not after 700.

    Loaded modules are never garbage. The collector took a fifth of the time in which an applier loads its modules.
    """
    gc.set_threshold(_OBJECTS)


def serve_many_threads() -> None:
    """Set a longer switch interval for a process of many threads.

    By default, each waiting thread requests the interpreter every 5 ms. With 64 threads, the process did little else. A
    working thread releases the interpreter many times per batch anyway.
    """
    sys.setswitchinterval(_SWITCH_S)


def signal_holder(pid: int, number: signal.Signals, lock: Path, what: str, channel: str | None = None) -> bool:
    """Send the signal to the process that holds the lock file; False if the process has ended.

    `what`: a description of the process. Raises LockBusy if the pid belongs to another process, RplError if another
    user owns it.
    """
    try:
        descriptor = os.pidfd_open(pid)
    except (OSError, OverflowError, ValueError):
        return False
    try:
        if not _has_open(pid, lock):
            raise LockBusy(
                f"{lock} names process {pid}, which does not hold it: no signal was sent",
                channel=channel,
                hint=f"to find the process that holds the file, run: fuser {lock}; then end this process with: kill "
                "PID",
            )
        signal.pidfd_send_signal(descriptor, number)
    except (ProcessLookupError, FileNotFoundError):
        return False
    except PermissionError:
        raise RplError(
            f"process {pid}, {what}, belongs to another user",
            channel=channel,
            hint="run this command as the user who started it",
        ) from None
    finally:
        os.close(descriptor)
    return True


def own_python(*arguments: str) -> list[str]:
    """Return the command that runs this Python without the working directory on its path."""
    return [sys.executable, "-P", *arguments]


def own_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment for one of rplctl's processes, which runs in OWN_FOLDER.

    A relative path in a variable becomes absolute. PYTHONPATH keeps only its absolute folders.
    """
    found = {**environment, SAFE_PATH: "1"}
    found |= {name: os.path.abspath(found[name]) for name in _PATH_VARIABLES if found.get(name)}
    folders = [folder for folder in found.pop("PYTHONPATH", "").split(os.pathsep) if os.path.isabs(folder)]
    return found | ({"PYTHONPATH": os.pathsep.join(folders)} if folders else {})


def start_beside(arguments: Sequence[str], pass_fds: Sequence[int] = ()) -> int:
    """Start a process of this Python in its own session, without output, and return its pid.

    The process may outlive this one.
    """
    import subprocess  # not needed for signals only

    null = subprocess.DEVNULL
    child = subprocess.Popen(
        own_python(*arguments),
        stdin=null,
        stdout=null,
        stderr=null,
        env=own_environment(),
        pass_fds=pass_fds,
        start_new_session=True,
        cwd=OWN_FOLDER,
        umask=OWN_UMASK,
    )
    threading.Thread(target=child.wait, name="rplctl-reaper", daemon=True).start()  # avoids a zombie process
    return child.pid


@contextmanager
def signals_to(handler: Callable[[int, FrameType | None], object], *numbers: signal.Signals) -> Iterator[None]:
    """Handle these signals with `handler` within the block, then restore the old handlers. Main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


def stop_on_signals(stop: Callable[[], None], *numbers: signal.Signals) -> None:
    """Call `stop` in a thread at each of these signals, from now to the end of the process. Main thread only.

    Python runs a signal handler only between two bytecode instructions of the main thread. There it must take no lock,
    which the main thread may hold, and it waits for a library's C code. But Python writes a byte to the wakeup
    descriptor as soon as the signal arrives, and a thread waits for this byte. The descriptor is set before the
    handlers: until then, SIGTERM still ends the process, and no signal is lost in between.
    """
    receiving, sending = socket.socketpair()
    sending.setblocking(False)
    signal.set_wakeup_fd(sending.detach(), warn_on_full_buffer=False)  # open to the end of the process
    for number in numbers:
        signal.signal(number, lambda *_: None)

    def wait() -> None:
        while True:
            if set(numbers) & set(receiving.recv(64)):
                stop()

    threading.Thread(target=wait, daemon=True, name="rplctl-signals").start()


def ended_how(exit_code: int) -> str:
    """Return words for an exit code, to follow the name of the process. Negative: minus the signal (subprocess)."""
    return f"was killed by {signal_name(-exit_code)}" if exit_code < 0 else f"ended with exit code {exit_code}"


def signal_name(number: int) -> str:
    """Return the signal's name, such as `SIGKILL`, or the number of a real-time signal, which has no name."""
    return signal.Signals(number).name if number in set(signal.Signals) else str(number)


def _has_open(pid: int, lock: Path) -> bool:
    """True if the process has the file open. Raises ProcessLookupError or FileNotFoundError if it has ended, and
    PermissionError if it is of another user.
    """
    wanted = lock.stat()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # the descriptor was just closed
            if os.path.samestat(entry.stat(), wanted):
                return True
    return False
