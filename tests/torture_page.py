"""The page that ends `make torture`: cases, crash points, invariants, violations; of a part of the run, too, and then
it says so.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

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
    "command sequences": ("I5", "I6"),
    "commit matrix": ("I2", "I3", "I5", "I6", "I7"),
    "crash-test": ("I1", "I2", "I3", "I4", "I5", "I6", "I7"),
    "fencing": ("I2", "I3", "I6"),
    "layout upgrades": ("I5", "I6", "I7"),
    "network": ("I4", "I6"),
    "power cuts": ("I1", "I2", "I3", "I4", "I6"),
    "simulation": ("I2", "I3", "I4", "I6", "I7"),
    "switches resumed": ("I5", "I6", "I7"),
    "system calls": ("I4", "I5", "I6", "I7"),
}

# What the matrices did: (matrix, crash point or call) → cases, and violations found.
TORTURE: Counter[tuple[str, str]] = Counter()
VIOLATIONS: Counter[str] = Counter()


def count_torture(matrix: str, point: str, violations: int, cases: int = 1) -> None:
    """So many cases were carried out."""
    assert matrix in CHECKED, matrix
    TORTURE[matrix, point] += cases
    VIOLATIONS[matrix] += violations


def write_page(write: Callable[[str], Any], collected: Iterable[str], reports: Mapping[str, Sequence[Any]]) -> None:
    """`collected`: the long tests; `reports`: pytest's by outcome."""
    every = set(collected)
    of_long = {outcome: {r.nodeid for r in found if r.nodeid in every} for outcome, found in reports.items()}
    run = set().union(*of_long.values())
    bad = sorted(of_long["failed"] | of_long["error"])
    counted = sum(VIOLATIONS.values())
    hit = {point for _, point in TORTURE} & CRASH_POINTS
    verdict = "zero violations" if not counted and not bad else f"{counted} violations, {len(bad)} tests NOT PASSED"
    write(
        f"{sum(TORTURE.values())} cases, {len(hit)} of {len(CRASH_POINTS)} crash points hit, "
        f"{len(_checks())} invariants checked, {verdict}"
    )
    write(f"{len(every)} long tests: " + ", ".join(f"{len(ids)} {outcome}" for outcome, ids in of_long.items()))
    for outcome in ("failed", "error", "skipped"):
        for name in sorted(of_long[outcome]):
            write(f"    {outcome}: {name}")
    if run != every:
        write(f"A PART ONLY: {len(every - run)} long tests were not run")
    if hit < CRASH_POINTS:
        write(f"crash points not hit in this run: {', '.join(sorted(CRASH_POINTS - hit))}")
    for invariant, count in sorted(_checks().items()):
        write(f"{invariant} {count:7}  {INVARIANTS[invariant]}")
    for matrix in sorted({name for name, _ in TORTURE}):
        points = {point: count for (name, point), count in sorted(TORTURE.items()) if name == matrix}
        write(f"{matrix}: {sum(points.values())} cases, {VIOLATIONS[matrix]} violations, {' '.join(CHECKED[matrix])}")
        listed = ", ".join(f"{point} {count}" for point, count in points.items())
        write(textwrap.fill(listed, 118, initial_indent="    ", subsequent_indent="    "))


def _checks() -> Counter[str]:
    """Invariant → cases that checked it."""
    found: Counter[str] = Counter()
    for (matrix, _), count in TORTURE.items():
        found.update(dict.fromkeys(CHECKED[matrix], count))
    return found
