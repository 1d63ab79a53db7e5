"""rplctl's own processes: functions that start a process, send it a signal, and describe its end.

Invariants: a process that rplctl starts imports no module from the working directory, because other users may write
there. Therefore it gets its command from `own_python`, its environment from `own_environment`, and its working
directory from OWN_FOLDER. Its files are private (OWN_UMASK). rplctl sends a signal only to a process that has the lock
file open at this moment. The pid in a lock file proves nothing: it may be damaged, older than the last reboot, from
another container, or reused for another process.
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

OWN_FOLDER: Final = "/"  # the working directory of rplctl's processes, in which only root can create a file
OWN_UMASK: Final = 0o077  # it also protects the files that a library creates, for example in a lake
SAFE_PATH: Final = "PYTHONSAFEPATH"  # like `-P`, but also for the Python processes that a library starts
_SWITCH_S: Final = 0.1
_OBJECTS: Final = 50_000
_PATH_VARIABLES: Final = (
    *("RPLCTL_CONFIG", "JAVA_HOME", "SPARK_HOME", "SPARK_CONF_DIR", "NUMBA_CACHE_DIR", "TMPDIR"),
    *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "CREDENTIALS_DIRECTORY"),
)


def collect_seldom() -> None:
    """Make Python's garbage collector run after 50,000 new objects instead of 700.

    An applier that loads its modules creates many objects and no garbage. With the default of 700 objects, the
    collector took a fifth of the loading time.
    """
    gc.set_threshold(_OBJECTS)


def serve_many_threads() -> None:
    """Set a longer switch interval of Python's interpreter, for a process with many threads.

    By default, each waiting thread requests the interpreter every 5 ms. In a process with 64 threads, these requests
    took most of the time. A working thread releases the interpreter many times per batch anyway.
    """
    sys.setswitchinterval(_SWITCH_S)


def signal_holder(pid: int, number: signal.Signals, lock: Path, what: str, channel: str | None = None) -> bool:
    """Send the signal `number` to the process that holds the lock file. Return False if the process has ended.

    `pid`: the pid in the lock file. `what`: a description of the process, for an error. Raises LockBusy if the process
    with this pid does not have the lock file open. Raises RplError if the process belongs to another user.
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
                hint=f"to find the process that holds the file, run: fuser {lock}\n"
                "To end this process after that, run: kill PID",
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
    """Return the command that runs this Python with these arguments, without the working directory on its path."""
    return [sys.executable, "-P", *arguments]


def own_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment for a process of rplctl, which runs in another folder than this process (OWN_FOLDER).

    Relative paths in the variables of _PATH_VARIABLES become absolute. PYTHONPATH keeps only its absolute folders.
    """
    found = {**environment, SAFE_PATH: "1"}
    found |= {name: os.path.abspath(found[name]) for name in _PATH_VARIABLES if found.get(name)}
    folders = [folder for folder in found.pop("PYTHONPATH", "").split(os.pathsep) if os.path.isabs(folder)]
    return found | ({"PYTHONPATH": os.pathsep.join(folders)} if folders else {})


def start_beside(arguments: Sequence[str], pass_fds: Sequence[int] = ()) -> int:
    """Start this Python with these arguments as a background process, and return the pid of the new process.

    The new process has its own session and no output, and may outlive this one. It gets the descriptors `pass_fds`.
    """
    import subprocess  # here, because a command that only sends signals does not need it

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
    """Handle these signals with `handler` during the block, and restore the old handlers after it.

    In another thread than the main thread, the block runs without `handler`, because Python forbids it there.
    """
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

    A Python handler in the main thread cannot do this. Python runs a handler only between two bytecode instructions, so
    the handler would wait for the C code of a library. It must also take no lock that the main thread may hold. But
    Python writes a byte to the wakeup descriptor as soon as a signal arrives. A thread waits for this byte, and then
    calls `stop`. The descriptor is set before the handlers, so no signal is lost: until then, SIGTERM ends the process.
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
    """Return the end of a process in words, for example `was killed by SIGKILL`, to print after its name.

    `exit_code`: as in subprocess, where a negative number means a signal.
    """
    return f"was killed by {signal_name(-exit_code)}" if exit_code < 0 else f"ended with exit code {exit_code}"


def signal_name(number: int) -> str:
    """Return the signal's name, such as `SIGKILL`. Return the number as text for a real-time signal without a name."""
    return signal.Signals(number).name if number in set(signal.Signals) else str(number)


def _has_open(pid: int, lock: Path) -> bool:
    """True if the process has the lock file open.

    Raises ProcessLookupError or FileNotFoundError if the process has ended, and PermissionError if it belongs to
    another user.
    """
    wanted = lock.stat()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # the descriptor was just closed
            if os.path.samestat(entry.stat(), wanted):
                return True
    return False
