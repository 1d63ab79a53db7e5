"""Applying a backlog: rplctl into each kind of target against MariaDB's own replica, over the same log.

Every contender has fetched the whole log before its clock starts, and begins empty. The replica runs with one SQL
thread (the default) and with four optimistic ones, once with every commit flushed (innodb_flush_log_at_trx_commit=1)
and once without (2); rplctl's MariaDB target with the same settings. Ratios: replica's seconds / rplctl's.
$RPLCTL_BENCH_TRANSACTIONS: per OLTP phase (30,000: about 65 MB of log each).
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from tests.bench.measurement import Measurement
from tests.bench.workload import Workload, checksums, sysbench_workload
from tests.kit.private_server import PASSWORD, USER, ServerUnavailable
from tests.kit.servers import MariadbServer, PostgresqlServer

TRANSACTIONS = int(os.environ.get("RPLCTL_BENCH_TRANSACTIONS", "30000"))
ROWS = 100_000
SERVER = ("--innodb-buffer-pool-size=512M", "--innodb-log-file-size=512M", "--skip-log-bin", "--skip-log-slave-updates")
POLL_SECONDS = 0.01


def measure() -> Iterator[Measurement]:
    try:
        with sysbench_workload(ROWS, TRANSACTIONS) as load:
            yield from compare(load)
    except ServerUnavailable as reason:
        print(f"skipped: {reason}")


def compare(
    load: Workload, *, flushes: Sequence[str] = ("1", "2"), threads: Sequence[int] = (0, 4)
) -> Iterator[Measurement]:
    """All contenders. `threads`: of MariaDB's replica."""
    for phase in load.phases:
        yield Measurement(f"{phase.name}: binary log", phase.size / 1e6, "MB")
    for flush in flushes:
        durable = f"innodb_flush_log_at_trx_commit={flush}"
        ours = rplctl_seconds(load, "mariadb", flush)
        yield from rows_of(load, "rplctl into MariaDB", ours, None, durable)
        for number in threads:
            name = "MariaDB replica, " + (f"{number} optimistic threads" if number else "one SQL thread")
            yield from rows_of(load, name, _replica(load, number, flush), ours, durable)
        yield from rows_of(load, "mariadb-binlog | mariadb", _replayed(load, flush), ours, durable)
    for kind in ("sqlite", "duckdb", "postgresql"):
        yield from rows_of(
            load, f"rplctl into {kind}", rplctl_seconds(load, kind, "1"), ours, "ratio: to rplctl into MariaDB"
        )


def rows_of(
    load: Workload, name: str, seconds: list[float], ours: list[float] | None, note: str
) -> Iterator[Measurement]:
    for number, phase in enumerate(load.phases):
        ratio = f"ratio {seconds[number] / ours[number]:.1f}; " if ours else ""
        yield Measurement(f"{phase.name}: {name}", seconds[number], "s", ratio + note)


def _replica(load: Workload, threads: int, flush: str) -> list[float]:
    """Seconds per phase of MariaDB's own replica; its relay log is on disk before."""
    options = [*SERVER, f"--innodb-flush-log-at-trx-commit={flush}", f"--slave-parallel-threads={threads}"]
    with MariadbServer((*options, "--slave-parallel-mode=optimistic")) as replica:
        source = load.source
        replica.sql(
            f"CHANGE MASTER TO master_host='{source.host}', master_port={source.port}, master_user='{USER}',"
            f" master_password='{PASSWORD}', master_log_file='binlog.000001', master_log_pos=4; START SLAVE IO_THREAD"
        )
        _wait(replica, load, "Read_Master_Log_Pos", len(load.phases) - 1)
        seconds = []
        for number, phase in enumerate(load.phases):
            until = f"UNTIL master_log_file='{phase.file}', master_log_pos={phase.end}"
            began = time.perf_counter()
            replica.sql(f"START SLAVE SQL_THREAD {until}")
            _wait(replica, load, "Exec_Master_Log_Pos", number)
            seconds.append(time.perf_counter() - began)
            replica.sql("STOP SLAVE SQL_THREAD")
        assert _checksums(replica, load) == load.checksums
        return seconds


def _replayed(load: Workload, flush: str) -> list[float]:
    """Seconds per phase of the vendor's dump tool piped into its client."""
    with MariadbServer((*SERVER, f"--innodb-flush-log-at-trx-commit={flush}")) as server:
        client = ["mariadb", f"--socket={server.socket}", f"--user={USER}", f"--password={PASSWORD}"]
        seconds = []
        for phase in load.phases:
            began = time.perf_counter()
            dump = subprocess.Popen(["mariadb-binlog", str(load.source.data / phase.file)], stdout=subprocess.PIPE)
            subprocess.run(client, stdin=dump.stdout, check=True)
            assert dump.wait() == 0
            seconds.append(time.perf_counter() - began)
        assert _checksums(server, load) == load.checksums
        return seconds


def _wait(replica: MariadbServer, load: Workload, column: str, number: int) -> None:
    """Until the replica's coordinates reach the end of a phase."""
    end = load.phases[number]
    file_column = "Master_Log_File" if column.startswith("Read") else "Relay_Master_Log_File"
    with replica.connect() as connection, connection.cursor() as cursor:
        while True:
            cursor.execute("SHOW SLAVE STATUS")
            assert cursor.description is not None
            status = dict(zip([entry[0] for entry in cursor.description], cursor.fetchone(), strict=True))
            assert not status["Last_Error"], status["Last_Error"]
            if (status[file_column], int(status[column])) >= (end.file, end.end):
                return
            time.sleep(POLL_SECONDS)


def rplctl_seconds(load: Workload, kind: str, flush: str, *options: str) -> list[float]:
    """Seconds per phase; the target's tables equal the source's afterwards. `options`: of `init`."""
    with tempfile.TemporaryDirectory(prefix="rplctl-bench-") as name:
        folder = Path(name)
        if kind == "sqlite":
            seconds = drained(folder / "instance", load, [])
            with contextlib.closing(sqlite3.connect(folder / "instance" / "target.db")) as connection:
                found = {t: connection.execute(f"SELECT * FROM {load.database}__{t}").fetchall() for t in load.tables}
            _compare_rows(load, found)
            return seconds
        if kind == "duckdb":
            seconds = drained(folder / "instance", load, ["--target", f"duckdb:///{folder / 'target.duckdb'}"])
            with duckdb.connect(str(folder / "target.duckdb"), read_only=True) as reader:
                names = [f"{load.database}.{table}" for table in load.tables]
                rows = [reader.execute(f"SELECT * FROM {name}").fetchall() for name in names]
            _compare_rows(load, dict(zip(load.tables, rows, strict=True)))
            return seconds
        server = (
            PostgresqlServer(("-c", "max_prepared_transactions=10"))
            if kind == "postgresql"
            else MariadbServer((*SERVER, f"--innodb-flush-log-at-trx-commit={flush}"))
        )
        with server:
            seconds = drained(folder / "instance", load, [*target_options(server, folder), *options])
            if isinstance(server, MariadbServer):
                assert _checksums(server, load) == load.checksums
            else:
                _compare_rows(load, {table: server.rows(load.database, table) for table in load.tables})
        return seconds


def _checksums(server: MariadbServer, load: Workload) -> list[tuple[Any, ...]]:
    return checksums(server, load.database, load.tables)


def target_options(server: MariadbServer | PostgresqlServer, folder: Path) -> list[str]:
    """Of `init`; the password goes into a file in the folder."""
    secret = folder / "password"
    secret.write_text(PASSWORD)
    secret.chmod(0o600)
    scheme, database = ("mysql", "") if isinstance(server, MariadbServer) else ("postgresql", "postgres")
    url = f"{scheme}://{USER}@{server.host}:{server.port}/{database}"
    return ["--target", url, "--target-password-file", str(secret)]


def _compare_rows(load: Workload, found: Mapping[str, Sequence[tuple[Any, ...]]]) -> None:
    for table, rows in found.items():
        assert sorted(rows) == sorted(load.source.rows(load.database, table)), f"{table} differs from the source's"


def drained(folder: Path, load: Workload, target: list[str]) -> list[float]:
    fetched(folder, load, target)
    ends = [f"{phase.file}:{phase.end}" for phase in load.phases]
    seconds: list[float] = json.loads(_run([sys.executable, "-m", "tests.bench.drain", str(folder), *ends]))
    return seconds


def fetched(folder: Path, load: Workload, target: list[str]) -> None:
    """An instance that has the whole log as relay logs, and nothing applied."""
    program = [sys.executable, "-m", "rplctl", "--datadir", str(folder)]
    where = [
        "--master-binlog-dir",
        str(load.source.data),
        "--master-log-file",
        "binlog.000001",
        "--master-log-pos",
        "4",
    ]
    is_held = any("duckdb:" in word for word in target)  # of a file that the applier has to itself no row can be read
    _run([*program, "init", *target, "--relay-log-info-repository", "file" if is_held else "table"])
    _run([*program, "change-master", *where])
    _run([*program, "start", "--receiver"])
    total = sum(phase.size for phase in load.phases)
    while sum(path.stat().st_size for path in folder.glob("relay-bin.0*")) < total:
        time.sleep(0.1)
    _run([*program, "stop"])


def _run(command: list[str]) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
