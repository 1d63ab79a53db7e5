"""A whole rplctl instance for tests, driven through its command line as an operator would."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rplctl.channel import Channel, lock_holder
from rplctl.cli import run
from rplctl.command.channel.context import one_engine
from rplctl.command.show_status import show_status
from rplctl.command.wait import wait
from rplctl.config import Config, load_config
from rplctl.position import BinlogPosition
from tests.kit import fork_server
from tests.kit.servers import MariadbServer

# Verbs that start processes, which are to be children of a program that ends (fork_server); others take a process of
# their own in tests/cli. It costs half a second of CPU time a verb.
JAVA = b"org.apache.spark.api.python.PythonGatewayServer"
OWN_PROCESS = {"start", "clone", "crash-test", "demo"}


class Replica:
    """One instance folder with one channel, `rplctl` called as a program; `close` leaves no process behind.

    Tasks of a pool decode all rows, as where nothing is set. `spark`: Spark starts them; otherwise they are forked from
    the applier (tests/kit/without_java), unless the environment has SPARK=1.
    """

    def __init__(self, folder: Path, channel: str = "", *, spark: bool = True) -> None:
        self.datadir = folder / "replica"
        self.channel = Channel(channel, self.datadir)
        paths = [] if spark or os.environ.get("SPARK") else [str(Path(__file__).parent / "without_java")]
        self.variables = {"PYTHONPATH": os.pathsep.join([*paths, *filter(None, [os.environ.get("PYTHONPATH")])])}

    def run(
        self,
        *arguments: str,
        expect: int | None = 0,
        password: str = "",
        environment: dict[str, str] | None = None,
        timeout_s: float = 600,
    ) -> subprocess.CompletedProcess[str]:
        command = ["--datadir", str(self.datadir), *arguments]
        variables = {**os.environ, **self.variables, **(environment or {})}
        is_elsewhere = (
            environment is not None
            or arguments[0] in OWN_PROCESS
            or threading.current_thread() is not threading.main_thread()
        )
        if is_elsewhere and fork_server.takes(variables):
            done = fork_server.run(command, password, variables, timeout_s)
        elif is_elsewhere:
            done = subprocess.run(
                [sys.executable, "-m", "rplctl", *command],
                input=password,
                capture_output=True,
                text=True,
                timeout=timeout_s,
                env=variables,
                check=False,
            )
        else:
            with variables_set(self.variables), fork_server.children_forked():
                done = run_here(command, password)
        assert "Traceback" not in done.stderr, done.stderr
        if expect is not None:
            assert done.returncode == expect, (
                f"{arguments} → {done.returncode}\n{done.stdout}\n{done.stderr}{self.logs()}"
            )
        return done

    def set_up(self, source: MariadbServer, *init: str, change: Sequence[str] = ()) -> None:
        """init + change-master from the start of the source's first binary log."""
        self.run("init", *init)
        self.change_master(source, *change)

    def into(self, server: MariadbServer) -> tuple[str, ...]:
        """The options of `init` that make the server the target: its URL, and the password in a file."""
        password = self.datadir.parent / "target-password"
        password.write_text("rpl\n")
        password.chmod(0o600)
        return "--target", f"mysql://rpl@{server.host}:{server.port}/", "--target-password-file", str(password)

    def change_master(self, source: MariadbServer, *more: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
        where = [
            "--master-host",
            source.host,
            "--master-port",
            str(source.port),
            "--master-user",
            "rpl",
            "--password-stdin",
        ]
        return self.run("change-master", *where, "--master-connect-retry", "1", *more, password="rpl", expect=expect)

    def status(self) -> dict[str, Any]:
        """What `show-status --json` prints."""
        if config := self._config_of_files():
            return asdict(show_status(config, self.channel.name))
        rows: list[dict[str, Any]] = json.loads(self.run("show-status", "--json").stdout)
        return next(row for row in rows if row["Channel_Name"] == self.channel.name)

    def pid(self, role: str) -> int | None:
        return lock_holder(self.channel, role)

    def kill(self, role: str) -> bool:
        """kill -9 the receiver or the applier; False when it does not run, or has just ended by itself."""
        pid = self.pid(role)
        if not pid:
            return False
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        finally:
            wait_until(lambda: self.pid(role) != pid)
        return True

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(f"file:{self.datadir / 'target.db'}?mode=ro", uri=True, timeout=30)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()

    def wait_synced(self, source: MariadbServer, timeout_s: float = 600) -> None:
        """Until the applied position is the source's."""
        name, position = source.master_status()
        if config := self._config_of_files():
            wait(config, self.channel.name, position=BinlogPosition(name, position), timeout_s=timeout_s)
            return
        self.run("wait", "--pos", f"{name}:{position}", "--timeout", str(int(timeout_s)))

    def _config_of_files(self) -> Config | None:
        """Where nothing but files is read, looking needs no process of its own: no connection stays open."""
        config = load_config(self.datadir, self.channel.name)
        return config if not config.target or config.target.startswith("sqlite") else None

    def logs(self) -> str:
        found = [self.channel.log_path(role) for role in ("receiver", "applier")]
        return "".join(f"\n--- {path.name}\n{path.read_text()[-3000:]}" for path in found if path.exists())

    def close(self) -> None:
        """Kill what works on this folder, also a child of a `start` that was given up before it had its lock."""
        for role in ("receiver", "applier"):
            self.kill(role)
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                arguments = (process / "cmdline").read_bytes().split(b"\0")
                is_ours = os.fsencode(self.datadir) in arguments and b"-m" in arguments
                if is_ours or (JAVA in arguments and any(os.fsencode(self.datadir) in each for each in arguments)):
                    os.kill(int(process.name), signal.SIGKILL)


@contextlib.contextmanager
def variables_set(variables: dict[str, str]) -> Iterator[None]:
    """Set them for a verb in this process: `verify` and `repair` start a channel that is stopped.

    Only these are touched: unittest.mock.patch.dict empties the whole environment for a moment, in which another
    thread of the test may begin a program.
    """
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def run_here(arguments: list[str], stdin: str = "") -> subprocess.CompletedProcess[str]:
    """`rplctl ARGUMENTS` in this process, neither end a terminal. What a program's end closes is closed."""
    before = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin.encode()))
    try:
        with (
            contextlib.redirect_stdout(io.StringIO()) as out,
            contextlib.redirect_stderr(io.StringIO()) as err,
            one_engine(),
        ):
            code = run(arguments)
    finally:
        sys.stdin = before
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def wait_until(condition: Callable[[], object], timeout_s: float = 600, pause_s: float = 0.02) -> None:
    """Look at the condition until it holds, with a quarter of a core at most: what is waited for is at work."""
    deadline = time.monotonic() + timeout_s
    while True:
        began = time.thread_time()
        if condition():
            return
        assert time.monotonic() < deadline, "condition not met in time"
        time.sleep(max(pause_s, 3 * (time.thread_time() - began)))


def stands_still(pid: int) -> bool:
    """Whether SIGSTOP has reached all its threads: one inside a system call (an unlink, a write) ends that first."""
    try:
        states = [path.read_text().rpartition(")")[2].split()[0] for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    except OSError:  # one of them has ended meanwhile
        return False
    assert "Z" not in states, f"process {pid} has ended"
    return all(state == "T" for state in states)


def slowness() -> float:
    """Seconds of the clock for one of the processor's: 1 on a quiet machine. What things may take grows with it."""
    began, used = time.monotonic(), time.process_time()
    while time.process_time() - used < 0.25:
        pass
    return max(1.0, (time.monotonic() - began) / 0.25)


def new_log(source: MariadbServer) -> str:
    """FLUSH BINARY LOGS; the new one's name. MariaDB's event that its own recovery may begin there is in it then: the
    server writes that when it comes to it, between whatever transactions there are.
    """
    source.sql("FLUSH BINARY LOGS")
    name = source.master_status()[0]

    def is_checkpointed() -> bool:
        events = source.sql(f"SHOW BINLOG EVENTS IN '{name}'")
        return any((event[2], event[5]) == ("Binlog_checkpoint", name) for event in events)

    if source.kind == "mariadb":
        wait_until(is_checkpointed)
    return name


def purge_logs(source: MariadbServer, first_kept: str) -> None:
    """PURGE BINARY LOGS, until they are gone: MariaDB keeps one until its checkpoint, written later, says it may go."""

    def is_done() -> bool:
        source.sql(f"PURGE BINARY LOGS TO '{first_kept}'")
        return source.binlog_files[0].name == first_kept

    wait_until(is_done)


def assert_same_tables(source: MariadbServer, replica: Replica, database: str) -> None:
    """Every row of every table of the source's database is in the target, and nothing else; values compared as text."""
    for table in source.tables(database):
        columns = [
            row[0]
            for row in source.sql(
                "SELECT column_name FROM information_schema.columns "
                f"WHERE table_schema='{database}' AND table_name='{table}' ORDER BY ordinal_position"
            )
        ]
        as_text = ", ".join(f"CAST(`{column}` AS CHAR)" for column in columns)
        expected = sorted((tuple(row) for row in source.sql(f"SELECT {as_text} FROM `{database}`.`{table}`")), key=repr)
        names = ", ".join(f'"{column}"' for column in columns)
        found = [
            tuple(None if value is None else str(value) for value in row)
            for row in replica.query(f'SELECT {names} FROM "{database}__{table}"')
        ]
        assert sorted(found, key=repr) == expected, f"{database}.{table} differs"
