"""Row decoding: our kernels and net changes against mysql-replication (PyPI) and mariadb-binlog -v, over one binary
log.

The log is written by a private MariaDB: 100,000 rows inserted, then updated. All three read the same row events to
values; ours also keeps the last image per key. The ratio is theirs / ours, in the same run.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from rplctl.decode.net_changes import net_chunks
from rplctl.decode.row_stream import read_run
from rplctl.event.scan import GroupKind, scan_groups
from rplctl.event.warm_up import warm_up
from rplctl.position import BinlogPosition
from rplctl.schema.context import DdlContext
from rplctl.schema.plan import Catalog, plan_ddl
from tests.bench.measurement import Measurement
from tests.kit.private_server import ServerUnavailable
from tests.kit.servers import MariadbServer

TABLE = "CREATE TABLE t (id INT PRIMARY KEY, k INT NOT NULL, c CHAR(120), pad CHAR(60), at DATETIME)"
ROWS = 100_000


def measure() -> Iterator[Measurement]:
    try:
        with written_server() as server:
            ours = _ours(server)
            note = f"{2 * ROWS} row changes, one core"
            yield Measurement("rows decoded by rplctl, net changes kept", ours, "s", note)
            theirs = mysql_replication_seconds(server)
            yield Measurement("rows decoded by mysql-replication", theirs, "s", f"ratio {theirs / ours:.1f}")
            tool = _mariadb_binlog(server)
            yield Measurement("rows printed by mariadb-binlog -v", tool, "s", f"ratio {tool / ours:.1f}")
    except ServerUnavailable as reason:
        print(f"skipped: {reason}")


@contextmanager
def written_server() -> Iterator[MariadbServer]:
    """With the log. Raises ServerUnavailable."""
    with MariadbServer(("--binlog-row-metadata=FULL", "--max-binlog-size=1G")) as server:
        server.sql(f"CREATE DATABASE b; USE b; {TABLE}")
        values = f"seq, seq % 97, REPEAT(CHAR(65 + seq % 26), 100), 'pad', NOW() FROM seq_1_to_{ROWS}"
        server.sql(f"INSERT INTO t SELECT {values}", "b")
        server.sql("UPDATE t SET k = k + 1, c = REVERSE(c)", "b")
        yield server


def _ours(server: MariadbServer) -> float:
    catalog = Catalog().after(plan_ddl(TABLE, "b", DdlContext(), Catalog()))
    warm_up()
    began = time.perf_counter()
    data = np.fromfile(server.binlog_files[0], np.uint8)
    scan = scan_groups(data, 4, BinlogPosition("binlog.000001", 4), 1 << 40)
    for group in np.flatnonzero(scan.kind == GroupKind.ROWS).tolist():
        start, end = int(scan.start[group]), int(scan.end[group])
        description = scan.description_at(start)
        assert description is not None
        net_chunks(read_run(data, start, end, description), catalog, "sqlite")
    return time.perf_counter() - began


def mysql_replication_seconds(server: MariadbServer) -> float:
    from pymysqlreplication import BinLogStreamReader
    from pymysqlreplication.row_event import UpdateRowsEvent, WriteRowsEvent

    settings = {"host": server.host, "port": server.port, "user": "rpl", "passwd": "rpl"}
    stream = BinLogStreamReader(
        connection_settings=settings,
        server_id=4711,
        only_events=[WriteRowsEvent, UpdateRowsEvent],
        log_file="binlog.000001",
        log_pos=4,
        resume_stream=True,
    )
    began = time.perf_counter()
    rows = 0
    for event in stream:
        rows += len(event.rows)
        if rows >= 2 * ROWS:
            break
    taken = time.perf_counter() - began
    stream.close()
    return taken


def _mariadb_binlog(server: MariadbServer) -> float:
    command = ["mariadb-binlog", "-v", "--base64-output=DECODE-ROWS", str(server.binlog_files[0])]
    began = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began
