"""`make bench`: runs every `bench_*.py` here (or those named) and prints one line per measurement.

A benchmark module has `measure() -> Iterator[Measurement]`, and README.md describes it. Numbers are for comparing two
things in one run on one machine, never for passing or failing. Each run is kept as bench-results/TIME.json, with the
versions of what took part.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import subprocess
import sys
import traceback
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from tests.kit import fork_server
from tests.kit.private_server import PrivateServer, find_program

RESULTS = Path("bench-results")
PARTS = tuple(sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py")))


def main(wanted: list[str]) -> None:
    PrivateServer.in_memory = False  # what is flushed must reach a disk
    fork_server.is_wanted = False
    began = datetime.now(UTC)
    found: dict[str, list[dict[str, object]]] = {}
    kept = {"began": began.isoformat(timespec="seconds"), "versions": _versions(), "results": found}
    RESULTS.mkdir(exist_ok=True)
    failed = []
    for name in wanted or PARTS:
        print(f"# {name}", flush=True)
        try:
            for measured in importlib.import_module(f"tests.bench.bench_{name}").measure():
                print(measured, flush=True)
                found.setdefault(name, []).append(asdict(measured))
        except Exception:  # noqa: BLE001 - the other parts are measured all the same
            traceback.print_exc()
            failed.append(name)
        # after each part: the next one may take an hour, and be cut off
        (RESULTS / f"{began:%Y%m%dT%H%M%SZ}.json").write_text(json.dumps(kept, indent=1) + "\n")
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


def _versions() -> dict[str, object]:
    """The machine and the programs that took part; those that are missing are left out."""
    versions: dict[str, object] = {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "kernel": platform.release(),
    }
    versions |= {name: version(name) for name in ("pyspark", "numba", "pymysql", "psycopg")}
    for program in ("mariadbd", "sysbench"):
        if found := find_program(program):
            versions[program] = subprocess.run([found, "--version"], capture_output=True, text=True).stdout.strip()
    return versions


if __name__ == "__main__":
    main(sys.argv[1:])
