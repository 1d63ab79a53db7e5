"""The ledger of a drain into MariaDB: seconds and CPU of each part, against the bare load of the same net changes.

The rows are those of the benchmark `apply`: bulk inserts with their indexes, OLTP by sysbench's default distribution
and by the uniform one, once with every commit flushed and once without. See tests/bench/ledger.py for what counts as
what. However few rows are left of a log, all of it is read: the second ratio counts that. Tables of all three servers
equal the source's afterwards: the bare load did the same work.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.bench.bench_apply import ROWS, SERVER, TRANSACTIONS, fetched, target_options
from tests.bench.measurement import Measurement
from tests.bench.workload import Workload, checksums, sysbench_workload
from tests.kit.private_server import ServerUnavailable
from tests.kit.servers import MariadbServer


def measure() -> Iterator[Measurement]:
    try:
        with sysbench_workload(ROWS, TRANSACTIONS) as load:
            for flush in ("1", "2"):
                for phase, account in zip(load.phases, accounts(load, flush), strict=True):
                    yield from shown(f"{phase.name}, flush {flush}", account)
    except ServerUnavailable as reason:
        print(f"skipped: {reason}")


def accounts(load: Workload, flush: str) -> list[dict[str, Any]]:
    """One for each phase of the load."""
    options = (*SERVER, f"--innodb-flush-log-at-trx-commit={flush}")
    with contextlib.ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="rplctl-bench-")))
        target, *bare = (opened.enter_context(MariadbServer(options)) for _ in range(3))
        fetched(folder / "instance", load, target_options(target, folder))
        wanted = {
            "ends": [f"{phase.file}:{phase.end}" for phase in load.phases],
            "server": target.pid,
            "bare": [[server.url(), server.pid] for server in bare],
        }
        command = [sys.executable, "-m", "tests.bench.ledger", str(folder / "instance")]
        done = subprocess.run(command, input=json.dumps(wanted), stdout=subprocess.PIPE, text=True, check=True)
        for server in (target, *bare):
            assert checksums(server, load.database, load.tables) == load.checksums
        found: list[dict[str, Any]] = json.loads(done.stdout)
        return found


def shown(name: str, account: dict[str, Any]) -> Iterator[Measurement]:
    bare: dict[str, Sequence[float]] = account["bare"]
    quickest, (seconds, cpu) = min(bare.items(), key=lambda way: way[1][0])
    for part, (taken, ours, servers) in account["parts"].items():
        yield Measurement(f"{name}: {part}", taken, "s", f"CPU: ours {ours:.2f} s, the server's {servers:.2f} s")
    tasks = account["tasks"]
    for part in ("decode", "encode"):
        yield Measurement(f"{name}: in tasks, {part}", tasks[part], "s", "CPU, beside the server's work")
    more = f"of {tasks['jobs']} jobs, besides their longest tasks"
    yield Measurement(f"{name}: job start", tasks["job start"], "s", more)
    reading = (tasks["decode"] + tasks["encode"]) / (os.cpu_count() or 1)
    ratio = f"CPU of all {account['cpu']:.2f} s; to the bare load {account['seconds'] / seconds:.2f}"
    ratio += f", to that with the log read by all cores before it {account['seconds'] / (seconds + reading):.2f}"
    yield Measurement(f"{name}: all", account["seconds"], "s", ratio)
    for way, (taken, spent) in bare.items():
        yield Measurement(f"{name}: bare load by {way}", taken, "s", f"CPU {spent:.2f} s" + " *" * (way == quickest))
