"""Would several committers pay? The same net changes of four tables, by one connection and by two of two tables each.

What a committer asks of the target, and nothing else: keys that go, and rows in place of others (LOAD DATA … REPLACE;
COPY and MERGE). With commits that are flushed and without. Seconds, and CPU seconds of the server; the ratio is one
connection's seconds / two connections'. The decoding tasks, which are not here, want a core of the two as well.
"""

from __future__ import annotations

import io
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pymysql

from tests.bench.bench_apply import SERVER
from tests.bench.measurement import Measurement
from tests.kit.private_server import PASSWORD, USER, ServerUnavailable
from tests.kit.servers import MariadbServer, PostgresqlServer

TABLES = tuple(f"t{number}" for number in range(1, 5))
ROWS, CHANGED, GONE, BATCHES = 100_000, 20_000, 2_000, 5
Work = Callable[[Sequence[str], int], None]


def measure() -> Iterator[Measurement]:
    for flush in "12":
        yield from _of(lambda flush=flush: MariadbServer((*SERVER, f"--innodb-flush-log-at-trx-commit={flush}")),  # type: ignore[misc]
                       f"MariaDB, innodb_flush_log_at_trx_commit={flush}", mariadb)  # fmt: skip
    for flush in ("on", "off"):
        yield from _of(PostgresqlServer, f"PostgreSQL, synchronous_commit={flush}", postgresql, flush)


def _of(server: Callable[[], MariadbServer | PostgresqlServer], name: str, kind: Callable[..., Work],
        *more: str) -> Iterator[Measurement]:  # fmt: skip
    """One connection, two, one, two, …: the medians."""
    try:
        with server() as target, tempfile.TemporaryDirectory(prefix="rplctl-bench-") as folder:
            work = kind(target, Path(folder), *more)
            taken: dict[int, list[tuple[float, float]]] = {1: [], 2: []}
            for batch in range(BATCHES):
                for count in (1, 2):
                    taken[count].append(_timed(target, work, count, 2 * batch + count))
    except ServerUnavailable as reason:
        print(f"skipped: {reason}")
        return
    one, two = (sorted(taken[count])[BATCHES // 2] for count in (1, 2))
    yield Measurement(f"{name}: one connection", one[0], "s", f"CPU {one[1]:.2f} s")
    yield Measurement(f"{name}: two", two[0], "s", f"CPU {two[1]:.2f} s; ratio {one[0] / two[0]:.2f}")


def _timed(target: MariadbServer | PostgresqlServer, work: Work, count: int, batch: int) -> tuple[float, float]:
    pid = target._process.pid if target._process else 0
    before, began = _cpu(pid), time.perf_counter()
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(lambda n: work(TABLES[n::count], batch), range(count)))
    return time.perf_counter() - began, _cpu(pid) - before


def _cpu(pid: int) -> float:
    """Of the process and its children, those that ended too, in seconds."""
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(stat.parent.name) == pid:
            total += sum(map(int, fields[11:15]))
        elif int(fields[1]) == pid:
            total += sum(map(int, fields[11:13]))
    return total / 100


def _text(batch: int, table: str) -> tuple[str, list[int]]:
    """Rows as text, and keys that go."""
    dice = random.Random(f"{batch} {table}")
    keys = dice.sample(range(1, ROWS + 1), CHANGED + GONE)
    rows = "".join(f"{key}\t{dice.randrange(ROWS)}\t{'c' * 100}{batch}\t{'p' * 60}\n" for key in sorted(keys[GONE:]))
    return rows, sorted(keys[:GONE])


_TABLE = "(id INT PRIMARY KEY, k INT NOT NULL, c VARCHAR(120) NOT NULL, pad VARCHAR(60) NOT NULL)"


def mariadb(target: MariadbServer, folder: Path) -> Work:
    target.sql("CREATE DATABASE b")
    for table in TABLES:
        target.sql(f"CREATE TABLE {table} {_TABLE}; CREATE INDEX k_{table} ON {table} (k); INSERT INTO {table} "
                   f"SELECT seq, seq, 'c', 'p' FROM seq_1_to_{ROWS}", "b")  # fmt: skip
    made = {}
    for batch in range(2 * BATCHES + 2):
        for table in TABLES:
            text, keys = _text(batch, table)
            made[table, batch] = folder / f"{table}.{batch}", keys
            made[table, batch][0].write_text(text)

    def work(tables: Sequence[str], batch: int) -> None:
        with closing(pymysql.connect(unix_socket=str(target.socket), user=USER, password=PASSWORD, database="b",
                                     local_infile=True)) as connection:  # fmt: skip
            cursor = connection.cursor()
            cursor.execute("BEGIN")
            for table in tables:
                file, keys = made[table, batch]
                cursor.execute(f"DELETE FROM {table} WHERE id IN ({','.join(map(str, keys))})")
                cursor.execute(f"LOAD DATA LOCAL INFILE '{file}' REPLACE INTO TABLE {table}")
            connection.commit()

    return work


def postgresql(target: PostgresqlServer, _: Path, flush: str) -> Work:
    where = f"host={target.host} port={target.port} user={USER} password={PASSWORD} dbname=postgres"
    made = {(table, batch): _text(batch, table) for table in TABLES for batch in range(2 * BATCHES + 2)}
    with psycopg.connect(where, autocommit=True) as connection:
        for table in TABLES:
            connection.execute(f"CREATE TABLE {table} {_TABLE}")
            connection.execute(f"CREATE INDEX ON {table} (k)")
            connection.execute(f"INSERT INTO {table} SELECT n, n, 'c', 'p' FROM generate_series(1, {ROWS}) n")

    def work(tables: Sequence[str], batch: int) -> None:
        with psycopg.connect(where) as connection:
            connection.execute(f"SET LOCAL synchronous_commit = {flush}")
            for table in tables:
                text, keys = made[table, batch]
                connection.execute(f"DELETE FROM {table} WHERE id = ANY(%s)", [keys])
                connection.execute(f"CREATE TEMP TABLE new_{table} (LIKE {table}) ON COMMIT DROP")
                with connection.cursor().copy(f"COPY new_{table} FROM STDIN") as copy:
                    copy.write(io.StringIO(text).getvalue())
                connection.execute(
                    f"MERGE INTO {table} t USING new_{table} n ON t.id = n.id WHEN MATCHED THEN UPDATE SET k = n.k, "
                    "c = n.c, pad = n.pad WHEN NOT MATCHED THEN INSERT VALUES (n.id, n.k, n.c, n.pad)"
                )

    return work
