"""How long an operator waits for the first answer: `--help`, `show-status`, Spark with its first job, and from
`rplctl start` to the first commit of what is in the relay log; what an applier takes when it rests.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rplctl.channel import Channel, lock_holder
from rplctl.status import read_status
from tests.bench.bench_apply import fetched
from tests.bench.measurement import Measurement, seconds
from tests.bench.workload import sysbench_workload
from tests.kit.private_server import ServerUnavailable
from tests.kit.process_memory import cpu_seconds, unshared_bytes

DROP_CACHES = Path("/proc/sys/vm/drop_caches")  # proc(5): 3 frees the page cache, directories and inodes
FIRST_JOB = """
import sys, time; from pathlib import Path; start = time.perf_counter()
from rplctl.applier.spark.session import open_session; from rplctl.channel import Channel
from rplctl.config import Config
folder = Path(sys.argv[1]); context = open_session(Config(datadir=folder), "", Channel("", folder).run_folder)
times = [time.perf_counter() - start]
for _ in range(12):
    start = time.perf_counter()
    context.parallelize(range(2), 2).map(str).collect()
    times.append(time.perf_counter() - start)
context.stop(); print(times[0], times[1], sorted(times[2:])[5])
"""


def measure() -> Iterator[Measurement]:
    with tempfile.TemporaryDirectory() as folder:
        for words in (["--help"], ["--datadir", folder, "show-status"]):
            command = [sys.executable, "-m", "rplctl", *words]
            median, best = seconds(lambda command=command: subprocess.run(command, capture_output=True))  # type: ignore[misc]
            yield Measurement(f"rplctl {words[-1]}", median, "s", f"best {best:.3f}")
        command = [sys.executable, "-c", FIRST_JOB, folder]
        for run in ("first start on this machine, or later", "again"):
            output = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path.cwd()).stdout
            context, first_job, later_job = map(float, output.split())
            yield Measurement("Spark context", context, "s", run)
            yield Measurement("first Spark job", first_job, "s")
            yield Measurement("later Spark jobs, median", later_job, "s")
    try:
        yield from _first_commits()
    except ServerUnavailable as reason:
        print(f"skipped: {reason}")


def _first_commits() -> Iterator[Measurement]:
    """Into SQLite, of a log that Spark would decode and of one that it would not; cold: no file is in memory."""
    for rows, is_cold in ((500, False), (50_000, False), (50_000, True)):
        if is_cold and not os.access(DROP_CACHES, os.W_OK):
            print("skipped: a cold start, for only root can drop what is in memory")
            continue
        with tempfile.TemporaryDirectory(prefix="rplctl-bench-") as name, sysbench_workload(rows, 1) as load:
            folder = Path(name, "instance")
            fetched(folder, load, [])
            status = Channel("", folder).status_path("applier")
            program = [sys.executable, "-m", "rplctl", "--datadir", str(folder)]
            if is_cold:
                os.sync()
                DROP_CACHES.write_text("3")
            began = time.perf_counter()
            subprocess.run([*program, "start", "--applier"], check=True, stdout=subprocess.DEVNULL)
            while not read_status(status).row_changes:
                time.sleep(0.01)
            taken = time.perf_counter() - began
            size = sum(phase.size for phase in load.phases)
            how = f"{size / 1e6:.1f} MB of log" + ", cold" * is_cold
            yield Measurement(f"start to the first commit, {how}", taken, "s")
            if rows > 500 and not is_cold:
                yield from _at_rest(lock_holder(Channel("", folder), "applier") or 0)
            subprocess.run([*program, "stop"], check=True, stdout=subprocess.DEVNULL)


def _at_rest(applier: int) -> Iterator[Measurement]:
    """Behind its first large batch, with the JVM and Spark's workers."""
    time.sleep(20)
    yield Measurement("memory at rest, one applier with its Spark", unshared_bytes([applier]) / 1e6, "MB")
    before = cpu_seconds([applier])
    time.sleep(60)
    yield Measurement("CPU at rest, one applier with its Spark", 100 * (cpu_seconds([applier]) - before) / 60, "% core")
