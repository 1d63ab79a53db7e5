"""`rplctl verify` of two MariaDB tables of a million rows each beside one server-side CRC32 pass over a table.

Promise (issue J): both sides of a table are read and hashed in at most three times such a pass; of each the best of
three. The clock runs in the verb, without the program's start. $RPLCTL_BENCH_VERIFY_ROWS: rows of the table
(1,000,000).
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rplctl.command.verify import verify
from rplctl.config import load_config
from tests.bench import copied
from tests.bench.bench_apply import SERVER, target_options
from tests.bench.copied import DATABASE
from tests.bench.measurement import Measurement
from tests.bench.workload import SOURCE_OPTIONS
from tests.kit.private_server import ServerUnavailable
from tests.kit.replica import Replica
from tests.kit.servers import MariadbServer

ROWS = int(os.environ.get("RPLCTL_BENCH_VERIFY_ROWS", "1000000"))
TABLE = "sbtest1"
PASS = f"SELECT COUNT(*), BIT_XOR(CRC32(CONCAT_WS('#', id, k, c, pad))) FROM {DATABASE}.{TABLE}"


def measure() -> Iterator[Measurement]:
    try:
        with MariadbServer(SOURCE_OPTIONS) as source, MariadbServer(SERVER) as target:
            copied.fill(source, ROWS, [TABLE])
            with tempfile.TemporaryDirectory(prefix="rplctl-bench-") as name:
                yield from _verified(source, target, Path(name))
    except ServerUnavailable as reason:
        print(f"skipped: {reason}")


def _verified(source: MariadbServer, target: MariadbServer, folder: Path) -> Iterator[Measurement]:
    replica = Replica(folder, spark=False)
    try:
        replica.run("init", *target_options(target, folder),
                    "--master-info-repository", "table", "--relay-log-info-repository", "table")  # fmt: skip
        options = replica.datadir / "rplctl.toml"
        options.write_text(f'replicate_do_db = "{DATABASE}"\n{options.read_text()}')
        log, position = source.master_status()
        replica.change_master(source, "--master-log-file", log, "--master-log-pos", str(position))
        copied.dumped(source, target)
        replica.run("start")
        config = load_config(replica.datadir)

        def verified() -> None:
            found = verify(config, "")
            assert found.is_equal and found.totals[0].rows == ROWS

        verified()  # kernels are compiled, tables are read once
        source.sql(PASS)
        once, took = (min(_seconds(run) for _ in range(3)) for run in (lambda: source.sql(PASS), verified))
        yield Measurement("one CRC32 pass of the server", once, "s")
        yield Measurement("rplctl verify of both sides", took, "s", f"ratio {took / once:.2f}")
    finally:
        replica.close()


def _seconds(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began
