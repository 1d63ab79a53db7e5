"""How long an operator waits for the first answer: `--help`, `show-status`, and Spark with its first job."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.bench.measurement import Measurement, seconds

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
