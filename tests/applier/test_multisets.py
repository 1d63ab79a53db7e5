"""Tables without a key, changed by the number of copies of each row: random logs of live servers on every target.

The tables have what makes equal rows hard to tell: copies, NULLs, texts that a collation calls equal, floats, labels,
indexes that are no key. Afterwards the target has the source's rows; what differs there is found by going in order.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rplctl.applier.feed.plan import Batch, plan_batches
from rplctl.applier.spark.split_task import Split
from rplctl.errors import RplError
from rplctl.relay_log.reader import RelayGroups
from rplctl.schema.plan import Catalog
from rplctl.target.base import TableChunk
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.applier.test_live_logs import logged
from tests.kit.neutral_state import differences as sqlite_differences, state_of
from tests.kit.postgresql_state import connect, differences as postgresql_differences, new_database
from tests.kit.servers import MariadbServer, PostgresqlServer

pytestmark = pytest.mark.slow

TEXTS = ("'a'", "'A'", "'a '", "'á'", "''", "NULL", "'\\\\t\\\\n'", "X'C3A9'")
NUMBERS = ("0", "1", "-1", "7", "NULL")
FLOATS = ("0.1", "1e30", "0", "-1.5", "NULL")
DATES = ("'2024-02-29 01:02:03.456'", "'0000-00-00 00:00:00'", "'1999-12-31 23:59:59'", "NULL")
SHAPES: dict[str, tuple[str, list[tuple[str, ...]]]] = {
    "plain": ("a INT, b VARCHAR(20), c DOUBLE, d DATETIME(3)", [NUMBERS, TEXTS, FLOATS, DATES]),
    "labels": (
        "a ENUM('x','y'), s SET('p','q','r'), n BIT(9), f FLOAT, v VARBINARY(9), o BLOB, KEY (a)",
        [("1", "2", "NULL"), ("0", "1", "5", "NULL"), ("0", "300", "NULL"), FLOATS, TEXTS, TEXTS],
    ),
    "nullable": ("u INT, code CHAR(5), at TIME, UNIQUE (u), KEY (code)", [("NULL",), TEXTS, ("'1:2:3'", "NULL")]),
    "latin": ("t TEXT, y YEAR, m DECIMAL(9,2), KEY (t(2))", [TEXTS[:7], ("2001", "NULL"), ("1.10", "1.1", "NULL")]),
    "touched": (
        "n INT, t1 TIMESTAMP DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,"
        " t2 DATETIME(2) DEFAULT CURRENT_TIMESTAMP(2) ON UPDATE CURRENT_TIMESTAMP(2)",
        [NUMBERS],
    ),
    "made": ("n INT, g INT AS (n + 1) STORED, v VARCHAR(9)", [NUMBERS, TEXTS]),
}
PER_COMMIT = 2  # groups: what a transaction takes away another one has brought
OWN = {"made": "n, v", "touched": "n"}
EDGES = (  # counted, so that what came within a batch is what goes
    "CREATE TABLE counter (n INT); INSERT INTO counter VALUES (0);"
    + "UPDATE counter SET n=n+1;" * 30
    + "CREATE TABLE gone (n INT); INSERT INTO gone VALUES (1), (1), (2); DELETE FROM gone; INSERT INTO gone VALUES (1);"
)


def statements(rng: random.Random, name: str, count: int) -> Iterator[str]:
    """Random changes of the table, more rows than it loses."""
    columns, values = SHAPES[name]
    own = OWN.get(name, ", ".join(part.split()[0] for part in columns.split(", ") if part[0].islower()))
    names = own.split(", ")

    def row() -> str:
        return "(" + ", ".join(rng.choice(domain) for domain in values) + ")"

    for _ in range(count):
        where = rng.choice(["", *(f" WHERE {n} IS NULL" for n in names), f" WHERE {names[0]} IS NOT NULL"])
        place = rng.randrange(len(names))
        match rng.randrange(4):
            case 0:
                yield f"DELETE FROM {name}{where} LIMIT {rng.randint(1, 8)}"
            case 1:
                value = rng.choice(values[place])
                yield f"UPDATE {name} SET {names[place]}={value}{where} LIMIT {rng.randint(1, 12)}"
            case _:
                yield f"INSERT INTO {name} ({own}) VALUES {', '.join(row() for _ in range(rng.randint(1, 12)))}"


def random_log(source: MariadbServer, seed: int, image: str = "FULL") -> Path:
    rng = random.Random(seed)
    lines = [f"SET sql_mode='', binlog_row_image={image};", EDGES]
    for name, (columns, _) in SHAPES.items():
        charset = "latin1" if name == "latin" else "utf8mb4"
        lines.append(f"CREATE TABLE {name} ({columns}) CHARACTER SET {charset};")
    for _ in range(5):
        work = [sql for name in SHAPES for sql in statements(rng, name, 10)]
        lines += [f"{sql};" for sql in ["BEGIN", *work, "COMMIT"]]
    lines += [f"{sql};" for name in SHAPES for sql in statements(rng, name, 6)]
    return logged(source, "".join(lines))


@pytest.fixture(params=["mariadb", pytest.param("mysql", marks=pytest.mark.mysql)])
def source(request: pytest.FixtureRequest) -> MariadbServer:
    server: MariadbServer = request.getfixturevalue(request.param)
    return server


def watched(instance: Instance) -> list[TableChunk]:
    """What its tasks make of the log, from here on."""
    seen: list[TableChunk] = []
    decode: Callable[[Any, Catalog], list[TableChunk]] = instance.pipeline.decode

    def tell(splits: list[Split], catalog: Catalog) -> list[TableChunk]:
        chunks = decode(splits, catalog)
        seen.extend(chunks)
        return chunks

    instance.pipeline.decode = tell  # type: ignore[assignment,method-assign]
    return seen


def applied(folder: Path, path: Path, **options: Any) -> list[TableChunk]:
    """The chunks of the whole log, none of which was refused: none went in order instead."""
    log = groups_of(path)
    instance = Instance(folder, log, **options)
    try:
        seen = watched(instance)
        in_bulk = instance.applier.bulk.apply
        refused: list[Exception] = []

        def apply(batch: Batch, commit: Callable[..., None]) -> int:
            try:
                return in_bulk(batch, commit)
            except Exception as error:
                refused.append(error)
                raise

        instance.applier.bulk.apply = apply  # type: ignore[method-assign]
        for batch in plan_batches(log, len(log.scan), per_commit=lambda: PER_COMMIT):
            instance.applier.apply(batch)
        assert refused == []
    finally:
        instance.target.close()
    return seen


@pytest.mark.long("Minimal images of MariaDB stay, which hold less.", keeps=r"^mariadb-.*MINIMAL$")
@pytest.mark.parametrize("image", ["FULL", "MINIMAL"])
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_the_rows_are_the_sources(
    source: MariadbServer, postgresql: PostgresqlServer, tmp_path: Path, kind: str, image: str
) -> None:
    assert went_by_number(compared(source, postgresql, tmp_path, kind, (11, image))) >= {"plain", "labels", "latin"}


@pytest.mark.long("test_the_rows_are_the_sources holds it on SQLite.")
@pytest.mark.parametrize("image", ["FULL", "MINIMAL"])
def test_the_rows_are_the_sources_on_a_server(source: MariadbServer, tmp_path: Path, image: str) -> None:
    seen = compared_on_a_server(source, tmp_path, (12, image))
    assert went_by_number(seen) >= {"plain", "labels", "latin", "nullable", "touched"}


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(100, 130))
def test_many_random_logs(source: MariadbServer, postgresql: PostgresqlServer, tmp_path: Path, seed: int) -> None:
    how = seed, ("FULL", "MINIMAL", "NOBLOB")[seed % 3]
    for kind in ("sqlite", "postgresql"):
        (tmp_path / kind).mkdir()
        compared(source, postgresql, tmp_path / kind, kind, how)
    compared_on_a_server(source, tmp_path, how)


def compared(
    source: MariadbServer, postgresql: PostgresqlServer, folder: Path, kind: str, how: tuple[int, str]
) -> list[TableChunk]:
    """What was applied of the log of a seed and a row image; the target is the source then."""
    path = random_log(source, *how)
    state = "".join(state_of(source, ["live"]))
    if kind == "sqlite":
        seen = applied(folder, path)
        with sqlite3.connect(folder / "target.db") as there:
            assert sqlite_differences(there, state) == []
    else:
        url = new_database(postgresql)
        seen = applied(folder, path, target=url)
        with connect(url) as there:
            assert postgresql_differences(there, state) == []
    return seen


def compared_on_a_server(source: MariadbServer, folder: Path, how: tuple[int, str]) -> list[TableChunk]:
    seen = carried(source, folder, random_log(source, *how))
    for table in (*SHAPES, "counter", "gone"):
        live, copy = (sorted(map(repr, source.rows(database, table))) for database in ("live", "copy"))
        assert live == copy, table
    return seen


def went_by_number(seen: list[TableChunk]) -> set[str]:
    """Tables some of whose rows went so."""
    return {c.table for c in seen if c.deletes or (c.bulk is not None and c.bulk.deletes.count)}


def carried(server: MariadbServer, folder: Path, path: Path) -> list[TableChunk]:
    held = folder / path.name
    held.write_bytes(path.read_bytes())  # the server goes on logging
    server.sql("DROP DATABASE IF EXISTS copy; DROP DATABASE IF EXISTS rplctl; CREATE DATABASE rplctl")
    server.sql("CREATE DATABASE copy CHARACTER SET utf8mb4")
    try:
        return applied(folder, held, target=server.url(), replicate_rewrite_db="live->copy")
    finally:
        server.sql("DROP DATABASE rplctl")


TWO_LOGS = (
    "CREATE TABLE t (a INT, b VARCHAR(9)); CREATE TABLE u (a INT);"
    "INSERT INTO t SELECT seq, 'old' FROM seq_1_to_20; INSERT INTO u SELECT seq FROM seq_1_to_20; FLUSH BINARY LOGS;"
    "DELETE FROM t WHERE a <= 5; UPDATE t SET b='new' WHERE a <= 15; DELETE FROM u WHERE a <= 10;"
)


def between_two_logs(mariadb: MariadbServer, folder: Path, operator: str) -> tuple[Instance, RelayGroups]:
    """Behind the first log, on a target that an operator has changed; the second log."""
    logs = groups_of(logged(mariadb, TWO_LOGS)), groups_of(mariadb.binlog_files[-1])
    instance = Instance(folder, logs[0])
    instance.apply(logs[0])
    instance.execute(operator)
    return instance, logs[1]


def test_a_row_that_the_target_lacks_stops_at_its_event_with_all_before_it(
    mariadb: MariadbServer, tmp_path: Path
) -> None:
    instance, second = between_two_logs(mariadb, tmp_path, "DELETE FROM live__t WHERE a = 7")
    with pytest.raises(RplError, match=r"Could not execute Update_rows_v1 event on table live\.t") as caught:
        instance.apply(second)
    assert caught.value.errno == 1032 and "a=7, b='old'" in caught.value.message
    assert instance.query("SELECT count(*), min(a), max(b) FROM live__t") == [(14, 6, "old")]
    assert instance.query("SELECT count(*) FROM live__u") == [(20,)]
    instance.target.close()


def test_a_column_of_the_targets_own_stays_and_costs_only_its_table_the_bulk(
    mariadb: MariadbServer, tmp_path: Path
) -> None:
    instance, second = between_two_logs(mariadb, tmp_path, "ALTER TABLE live__t ADD COLUMN own TEXT DEFAULT 'mine'")
    instance.execute("UPDATE live__t SET own = 'row ' || a")
    seen = watched(instance)
    instance.apply(second)
    assert instance.query("SELECT * FROM live__t WHERE a = 7") == [(7, "new", "row 7")]
    assert instance.query("SELECT count(*), sum(own = 'row ' || a), sum(b = 'new') FROM live__t") == [(15, 15, 10)]
    assert {chunk.table for chunk in seen if chunk.ordered} == {"t"} and "u" in went_by_number(seen)
    instance.target.close()
