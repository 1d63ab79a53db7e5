"""How dense `make torture` walks its matrices, and the page that ends it: cases, crash points, invariants, violations;
of a part of the run, too, and then it says so.

`make torture` walks every 8th case of the matrices that would take hours, from an offset of the run's own seed, so that
the next run walks other cases; `make torture EVERY=1` is the whole product, `SEED=` a run again.
"""

from __future__ import annotations

import os
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, TypeVar

from rplctl.failpoint import CRASH_POINTS

INVARIANTS = {
    "I1": "the rows are the source's at the stored position",
    "I2": "position and rows agree: each transaction is there once and whole",
    "I3": "what was acknowledged is there, and at most one more",
    "I4": "the relay log is the source's log, byte for byte, from a transaction's end on",
    "I5": "a record reads as the old one or the new one, whole",
    "I6": "it goes on by itself, or stops with the error that is documented",
    "I7": "nothing is left over: prepared transactions, temporary files, registers",
}
CHECKED = {  # by each case of a matrix
    "admin races": ("I5", "I6", "I7"),
    "clone lives": ("I1", "I6"),
    "clone model": ("I1",),
    "command sequences": ("I5", "I6"),
    "commit matrix": ("I2", "I3", "I5", "I6", "I7"),
    "crash-test": ("I1", "I2", "I3", "I4", "I5", "I6", "I7"),
    "fencing": ("I2", "I3", "I6"),
    "layout upgrades": ("I5", "I6", "I7"),
    "network": ("I4", "I6"),
    "power cuts": ("I1", "I2", "I3", "I4", "I6"),
    "random DDL": ("I1", "I6"),
    "random kills": ("I1", "I6", "I7"),
    "repair": ("I1", "I6"),
    "simulation": ("I2", "I3", "I4", "I6", "I7"),
    "switches resumed": ("I5", "I6", "I7"),
    "system calls": ("I4", "I5", "I6", "I7"),
    "verify": ("I1", "I6"),
}

PROPERTY = "torture"  # of a test's report: what its matrices did
LINES = "torture page"  # of a test's report: what it has to say there
Case = TypeVar("Case")

# What the matrices of the test that runs did: (matrix, crash point or call) → cases; matrix → violations found;
# (matrix, part) → cases chosen, and of how many.
TORTURE: Counter[tuple[str, str]] = Counter()
VIOLATIONS: Counter[str] = Counter()
CHOSEN: Counter[tuple[str, str]] = Counter()
OF: Counter[tuple[str, str]] = Counter()


def every() -> int:
    """Each how manieth case is walked."""
    return int(os.environ.get("EVERY") or 8)


def run_seed() -> str:
    """The same for all workers of a run, which inherit it."""
    return os.environ.setdefault("SEED", str(int(time.time())))


def walk(matrix: str, part: str, cases: Sequence[Case]) -> list[Case]:
    """The cases of this run: every k-th, one at least."""
    step = every()
    first = Random(f"{run_seed()} {matrix} {part}").randrange(max(1, min(step, len(cases))))
    found = list(cases[first::step])
    CHOSEN[matrix, part] += len(found)
    OF[matrix, part] += len(cases)
    return found


def _counters() -> tuple[Counter[Any], ...]:
    return TORTURE, VIOLATIONS, CHOSEN, OF


def drained() -> list[list[Any]]:
    """What was counted since the last call, as plain values that a report can carry from one process to another."""
    found: list[list[Any]] = []
    for number, counter in enumerate(_counters()):
        found += [[number, key, count] for key, count in counter.items()]
        counter.clear()
    return found


def gather(reports: Mapping[str, Sequence[Any]]) -> None:
    """Count what the reports of all tests carry."""
    for number, key, count in _said(reports, PROPERTY):
        _counters()[number][key if isinstance(key, str) else tuple(key)] += count


def _said(reports: Mapping[str, Sequence[Any]], wanted: str) -> Iterator[Any]:
    """What the reports of all tests carry under this name."""
    for report in (report for found in reports.values() for report in found):
        for name, values in getattr(report, "user_properties", ()):
            if name == wanted:
                yield from values


def count_torture(matrix: str, point: str, violations: int, cases: int = 1) -> None:
    """So many cases were carried out."""
    assert matrix in CHECKED, matrix
    TORTURE[matrix, point] += cases
    VIOLATIONS[matrix] += violations


def write_page(write: Callable[[str], Any], collected: Iterable[str], reports: Mapping[str, Sequence[Any]]) -> None:
    """`collected`: the long tests; `reports`: pytest's by outcome."""
    gather(reports)
    long = set(collected)
    of_long = {outcome: {r.nodeid for r in found if r.nodeid in long} for outcome, found in reports.items()}
    run = set().union(*of_long.values())
    bad = sorted(of_long["failed"] | of_long["error"])
    counted = sum(VIOLATIONS.values())
    hit = {point for _, point in TORTURE} & CRASH_POINTS
    verdict = "zero violations" if not counted and not bad else f"{counted} violations, {len(bad)} tests NOT PASSED"
    write(
        f"{sum(TORTURE.values())} cases, {len(hit)} of {len(CRASH_POINTS)} crash points hit, "
        f"{len(_checks())} invariants checked, {verdict}"
    )
    write(f"{_density()}: make torture EVERY={every()} SEED={run_seed()}")
    write(f"{len(long)} long tests: " + ", ".join(f"{len(ids)} {outcome}" for outcome, ids in of_long.items()))
    for outcome in ("failed", "error", "skipped"):
        for name in sorted(of_long[outcome]):
            write(f"    {outcome}: {name}")
    if run != long:
        write(f"A PART ONLY: {len(long - run)} long tests were not run")
        for name in sorted(long - run) if run else ():
            write(f"    not run: {name}")
    if hit < CRASH_POINTS:
        write(f"crash points not hit in this run: {', '.join(sorted(CRASH_POINTS - hit))}")
    for invariant, count in sorted(_checks().items()):
        write(f"{invariant} {count:7}  {INVARIANTS[invariant]}")
    for matrix in sorted({name for name, _ in TORTURE}):
        points = {point: count for (name, point), count in sorted(TORTURE.items()) if name == matrix}
        write(f"{matrix}: {sum(points.values())} cases, {VIOLATIONS[matrix]} violations, {' '.join(CHECKED[matrix])}")
        listed = ", ".join(f"{point} {count}" for point, count in points.items())
        write(textwrap.fill(listed, 118, initial_indent="    ", subsequent_indent="    "))
    for line in _said(reports, LINES):
        write(line)
    for (matrix, part), count in sorted(CHOSEN.items()):
        write(f"walked of {matrix}, {part}: {count} of {OF[matrix, part]}")


def _density() -> str:
    return "every case of the matrices" if every() == 1 else f"each {every()}th case of the matrices that take hours"


def _checks() -> Counter[str]:
    """Invariant → cases that checked it."""
    found: Counter[str] = Counter()
    for (matrix, _), count in TORTURE.items():
        found.update(dict.fromkeys(CHECKED[matrix], count))
    return found
