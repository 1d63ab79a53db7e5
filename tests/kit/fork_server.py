"""Programs of rplctl for tests, forked from a process that has loaded the program already.

What a program does is its own: command line, session, streams, signals, exit code, end. Only the start of Python,
the imports and the loading of compiled code are saved, about a second of CPU time for each `start`, receiver and
applier. Programs are begun as an operator begins them in tests/cli, and wherever a test gives an environment that
acts while Python starts.

A request is one message with the file descriptors of its streams, a socket for the answers, and what the program
keeps open; the answers are the pid, and in the end the exit code. The server has one thread, so a fork copies no
lock that is held. It ends with the process that made it.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import queue
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import IO, Any

from rplctl import failpoint
from rplctl.command.process import child
from rplctl.config import ENVIRONMENT_PREFIX
from rplctl.own_process import OWN_FOLDER, OWN_UMASK, SAFE_PATH, own_environment

OF_SPARK = ("SPARK_", "PYSPARK_")  # a Spark in this process sets them; they are read when one starts
CHANGES = {
    "JAVA_HOME",
    "PYTEST_CURRENT_TEST",
    "PYTHONPATH",
    SAFE_PATH,
    "XDG_CONFIG_HOME",
}  # variables that may differ from those that the server began with
WITHOUT_JAVA = Path(__file__).parent / "without_java"
_MOST_BYTES = 1 << 18
_starting = threading.Lock()
_ROOM = "-" * 4096  # the kernel shows a program's arguments where those of the server stood


is_wanted = True  # a benchmark wants programs as an operator's: their start is in its clock, their heap in its memory


def takes(environment: Mapping[str, str]) -> bool:
    """Whether a program with these variables may be forked: ours are read when it runs, others act while Python starts
    or modules are loaded.
    """
    if not is_wanted:
        return False
    differing = {name for name, _ in set(environment.items()) ^ set(os_environment().items())}
    changed = {name for name in differing if not name.startswith((ENVIRONMENT_PREFIX, *OF_SPARK))}
    before = os_environment().get("PYTHONPATH", "")
    paths = {before, os.pathsep.join(filter(None, [str(WITHOUT_JAVA), before]))}
    return changed <= CHANGES and environment.get("PYTHONPATH", "") in paths


@cache
def os_environment() -> dict[str, str]:
    """The variables of this process as they were at the first call, which the server has, too."""
    return dict(os.environ)


def _server() -> socket.socket:
    """What takes requests, here and in the programs. Threads of a test may ask at once."""
    with _starting:
        return _begun()


@cache
def _begun() -> socket.socket:
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = _begin_from_lasting_thread(ours, its)

    def end() -> None:
        process.kill()
        process.wait()
        ours.close()

    atexit.register(end)
    return ours


def begin(arguments: list[str], environment: Mapping[str, str], streams: Sequence[IO[str]]) -> Forked:
    """`python -m rplctl ARGUMENTS`, as subprocess.Popen begins it: its output and its errors go to the streams."""
    with open(os.devnull) as nothing:
        return Forked(_server(), ["rplctl", *arguments], environment, [file.fileno() for file in (nothing, *streams)])


def run(
    arguments: list[str], stdin: str, environment: Mapping[str, str], timeout_s: float
) -> subprocess.CompletedProcess[str]:
    """`python -m rplctl ARGUMENTS`, as subprocess.run does it."""
    with ExitStack() as opened:
        given, out, err = streams = [opened.enter_context(tempfile.TemporaryFile("w+")) for _ in range(3)]
        given.write(stdin)
        given.seek(0)
        program = Forked(_server(), ["rplctl", *arguments], environment, [file.fileno() for file in streams])
        try:
            code = program.wait(timeout_s)
        except subprocess.TimeoutExpired:
            program.kill()
            raise
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(arguments, code, out.read(), err.read())


def _begin_from_lasting_thread(ours: socket.socket, its: socket.socket) -> subprocess.Popen[bytes]:
    """Start the server; the kernel kills it when the thread ends that started it (PR_SET_PDEATHSIG)."""
    begun: queue.SimpleQueue[subprocess.Popen[bytes]] = queue.SimpleQueue()

    def begin() -> None:
        with its:
            both = its.fileno(), ours.fileno()
            command = [sys.executable, "-m", __name__, *map(str, both), _ROOM]
            begun.put(subprocess.Popen(command, env=os_environment(), stdin=subprocess.DEVNULL, pass_fds=both))
        threading.Event().wait()

    threading.Thread(target=begin, name="fork server", daemon=True).start()
    return begun.get()


class Forked:
    """A program as subprocess.Popen has it, `module` first in its arguments."""

    def __init__(
        self,
        server: socket.socket,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        streams: Sequence[int],
        kept: Sequence[int] = (),
        *,
        session: bool = False,
    ) -> None:
        self.returncode: int | None = None
        self._answers, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        told = {
            "arguments": arguments,
            "environment": dict(environment),
            "cwd": OWN_FOLDER if session else os.getcwd(),
            "kept": list(kept),
            "session": session,
        }
        with its:
            socket.send_fds(server, [json.dumps(told).encode()], [*streams, its.fileno(), *kept])
        self.pid = int(self._answers.recv(32))

    def poll(self) -> int | None:
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._answers.settimeout(timeout)
            try:
                self.returncode = int(self._answers.recv(32))
            except (BlockingIOError, TimeoutError):
                raise subprocess.TimeoutExpired("a forked program", timeout or 0) from None
            self._answers.close()
        return self.returncode

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


def serve(requests: socket.socket, server: socket.socket) -> None:
    """Never returns in the server; returns in a program, which is to end with the interpreter."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG, which a fork clears
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who made it
    while True:
        message, descriptors, *_ = socket.recv_fds(requests, _MOST_BYTES, 16)
        if os.fork() == 0:
            requests.close()
            _attend(json.loads(message), descriptors, server)
            return
        for descriptor in descriptors:
            os.close(descriptor)


def _attend(told: dict[str, Any], descriptors: list[int], server: socket.socket) -> None:
    """Wait for the program, in a process between it and the server."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with socket.socket(fileno=descriptors[3]) as answers:
        pid = os.fork()
        if pid:
            for descriptor in (*descriptors[:3], *descriptors[4:], server.detach()):
                os.close(descriptor)
            answers.send(b"%d" % pid)
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            try:
                answers.send(b"%d" % code)
            except BrokenPipeError:  # who began it is gone, or no longer asks
                pass
            os._exit(0)
    _become(told, descriptors, server)


def _become(told: dict[str, Any], descriptors: list[int], server: socket.socket) -> None:
    """This process is as if it had been begun by itself."""
    if told["session"]:
        os.setsid()
        os.umask(OWN_UMASK)
    for number, descriptor in enumerate(descriptors[:3]):
        os.dup2(descriptor, number)
    for number, descriptor in zip(told["kept"], descriptors[4:], strict=True):
        if number != descriptor:
            os.dup2(descriptor, number)
        os.set_inheritable(number, False)
    for descriptor in {*map(int, os.listdir("/proc/self/fd"))} - {0, 1, 2, server.fileno(), *told["kept"]}:
        try:
            os.close(descriptor)
        except OSError:  # that of the listing itself
            continue
    os.environ.clear()
    os.environ.update(told["environment"])
    os.chdir(told["cwd"])
    failpoint.rearm()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdin = sys.__stdin__ = open(0, closefd=False)  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = open(1, "w", closefd=False)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = open(2, "w", errors="backslashreplace", closefd=False, buffering=1)  # type: ignore[misc]
    module, *arguments = told["arguments"]
    sys.argv = [module, *arguments]
    sys.orig_argv = [sys.executable, "-m", *sys.argv]
    _show(sys.orig_argv)
    if module == "rplctl":
        _fork_children(server)
    else:
        server.close()
        if str(WITHOUT_JAVA) in os.environ.get("PYTHONPATH", "").split(os.pathsep):
            runpy.run_path(str(WITHOUT_JAVA / "sitecustomize.py"))


def _show(arguments: Sequence[str]) -> None:
    """In /proc/self/cmdline, in place of the server's."""
    fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    begin, end = int(fields[45]), int(fields[46])
    shown = b"".join(os.fsencode(argument) + b"\0" for argument in arguments)
    ctypes.memmove(begin, shown[: end - begin].ljust(end - begin, b"\0"), end - begin)


def _fork_children(server: socket.socket) -> None:
    """`start` asks the server for its receiver and its applier, too."""
    child.begin_process = partial(_begin_child, lambda: server)


@contextmanager
def children_forked() -> Iterator[None]:
    """What a verb in this process starts is forked, too: `verify` and `repair` start a channel that is stopped."""
    before = child.begin_process
    if takes(os.environ):
        child.begin_process = partial(_begin_child, _server)
    try:
        yield
    finally:
        child.begin_process = before


def _begin_child(
    server: Callable[[], socket.socket],
    command: list[str],
    log: Path,
    environment: Mapping[str, str],
    pass_fds: Sequence[int] = (),
    stdin: int = subprocess.DEVNULL,
) -> Any:
    with child.open_log(log) as output, open(os.devnull) as nothing:
        streams = [nothing.fileno() if stdin == subprocess.DEVNULL else stdin, output.fileno(), output.fileno()]
        arguments = command[command.index("-m") + 1 :]
        return Forked(server(), arguments, own_environment(environment), streams, pass_fds, session=True)


def _load() -> None:
    """All that programs load, and no more than one thread."""
    import pyspark  # noqa: F401

    import rplctl.applier.__main__
    import rplctl.applier.apply.clone_load
    import rplctl.cli.app
    import rplctl.command.clone
    import rplctl.command.start
    import rplctl.receiver.__main__  # noqa: F401
    from rplctl.event.warm_up import warm_up
    from rplctl.result_set.warm_up import run_kernels

    warm_up()
    run_kernels()
    gc.collect()
    gc.freeze()


def _run_program() -> None:
    module = sys.argv[0]
    if module == "rplctl":
        from rplctl.cli import main

        main()
    if module == "rplctl.receiver":
        from rplctl.receiver.__main__ import main as receive

        sys.exit(receive(sys.argv[1:]))
    from rplctl.applier.__main__ import main as apply

    sys.exit(apply(sys.argv[1:]))


if __name__ == "__main__":
    _load()
    serve(*(socket.socket(fileno=int(number)) for number in sys.argv[1:3]))
    _run_program()
