"""The first copy of a source: `rplctl clone` against what else makes one, in the same run.

Four tables as sysbench makes them, MariaDB → MariaDB beside `mariadb-dump | mariadb` and mydumper + myloader of 2
threads, then → PostgreSQL and SQLite. Of each target the bare load of the same rows, too: LOAD DATA, COPY,
executemany, with the rows there before its clock starts, and indexes last; no copy costs less than that and the
reading. Kernels are compiled before. rplctl's clock runs from the command to the last table that is done: its verb and
the start of its processes are in it, Spark's is not, which rows of a copy do without and which starts behind the last
table. The bare loads do less: no ledger, no position, no start. Ratios: theirs / ours, of the clock and of the CPU of
all processes, servers included. Bulk insert of InnoDB (unique_checks=0, foreign_key_checks=0, MariaDB 10.11) is no way
to use less: 400,000 rows took 2.9 s of the server's CPU in transactions of 80,000, 6.4 s in one, 2.5 s without.
`needed` is the goal, half of a peer's cost, with the share of it that the cheapest bare load takes: above 1 the goal is
less than LOAD DATA costs the target. Beside what a writer of the source feels of a copy stands what it feels of
a bare read (mariadb-dump to nowhere).
$RPLCTL_BENCH_CLONE_ROWS: of each table (1,000,000). $RPLCTL_BENCH_CLONE_KINDS: which of mariadb, writer, postgresql,
sqlite, memory; all but the last without it. memory: one table of $RPLCTL_BENCH_CLONE_MEMORY rows (20,000,000) against
1,000,000; that variable alone chooses it, too. It takes some 15 GB of the disk.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from rplctl.event.warm_up import warm_up
from rplctl.result_set.warm_up import run_kernels
from tests.bench import copied
from tests.bench.bench_apply import target_options
from tests.bench.copied import COLUMNS, DATABASE, TABLES, Cost
from tests.bench.measurement import Measurement
from tests.bench.workload import SOURCE_OPTIONS, checksums
from tests.kit.private_server import MEMORY, ServerUnavailable
from tests.kit.process_memory import anonymous_bytes
from tests.kit.replica import Replica
from tests.kit.servers import MariadbServer, PostgresqlServer

ROWS = int(os.environ.get("RPLCTL_BENCH_CLONE_ROWS", "1000000"))
MEMORY_ROWS = int(os.environ.get("RPLCTL_BENCH_CLONE_MEMORY", "20000000"))
ALL_KINDS = "memory" if "RPLCTL_BENCH_CLONE_MEMORY" in os.environ else "mariadb writer postgresql sqlite"
KINDS = os.environ.get("RPLCTL_BENCH_CLONE_KINDS", ALL_KINDS).split()
SERVER = (
    *("--innodb-buffer-pool-size=512M", "--innodb-log-file-size=512M", "--innodb-flush-log-at-trx-commit=1"),
    *("--skip-log-bin", "--skip-log-slave-updates"),
)
POLL_SECONDS = 0.05
ROWS_OF_A_TRANSACTION = 80_000  # as many as a chunk has
IDLE_SECONDS = 5.0
GOAL = 0.5  # of a peer's seconds, and of its CPU
MAX_RATE = 10.0  # MB/s
STATES = "SELECT State, Chunks FROM rplctl.rplctl_clone"
STATES_QUOTED = 'SELECT "State", "Chunks" FROM rplctl.rplctl_clone'
Asked = Callable[[], list[tuple[Any, ...]]]  # State, Chunks of each table


class ElsewhereServer(MariadbServer):
    in_memory = True


def measure() -> Iterator[Measurement]:
    warm_up()
    run_kernels()
    try:
        with MariadbServer(SOURCE_OPTIONS) as source:
            kinds = {"mariadb": _into_mariadb, "writer": _beside_a_writer, "postgresql": _into_postgresql,
                     "sqlite": _into_sqlite, "memory": _memory}  # fmt: skip
            if set(KINDS) != {"memory"}:  # it fills by itself
                copied.fill(source, ROWS)
            for kind in sorted(KINDS, key="memory".__eq__):
                yield from kinds[kind](source)
    except ServerUnavailable as reason:
        print(f"skipped: {reason}")


def _told(name: str, cost: Cost, ours: Cost | None = None, note: str = "") -> Iterator[Measurement]:
    wall = f"ratio {cost.seconds / ours.seconds:.2f}; " if ours else ""
    used = f"ratio {cost.cpu / ours.cpu:.2f}" if ours else ""
    yield Measurement(name, cost.seconds, "s", wall + note)
    yield Measurement(f"{name}: CPU", cost.cpu, "s", used)


def _into_mariadb(source: MariadbServer) -> Iterator[Measurement]:
    with MariadbServer(SERVER) as target, _asking(target, STATES) as asked:
        ours, first = _cloned(source, target, asked)
        assert checksums(target, DATABASE, TABLES) == checksums(source, DATABASE, TABLES)
        yield from _told("rplctl clone into MariaDB", ours, note=f"{first:.1f} s to the first rows")
    peers = {"mariadb-dump | mariadb": copied.dumped}
    if copied.has_mydumper():
        peers["mydumper + myloader, 2 threads"] = copied.mydumped
    else:
        print("mydumper is not installed (apt-get install mydumper)")
    theirs = {}
    for name, peer in peers.items():
        with MariadbServer(SERVER) as target:
            theirs[name] = copied.cost_of(partial(peer, source, target), [source, target])
            assert checksums(target, DATABASE, TABLES) == checksums(source, DATABASE, TABLES)
            yield from _told(name, theirs[name], ours)
    bare = []
    with _in_files(source) as (files, made):
        for connections in (1, 2):
            with MariadbServer(SERVER) as target:
                bare.append(_loaded_bare(target, files, made, connections))
                assert checksums(target, DATABASE, TABLES) == checksums(source, DATABASE, TABLES)
            name = f"bare LOAD DATA into MariaDB, connections: {connections}"
            yield from _told(name, bare[-1], ours, _without_start(bare[-1], ours, first))
    least = Cost(min(cost.seconds for cost in bare), min(cost.cpu for cost in bare))
    for name, cost in theirs.items():
        yield from _needed(name, cost, least)


def _needed(name: str, theirs: Cost, bare: Cost) -> Iterator[Measurement]:
    for what, peer, load in (("", theirs.seconds, bare.seconds), (": CPU", theirs.cpu, bare.cpu)):
        share = f"the bare load alone is {load / (GOAL * peer):.2f} of it"
        yield Measurement(f"needed beside {name}{what}", GOAL * peer, "s", share)


@contextlib.contextmanager
def _in_files(source: MariadbServer) -> Iterator[tuple[list[Path], list[str]]]:
    """Rows as LOAD DATA takes them, and CREATE TABLE, of each table."""
    with tempfile.TemporaryDirectory(prefix="rplctl-bench-") as name:
        files = [Path(name, table) for table in TABLES]
        for table, file in zip(TABLES, files, strict=True):
            file.write_text("".join(f"{i}\t{k}\t{c}\t{pad}\n" for i, k, c, pad in source.rows(DATABASE, table)))
        yield files, [source.sql(f"SHOW CREATE TABLE {table}", DATABASE)[0][1] for table in TABLES]


def _loaded_bare(target: MariadbServer, files: Sequence[Path], made: Sequence[str], connections: int) -> Cost:
    """What the target alone takes: the rows are in files before the clock starts."""
    target.sql(f"CREATE DATABASE {DATABASE}")
    return copied.cost_of(partial(copied.loaded, target, files, made, connections), [target])


def _beside_a_writer(source: MariadbServer) -> Iterator[Measurement]:
    """The source and its writer have a core for themselves. All else lies in memory: the disk is theirs, too."""
    with copied.with_a_core_of_its_own(source):
        with copied.writing(source) as taken:
            time.sleep(IDLE_SECONDS)
        alone = copied.p95(taken)
        yield Measurement("a writer's transaction on the source, p95", 1e3 * alone, "ms")

        def told(name: str) -> Measurement:
            beside = copied.p95(taken)
            return Measurement(f"the same beside {name}, p95", 1e3 * beside, "ms", f"ratio {beside / alone:.2f}")

        for rate in (0.0, MAX_RATE):
            with copied.writing(source) as taken:
                copied.read_bare(source, rate)
            yield told("a bare read" + f" of {MAX_RATE:g} MB/s" * bool(rate))
        for limits in ((), ("--max-rate", f"{MAX_RATE:g}")):
            with (
                tempfile.TemporaryDirectory(dir=MEMORY) as folder,
                ElsewhereServer(SERVER) as target,
                _asking(target, STATES) as asked,
                copied.writing(source) as taken,
            ):
                _cloned(source, target, asked, Path(folder), limits=limits)
            yield told(" ".join(["rplctl clone", *limits]))


def _into_postgresql(source: MariadbServer) -> Iterator[Measurement]:
    with PostgresqlServer() as target, _asking(target, STATES_QUOTED) as asked:
        ours, first = _cloned(source, target, asked)
        for table in TABLES:
            assert target.sql(f"SELECT count(*), sum(k) FROM {DATABASE}.{table}")[0][0] == ROWS
        yield from _told("rplctl clone into PostgreSQL", ours, note=f"{first:.1f} s to the first rows")
    with PostgresqlServer() as target:
        cost = _sum(_copied_bare(source, target, table) for table in TABLES)
        yield from _told("bare COPY into PostgreSQL", cost, ours, _without_start(cost, ours, first))


def _copied_bare(source: MariadbServer, target: PostgresqlServer, table: str) -> Cost:
    text = "".join(f"{i}\t{k}\t{c}\t{pad}\n" for i, k, c, pad in source.rows(DATABASE, table)).encode()

    def load() -> Sequence[int]:
        with contextlib.closing(target.connect()) as connection, connection.cursor() as cursor:
            cursor.execute(
                f"CREATE TABLE {table} (id int PRIMARY KEY, k int, c varchar(120), pad varchar(60))".encode()
            )
            with cursor.copy(f"COPY {table} FROM STDIN".encode()) as copy:
                for at in range(0, len(text), 1 << 20):
                    copy.write(text[at : at + (1 << 20)])
            cursor.execute(f"CREATE INDEX ON {table} (k)".encode())
        return []

    return copied.cost_of(load, [target])


def _into_sqlite(source: MariadbServer) -> Iterator[Measurement]:
    with tempfile.TemporaryDirectory(prefix="rplctl-bench-") as name:
        file = Path(name, "replica", "target.db")

        def asked() -> list[tuple[Any, ...]]:
            with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
                return connection.execute("SELECT State, Chunks FROM rplctl_clone").fetchall()

        ours, first = _cloned(source, None, asked, Path(name))
        with contextlib.closing(sqlite3.connect(file)) as connection:
            made = [sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql LIKE '%sbtest%'")]
            for table in TABLES:
                assert connection.execute(f"SELECT count(*) FROM {DATABASE}__{table}").fetchone() == (ROWS,)
        yield from _told("rplctl clone into SQLite", ours, note=f"{first:.1f} s to the first rows")
        file = Path(name, "bare.db")
        cost = _sum(_executed_bare(source, file, table, made) for table in TABLES)
        yield from _told("bare executemany into SQLite", cost, ours, _without_start(cost, ours, first))


def _executed_bare(source: MariadbServer, file: Path, table: str, made: Sequence[str]) -> Cost:
    """`made`: the statements that make tables and indexes as rplctl's are."""
    table_sql, index_sql = sorted(
        (sql for sql in made if f"{DATABASE}__{table}" in sql), key=lambda sql: "INDEX" in sql
    )
    rows = list(source.rows(DATABASE, table))
    used = time.process_time()
    began = time.perf_counter()
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA cache_size=-16384")
        connection.execute(table_sql)
        left = iter(rows)
        while piece := list(islice(left, ROWS_OF_A_TRANSACTION)):
            connection.execute("BEGIN")
            connection.executemany(f"INSERT INTO {DATABASE}__{table} ({COLUMNS}) VALUES (?, ?, ?, ?)", piece)
            connection.execute("COMMIT")
        connection.execute(index_sql)
    return Cost(time.perf_counter() - began, time.process_time() - used)


def _sum(costs: Iterator[Cost]) -> Cost:
    found = list(costs)
    return Cost(sum(cost.seconds for cost in found), sum(cost.cpu for cost in found))


def _without_start(cost: Cost, ours: Cost, first: float) -> str:
    return f"ratio {cost.seconds / (ours.seconds - first):.2f} from the first rows on"


@contextlib.contextmanager
def _asking(target: MariadbServer | PostgresqlServer, states: str) -> Iterator[Asked]:
    """By one connection: a session for each question would cost PostgreSQL a process, beside the copy."""
    with contextlib.closing(target.connect()) as connection:

        def asked() -> list[tuple[Any, ...]]:
            with connection.cursor() as cursor:
                cursor.execute(states.encode())
                return list(cursor.fetchall())

        yield asked


def _cloned(
    source: MariadbServer,
    target: MariadbServer | PostgresqlServer | None,
    asked: Asked,
    folder: Path | None = None,
    watch: Callable[[Replica], object] = lambda _: None,
    limits: Sequence[str] = (),
) -> tuple[Cost, float]:
    """What it cost, and how long it took until the first rows were there."""
    with tempfile.TemporaryDirectory(prefix="rplctl-bench-") as name:
        folder = folder or Path(name)
        replica = Replica(folder)
        try:
            replica.run("init", *(target_options(target, folder) if target else ()),
                        "--master-info-repository", "table", "--relay-log-info-repository", "table")  # fmt: skip
            replica.change_master(source)
            options = replica.datadir / "rplctl.toml"
            options.write_text(f'replicate_do_db = "{DATABASE}"\n{options.read_text()}')
            first = 0.0
            began = time.perf_counter()

            def copy() -> list[int]:
                nonlocal first
                replica.run("clone", *limits)
                while not (rows := asked()) or any(state != "done" for state, _ in rows):
                    if not first and any(chunks for _, chunks in rows):
                        first = time.perf_counter() - began
                    watch(replica)
                    assert replica.pid("applier"), replica.logs()
                    time.sleep(POLL_SECONDS)
                return [pid for role in ("receiver", "applier") if (pid := replica.pid(role))]

            return copied.cost_of(copy, [source, target] if target else [source]), first
        finally:
            replica.close()


def _memory(source: MariadbServer) -> Iterator[Measurement]:
    peaks: list[int] = []
    for rows in (1_000_000, MEMORY_ROWS):
        copied.fill(source, rows, TABLES[:1])
        peak = [0]

        def watch(replica: Replica, peak: list[int] = peak) -> None:
            pids = [pid for role in ("receiver", "applier") if (pid := replica.pid(role))]
            peak[0] = max(peak[0], anonymous_bytes(pids))

        with MariadbServer(SERVER) as target, _asking(target, STATES) as asked:
            _cloned(source, target, asked, watch=watch)
        peaks += peak
        ratio = f"ratio {peaks[-1] / peaks[0]:.2f}" if len(peaks) > 1 else ""
        yield Measurement(f"peak memory of a copy of {rows:,} rows", peaks[-1] / 1e6, "MB", ratio)
