"""A lake holds each change of the source once, in every table, whatever was killed; a second writer is kept out."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyarrow.parquet import read_table

from rplctl.data_source.json_rows import dict_rows
from rplctl.data_source.options import QueryOptions
from rplctl.data_source.walk import LogWalk
from rplctl.decode.changes import OPS, changes_of
from rplctl.demo import BINLOG_FOLDER
from tests.kit.replica import Replica
from tests.kit.servers import MariadbServer
from tests.kit.spark_query import query

LONG = pytest.mark.long("Delta stays; plain files go the same way.", keeps=r"delta")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
TABLES = tuple(f"t{number}" for number in range(1, 6))
POINTS = (
    "crash_commit_before",
    "crash_per_table_after_intent",
    "crash_per_table_after_claim",
    "crash_per_table_between_tables=kill@3",
    "crash_per_table_before_update_pos",
)
FEW = ("crash_per_table_after_claim", "crash_per_table_between_tables=kill@3")
ALL_POINTS = (
    *POINTS,
    "crash_before_update_pos",
    "crash_after_apply",
    *(f"crash_per_table_between_tables=kill@{number}" for number in (1, 2, 4, 5)),
    "crash_commit_after",
    "crash_after_commit_and_update_pos",
)

SMALL_BATCHES = {"RPLCTL_COMMIT_GROUP_TRANSACTIONS": "1"}
KINDS = pytest.mark.parametrize("kind", ["delta", "parquet"])


@pytest.fixture
def replica(tmp_path: Path) -> Iterator[Replica]:
    made = Replica(tmp_path, spark=False)
    yield made
    made.close()


def lake_of(replica: Replica) -> Path:
    return replica.datadir.parent / "lake"


def set_up(replica: Replica, source: MariadbServer, *more: str, kind: str = "delta") -> None:
    name, position = source.master_status()
    replica.run("init", "--target", f"{kind}+file://{lake_of(replica)}", *more)
    replica.change_master(source, "--master-log-file", name, "--master-log-pos", str(position))


def changes(lake: Path, table: str, database: str = "lake") -> list[dict[str, Any]]:
    folder = lake / database / table
    is_delta = (folder / "_delta_log").exists()
    found = (DeltaTable(str(folder)).to_pyarrow_table() if is_delta else read_table(folder)).to_pylist()
    return sorted(found, key=lambda row: (row["log"], row["pos"], row["row_number"]))


def carried_out(rows: list[dict[str, Any]]) -> Counter[tuple[tuple[str, Any], ...]]:
    """The rows that the changes make, one after another."""
    state: Counter[tuple[tuple[str, Any], ...]] = Counter()
    for row in rows:
        if row["op"] in ("drop", "truncate"):
            state.clear()
        for image, by in ((row["before"], -1), (row["after"], 1)):
            if image is not None:
                state[tuple(image.items())] += by
    assert all(count >= 0 for count in state.values())
    return +state


def fill(source: MariadbServer) -> None:
    source.sql("DROP DATABASE IF EXISTS lake; CREATE DATABASE lake")
    for table in TABLES:
        source.sql(f"CREATE TABLE lake.{table} (id INT PRIMARY KEY, v VARCHAR(20))")


def change(source: MariadbServer, first: int) -> None:
    """One transaction that changes all five, and one for each."""
    change_all(source, first)
    for table in TABLES:
        source.sql(f"UPDATE lake.{table} SET v='b' WHERE id={first}; DELETE FROM lake.{table} WHERE id={first + 1}")


def change_all(source: MariadbServer, first: int) -> None:
    rows = ", ".join(f"({number}, 'a{number}')" for number in range(first, first + 20))
    every = "".join(f"INSERT INTO {table} VALUES {rows};" for table in TABLES)
    source.sql(f"USE lake; BEGIN; {every} COMMIT;")


def compare(source: MariadbServer, lake: Path) -> None:
    for table in TABLES:
        rows = changes(lake, table)
        places = [(row["log"], row["pos"], row["row_number"]) for row in rows]
        assert len(places) == len(set(places))
        has = sorted(tuple(value for _, value in row) for row in carried_out(rows).elements())
        assert has == sorted((int(i), v) for i, v in source.sql(f"SELECT id, v FROM lake.{table}"))


@pytest.mark.long("tests/commit/test_fault_matrix.py kills at each pair of points; a lake has the same commit.")
@pytest.mark.mariadb
@pytest.mark.parametrize(
    ("kind", "points"),
    [
        pytest.param("delta", FEW, id="delta-few"),
        pytest.param("delta", POINTS, id="delta-some"),  # parquet: the suite's crash-test
        pytest.param("delta", ALL_POINTS, id="delta-all", marks=pytest.mark.torture),
        pytest.param("parquet", ALL_POINTS, id="parquet-all", marks=pytest.mark.torture),
    ],
)
def test_a_batch_of_five_tables_killed_at_every_step_is_in_each_table_once(
    replica: Replica, mariadb: MariadbServer, kind: str, points: tuple[str, ...]
) -> None:
    begin = "{}:{}".format(*mariadb.master_status())
    set_up(replica, mariadb, kind=kind)
    fill(mariadb)
    replica.run("start", "--until-synced")
    for number, point in enumerate(points):
        change(mariadb, 100 * number)
        armed = point if "=" in point else f"{point}=kill"
        killed = replica.run("start", "--until-synced", "--crash-points", armed, expect=None)
        assert killed.returncode and replica.pid("applier") is None
        replica.run("start", "--until-synced")
        compare(mariadb, lake_of(replica))
    assert replica.status()["Commit_Mode"] == "per-table"
    assert [
        seen(row) for table in TABLES for row in changes(lake_of(replica), table) if row["before"] or row["after"]
    ] == told_by_the_log(mariadb, begin)
    change_all(mariadb, 100 * len(points))
    replica.run("start", "--until-synced", "--crash-points", "crash_per_table_between_tables=kill@2", expect=None)
    with pytest.raises(AssertionError):
        compare(mariadb, lake_of(replica))
    replica.run("reset", "--yes")  # it forgets the position: what is begun is finished first
    compare(mariadb, lake_of(replica))


def seen(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("op", "log", "pos", "row_number", "gtid", "end_pos", "before", "after"))


def told_by_the_log(source: MariadbServer, begin: str) -> list[tuple[Any, ...]]:
    """Of the five tables, as the format `binlog` reads the source's own logs."""
    found: dict[str, list[tuple[Any, ...]]] = {table: [] for table in TABLES}
    walk = LogWalk(QueryOptions.parse({"path": str(source.binlog_files[0].parent), "start": begin}))
    for piece in walk.to():
        told = changes_of(piece)
        for part in told.tables:
            name = part.rows.model.name
            if part.rows.model.database != "lake":
                continue
            before, after = (list(dict_rows(part.rows, i)) for i in (part.rows.images.before, part.rows.images.after))
            found[name] += [
                (
                    OPS[int(part.rows.images.ops[n])],
                    piece.log_name,
                    int(part.position[n]),
                    int(part.number[n]),
                    told.transactions.gtid[int(part.transaction[n])],
                    int(told.transactions.end[int(part.transaction[n])]),
                    before[n],
                    after[n],
                )
                for n in range(len(part.number))
            ]
    return [row for table in TABLES for row in sorted(found[table], key=lambda row: row[1:4])]


@pytest.mark.long(
    "tests/stories/test_rows_by_spark.py::test_tasks_decode_and_write_all_rows_of_a_lake stays in make test."
)
@pytest.mark.spark
@pytest.mark.mariadb
def test_what_the_manual_shows_works_with_sparks_tasks_writing_the_files(
    tmp_path: Path, mariadb_factory: Callable[..., MariadbServer]
) -> None:
    mariadb, replica, lake = mariadb_factory(), Replica(tmp_path), tmp_path / "lake"
    mariadb.sql("CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY, v INT)")
    for number in range(10):
        mariadb.sql(f"INSERT INTO shop.orders VALUES ({number}, 0); UPDATE shop.orders SET v=v+1 WHERE id=5")
    mariadb.sql("DELETE FROM shop.orders WHERE id=9")
    page = (Path(__file__).parents[2] / "man/rplctl-lake.7").read_text()
    real = {"/srv/lake": str(lake), "/archive/binlogs": str(mariadb.binlog_files[0].parent)}
    init, state, trail, shown, *_ = (in_place(block.partition(".EE")[0], real) for block in page.split(".EX\n")[1:])
    try:
        replica.run(*shlex.split(init.splitlines()[0])[1:])
        replica.change_master(mariadb)
        replica.run("start", "--until-synced")
        seen: dict[str, Any] = {}
        exec(state, seen)
        has = sorted((key, row["v"]) for key, row in seen["latest"].items())
        assert has == [(int(key), int(v)) for key, v in mariadb.sql("SELECT * FROM shop.orders ORDER BY id")]
        told = query(trail + "\ntell([row.op for row in rows])", tmp_path / "spark")
        assert told == [["insert", *["update"] * 5]]
        assert len(json.loads(replica.run("--json", *shlex.split(shown)[1:]).stdout)) == 1 + 6  # its CREATE TABLE, too
    finally:
        replica.close()


def in_place(block: str, real: dict[str, str]) -> str:
    text = block.replace("\\-", "-")
    for given, ours in real.items():
        text = text.replace(given, ours)
    return text


def from_another_machine(replica: Replica, folder: Path, kind: str) -> Replica:
    """One that knows the lake and nothing of our state."""
    other = Replica(folder, spark=False)
    other.run("init", "--target", f"{kind}+file://{lake_of(replica)}?state={folder}/state.db")
    return other


@pytest.mark.long("tests/target/test_two_writers.py lets two write at once in make test.")
@LONG
@pytest.mark.mariadb
@KINDS
def test_a_second_writer_of_the_channel_is_kept_out(
    replica: Replica, mariadb: MariadbServer, tmp_path: Path, kind: str
) -> None:
    set_up(replica, mariadb, kind=kind)
    fill(mariadb)
    change(mariadb, 0)
    replica.run("start", "--until-synced")
    before = {table: changes(lake_of(replica), table) for table in TABLES}
    other = from_another_machine(replica, tmp_path / "other", kind)
    try:
        other.change_master(mariadb, "--master-log-file", mariadb.master_status()[0], "--master-log-pos", "4")
        refused = other.run("start", "--until-synced", expect=None)
        assert refused.returncode == 75
        assert "another rplctl writes to the same lake" in refused.stderr + other.logs()
    finally:
        other.close()
    assert {table: changes(lake_of(replica), table) for table in TABLES} == before
    change(mariadb, 100)
    replica.run("start", "--until-synced")
    compare(mariadb, lake_of(replica))


def copy_of(replica: Replica, folder: Path) -> Replica:
    """Another rplctl of the same state, on the same lake."""
    was, other = replica.datadir.parent, Replica(folder, spark=False)
    folder.mkdir()
    shutil.copytree(replica.datadir, other.datadir)
    shutil.copy(was / "state.db", folder / "state.db")
    for file in other.datadir.rglob("*"):
        if file.is_file() and f"{was}/state.db" in file.read_text(errors="replace"):
            file.write_text(file.read_text().replace(f"{was}/state.db", f"{folder}/state.db"))
    return other


@pytest.mark.long("Two writers from copies of one state are rare.")
@pytest.mark.mariadb
@pytest.mark.parametrize("kind", ["delta", pytest.param("parquet", marks=pytest.mark.torture)])
def test_of_two_writers_from_copies_of_one_state_that_cut_batches_differently_one_is_refused(
    replica: Replica, mariadb: MariadbServer, tmp_path: Path, kind: str
) -> None:
    """Where none of its batches meets one of a larger number in a table: the first one's have several tables each, and
    leave one out that the second's begin with."""
    name, position = mariadb.master_status()
    replica.run("init", "--target", f"{kind}+file://{lake_of(replica)}?state={tmp_path}/state.db")
    replica.change_master(mariadb, "--master-log-file", name, "--master-log-pos", str(position))
    fill(mariadb)
    replica.run("start", "--until-synced")
    other = copy_of(replica, tmp_path / "other")
    other.run("change-filter", "--replicate-ignore-table", f"lake.{TABLES[-1]}")
    for table in reversed(TABLES):
        mariadb.sql(f"INSERT INTO lake.{table} VALUES (1, 'a')")
    has = len(changes(lake_of(replica), TABLES[-1]))
    try:
        killed = other.run("start", "--until-synced", "--crash-points", "crash_per_table_after_claim=kill", expect=None)
        assert killed.returncode
        for _ in "while the first one is away", "again":
            refused = replica.run("start", "--until-synced", environment=SMALL_BATCHES, expect=None)
            assert refused.returncode == 75
            told = refused.stderr + replica.logs()
            assert "another rplctl writes to the same lake" in told and "stop the other rplctl" in told
            other.run("start", "--until-synced")
        assert len(changes(lake_of(replica), TABLES[-1])) == has
        for table in TABLES[:-1]:
            assert [row["after"] for row in changes(lake_of(replica), table) if row["op"] == "insert"] == [
                {"id": 1, "v": "a"}
            ]
    finally:
        other.close()


@pytest.mark.long("tests/target/test_contract.py changes the columns of each target.")
@pytest.mark.mariadb
def test_ddl_gives_a_table_the_columns_that_it_has_on_the_source(replica: Replica, mariadb: MariadbServer) -> None:
    set_up(replica, mariadb)
    mariadb.sql(
        "DROP DATABASE IF EXISTS lake; CREATE DATABASE lake; USE lake;"
        "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20), w INT); INSERT INTO t VALUES (1, 'a', 1);"
        "ALTER TABLE t ADD COLUMN n DECIMAL(12,3) DEFAULT 1.5; INSERT INTO t VALUES (2, 'b', 2, 2.125);"
        "ALTER TABLE t DROP COLUMN w; UPDATE t SET v='c' WHERE id=1;"
        "ALTER TABLE t RENAME COLUMN v TO name; INSERT INTO t VALUES (3, 'd', 3);"
        "ALTER TABLE t MODIFY id BIGINT; INSERT INTO t VALUES (5000000000, 'e', 4);"
        "CREATE TABLE u AS SELECT * FROM t; RENAME TABLE t TO s; DELETE FROM s WHERE id=3; TRUNCATE TABLE s;"
        "INSERT INTO s VALUES (9, 'z', 9); BEGIN; INSERT INTO u VALUES (10, 'x', 1); SAVEPOINT p;"
        "INSERT INTO u VALUES (11, 'y', 1); ROLLBACK TO p; COMMIT; DROP TABLE s;"
        "XA START 'x'; INSERT INTO u VALUES (12, 'x', 1); INSERT INTO u VALUES (13, 'x', 1);"
        "XA END 'x'; XA PREPARE 'x'; XA COMMIT 'x'"
    )
    replica.run("start", "--until-synced")
    lake = lake_of(replica)
    t = changes(lake, "t")
    assert [row["op"] for row in t] == ["ddl", "insert", "ddl", "insert", "ddl", "update", "ddl", "insert"]
    assert t[1]["after"] == {"id": 1, "v": "a", "w": 1, "n": None, "name": None}
    assert t[3]["after"] == {"id": 2, "v": "b", "w": 2, "n": Decimal("2.125"), "name": None}
    assert t[5]["after"] == {"id": 1, "v": "c", "w": None, "n": Decimal("1.500"), "name": None}
    assert t[7]["after"] == {"id": 3, "v": None, "w": None, "n": Decimal("3.000"), "name": "d"}
    wide = changes(lake, "t~2")
    assert [row["op"] for row in wide] == ["ddl", "insert", "ddl"]
    assert wide[1]["after"] == {"id": 5000000000, "name": "e", "n": Decimal("4.000")}
    s = changes(lake, "s")
    assert [row["op"] for row in s] == ["ddl", "delete", "truncate", "insert", "drop"]
    assert s[1]["before"] == {"id": 3, "name": "d", "n": Decimal("3.000")} and s[1]["after"] is None
    assert s[2]["statement"].upper() == "TRUNCATE TABLE S"
    u = [row["after"]["id"] for row in changes(lake, "u") if row["after"]]
    assert sorted(u) == [1, 2, 3, 10, 12, 13, 5000000000]
    for commit in (lake / "lake/u/_delta_log").glob("*.json"):
        assert commit.read_text().count('"add"') <= 1  # the events of one batch share a file


@pytest.mark.long("tests/applier/test_strangers.py looks at the files of an instance.")
@LONG
@KINDS
def test_a_lake_is_private_whatever_the_umask(kind: str, replica: Replica) -> None:
    before = os.umask(0)
    try:
        replica.run("init", "--target", f"{kind}+file://{lake_of(replica)}")
        replica.run("change-master", "--master-binlog-dir", os.fspath(BINLOG_FOLDER))
        replica.run("start", "--until-synced", environment={"LC_ALL": "C.UTF-8"})  # a process of its own
    finally:
        os.umask(before)
    made = [lake_of(replica), *lake_of(replica).rglob("*")]
    assert len(made) > 10 and [path for path in made if path.stat().st_mode & 0o077] == []
