"""What the copies of the benchmark `clone` are made of: the source's rows, its peers, and what each costs.

CPU is that of both servers and of every client: of children that were waited for, and of what runs on by itself
(rplctl's processes, a server's backends) by /proc.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pymysql

from tests.kit.private_server import PASSWORD, USER, PrivateServer
from tests.kit.servers import MariadbServer

DATABASE = "sb"
TABLES = tuple(f"sbtest{number}" for number in range(1, 5))
COLUMNS = "id, k, c, pad"
FILLED_AT_ONCE = 1_000_000  # rows of a transaction
PIECE_BYTES = 1 << 16


def fill(source: MariadbServer, rows: int, tables: Sequence[str] = TABLES) -> None:
    """Tables as `sysbench oltp_common prepare` makes them: numbered rows, a random k with an index, digits. They
    are not in the log, which would take as much of the disk again: no copy reads them there.
    """
    eleven = "LPAD(FLOOR(RAND() * 1e11), 11, '0')"
    c, pad = (f"CONCAT_WS('-', {', '.join([eleven] * groups)})" for groups in (10, 5))
    source.sql(f"DROP DATABASE IF EXISTS {DATABASE}; CREATE DATABASE {DATABASE}")
    for table in tables:
        inserts = (
            f"INSERT INTO {table} SELECT seq, 1 + FLOOR(RAND() * {rows}), {c}, {pad}"
            f" FROM seq_{at}_to_{min(at + FILLED_AT_ONCE - 1, rows)}"
            for at in range(1, rows + 1, FILLED_AT_ONCE)
        )
        source.sql(
            f"SET sql_log_bin = 0; CREATE TABLE {table} (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY,"
            f" k INT NOT NULL DEFAULT 0, c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '');"
            f" {'; '.join(inserts)}; CREATE INDEX k_{table} ON {table} (k)",
            DATABASE,
        )


@dataclass(frozen=True, slots=True)
class Cost:
    seconds: float
    cpu: float  # seconds of all processes


def cost_of(work: Callable[[], Sequence[int]], servers: Sequence[PrivateServer]) -> Cost:
    """`work` gives the processes of its own that still run when it is done."""
    pids = [server.pid for server in servers if server.is_running]
    before, began = cpu_of(pids), time.perf_counter()
    own = work()
    seconds = time.perf_counter() - began
    return Cost(seconds, cpu_of([*pids, *own]) - before)


def cpu_of(pids: Sequence[int]) -> float:
    """Seconds of these processes, all their descendants, and of our own children that ended."""
    waited = resource.getrusage(resource.RUSAGE_CHILDREN)
    parents, ticks = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            parents[int(stat.parent.name)] = int(fields[1])
            ticks[int(stat.parent.name)] = sum(map(int, fields[11:15]))
    family = set(pids)
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return waited.ru_utime + waited.ru_stime + sum(ticks.get(pid, 0) for pid in family) / os.sysconf("SC_CLK_TCK")


def sign_in(server: MariadbServer) -> list[str]:
    return [f"--socket={server.socket}", f"--user={USER}", f"--password={PASSWORD}"]


def dumped(source: MariadbServer, target: MariadbServer) -> list[int]:
    """mariadb-dump | mariadb"""
    words = ["mariadb-dump", *sign_in(source), "--single-transaction", "--master-data=2", "--databases", DATABASE]
    dump = subprocess.Popen(words, stdout=subprocess.PIPE)
    subprocess.run(["mariadb", *sign_in(target)], stdin=dump.stdout, check=True)
    assert dump.wait() == 0
    return []


def mydumped(source: MariadbServer, target: MariadbServer) -> list[int]:
    """mydumper, then myloader, of 2 threads each."""
    with tempfile.TemporaryDirectory(prefix="rplctl-bench-") as folder:
        for program, server, words in (
            ("mydumper", source, ["--database", DATABASE, "--outputdir", folder, "--rows", "100000"]),
            ("myloader", target, ["--directory", folder]),
        ):
            where = ["--socket", str(server.socket), "--user", USER, "--password", PASSWORD]
            subprocess.run([program, *where, "--threads", "2", *words], check=True)
    return []


def read_bare(source: MariadbServer, rate: float) -> None:
    """mariadb-dump of the tables to nowhere. `rate`: MB/s, 0: no limit."""
    words = ["mariadb-dump", *sign_in(source), "--single-transaction", DATABASE]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as dump:
        assert dump.stdout
        began, count = time.perf_counter(), 0
        while piece := dump.stdout.read(PIECE_BYTES):
            count += len(piece)
            if rate:
                time.sleep(max(0.0, began + count / (rate * 1e6) - time.perf_counter()))
    assert dump.returncode == 0


def has_mydumper() -> bool:
    return bool(shutil.which("mydumper") and shutil.which("myloader"))


@contextlib.contextmanager
def writing(source: MariadbServer) -> Iterator[list[float]]:
    """An OLTP writer on a table beside those that are copied; the seconds of each of its transactions, at the end.

    It is a process of its own: a thread of ours would wait for the interpreter while we look at the copy.
    """
    source.sql("CREATE DATABASE IF NOT EXISTS oltp; DROP TABLE IF EXISTS oltp.t")
    source.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT, w CHAR(100)); INSERT INTO t SELECT seq, 0, 'w' FROM"
               " seq_1_to_10000", "oltp")  # fmt: skip
    taken: list[float] = []
    words = [sys.executable, "-m", "tests.bench.copied", str(source.socket)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        _pin(writer.pid, os.sched_getaffinity(source.pid))
        try:
            yield taken
        finally:
            taken += map(float, writer.communicate()[0].split())


def write(socket: str) -> None:
    """Until standard input ends."""
    with contextlib.closing(pymysql.connect(unix_socket=socket, user=USER, password=PASSWORD, database="oltp")) as made:
        cursor, taken, number = made.cursor(), list[float](), 0
        while not select.select([sys.stdin], [], [], 0.005)[0]:
            number += 1
            began = time.perf_counter()
            cursor.execute("BEGIN")
            cursor.execute(f"UPDATE t SET v = v + 1 WHERE id = {number * 7919 % 10000 + 1}")
            cursor.execute(f"REPLACE INTO t VALUES ({number * 104729 % 10000 + 1}, 0, 'new')")
            cursor.execute("COMMIT")
            taken.append(time.perf_counter() - began)
    print(*taken)


def loaded(target: MariadbServer, files: Sequence[Path], made: Sequence[str], connections: int) -> list[int]:
    """LOAD DATA of files that are there, each connection a table at a time; the secondary index comes last."""
    tables = list(zip(TABLES, files, made, strict=True))

    def load(part: Sequence[tuple[str, Path, str]]) -> None:
        for table, file, sql in part:
            create, index = without_index(sql)
            target.sql(create, DATABASE)
            words = ["mariadb", *sign_in(target), "--local-infile=1", DATABASE, "-e"]
            subprocess.run([*words, f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE {table}"], check=True)
            target.sql(f"ALTER TABLE {table} ADD {index}", DATABASE)

    with ThreadPoolExecutor(connections) as pool:
        list(pool.map(load, [tables[at::connections] for at in range(connections)]))
    return []


def without_index(create: str) -> tuple[str, str]:
    """CREATE TABLE as SHOW CREATE TABLE prints it → without its secondary index, and that."""
    index = re.search(r",\n  (KEY .*)", create)
    assert index
    return create.replace(index[0], ""), index[1]


@contextlib.contextmanager
def with_a_core_of_its_own(source: MariadbServer) -> Iterator[None]:
    """The source, and its writer, as on a machine of theirs: all else that begins meanwhile has the other cores.

    To be nice is not enough: a process that wakes for some milliseconds again and again keeps the core for its slice,
    whatever its weight (Linux 6.18; two that worked 5 ms of 10 made the p95 four times as long).
    """
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, every - {min(every)} or every)
    _pin(source.pid, {min(every)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, every)
        _pin(source.pid, every)


def _pin(pid: int, cores: set[int]) -> None:
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended
            os.sched_setaffinity(int(thread.name), cores)


def p95(seconds: Sequence[float]) -> float:
    return sorted(seconds)[int(0.95 * (len(seconds) - 1))]


if __name__ == "__main__":
    write(sys.argv[1])
