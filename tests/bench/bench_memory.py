"""Memory of the applier's whole process tree for a backlog, and for one ten times as long (design D17).

The target is SQLite, or a MariaDB that is not counted. $RPLCTL_BENCH_MEMORY_TRANSACTIONS: of the shorter one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from tests.bench.bench_apply import SERVER, fetched, target_options
from tests.bench.measurement import Measurement
from tests.bench.workload import sysbench_workload
from tests.kit.private_server import ServerUnavailable
from tests.kit.process_memory import anonymous_bytes
from tests.kit.servers import MariadbServer

TRANSACTIONS = int(os.environ.get("RPLCTL_BENCH_MEMORY_TRANSACTIONS", "50000"))
TIMES = 10
ROWS = 25_000
SAMPLE_SECONDS = 0.05


def measure() -> Iterator[Measurement]:
    try:
        for kind in ("sqlite", "mariadb"):
            once, size = _peak(kind, TRANSACTIONS)
            yield Measurement(f"{kind}: peak memory, {size / 1e6:.0f} MB of log", once / 1e6, "MB")
            many, size = _peak(kind, TIMES * TRANSACTIONS)
            yield Measurement(
                f"{kind}: peak memory, {size / 1e6:.0f} MB of log", many / 1e6, "MB", f"ratio {many / once:.2f}"
            )
    except ServerUnavailable as reason:
        print(f"skipped: {reason}")


def _peak(kind: str, transactions: int) -> tuple[int, int]:
    """(bytes, bytes of binary log)"""
    with tempfile.TemporaryDirectory(prefix="rplctl-bench-") as name, sysbench_workload(ROWS, transactions) as load:
        instance = Path(name, "instance")
        size = sum(phase.size for phase in load.phases)
        ends = [f"{load.phases[-1].file}:{load.phases[-1].end}"]
        command = [sys.executable, "-m", "tests.bench.drain", str(instance), *ends]
        if kind == "sqlite":
            fetched(instance, load, [])
            return _watched(command), size
        with MariadbServer(SERVER) as server:
            fetched(instance, load, target_options(server, Path(name)))
            return _watched(command), size


def _watched(command: list[str]) -> int:
    """Run it; the most private memory that it and its children had at once."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    peak, done = 0, threading.Event()
    while not done.wait(SAMPLE_SECONDS):
        if process.poll() is not None:
            break
        peak = max(peak, anonymous_bytes([process.pid]))
    assert process.wait() == 0
    return peak
