"""Processes of ours: how one is started, signals to one that holds a lock file, how one ended.

Invariants: a process that rplctl starts imports nothing from the working directory, whoever owns that: its command,
environment and folder come from `own_python`, `own_environment` and OWN_FOLDER. What it makes is private (OWN_UMASK).
No signal goes to a process that does not have that very file open at the moment of the signal. A number in a file
proves nothing: it may be junk, from before a reboot, of another container, or be given again (a pidfd is not).
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Final

from rplctl.errors import LockBusy, RplError

OWN_FOLDER: Final = "/"  # the working directory of processes of ours: only root can put a file there
OWN_UMASK: Final = 0o077  # also for files that libraries make: a lake's, say
SAFE_PATH: Final = "PYTHONSAFEPATH"  # as `-P`, also for the Pythons that a library starts
_SWITCH_S: Final = 0.1
_OBJECTS: Final = 50_000
_PATH_VARIABLES: Final = (
    *("RPLCTL_CONFIG", "JAVA_HOME", "SPARK_HOME", "SPARK_CONF_DIR", "NUMBA_CACHE_DIR", "TMPDIR"),
    *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "CREDENTIALS_DIRECTORY"),
)


def collect_seldom() -> None:
    """Let Python look for garbage after 50,000 new objects, and not after 700.

    Loaded modules are no garbage. The search took a fifth of the time in which an applier loads its modules.
    """
    gc.set_threshold(_OBJECTS)


def serve_many_threads() -> None:
    """A thread that waits for the interpreter asks for it each 5 ms. With 64 of them the process was busy with that
    alone; who works lets go of it many times in a batch anyway.
    """
    sys.setswitchinterval(_SWITCH_S)


def signal_holder(pid: int, number: signal.Signals, lock: Path, what: str, channel: str | None = None) -> bool:
    """Send the signal to the process that holds the lock file; False when it has ended meanwhile.

    `what`: the process, in words. Raises LockBusy when the pid is of another process, RplError of another user's.
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
                hint=f"fuser {lock} tells who holds it",
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
    """Return the environment for a process of ours, which runs in OWN_FOLDER.

    A relative path that the operator gave stays the folder it names here. PYTHONPATH keeps its absolute folders alone.
    """
    found = {**environment, SAFE_PATH: "1"}
    found |= {name: os.path.abspath(found[name]) for name in _PATH_VARIABLES if found.get(name)}
    folders = [folder for folder in found.pop("PYTHONPATH", "").split(os.pathsep) if os.path.isabs(folder)]
    return found | ({"PYTHONPATH": os.pathsep.join(folders)} if folders else {})


def start_beside(arguments: Sequence[str], pass_fds: Sequence[int] = ()) -> int:
    """Begin a process of this Python in a session of its own, which says nothing and may outlive us; its pid."""
    import subprocess  # who only signals needs none

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
    threading.Thread(target=child.wait, name="rplctl-reaper", daemon=True).start()  # leaves no zombie
    return child.pid


@contextmanager
def signals_to(handler: Callable[[int, FrameType | None], object], *numbers: signal.Signals) -> Iterator[None]:
    """These signals go to it for the block, the handlers from before are put back. Only the main thread gets any."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


def ended_how(exit_code: int) -> str:
    """In words, behind the name of the process. Negative: minus the signal that killed it, as subprocess has it."""
    return f"was killed by {signal_name(-exit_code)}" if exit_code < 0 else f"ended with exit code {exit_code}"


def signal_name(number: int) -> str:
    """`SIGKILL`; the number of a real-time signal, which has no name."""
    return signal.Signals(number).name if number in set(signal.Signals) else str(number)


def _has_open(pid: int, lock: Path) -> bool:
    """Raises ProcessLookupError, FileNotFoundError, PermissionError."""
    wanted = lock.stat()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            if os.path.samestat(entry.stat(), wanted):
                return True
    return False
