"""DROP and TRUNCATE PARTITION delete exactly the partition's rows, or stop (recorded cases: test_conversion)."""

from __future__ import annotations

import pytest

from rplctl.errors import RplError
from rplctl.schema.context import DdlContext
from rplctl.target.sqlite.ddl import DDL
from tests.target.sqlite.replica_tables import ReplicaTables


def test_nulls_are_in_the_lowest_range_and_the_list_that_names_them() -> None:
    replica = ReplicaTables()
    replica.run(
        "CREATE TABLE t (a INT) PARTITION BY RANGE (a)"
        " (PARTITION p VALUES LESS THAN (-5), PARTITION q VALUES LESS THAN (10))"
    )
    replica.insert("t", [(None,), (-6,), (-5,), (9,)])
    replica.run("ALTER TABLE t DROP PARTITION p")
    assert replica.rows("t") == [(-5,), (9,)]
    replica.run(
        "CREATE TABLE u (a INT) PARTITION BY LIST (a) (PARTITION p VALUES IN (1, NULL), PARTITION q VALUES IN (2, 3))"
    )
    replica.insert("u", [(None,), (1,), (2,), (3,)])
    replica.run("ALTER TABLE u TRUNCATE PARTITION p")
    assert replica.rows("u") == [(2,), (3,)]


@pytest.mark.parametrize(
    ("lists", "left"),
    [
        ("PARTITION p VALUES IN (1, 2), PARTITION q DEFAULT", [(1,), (2,)]),
        ("PARTITION p VALUES IN (1, NULL), PARTITION q DEFAULT", [(1,), (None,)]),
        ("PARTITION p VALUES IN (NULL), PARTITION q DEFAULT", [(None,)]),
        ("PARTITION q DEFAULT", []),
    ],
)
def test_the_default_list_holds_what_no_other_one_names(lists: str, left: list[tuple[int | None]]) -> None:
    replica = ReplicaTables()
    replica.run(f"CREATE TABLE t (a INT) PARTITION BY LIST (a) ({lists})")
    replica.insert("t", [(None,), (1,), (2,), (3,)])
    replica.run("ALTER TABLE t TRUNCATE PARTITION q")
    assert replica.rows("t") == left


def test_several_partitions_and_all_of_them() -> None:
    replica = ReplicaTables()
    replica.run("CREATE TABLE t (a INT) PARTITION BY HASH (a) PARTITIONS 3")
    replica.insert("t", [(1,), (2,)])
    replica.run("ALTER TABLE t TRUNCATE PARTITION ALL")
    assert replica.rows("t") == []


@pytest.mark.parametrize(
    "partitions",
    [
        "HASH (a) (PARTITION p, PARTITION q)",
        "RANGE COLUMNS (a, b) (PARTITION p VALUES LESS THAN (1, 2))",
        "RANGE (a * 10) (PARTITION p VALUES LESS THAN (1))",
        "LIST COLUMNS (c) (PARTITION p VALUES IN ('x'))",
        "RANGE (TO_DAYS(e)) (PARTITION p VALUES LESS THAN (TO_DAYS('2024-01-01') + 1))",
        "RANGE (a) (PARTITION other VALUES LESS THAN (1))",
    ],
)
def test_rows_that_cannot_be_told_stop_the_channel(partitions: str) -> None:
    replica = ReplicaTables()
    replica.run(f"CREATE TABLE t (a INT, b INT, c VARCHAR(9), e DATE) PARTITION BY {partitions}")
    replica.insert("t", [(1, 1, "x", "2024-01-01")])
    with pytest.raises(RplError, match="rplctl cannot determine which rows"):
        replica.run("ALTER TABLE t TRUNCATE PARTITION p")
    assert len(replica.rows("t")) == 1


def test_no_names_mean_every_row() -> None:
    replica = ReplicaTables()
    replica.run("CREATE TABLE t (a INT)")
    assert DDL.partition_condition(replica.catalog.tables["sd", "t"], (), DdlContext()) == ""
