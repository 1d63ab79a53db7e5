"""A mirror is what the source has, after DDL and kills at every step of a batch; a row that is not there stops it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.applier.test_lake import TABLES, change, fill, lake_of
from tests.kit.replica import Replica
from tests.kit.servers import MariadbServer

pytestmark = [
    pytest.mark.long("tests/target/delta/test_mirror.py holds each step of a mirror."),
    pytest.mark.slow,
    pytest.mark.mariadb,
    pytest.mark.timeout(600),
]
POINTS = (
    "crash_per_table_after_intent=kill",
    "crash_per_table_between_tables=kill@1",
    "crash_per_table_before_update_pos=kill",
)
ALL_POINTS = (
    *POINTS,
    "crash_commit_before=kill",
    "crash_per_table_between_tables=kill@3",
    "crash_commit_after=kill",
)


@pytest.fixture
def replica(tmp_path: Path) -> Iterator[Replica]:
    made = Replica(tmp_path, spark=False)
    yield made
    made.close()


def table_of(lake: Path, name: str) -> DeltaTable:
    return DeltaTable(str(lake / "lake" / name))


def compare(source: MariadbServer, lake: Path, columns: str = "id, v", tables: tuple[str, ...] = TABLES) -> None:
    for table in tables:
        found = [tuple(map(str, row.values())) for row in table_of(lake, table).to_pyarrow_table().to_pylist()]
        rows = source.sql(f"SELECT {columns} FROM lake.{table}")
        assert sorted(found) == sorted(tuple(map(str, row)) for row in rows)


@pytest.mark.parametrize("points", [POINTS, pytest.param(ALL_POINTS, marks=pytest.mark.torture)], ids=["some", "all"])
def test_a_mirror_is_what_the_source_has_whatever_is_killed(
    replica: Replica, mariadb: MariadbServer, points: tuple[str, ...]
) -> None:
    name, position = mariadb.master_status()
    lake = lake_of(replica)
    replica.run("init", "--target", f"delta+file://{lake}?layer=mirror")
    replica.change_master(mariadb, "--master-log-file", name, "--master-log-pos", str(position))
    fill(mariadb)
    for number, point in enumerate(points):
        change(mariadb, 100 * number)
        killed = replica.run("start", "--until-synced", "--crash-points", point, expect=None)
        assert killed.returncode and replica.pid("applier") is None
        replica.run("start", "--until-synced")
        compare(mariadb, lake)
    mariadb.sql(
        "USE lake; BEGIN; UPDATE t1 SET v='gone' WHERE id=3; SAVEPOINT s; UPDATE t1 SET v='undone' WHERE id=4;"
        "ROLLBACK TO s; UPDATE t1 SET v='kept' WHERE id=5; COMMIT; XA START 'x'; UPDATE t2 SET id=id+10000 WHERE id=6;"
        "XA END 'x'; XA PREPARE 'x'; XA COMMIT 'x'; ALTER TABLE t3 ADD COLUMN n INT NOT NULL DEFAULT 4 AFTER id;"
        "ALTER TABLE t3 RENAME COLUMN v TO name; ALTER TABLE t3 DROP COLUMN name; INSERT INTO t3 VALUES (9000, 1);"
        "ALTER TABLE t4 MODIFY v VARCHAR(30), MODIFY id BIGINT; TRUNCATE TABLE t5; INSERT INTO t5 VALUES (1, 'x')"
    )
    replica.run("start", "--until-synced")
    compare(mariadb, lake, tables=("t1", "t2", "t4", "t5"))
    compare(mariadb, lake, "id, n", tables=("t3",))
    assert replica.status()["Commit_Mode"] == "per-table"

    table_of(lake, "t1").delete("id = 7")
    mariadb.sql("UPDATE lake.t2 SET v='before' WHERE id=8; UPDATE lake.t1 SET v='x' WHERE id=7")
    stopped = replica.run("start", "--until-synced", expect=None)
    assert stopped.returncode and replica.status()["Last_SQL_Errno"] == 1032
    assert "id=7" in replica.status()["Last_SQL_Error"]
    compare(mariadb, lake, tables=("t2",))


def begun_by_position(replica: Replica, mariadb: MariadbServer, before: str, layer: str = "") -> Path:
    """The lake of a channel that begins after the statements `before`."""
    mariadb.sql(f"DROP DATABASE IF EXISTS late; CREATE DATABASE late; {before}")
    name, position = mariadb.master_status()
    lake = lake_of(replica)
    replica.run("init", "--target", f"delta+file://{lake}{layer}", "--replicate-do-db", "late")
    replica.change_master(mariadb, "--master-log-file", name, "--master-log-pos", str(position))
    return lake


def test_a_mirror_begun_by_position_takes_the_tables_that_the_log_creates(
    replica: Replica, mariadb: MariadbServer
) -> None:
    """The source has them by now; those from before the position have rows that the mirror would lack (1146)."""
    before = (
        "CREATE TABLE late.old (id INT PRIMARY KEY); INSERT INTO late.old VALUES (1); CREATE TABLE late.keyless (v INT)"
    )
    lake = begun_by_position(replica, mariadb, before, "?layer=mirror")
    mariadb.sql("USE late; CREATE TABLE new (id INT PRIMARY KEY, v INT); INSERT INTO new VALUES (1, 2), (3, 4)")
    replica.run("start", "--until-synced")
    mariadb.sql("USE late; ALTER TABLE new ADD w INT; UPDATE new SET v=5 WHERE id=1")
    replica.run("start", "--until-synced")
    rows = DeltaTable(str(lake / "late" / "new")).to_pyarrow_table().to_pylist()
    assert sorted(tuple(row.values()) for row in rows) == [(1, 5, None), (3, 4, None)]
    mariadb.sql("INSERT INTO late.old VALUES (2)")
    replica.run("start", "--until-synced", expect=None)
    assert replica.status()["Last_SQL_Errno"] == 1146


def test_a_lake_of_changes_begun_by_position_takes_them_too(replica: Replica, mariadb: MariadbServer) -> None:
    lake = begun_by_position(replica, mariadb, "CREATE TABLE late.old (id INT, v INT)")
    mariadb.sql("USE late; CREATE TABLE new (id INT PRIMARY KEY, v INT); INSERT INTO new VALUES (1, 2)")
    mariadb.sql("INSERT INTO late.old VALUES (1, 7)")
    replica.run("start", "--until-synced")
    for table, row in (("new", (1, 2)), ("old", (1, 7))):
        found = DeltaTable(str(lake / "late" / table)).to_pyarrow_table().to_pylist()
        assert [tuple(one["after"].values()) for one in found if one["op"] == "insert"] == [row]
