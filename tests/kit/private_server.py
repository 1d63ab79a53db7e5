"""What every private test server shares: folder, port, start, crash, dump, and a cache of freshly initialised data.

Invariant: nothing outside the server's folder and the cache ($RPLCTL_SERVERS, else ~/.cache/rplctl-servers) is touched,
and no server outlives the process that started it (it gets SIGKILL when its parent dies).
"""

from __future__ import annotations

import abc
import contextlib
import fcntl
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

USER = PASSWORD = "rpl"
HOST = "127.0.0.1"
START_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 180.0
PORTS = range(15_000, 32_000)  # below those the kernel gives to connections: none can take a stopped server's port
_claims: dict[int, socket.socket] = {}
MEMORY = Path("/dev/shm")
MEMORY_NEEDED = 6 << 30  # bytes of RAM free: a server's data take 50 to 300 MB, some tests start four of them
OWNER = "owner"
CACHE = Path(os.environ.get("RPLCTL_SERVERS", Path.home() / ".cache" / "rplctl-servers"))

Row = tuple[Any, ...]


class ServerUnavailable(Exception):
    """This kind of server is not on the machine and cannot be had; the text says what to install."""


class PrivateServer(abc.ABC):
    """One server process. Subclasses say how it is made, run and asked."""

    in_memory: ClassVar[bool] = True  # where that can be
    kind: ClassVar[str]
    errors: ClassVar[tuple[type[Exception], ...]]  # what its driver raises while the server is not up
    no_such_table: ClassVar[type[Exception]]  # what its driver raises for a table that does not exist

    def __init__(self, options: Sequence[str] = ()) -> None:
        self.options = list(options)
        self.folder = Path(tempfile.mkdtemp(prefix=f"rpl-{self.kind[:2]}-", dir=short_folder(in_memory=self.in_memory)))
        # locked while this process lives
        self._owner: int | None = os.open(self.folder / OWNER, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._owner, fcntl.LOCK_SH)
        self.data = self.folder / "data"
        self.socket = self.folder / "sock"
        self.host = HOST
        self.port = free_port()
        self.variables: dict[str, str] = {}  # of its environment, in addition to ours
        self._process: subprocess.Popen[bytes] | None = None
        self._housekeeper: Any = None  # a connection that stays open

    # what differs

    @property
    @abc.abstractmethod
    def version(self) -> str: ...

    @abc.abstractmethod
    def _initialise(self, data: Path) -> None: ...

    @abc.abstractmethod
    def _command(self) -> list[str]: ...

    @abc.abstractmethod
    def sql(self, text: str, database: str | None = None) -> list[Row]:
        """Run one or more statements; rows of the last one that has any."""

    @abc.abstractmethod
    def url(self, database: str = "") -> str:
        """SQLAlchemy URL with password."""

    @abc.abstractmethod
    def connect(self, database: str | None = None) -> Any:
        """A session of its own, auto-commit; the driver's connection."""

    def forget_owners(self) -> None:
        """Let what rplctl keeps in the server belong to no instance. This runs before most tests, and a connection
        takes longer than the statement: one is kept, and a new one is made after the server ended it.
        """
        for _ in range(2):
            try:
                self._housekeeper = self._housekeeper or self._connect_housekeeper()
                with self._housekeeper.cursor() as cursor:
                    cursor.execute("DELETE FROM rplctl.rplctl_channel_owner")
                return
            except self.errors as error:
                if isinstance(error, self.no_such_table):
                    return
                self._dismiss_housekeeper()

    def _connect_housekeeper(self) -> Any:
        return self.connect()

    def _dismiss_housekeeper(self) -> None:
        if self._housekeeper is not None:
            with contextlib.suppress(*self.errors):
                self._housekeeper.close()
        self._housekeeper = None

    @abc.abstractmethod
    def tables(self, database: str) -> list[str]: ...

    @abc.abstractmethod
    def rows(self, database: str, table: str) -> list[Row]:
        """All rows as ints, floats, bytes and text as the server prints it; in no particular order."""

    # what they share

    def start(self) -> None:
        """Start (on the same data, port and socket) and wait until it answers."""
        assert self._process is None, "already running"
        if not self.data.exists():
            run_quietly(["cp", "-a", "--reflink=auto", str(self.template()), str(self.data)])
            self._own(self.data)
        with (self.folder / "server.log").open("ab") as log:
            # the parent-death signal has no shell or pid file to clean up after: tests may be killed at any time
            command = ["setpriv", "--pdeathsig", "KILL", *self._command()]
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=self.folder,
                env={**os.environ, **self.variables},
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self.answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"{self.kind} did not start: {self.log_tail()}")
            time.sleep(0.05)

    def answers(self) -> bool:
        places: list[tuple[socket.AddressFamily, Any]] = [
            (socket.AF_INET, (self.host, self.port)),
            (socket.AF_UNIX, str(self.socket)),  # a server may listen there a moment later
        ]
        try:  # bare connections first: PyMySQL leaks its socket when nobody listens
            for family, place in places:
                with socket.socket(family) as probe:
                    probe.settimeout(60)
                    probe.connect(place)
            self.sql("SELECT 1")
        except self.errors:
            return False
        return True

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Of one that was started."""
        assert self._process is not None
        return self._process.pid

    def stop(self) -> None:
        """A clean shutdown; a no-op when it does not run."""
        self._end(signal.SIGINT if self.kind == "postgresql" else signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL: the crash."""
        self._end(signal.SIGKILL)

    def restart(self, options: Sequence[str] | None = None) -> None:
        """Stop cleanly and start again, with other server options if given."""
        self.stop()
        if options is not None:
            self.options = list(options)
        self.start()

    def close(self) -> None:
        """Kill and delete."""
        self.kill()
        if self._owner is not None:
            os.close(self._owner)
            self._owner = None
        shutil.rmtree(self.folder, ignore_errors=True)
        release_port(self.port)

    def dump(self, database: str, tables: Sequence[str] | None = None) -> dict[str, list[Row]]:
        """Table → its rows in an order that depends on the values only, so that two dumps can be compared."""
        names = self.tables(database) if tables is None else tables
        return {table: sorted(self.rows(database, table), key=_row_order) for table in names}

    def log_tail(self, lines: int = 12) -> str:
        path = self.folder / "server.log"
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.exists() else "no log"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        self._dismiss_housekeeper()
        if self._process.poll() is None:
            self._process.send_signal(how)
            try:
                self._process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self.kind == "postgresql":
            self._end_children()
        self._process = None

    def _end_children(self) -> None:
        """PostgreSQL's are sessions of their own and notice in time that it is gone; before, it cannot start."""
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while children := list(_processes_in(self.data)):
            assert time.monotonic() < deadline, f"still there: {children}"
            for pid in children:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.005)

    def template(self) -> Path:
        """A freshly initialised data folder of this very version, made once per machine."""
        template = CACHE / "templates" / f"{self.kind}-{self.version}"
        with cache_lock(template.name):
            if not template.exists():
                making = template.with_name(f"{template.name}.making")
                shutil.rmtree(making, ignore_errors=True)
                making.parent.mkdir(parents=True, exist_ok=True)
                self._initialise(making)
                making.rename(template)
        return template

    def _own(self, folder: Path) -> None:  # noqa: B027 - nothing to do is the usual case
        """Hand the folder to the account the server runs as; ours unless a subclass needs another."""


def short_folder(*, in_memory: bool = True) -> Path:
    """Where servers live, in a path that leaves room for a socket's 108 bytes. In memory where there is enough: a
    killed server loses nothing there either, and each of its syncs would wait for the disk.
    """
    if not in_memory or not MEMORY.is_dir():
        return Path("/tmp")
    available = next(line for line in Path("/proc/meminfo").read_text().splitlines() if "MemAvailable" in line)
    free = min(shutil.disk_usage(MEMORY).free, int(available.split()[1]) << 10)
    return MEMORY if free > MEMORY_NEEDED else Path("/tmp")


def remove_left_folders() -> None:
    """Of servers whose test run was killed: in memory they are memory that the next run lacks."""
    for folder in (left for root in (MEMORY, Path("/tmp")) for left in root.glob("rpl-??-*")):
        with contextlib.suppress(OSError), (folder / OWNER).open() as owner:  # none: another user's, or being made
            fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)


def free_port() -> int:
    """A TCP port nobody listens on, this process's alone until `release_port`, also among test runs side by side."""
    for port in random.sample(PORTS, len(PORTS)):
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0rplctl-test-port-{port}")  # abstract: gone with the process, however it ends
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # what a server left in TIME_WAIT is free
                probe.bind((HOST, port))
        except OSError:
            claim.close()
            continue
        _claims[port] = claim
        return port
    raise RuntimeError("no TCP port is free")


def release_port(port: int) -> None:
    """Let others have it."""
    if claim := _claims.pop(port, None):
        claim.close()


def _processes_in(folder: Path) -> Iterator[int]:
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # ended meanwhile
            if (process / "cwd").readlink() == folder.resolve():
                yield int(process.name)


def find_program(name: str) -> str:
    """Servers live in sbin, which is not on everyone's PATH; '' when absent."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin") or ""


def run_quietly(command: list[str], *, stdin: str = "", timeout_s: float = 600) -> None:
    """Run; on failure raise with the end of what it said."""
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, errors="replace", timeout=timeout_s)
    if done.returncode:
        raise RuntimeError(f"{Path(command[0]).name} failed: {(done.stdout + done.stderr)[-1500:]}")


@contextlib.contextmanager
def cache_lock(name: str) -> Iterator[None]:
    """One test run at a time prepares a thing in the cache."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f".{name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _row_order(row: Row) -> tuple[tuple[bool, str, str], ...]:
    return tuple((value is not None, type(value).__name__, repr(value)) for value in row)
