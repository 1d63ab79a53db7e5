"""The MySQL front: SHOW REPLICA STATUS beside a MySQL server's, its memory, and a replica that reads from the front.

Aims: 2 ms and 1,000 answers per second of one core, at most 80 MB of memory, 200 MB/s of binary log, and 50 ms from the
commit on the source to the row in the replica behind the front. RPLCTL_BENCH_FRONT_SECONDS: seconds of questions for
each server, default 10.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pymysql

from rplctl.demo import BINLOG_FOLDER
from tests.bench.measurement import Measurement
from tests.kit.private_server import PASSWORD, USER, ServerUnavailable, free_port, release_port
from tests.kit.process_memory import cpu_seconds
from tests.kit.servers import MariadbServer, MysqlServer

SECONDS = float(os.environ.get("RPLCTL_BENCH_FRONT_SECONDS", "10"))
STATEMENT = "SHOW REPLICA STATUS"
ROWS, PAUSE_S = 300, 0.01
LOG_BYTES = 256 << 20


def measure() -> Iterator[Measurement]:
    with tempfile.TemporaryDirectory(prefix="rplctl-bench-") as name:
        instance = _Instance(Path(name))
        instance.run("init")
        instance.run("change-master", "--master-binlog-dir", str(BINLOG_FOLDER))
        instance.run("start")
        instance.run("wait", "--state", "synced", "--timeout", "120")
        try:
            with instance.served("mysql") as (port, pid):
                yield from _asked("rplctl", port, "monitor", pid)
        finally:
            instance.run("stop")
    try:
        with MysqlServer() as server:
            server.sql("CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = 1, SOURCE_USER = 'x'")
            yield from _asked("MySQL server", server.port, USER, server.pid)
        yield from _behind()
    except ServerUnavailable as reason:
        print(f"skipped: {reason}")


class _Instance:
    """One instance folder, and rplctl as a program on it."""

    def __init__(self, folder: Path) -> None:
        self.secret = folder / "password"
        self.secret.write_text(PASSWORD)
        self.secret.chmod(0o600)
        self.datadir = folder / "instance"
        self._program = [sys.executable, "-m", "rplctl", "--datadir", str(self.datadir)]

    def run(self, *words: str) -> None:
        subprocess.run([*self._program, *words], check=True, stdout=subprocess.DEVNULL)

    @contextmanager
    def served(self, flavor: str) -> Iterator[tuple[int, int]]:
        """The port and the pid of the front, with the accounts monitor and chain."""
        for role, account in (("reader", "monitor"), ("replication", "chain")):
            words = ("--role", role, "--native", "--password-file", str(self.secret))
            subprocess.run([*self._program, "user", "add", account, *words], check=True, stdout=subprocess.DEVNULL)
        port = free_port()
        options = ["serve", "--listen", "", "--mysql", f"127.0.0.1:{port}", "--mysql-flavor", flavor]
        with subprocess.Popen([*self._program, *options], stderr=subprocess.DEVNULL) as front:
            try:
                _connected(port, "monitor").close()
                yield port, front.pid
            finally:
                front.terminate()
                release_port(port)


def _connected(port: int, user: str) -> Any:
    deadline = time.monotonic() + 60
    while True:
        try:
            return pymysql.connect(host="127.0.0.1", port=port, user=user, password=PASSWORD, autocommit=True)
        except pymysql.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _asked(whose: str, port: int, user: str, pid: int) -> Iterator[Measurement]:
    times = []
    with closing(_connected(port, user)) as connection, connection.cursor() as cursor:
        for _ in range(50):
            cursor.execute(STATEMENT)
        used, end = cpu_seconds([pid]), time.monotonic() + SECONDS
        while time.monotonic() < end:
            began = time.perf_counter()
            cursor.execute(STATEMENT)
            assert len(cursor.fetchall()) == 1
            times.append(time.perf_counter() - began)
        used = cpu_seconds([pid]) - used
    times.sort()
    note = f"{len(times)} answers, 99th percentile {1e3 * times[int(0.99 * len(times))]:.2f}"
    yield Measurement(f"{STATEMENT}, {whose}: median", 1e3 * statistics.median(times), "ms", note)
    yield Measurement(f"{STATEMENT}, {whose}: answers of one core", len(times) / max(used, 0.01), "/s", "CPU time")
    yield Measurement(f"memory of the process, {whose}", _pss(pid) / 1e6, "MB", "PSS")


def _pss(pid: int) -> int:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return next(int(line.split()[1]) << 10 for line in text.splitlines() if line.startswith("Pss:"))


def _behind() -> Iterator[Measurement]:
    """A chain source → rplctl → front → MariaDB."""
    with (
        MariadbServer() as source,
        MariadbServer(("--skip-log-bin",)) as target,
        MariadbServer(("--skip-log-bin",)) as replica,
        tempfile.TemporaryDirectory(prefix="rplctl-bench-") as name,
    ):
        instance = _Instance(Path(name))
        url = f"mysql://{USER}@{target.host}:{target.port}/"
        login = ("--target-password-file", str(instance.secret), "--relay-log-info-repository", "table")
        instance.run("init", "--target", url, *login, "--log-bin", "binlog")
        where = ("--master-host", source.host, "--master-port", str(source.port), "--master-user", USER)
        instance.run("change-master", *where, "--password-file", str(instance.secret), "--master-use-gtid", "slave_pos")
        instance.run("start")
        try:
            with instance.served("mariadb") as (port, _):
                replica.sql(
                    f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='chain', "
                    f"MASTER_PASSWORD='{PASSWORD}', MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1; START SLAVE"
                )
                source.sql("CREATE DATABASE b; CREATE TABLE b.t (id INT PRIMARY KEY, v LONGBLOB)")
                source.sql("INSERT INTO b.t VALUES (0, '')")
                _wait_for(replica, 0)
                delays = _trickle(source, replica)
                note = f"99th percentile {1e3 * sorted(delays)[int(0.99 * len(delays))]:.1f}"
                yield Measurement(
                    "commit to visible behind the front, median", 1e3 * statistics.median(delays), "ms", note
                )
                yield from _drained(source, target, port)
        finally:
            instance.run("stop")


def _wait_for(server: MariadbServer, row: int, database: str = "b") -> None:
    deadline = time.monotonic() + 300
    while True:
        try:
            if server.sql(f"SELECT 1 FROM {database}.t WHERE id = {row}"):
                return
        except pymysql.MySQLError:
            pass
        if time.monotonic() > deadline:
            raise TimeoutError(f"row {row} did not arrive")
        time.sleep(0.05)


def _trickle(source: MariadbServer, replica: MariadbServer) -> list[float]:
    delays = []
    with closing(source.connect()) as writer, closing(replica.connect()) as reader:
        writer.autocommit(True)
        reader.autocommit(True)
        with writer.cursor() as written, reader.cursor() as seen:
            for number in range(1, ROWS + 1):
                written.execute(f"INSERT INTO b.t VALUES ({number}, '')")
                began = time.perf_counter()
                while not seen.execute(f"SELECT 1 FROM b.t WHERE id = {number}"):
                    time.sleep(0.001)
                delays.append(time.perf_counter() - began)
                time.sleep(PAUSE_S)
    return delays


def _drained(source: MariadbServer, target: MariadbServer, port: int) -> Iterator[Measurement]:
    """How fast a client reads the whole binary log of rplctl: a raw dump, whose events nobody applies."""
    step = 1 << 20
    for number in range(LOG_BYTES // step):
        source.sql(f"INSERT INTO b.t VALUES ({ROWS + 1 + number}, REPEAT('x', {step - 4096}))")
    _wait_for(target, ROWS + LOG_BYTES // step)
    time.sleep(2)  # the record of the last transaction
    with closing(_connected(port, "chain")) as connection:
        connection.query("SET @master_binlog_checksum = 'CRC32', @slave_connect_state = ''")
        received, began = 0, time.perf_counter()
        connection._execute_command(0x12, b"\4\0\0\0" + b"\1\0" + b"\x63\0\0\0")  # ends at the end of the log
        while True:
            size = int.from_bytes(connection._read_bytes(4)[:3], "little")
            head = connection._read_bytes(size)
            if head[:1] != b"\0":
                break
            received += size
        took = time.perf_counter() - began
    yield Measurement("binary log read from the front", received / 1e6 / took, "MB/s", f"{received / 1e6:.0f} MB")
