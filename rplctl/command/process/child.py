"""Handle the processes of the receiver and the applier for `start` and `stop`: start them, wait, signal and reap them.

Invariant: a thread counts as running if its lock is held, and never because its process id exists (channel.py). Each
process has its own session, no password in its environment, and its log in the channel's run folder.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from rplctl.applier.options import OPTIONS_FOLLOW
from rplctl.attempts import attempts
from rplctl.channel import STOP_NOW, Channel, decode_channel_name, lock_holder
from rplctl.command.channel.context import APPLIER
from rplctl.durable import naming, private_folder, replace_file
from rplctl.errors import LockBusy, RplError, file_error
from rplctl.locks import FileLock
from rplctl.log_file import turn_over
from rplctl.own_process import OWN_FOLDER, OWN_UMASK, ended_how, own_environment, own_python, signal_holder
from rplctl.plain_file import UnfitFile, closing_descriptor, open_plain
from rplctl.status import read_status

START_TIMEOUT_S = 120.0  # for imports and the first compilation of the kernels, until a child holds its lock
STOP_TIMEOUT_S = 60.0  # from SIGTERM to SIGKILL
ABORT_TIMEOUT_S = 25.0  # longer than a connection attempt to a hanging server, which fails after 10 s
SHARED_PREFIX = "shared-"  # begins the names of folders in run/; the folders of channels there have no hyphen
LEAST_ROOM = 1 << 16  # bytes for the log, status and lock of a child, and for their temporary files
POLL_S = 0.02
_ERROR_OF_EXIT_CODE = {kind.exit_code: kind for kind in RplError.__subclasses__() if kind.exit_code != 1}
_background: list[subprocess.Popen[bytes]] = []  # left running on purpose, and reaped by the next `leave_running`


class ServesOthers(LockBusy):
    """The error for an applier that does not stop, in a process that must not be killed because it also serves other
    channels.
    """


@dataclass(frozen=True, slots=True)
class Child:
    role: str
    channel: Channel
    popen: subprocess.Popen[bytes]
    started: float  # Unix seconds
    log: Path | None = None  # log of the process if it serves other channels, too
    options: IO[bytes] | None = None  # pipe from which an early applier reads its options

    def exit_code(self) -> int | None:
        return self.popen.poll()


def spawn(channel: Channel, role: str, arguments: Sequence[str], environment: Mapping[str, str]) -> Child:
    """Start `python -m rplctl.<role>` for the channel, as a process with its own session."""
    command, started = _command(channel, role, arguments), time.time()
    return Child(role, channel, begin_process(command, channel.log_path(role), environment), started)


def spawn_early(channel: Channel, arguments: Sequence[str], environment: Mapping[str, str]) -> Child:
    """Start an applier that starts Spark and then waits for `go_on`. So Spark starts while the channel is still
    prepared.

    If this process ends first, the applier ends, too.
    """
    command, started = _command(channel, APPLIER, [*arguments, OPTIONS_FOLLOW]), time.time()
    reading, writing = os.pipe2(os.O_CLOEXEC)
    options = os.fdopen(writing, "wb")
    with closing_descriptor(reading):
        popen = begin_process(command, channel.log_path(APPLIER), environment, stdin=reading)
    return Child(APPLIER, channel, popen, started, options=options)


def go_on(child: Child, options: str) -> None:
    """Let an applier of `spawn_early` begin its work with these options, in JSON.

    If the applier has already ended, nothing is raised, and its exit code shows the reason later.
    """
    assert child.options is not None
    with suppress(BrokenPipeError), child.options as pipe:
        pipe.write(options.encode())


def _command(channel: Channel, role: str, arguments: Sequence[str]) -> list[str]:
    private_folder(channel.run_folder)
    return own_python("-m", f"rplctl.{role}", str(channel.datadir.resolve()), channel.name, *arguments)


def spawn_shared(role: str, channels: Mapping[Channel, str], environment: Mapping[str, str]) -> list[Child]:
    """Start one process for the threads `role` of all channels. Return one Child for each channel, with the same
    process.

    `channels` maps each channel to the options of its applier, in JSON.
    """
    first = next(iter(channels))
    run = first.run_folder.parent
    _sweep_shared(run)
    folder = Path(tempfile.mkdtemp(prefix=SHARED_PREFIX, dir=private_folder(run)))
    for channel in channels:
        private_folder(channel.run_folder)
        open_log(channel.log_path(role)).close()
    argument = json.dumps({channel.name: text for channel, text in channels.items()})
    command = own_python(
        "-m", f"rplctl.{role}", str(first.datadir.resolve()), "--shared", str(folder.resolve()), argument
    )
    log, started = folder / f"{role}.log", time.time()
    with closing(FileLock(folder / "lock")) as seat:
        seat.acquire()
        popen = begin_process(command, log, environment, (seat.descriptor,))
    return [Child(role, channel, popen, started, log) for channel in channels]


def _sweep_shared(run: Path) -> None:
    """Remove the folders of shared processes that have ended. `run` is the folder that contains them."""
    for folder in run.glob(f"{SHARED_PREFIX}*"):
        with closing(FileLock(folder / "lock")) as seat:
            if seat.acquire(patience_s=0):
                shutil.rmtree(folder, ignore_errors=True)


def begin_process(
    command: list[str],
    log: Path,
    environment: Mapping[str, str],
    pass_fds: Sequence[int] = (),
    stdin: int = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    with open_log(log) as output:
        return subprocess.Popen(
            command,
            stdin=stdin,
            stdout=output,
            stderr=output,
            env=own_environment(environment),
            pass_fds=pass_fds,
            start_new_session=True,
            cwd=OWN_FOLDER,
            umask=OWN_UMASK,
        )


def leave_running(children: Sequence[Child]) -> None:
    """Let the children run when this process ends. If they end first, this process only reaps them."""
    _background[:] = [popen for popen in _background if popen.poll() is None]
    _background.extend(child.popen for child in children)


def open_log(path: Path) -> IO[bytes]:
    """Open a log file to append to it, with mode 0600.

    If the file is too large, its content is first moved to another file. Raises OSError if the file cannot be opened.
    """
    descriptor = open_plain(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, follow=False)
    turn_over(path)
    return os.fdopen(descriptor, "ab")


def wait_until_it_runs(child: Child, timeout_s: float = START_TIMEOUT_S) -> None:
    """Wait until the child holds its lock, or has already done its work and ended.

    Raises the error with which the child has ended, or RplError after the timeout.
    """
    deadline = time.monotonic() + timeout_s
    while lock_holder(child.channel, child.role) != child.popen.pid:
        code = child.exit_code()
        if code == 0:
            return
        if code is not None:
            raise error_of(child, code)
        if child.log is not None and _has_ended(child):
            if read_status(child.channel.status_path(child.role)).last_errno:
                raise error_of(child, 1)
            return
        if time.monotonic() > deadline:
            if child.log is None:
                terminate(child)
            raise RplError(
                f"the {child.role} of channel '{child.channel.name}' did not start within {timeout_s:.0f} s",
                channel=child.channel.name,
                hint=f"to see the reason, run: tail {child.channel.log_path(child.role)}",
            )
        time.sleep(POLL_S)


def _has_ended(child: Child) -> bool:
    """True if the channel's thread in a shared process has started and has ended again."""
    status = read_status(child.channel.status_path(child.role))
    return status.updated >= child.started and not status.state


def error_of(child: Child, code: int) -> RplError:
    """Return the error that ended a child, from its status file or else from the last line of its log.

    If the disk is full, the child could write neither of them. Then the error reports the full disk.
    """
    status = read_status(child.channel.status_path(child.role))
    log = child.log or child.channel.log_path(child.role)
    kind = _ERROR_OF_EXIT_CODE.get(code, RplError)
    if status.last_errno and status.last_error_timestamp >= child.started - 1:
        message, errno, hint = status.last_error, status.last_errno, status.last_hint
    else:
        how = ended_how(code)
        thread = f"the {child.role} of channel '{child.channel.name}'"
        said = last_line(log, since=child.started)
        if full := _lack_of_room(log.parent):  # on a full disk, the child could not write its status file
            name = child.channel.name
            return RplError(f"{thread} {how}: {said or full.message}", errno=full.errno, channel=name, hint=full.hint)
        message, errno = f"{thread} {how}: {said or 'its log has no message'}", 0
        hint = ""
    place = status.exec_position if child.role == APPLIER else status.read_position
    at = place.or_else("") if status.updated >= child.started - 1 else ""
    return kind(
        message,
        errno=errno,
        channel=child.channel.name,
        position=at,
        hint=f"{hint}\nSee {log}" if hint else f"see {log}",
    )


def _lack_of_room(folder: Path) -> RplError | None:
    """Return the error that the operating system reports for a write of LEAST_ROOM bytes in the folder.

    Return None if the write succeeds.
    """
    try:
        with naming(folder), tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(LEAST_ROOM))
            probe.flush()
    except OSError as error:
        return file_error(error)
    return None


def last_line(log: Path, since: float = 0.0) -> str:
    """Return the last line of the log. Return '' if nothing was written to it after `since` (Unix seconds)."""
    try:
        if log.stat().st_mtime < since - 1:
            return ""
        with os.fdopen(open_plain(log), "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
            lines = file.read().decode(errors="replace").strip().splitlines()
    except (OSError, UnfitFile):
        return ""
    return lines[-1] if lines else ""


def terminate(child: Child, timeout_s: float = STOP_TIMEOUT_S) -> bool:
    """Send SIGTERM to the child and wait, and send SIGKILL after the timeout. Return True if SIGKILL was sent.

    SIGKILL loses nothing, because the threads are crash-safe.
    """
    child.popen.terminate()
    try:
        child.popen.wait(timeout_s)
    except subprocess.TimeoutExpired:
        child.popen.kill()
        child.popen.wait()
        _note_stopped(child.channel, child.role)
        return True
    return False


def _note_stopped(channel: Channel, role: str) -> None:
    """Write into the status of a killed thread that it is stopped. Otherwise `check` would report a crash."""
    status = read_status(channel.status_path(role))
    if status.state:
        replace(status, state="", connected=False, is_waiting=False).write(channel.status_path(role))


def stop_running(channel: Channel, role: str, timeout_s: float) -> bool | None:
    """Stop the channel's thread in the process that holds the thread's lock.

    Return None if no process holds the lock, and False if the thread stopped within `timeout_s` seconds. Return True if
    the process was killed. If the process also serves other channels, it is not killed, but only aborts the channel's
    work. The result is then also True. Raises LockBusy if the process cannot be stopped. Raises ServesOthers if the
    channel's work cannot be aborted.
    """
    pid = _holder(channel, role)
    if pid is None:
        return None
    if _asked_to_stop(pid, channel, role, timeout_s):
        return False
    if others := _others_in(pid, channel, role):
        if role == APPLIER and _asked_to_stop(pid, channel, role, ABORT_TIMEOUT_S, f" {STOP_NOW}"):
            return True  # like SIGKILL: the target has rolled back the channel's transaction
        raise ServesOthers(
            f"the {role} of channel '{channel.name}' did not stop within {timeout_s:g} s; its process {pid} was not "
            f"killed because it also serves {', '.join(others)}",
            channel=channel.name,
            hint="to stop all channels of the process, run: rplctl stop --all\n"
            f"To end the process, after which the next start recovers all its channels, run: kill -9 {pid}",
        )
    _signal(pid, signal.SIGKILL, channel, role)
    if not _is_gone(pid, channel, role, 10):
        raise LockBusy(f"process {pid}, the {role} of channel '{channel.name}', does not end", channel=channel.name)
    _note_stopped(channel, role)
    return True


def _asked_to_stop(pid: int, channel: Channel, role: str, timeout_s: float, word: str = "") -> bool:
    """Ask a process to stop the channel's thread. Return True if the thread has stopped within `timeout_s` seconds.

    A file of the channel contains the request, because the process may serve several channels. SIGTERM makes the
    process read the file. The file has the process id and then `word`, for example to abort the transaction.
    """
    try:
        replace_file(channel.asked_path(role), f"{pid}{word}\n".encode(), durable=False)
        _signal(pid, signal.SIGTERM, channel, role)
        return _is_gone(pid, channel, role, timeout_s)
    finally:
        channel.asked_path(role).unlink(missing_ok=True)


def _is_gone(pid: int, channel: Channel, role: str, timeout_s: float) -> bool:
    """True if the process releases the lock of the channel's thread before the timeout."""
    return any(lock_holder(channel, role) != pid for _ in attempts(timeout_s, POLL_S))


def _others_in(pid: int, channel: Channel, role: str) -> list[str]:
    """Return the quoted names of the other channels that the process serves (`--shared-session`)."""
    folders = [path.parent for path in channel.run_folder.parent.glob(f"*/{role}.lock")]
    names = ["" if folder.name == "@" else decode_channel_name(folder.name) for folder in folders]
    others = [Channel(name, channel.datadir) for name in sorted(names)]
    return [
        f"'{other.name}'"
        for other in others
        if other.run_folder != channel.run_folder and lock_holder(other, role) == pid
    ]


def _holder(channel: Channel, role: str) -> int | None:
    """Return the id of the process that holds the lock. Return None if no process holds the lock.

    Wait up to 2 s until the id is in the lock file. Raises LockBusy if the process has not written its id by then.
    """
    for _ in range(100):
        pid = lock_holder(channel, role)
        if pid != 0:
            return pid
        time.sleep(POLL_S)
    raise LockBusy(f"the {role} of channel '{channel.name}' is held by an unknown process", channel=channel.name)


def _signal(pid: int, number: signal.Signals, channel: Channel, role: str) -> None:
    what = f"the {role} of channel '{channel.name}'"
    signal_holder(pid, number, channel.lock_path(role), what, channel.name)
