"""`make bench`: runs every `bench_*.py` here (or those named) and prints one line per measurement.

A benchmark module has `measure() -> Iterator[Measurement]`. Numbers are for comparing two things in one run on one
machine, never for passing or failing (design section 5).
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from tests.bench.measurement import Measurement


def main(wanted: list[str]) -> None:
    names = sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py"))
    for name in wanted or names:
        print(f"# {name}", flush=True)
        measured: Measurement
        for measured in importlib.import_module(f"tests.bench.bench_{name}").measure():
            print(measured, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
