"""One measured number, and how to take it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measurement:
    what: str
    value: float
    unit: str
    note: str = ""

    def __str__(self) -> str:
        return f"{self.what:<60} {self.value:>12,.3f} {self.unit:<8} {self.note}".rstrip()


def seconds(work: Callable[[], object], repeat: int = 5) -> tuple[float, float]:
    """Median and best wall-clock time of a few runs."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times), min(times)
