"""Do several committers pay? One drain of a backlog of several tables by one connection, and by two, in turns.

`replica_parallel_workers`, everything else alike: Spark's tasks decode on the same cores. Into MariaDB with commits
that are flushed and without. Medians of seconds; ratio: one connection's seconds / two connections'.
$RPLCTL_BENCH_TRANSACTIONS as in `apply`; $RPLCTL_BENCH_TURNS (3) of each.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from statistics import median

from tests.bench.bench_apply import ROWS, TRANSACTIONS, rplctl_seconds
from tests.bench.measurement import Measurement
from tests.bench.workload import Workload, sysbench_workload
from tests.kit.private_server import ServerUnavailable

TURNS = int(os.environ.get("RPLCTL_BENCH_TURNS", "3"))


def measure() -> Iterator[Measurement]:
    try:
        with sysbench_workload(ROWS, TRANSACTIONS) as load:
            for flush in "12":
                yield from _of(load, "mariadb", flush, f"MariaDB, innodb_flush_log_at_trx_commit={flush}")
            yield from _of(load, "postgresql", "1", "PostgreSQL, fsync=off")
    except ServerUnavailable as reason:
        print(f"skipped: {reason}")


def _of(load: Workload, kind: str, flush: str, name: str) -> Iterator[Measurement]:
    taken: dict[int, list[list[float]]] = {1: [], 2: []}
    for _ in range(TURNS):
        for count, turns in taken.items():
            turns.append(rplctl_seconds(load, kind, flush, "--replica-parallel-workers", str(count)))
    one, two = ([median(phase) for phase in zip(*taken[count], strict=True)] for count in (1, 2))
    for number, phase in enumerate(load.phases):
        yield Measurement(f"{phase.name}: {name}, one connection", one[number], "s")
        yield Measurement(f"{phase.name}: {name}, two", two[number], "s", f"ratio {one[number] / two[number]:.2f}")
