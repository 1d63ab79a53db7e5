"""What a filter leaves unread is nothing that it would have kept."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import datasource as api

from rplctl.data_source.options import QueryOptions
from rplctl.data_source.source import BinlogDataSource, FilteredBinlogReader
from tests.kit.recorded_state import unpacked_log
from tests.kit.servers import MariadbServer

Keeps = Callable[[dict[str, Any]], bool]


def read(folder: Path, *filters: api.Filter, **options: str) -> list[dict[str, Any]]:
    given = {"path": str(folder), "partition_bytes": "200000", "statements": "skip", **options}
    reader = FilteredBinlogReader(QueryOptions.parse(given), BinlogDataSource(given).schema())
    assert [*reader.pushFilters([*filters])] == [*filters]  # Spark looks at every row again
    found = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
    return sorted(found, key=lambda row: (row["log"], row["pos"], row["row_number"] or 0, str(row)))


def filters_of(rows: list[dict[str, Any]]) -> list[tuple[list[api.Filter], Keeps]]:
    times = sorted({row["ts"] for row in rows})
    first, middle, last = times[0], times[len(times) // 2], times[-1]
    databases = sorted({row["database"] for row in rows if row["database"]})
    tables = sorted({row["table"] for row in rows if row["table"]})
    return [
        ([api.GreaterThanOrEqual(("ts",), middle)], lambda row: row["ts"] >= middle),
        ([api.GreaterThan(("ts",), last)], lambda row: False),
        ([api.LessThan(("ts",), middle)], lambda row: row["ts"] < middle),
        ([api.LessThanOrEqual(("ts",), first)], lambda row: row["ts"] <= first),
        ([api.EqualTo(("ts",), middle)], lambda row: row["ts"] == middle),
        ([api.In(("database",), (databases[-1],))], lambda row: row["database"] == databases[-1]),
        ([api.EqualTo(("table",), tables[-1])], lambda row: row["table"] == tables[-1]),
        ([api.EqualTo(("table",), "")], lambda row: row["table"] == ""),
        (
            [api.EqualTo(("table",), tables[-1]), api.GreaterThan(("ts",), middle)],
            lambda row: row["table"] == tables[-1] and row["ts"] > middle,
        ),
        ([api.Not(api.EqualTo(("database",), databases[0]))], lambda row: row["database"] != databases[0]),
    ]


@pytest.mark.long("The compressed rows of MySQL stay; MariaDB's rows repeat them.", keeps="mysql|my97")
@pytest.mark.slow
@pytest.mark.parametrize("case", ["ma1011-torture-row", "my97-torture-compress-l1", "mysql-tagged"])
def test_each_row_that_a_filter_keeps_is_read(case: str, tmp_path: Path) -> None:
    unpacked_log(case, tmp_path)
    rows = read(tmp_path)
    for filters, keeps in filters_of(rows):
        assert [row for row in read(tmp_path, *filters) if keeps(row)] == [row for row in rows if keeps(row)]


def test_tables_that_are_not_asked_for_are_not_read(tmp_path: Path) -> None:
    unpacked_log("ma1011-sysbench-mix-small", tmp_path)
    rows = read(tmp_path)
    (name, *_) = {row["table"] for row in rows if row["op"] == "update"}
    assert {row["table"] for row in read(tmp_path, api.EqualTo(("table",), name))} == {name}
    assert not read(tmp_path, api.EqualTo(("database",), "nowhere"))


@pytest.mark.mariadb
def test_times_that_a_session_sets_are_those_that_are_asked_for(
    mariadb_factory: Callable[..., MariadbServer],
) -> None:
    """They need not ascend, and a transaction's statements need not be of its end's time."""
    server = mariadb_factory()
    server.sql(
        "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY);"
        "SET timestamp = 2000000000; INSERT INTO d.t VALUES (1);"
        "SET timestamp = 1000000000; INSERT INTO d.t VALUES (2); BEGIN; SET timestamp = 1500000000;"
        "INSERT INTO d.t VALUES (3); SET timestamp = 1600000000; INSERT INTO d.t VALUES (4); COMMIT"
    )
    folder = server.binlog_files[0].parent

    def ids(*filters: api.Filter) -> list[int]:
        return [row["after"]["id"] for row in read(folder, *filters, table="d.t") if row["after"]]

    def at(seconds: int) -> datetime:
        return datetime.fromtimestamp(seconds, UTC)

    assert ids() == [1, 2, 3, 4]
    assert ids(api.EqualTo(("ts",), at(2000000000))) == [1]
    assert ids(api.LessThan(("ts",), at(1000000001))) == [2]
    assert ids(api.EqualTo(("ts",), at(1500000000))) == [3, 4]  # whole transactions; Spark drops row 4
    assert ids(api.GreaterThan(("ts",), at(1400000000)), api.LessThan(("ts",), at(1900000000))) == [3, 4]
