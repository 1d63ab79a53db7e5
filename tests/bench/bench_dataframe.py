"""Binary logs as DataFrames: what a Spark task does with them, on one core, against mysql-replication (PyPI).

The log is bench_decode's: 100,000 rows inserted, then updated. Ours: the driver's walk, then typed rows as Arrow
batches, or JSON; without Spark, whose transport is the same for any source. The ratio is theirs / ours, in one run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rplctl.data_source.source import BinlogDataSource, BinlogReader
from tests.bench.bench_decode import ROWS, mysql_replication_seconds, written_server
from tests.bench.measurement import Measurement
from tests.kit.private_server import ServerUnavailable


def measure() -> Iterator[Measurement]:
    try:
        with written_server() as server:
            yield from _measured(server.binlog_files[0], mysql_replication_seconds(server))
    except ServerUnavailable as reason:
        print(f"skipped: {reason}")


def _measured(log: Path, theirs: float) -> Iterator[Measurement]:
    megabytes = log.stat().st_size / 1e6
    for name, table in (("typed", "b.t"), ("JSON", "")):
        _read(str(log), table)  # kernels
        walk, rows = _read(str(log), table)
        note = f"{megabytes / rows:.0f} MB/s, {2 * ROWS / rows / 1000:.0f} k changes/s, ratio {theirs / rows:.1f}"
        yield Measurement(f"{name} rows of a DataFrame's tasks", rows, "s", note)
        yield Measurement("  the driver's walk before", walk, "s", f"{megabytes / walk:.0f} MB/s")
    yield Measurement("rows decoded by mysql-replication", theirs, "s", f"{2 * ROWS} row changes")


def _read(path: str, table: str) -> tuple[float, float]:
    source = BinlogDataSource({"path": path, **({"table": table} if table else {})})
    reader = source.reader(source.schema())
    assert isinstance(reader, BinlogReader)
    walk, partitions = _timed(reader.partitions)
    rows, count = _timed(lambda: sum(batch.num_rows for part in partitions for batch in reader.read(part)))
    assert count >= 2 * ROWS
    return walk, rows


def _timed(run: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    found = run()
    return time.perf_counter() - began, found
