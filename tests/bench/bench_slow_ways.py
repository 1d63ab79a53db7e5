"""What cannot go by key: tables without one, and MyISAM; rplctl against MariaDB's own replica over the same log.

One source writes three phases: many rows into a table without a key, changes of its rows, single-row transactions
into a MyISAM table. Contenders as in `bench_apply`; ratios: replica's seconds / rplctl's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from tests.bench.bench_apply import compare
from tests.bench.measurement import Measurement
from tests.bench.workload import SOURCE_OPTIONS, Workload, checksums, phase_of
from tests.kit.private_server import ServerUnavailable
from tests.kit.servers import MariadbServer

INSERTED, CHANGED, ALONE = 131_072, 1_000, 2_000
DATABASE = "plain"
TABLES = ("bag", "alone")


def measure() -> Iterator[Measurement]:
    try:
        with _workload() as load:
            yield from compare(load, threads=(0,), flushes=("1",))
    except ServerUnavailable as reason:
        print(f"skipped: {reason}")


@contextmanager
def _workload() -> Iterator[Workload]:
    with MariadbServer(SOURCE_OPTIONS) as source:
        source.sql(f"CREATE DATABASE {DATABASE}")
        tables = (
            "CREATE TABLE bag (a INT, b VARCHAR(60), c DOUBLE);"
            " CREATE TABLE alone (a INT PRIMARY KEY, b VARCHAR(60)) ENGINE=MyISAM"
        )
        rows = (
            f"{tables}; INSERT INTO bag SELECT seq, REPEAT(CHAR(65 + seq % 26), 40), seq / 7 FROM seq_1_to_{INSERTED}"
        )
        changes = f"UPDATE bag SET c = c + 1 WHERE a <= {CHANGED}; DELETE FROM bag WHERE a > {INSERTED - CHANGED}"
        alone = "; ".join(f"INSERT INTO alone VALUES ({n}, 'a row of MyISAM')" for n in range(ALONE))
        steps = {"no key, insert": rows, "no key, update and delete": changes, "MyISAM, row by row": alone}
        phases = [phase_of(source, name, partial(source.sql, sql, DATABASE)) for name, sql in steps.items()]
        yield Workload(source, phases, DATABASE, TABLES, checksums(source, DATABASE, TABLES))
