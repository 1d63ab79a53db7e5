"""Where a job of Spark begins to pay: pieces of one log, decoded in the applier's process and by Spark's tasks.

Each size for two kinds of target: values for SQLite, framed rows for MariaDB. Medians of five; the tasks are two, as on
two cores. SMALL_JOB of applier/spark/pipeline.py is chosen by it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

import rplctl.applier.spark.pipeline as pipeline_module
from rplctl.applier.spark.pipeline import Pipeline
from rplctl.applier.spark.session import open_session
from rplctl.applier.spark.split_task import Split
from rplctl.config import Config
from rplctl.decode.row_stream import read_run
from rplctl.event.scan import GroupKind, scan_groups
from rplctl.event.warm_up import warm_up
from rplctl.position import BinlogPosition
from rplctl.schema.context import DdlContext
from rplctl.schema.plan import Catalog, plan_ddl
from tests.bench.bench_decode import TABLE
from tests.bench.measurement import Measurement, seconds
from tests.kit.private_server import ServerUnavailable
from tests.kit.servers import MariadbServer

SIZES = (16 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20)
TRANSACTION_ROWS = 50
TRANSACTIONS = 2500


def measure() -> Iterator[Measurement]:
    try:
        with MariadbServer(("--binlog-row-metadata=FULL", "--max-binlog-size=1G")) as server:
            _write(server)
            yield from _compared(server.binlog_files[0])
    except ServerUnavailable as reason:
        print(f"skipped: {reason}")


def _write(server: MariadbServer) -> None:
    server.sql(f"CREATE DATABASE b; USE b; {TABLE}")
    rows = f"seq + @n * {TRANSACTION_ROWS}, seq, REPEAT('c', 120), REPEAT('p', 60), NOW()"
    one = f"INSERT INTO t SELECT {rows} FROM seq_1_to_{TRANSACTION_ROWS}"
    server.sql(f"BEGIN NOT ATOMIC SET @n = 0; WHILE @n < {TRANSACTIONS} DO {one}; SET @n = @n + 1; END WHILE; END", "b")


def _compared(log: Path) -> Iterator[Measurement]:
    catalog = Catalog().after(plan_ddl(TABLE, "b", DdlContext(), Catalog()))
    data = np.fromfile(log, np.uint8)
    scan = scan_groups(data, 4, BinlogPosition(log.name, 4), 1 << 40)
    groups = np.flatnonzero(scan.kind == GroupKind.ROWS)
    start = int(scan.start[groups[0]])
    description = scan.description_at(start)
    assert description is not None
    warm_up()
    with tempfile.TemporaryDirectory() as folder:
        context = open_session(Config(Path(folder)), "", Path(folder))
        spark = Pipeline(lambda: context)
        spark.begin()
        for kind, bulk_rows in (("sqlite", 0), ("mysql", 200)):
            make = partial(
                Split, spool_folder=folder, target_kind=kind, bulk_rows=bulk_rows, length_prefixed=bulk_rows > 0
            )
            for size in SIZES:
                ends = scan.end[groups]
                half, whole = (int(ends[np.searchsorted(ends, start + part)]) for part in (size // 2, size))
                splits = [
                    make(path=str(log), start=a, end=b, table_maps=(), description=description)
                    for a, b in ((start, half), (half, whole))
                ]
                assert len(read_run(data, start, whole, description).types)
                taken = {}
                for where, small in (("in process", 1 << 40), ("by Spark", -1)):
                    pipeline_module.SMALL_JOB = small
                    taken[where] = seconds(lambda splits=splits: spark.decode(splits, catalog))[0]  # type: ignore[misc]
                for where, median in taken.items():
                    ratio = f"ratio {median / taken['in process']:.2f}"
                    yield Measurement(f"{kind}, {(whole - start) / 1e6:.2f} MB {where}", 1e3 * median, "ms", ratio)
        context.stop()
