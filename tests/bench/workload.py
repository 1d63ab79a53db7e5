"""What is replicated in the benchmarks: sysbench on a private MariaDB, in phases that end at binary log boundaries.

prepare   4 tables of `rows` rows by multi-row INSERT, then their secondary indexes
special   oltp_write_only, sysbench's default distribution (few rows are hot)
uniform   oltp_write_only, every row as likely
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.kit.private_server import PASSWORD, USER, ServerUnavailable
from tests.kit.servers import MariadbServer

DATABASE = "sb"
TABLES = [f"sbtest{number}" for number in range(1, 5)]
SOURCE_OPTIONS = ("--max-binlog-size=1G", "--innodb-buffer-pool-size=512M", "--gtid-domain-id=0")


@dataclass(frozen=True, slots=True)
class Phase:
    name: str
    file: str
    end: int  # position at which it is over
    size: int  # bytes of binary log


@dataclass(frozen=True, slots=True)
class Workload:
    source: MariadbServer
    phases: list[Phase]
    database: str
    tables: Sequence[str]
    checksums: list[tuple[Any, ...]]


@contextmanager
def sysbench_workload(
    rows: int, transactions: int, server: Callable[[], MariadbServer] = lambda: MariadbServer(SOURCE_OPTIONS)
) -> Iterator[Workload]:
    """The source keeps running. Raises ServerUnavailable without the server or sysbench."""
    if not shutil.which("sysbench"):
        raise ServerUnavailable("sysbench is not installed (apt-get install sysbench)")
    with server() as source:
        source.sql(f"CREATE DATABASE {DATABASE}")
        phases = [sysbench_phase(source, "prepare", [f"--table-size={rows}", "--threads=2", "prepare"])]
        for distribution in ("special", "uniform"):
            words = [f"--table-size={rows}", f"--rand-type={distribution}", "--threads=4"]
            phases.append(sysbench_phase(source, distribution, [*words, f"--events={transactions}", "--time=0", "run"]))
        yield Workload(source, phases, DATABASE, TABLES, checksums(source, DATABASE, TABLES))


def checksums(server: MariadbServer, database: str, tables: Sequence[str]) -> list[tuple[Any, ...]]:
    return server.sql(f"CHECKSUM TABLE {', '.join(tables)}", database)


def phase_of(source: MariadbServer, name: str, work: Callable[[], object]) -> Phase:
    """What the source logs while `work` runs; its log ends with it."""
    first, begin = source.master_status()
    work()
    file, end = source.master_status()
    source.sql("FLUSH BINARY LOGS")
    earlier = [row for row in source.sql("SHOW BINARY LOGS") if first <= row[0] < file]  # a long phase fills several
    return Phase(name, file, end, sum(int(row[1]) for row in earlier) + end - begin)


def sysbench_phase(source: MariadbServer, name: str, words: list[str]) -> Phase:
    where = [f"--mysql-socket={source.socket}", f"--mysql-user={USER}", f"--mysql-password={PASSWORD}"]
    command = ["sysbench", "oltp_write_only", "--tables=4", f"--mysql-db={DATABASE}", *where, *words]
    return phase_of(source, name, lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))
