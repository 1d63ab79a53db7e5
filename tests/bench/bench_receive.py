"""Receiving a binary log: rplctl's receiver against MariaDB's own I/O thread, from the same idle source.

Two logs of about 500 MB: transactions as sysbench's oltp_write_only makes them, and rows events of 8 kB. The clock
of both starts when the first bytes are in the relay log and stops at the last; rplctl's start is a line of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.bench.measurement import Measurement
from tests.kit.private_server import PASSWORD, USER, ServerUnavailable
from tests.kit.servers import MariadbServer

MEGABYTES = int(os.environ.get("RPLCTL_BENCH_RECEIVE_MB", "500"))
TRANSACTION_BYTES, ROW_BYTES = 1600, 1000
# no annotations: a replica that writes no log of its own does not ask for them
SOURCE = ("--max-binlog-size=1G", "--innodb-flush-log-at-trx-commit=0", "--skip-binlog-annotate-row-events")
POLL_SECONDS = 0.005
UNSENT = 4096  # a server does not send every event of its file's head
DEADLINE_SECONDS = 300.0


def measure() -> Iterator[Measurement]:
    try:
        for name, fill in (("transactions of 4 rows", _small_events), ("rows events of 8 kB", _large_events)):
            with MariadbServer(SOURCE) as source:
                source.sql("CREATE DATABASE b")
                fill(source)
                yield from _compare(source, name)
    except ServerUnavailable as reason:
        print(f"skipped: {reason}")


def _small_events(source: MariadbServer) -> None:
    columns = "id INT PRIMARY KEY, k INT, c CHAR(120) CHARACTER SET latin1, pad CHAR(60) CHARACTER SET latin1"
    source.sql(f"CREATE TABLE t ({columns}); INSERT INTO t VALUES (1, 0, REPEAT('c', 119), REPEAT('p', 59))", "b")
    changes = (
        "UPDATE t SET k=k+1; UPDATE t SET c=REPEAT('d', 119); DELETE FROM t;"
        " INSERT INTO t VALUES (1, 0, REPEAT('c', 119), REPEAT('p', 59))"
    )
    loop = f"FOR n IN 1..{MEGABYTES * 1_000_000 // TRANSACTION_BYTES} DO START TRANSACTION; {changes}; COMMIT; END FOR"
    source.sql(f"CREATE PROCEDURE fill() {loop}", "b")
    source.sql("CALL fill()", "b")


def _large_events(source: MariadbServer) -> None:
    source.sql("CREATE TABLE b.t (id INT PRIMARY KEY, v VARCHAR(1000))")
    for first in range(0, MEGABYTES * 1_000_000 // ROW_BYTES, 10_000):
        source.sql(f"INSERT INTO t SELECT seq, REPEAT('x', 980) FROM seq_{first + 1}_to_{first + 10_000}", "b")


def _compare(source: MariadbServer, log: str) -> Iterator[Measurement]:
    total = sum(path.stat().st_size for path in source.binlog_files)
    yield Measurement(f"{log}: binary log", total / 1e6, "MB")
    _, theirs = _io_thread(source, total)
    start, ours = _rplctl(source, total)
    yield Measurement(f"{log}: received by MariaDB's I/O thread", theirs, "s")
    yield Measurement(f"{log}: received by rplctl", ours, "s", f"ratio {theirs / ours:.1f}")
    yield Measurement(f"{log}: rplctl from the command to the first byte", start, "s")


def _io_thread(source: MariadbServer, total: int) -> tuple[float, float]:
    with MariadbServer(("--skip-log-bin", "--skip-log-slave-updates")) as replica:
        replica.sql(
            f"CHANGE MASTER TO master_host='{source.host}', master_port={source.port}, master_user='{USER}',"
            f" master_password='{PASSWORD}', master_log_file='binlog.000001', master_log_pos=4"
        )
        return _timed(lambda: replica.sql("START SLAVE IO_THREAD"), replica.data, "relay-bin.0*", total)


def _rplctl(source: MariadbServer, total: int) -> tuple[float, float]:
    with tempfile.TemporaryDirectory(prefix="rplctl-bench-") as name:
        folder = Path(name, "instance")
        program = [sys.executable, "-m", "rplctl", "--datadir", str(folder)]

        def run(*words: str, stdin: str = "") -> None:
            subprocess.run([*program, *words], check=True, stdout=subprocess.DEVNULL, input=stdin, text=True)

        run("init")
        run(
            *("change-master", "--master-host", source.host, "--master-port", str(source.port)),
            *("--master-user", USER, "--password-stdin", "--master-log-file", "binlog.000001", "--master-log-pos", "4"),
            stdin=PASSWORD,
        )
        try:
            return _timed(lambda: run("start", "--receiver"), folder, "relay-bin.0*", total)
        finally:
            run("stop")


def _timed(start: Callable[[], object], folder: Path, pattern: str, total: int) -> tuple[float, float]:
    """(seconds until the first events are there, seconds from then to the last)."""
    began = time.perf_counter()
    start()
    first = 0.0
    while True:
        size = sum(path.stat().st_size for path in folder.glob(pattern))
        if size > 4096 and not first:
            first = time.perf_counter()
        if size >= total - UNSENT:
            return first - began, time.perf_counter() - first
        if time.perf_counter() - began > DEADLINE_SECONDS:
            raise TimeoutError(f"{size} of {total} bytes are in {folder} after {DEADLINE_SECONDS} s")
        time.sleep(POLL_SECONDS)
