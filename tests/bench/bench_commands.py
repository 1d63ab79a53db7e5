"""How long the common commands take, on a channel that runs: as multiples of Python that only loads Typer.

The ratio is what can be compared between machines. One Python of a warm disk cache loads Typer in about 0.07 s there.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from rplctl.demo import BINLOG_FOLDER
from tests.bench.measurement import Measurement, seconds
from tests.kit.replica import Replica

RUNS = 10
COMMANDS = ("show-status", "show-status --brief", "check", "doctor", "metrics", "top")


def measure() -> Iterator[Measurement]:
    unit, best = seconds(lambda: _run([sys.executable, "-c", "import typer"]), RUNS)
    yield Measurement("python -c 'import typer'", unit, "s", f"best {best:.3f}")
    with tempfile.TemporaryDirectory() as folder:
        replica = Replica(Path(folder), spark=False)
        try:
            replica.run("init")
            replica.run("change-master", "--master-binlog-dir", str(BINLOG_FOLDER))
            rplctl = [sys.executable, "-m", "rplctl", "--datadir", str(replica.datadir)]
            starts = []
            for _ in range(RUNS):
                _run([*rplctl, "stop"])
                began = time.perf_counter()
                _run([*rplctl, "start"])
                starts.append(time.perf_counter() - began)
            replica.run("wait", "--state", "synced", "--timeout", "120")
            for words in COMMANDS:
                command = [*rplctl, *words.split()]
                median, best = seconds(lambda command=command: _run(command), RUNS)  # type: ignore[misc]
                yield Measurement(f"rplctl {words}", median, "s", _note(median, best, unit))
            median = statistics.median(starts)
            yield Measurement("rplctl start", median, "s", _note(median, min(starts), unit))
        finally:
            replica.close()


def _note(median: float, best: float, unit: float) -> str:
    return f"{median / unit:.1f} times the import of Typer, best {best:.3f}"


def _run(command: Sequence[str]) -> None:
    subprocess.run(command, capture_output=True, check=False)
