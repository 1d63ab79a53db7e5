"""From COMMIT on the source to the row in the target, under a trickle of single-row transactions.

A MariaDB source, rplctl, a MariaDB target; 100 INSERTs a second; the target is asked every
millisecond.
"""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tests.bench.measurement import Measurement
from tests.kit.private_server import PASSWORD, USER, ServerUnavailable
from tests.kit.servers import MariadbServer

ROWS = 500
PAUSE_SECONDS = 0.01


def measure() -> Iterator[Measurement]:
    try:
        with MariadbServer() as source, MariadbServer(("--skip-log-bin",)) as target:
            delays = sorted(_delays(source, target))
    except ServerUnavailable as reason:
        print(f"skipped: {reason}")
        return
    yield Measurement("commit to visible, median", 1e3 * statistics.median(delays), "ms", f"{len(delays)} rows")
    yield Measurement("commit to visible, 99th percentile", 1e3 * delays[int(0.99 * len(delays)) - 1], "ms")


def _delays(source: MariadbServer, target: MariadbServer) -> list[float]:
    with tempfile.TemporaryDirectory(prefix="rplctl-bench-") as name:
        secret = Path(name, "password")
        secret.write_text(PASSWORD)
        secret.chmod(0o600)
        program = [sys.executable, "-m", "rplctl", "--datadir", str(Path(name, "instance"))]

        def run(*words: str) -> None:
            subprocess.run([*program, *words], check=True, stdout=subprocess.DEVNULL)

        url = f"mysql://{USER}@{target.host}:{target.port}/"
        run("init", "--target", url, "--target-password-file", str(secret), "--relay-log-info-repository", "table")
        where = ("--master-host", source.host, "--master-port", str(source.port), "--master-user", USER)
        run("change-master", *where, "--password-file", str(secret), "--master-log-file", "binlog.000001")
        run("start")
        try:
            source.sql("CREATE DATABASE b; CREATE TABLE b.t (id INT PRIMARY KEY); INSERT INTO b.t VALUES (0)")
            _wait_for(target, 0)
            return _trickle(source, target)
        finally:
            run("stop")


def _wait_for(target: MariadbServer, row: int) -> None:
    while True:
        with contextlib.suppress(*target.errors):
            if target.sql(f"SELECT 1 FROM b.t WHERE id = {row}"):
                return
        time.sleep(0.1)


def _trickle(source: MariadbServer, target: MariadbServer) -> list[float]:
    committed: dict[int, float] = {}

    def insert() -> None:
        with contextlib.closing(source.connect("b")) as connection, connection.cursor() as cursor:
            for row in range(1, ROWS + 1):
                cursor.execute(f"INSERT INTO t VALUES ({row})")
                committed[row] = time.perf_counter()
                time.sleep(PAUSE_SECONDS)

    writer = threading.Thread(target=insert)
    writer.start()
    seen: dict[int, float] = {}
    last = 0
    with contextlib.closing(target.connect("b")) as connection, connection.cursor() as cursor:
        while last < ROWS:
            cursor.execute("SELECT MAX(id) FROM t")
            newest = int(cursor.fetchall()[0][0])
            now = time.perf_counter()
            seen |= dict.fromkeys(range(last + 1, newest + 1), now)
            last = newest
            time.sleep(0.001)
    writer.join()
    return [max(0.0, seen[row] - committed[row]) for row in seen]
