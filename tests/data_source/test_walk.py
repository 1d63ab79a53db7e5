"""The walk through the logs: whole transactions, each once, under the definition that held there."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rplctl.data_source.json_rows import dict_rows
from rplctl.data_source.options import QueryOptions
from rplctl.data_source.walk import LogWalk
from rplctl.decode.changes import Changes, changes_of
from rplctl.errors import RplError, SourceError, UsageError
from rplctl.position import BinlogPosition
from tests.kit.recorded_state import DATA, unpacked_log
from tests.kit.servers import MariadbServer

CASES = ["ma1011-torture-row", "my97-torture-row", "my97-torture-compress-l1", "mysql-tagged", "my97-crash-inuse"]


def all_of(folder: Path, **options: str) -> list[Any]:
    """Every change and statement, comparable."""
    walk = LogWalk(QueryOptions.parse({"path": str(folder), **options}))
    return [event for piece in walk.to() for event in events_of(changes_of(piece, walk.asked))]


def events_of(found: Changes) -> Iterator[Any]:
    rows = []
    for part in found.tables:
        images = part.rows.images
        both = zip(dict_rows(part.rows, images.before), dict_rows(part.rows, images.after), strict=True)
        ends = found.transactions.end[part.transaction].tolist()
        for at, number, end, transaction, (before, after) in zip(
            part.position.tolist(), part.number.tolist(), ends, part.transaction.tolist(), both, strict=True
        ):
            name = part.rows.model.qualified_name
            rows.append((at, number, end, found.transactions.gtid[transaction], name, str(before), str(after)))
    yield from sorted(rows)
    yield from ((s.position, s.kind, s.text) for s in found.statements)


@pytest.mark.long("tests/decode/test_net_changes.py splits logs everywhere in make test.")
@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_however_the_logs_are_cut_the_changes_are_the_same(case: str, tmp_path: Path) -> None:
    unpacked_log(case, tmp_path)
    whole = all_of(tmp_path)
    pieces = "7000" if case.endswith("torture-row") else "700"  # of bytes; the large ones have some hundred
    assert whole and all_of(tmp_path, partition_bytes=pieces) == whole
    keys = [event[:2] for event in whole if len(event) > 3]
    assert len({*keys}) == len(keys)


@pytest.mark.long("Small logs are walked by the other tests of this folder.")
@pytest.mark.slow
def test_a_walk_in_steps_is_the_walk_at_once(tmp_path: Path) -> None:
    unpacked_log("my97-torture-row", tmp_path)
    options = QueryOptions.parse({"path": str(tmp_path)})
    at_once = LogWalk(options).to()
    steps, walk, places = [], LogWalk(options), []
    while found := walk.to(limit=50_000) or walk.place not in places:
        places.append(walk.place)
        steps += found if isinstance(found, list) else []
    assert len(places) > 20
    assert [event for p in steps for event in events_of(changes_of(p))] == [
        event for p in at_once for event in events_of(changes_of(p))
    ]
    middle = places[len(places) // 2]
    later = LogWalk(options)
    later.to(middle)
    assert later.place == middle
    assert later.catalog == LogWalk(QueryOptions.parse({"path": str(tmp_path), "start": str(middle)})).catalog


def test_start_and_end_are_places_gtids_or_times(tmp_path: Path) -> None:
    unpacked_log("ma1011-sysbench-mix-small", tmp_path)
    whole = all_of(tmp_path)
    rows = [event for event in whole if len(event) > 3]
    middle = rows[len(rows) // 2]
    log = next(tmp_path.glob("*.000001")).name
    before, behind = all_of(tmp_path, end=f"{log}:{middle[2]}"), all_of(tmp_path, start=f"{log}:{middle[2]}")
    assert before + behind == whole and before and behind
    assert all_of(tmp_path, end_gtid=middle[3]) == before
    assert all_of(tmp_path, start_gtid=middle[3]) == behind
    assert all_of(tmp_path, start_time="2100-01-01") == []
    assert all_of(tmp_path, end_time="2100-01-01") == whole
    with pytest.raises(UsageError, match="no transaction begins at"):
        LogWalk(QueryOptions.parse({"path": str(tmp_path), "start": f"{log}:{middle[2] - 1}"}))


def test_a_missing_log_is_told_and_nothing_behind_it_is_read(tmp_path: Path) -> None:
    log = unpacked_log("ma1011-sysbench-mix-small", tmp_path)
    next(tmp_path.glob("*.index")).unlink()
    log.rename(tmp_path / "mysql-bin.000003")
    unpacked_log("ma1011-sysbench-mix-small", tmp_path)
    next(tmp_path.glob("*.index")).unlink()
    with pytest.raises(SourceError, match="a log is missing"):
        all_of(tmp_path)


def test_damage_is_told_with_its_place(tmp_path: Path) -> None:
    log = unpacked_log("ma1011-sysbench-mix-small", tmp_path)
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 255
    log.write_bytes(data)
    with pytest.raises(RplError) as told:
        all_of(tmp_path)
    assert told.value.errno in (1594, 1610, 1743, 1677, 1146) and log.name in told.value.position


@pytest.fixture
def logs(mariadb_factory: Any) -> tuple[MariadbServer, Path]:
    server = mariadb_factory()
    server.sql("CREATE DATABASE s")
    return server, server.binlog_files[0].parent


def rows_of(folder: Path, **options: str) -> list[tuple[str, str]]:
    return [event[5:7] for event in all_of(folder, **options) if len(event) > 3]


def test_xa_counts_from_its_commit_and_what_was_undone_does_not_count(logs: tuple[MariadbServer, Path]) -> None:
    server, folder = logs
    server.sql("CREATE TABLE t (id INT PRIMARY KEY); CREATE TABLE m (id INT PRIMARY KEY) ENGINE=MyISAM", "s")
    # by one connection: MariaDB does not know another one's at once
    with closing(server.connect("s")) as connection, connection.cursor() as cursor:
        cursor.execute("XA START 'kept'; INSERT INTO t VALUES (1); XA END 'kept'; XA PREPARE 'kept'")
        while cursor.nextset():
            pass
        assert rows_of(folder) == []
        server.sql("INSERT INTO t VALUES (2)", "s")
        cursor.execute("XA COMMIT 'kept'")
    server.sql("XA START 'gone'; INSERT INTO t VALUES (3); XA END 'gone'; XA PREPARE 'gone'; XA ROLLBACK 'gone'", "s")
    server.sql("BEGIN; INSERT INTO t VALUES (4); SAVEPOINT a; INSERT INTO t VALUES (5); INSERT INTO m VALUES (6); "
               "ROLLBACK TO a; INSERT INTO t VALUES (7); COMMIT", "s")  # fmt: skip
    server.sql("BEGIN; INSERT INTO t VALUES (8); ROLLBACK", "s")
    assert [json.loads(after.replace("'", '"'))["id"] for _, after in rows_of(folder)] in (
        [2, 1, 4, 6, 7],
        [2, 1, 6, 4, 7],
    )


def test_rows_are_read_under_the_definition_that_held_there(logs: tuple[MariadbServer, Path]) -> None:
    server, folder = logs
    server.sql("CREATE TABLE t (id INT PRIMARY KEY, a INT); INSERT INTO t VALUES (1, 2)", "s")
    server.sql("ALTER TABLE t CHANGE a b BIGINT UNSIGNED FIRST, ADD c VARCHAR(5) DEFAULT 'x'", "s")
    server.sql("UPDATE t SET b = 18446744073709551615; TRUNCATE t; INSERT INTO t VALUES (1, 7, 'y'); DROP TABLE t", "s")
    assert rows_of(folder) == [
        ("None", "{'id': 1, 'a': 2}"),
        ("{'b': 2, 'id': 1, 'c': 'x'}", "{'b': 18446744073709551615, 'id': 1, 'c': 'x'}"),
        ("None", "{'b': 1, 'id': 7, 'c': 'y'}"),
    ]
    walk = LogWalk(QueryOptions.parse({"path": str(folder), "table": "s.t"}))
    kinds = [s.kind for piece in walk.to() for s in changes_of(piece, walk.asked).statements]
    assert kinds == ["ddl", "ddl", "truncate", "drop"]
    assert [[column.name for column in model.columns] for model in walk.versions] == [["id", "a"], ["b", "id", "c"]]


def test_who_asks_for_a_table_is_told_that_its_database_goes(logs: tuple[MariadbServer, Path]) -> None:
    server, folder = logs
    server.sql("CREATE DATABASE gone; CREATE TABLE gone.t (id INT); CREATE DATABASE other; DROP DATABASE other")
    server.sql("DROP DATABASE gone", "s")
    walk = LogWalk(QueryOptions.parse({"path": str(folder), "table": "gone.t"}))
    told = [s for piece in walk.to() for s in changes_of(piece, walk.asked).statements]
    assert [(s.kind, s.database, s.table) for s in told] == [("ddl", "gone", "t"), ("drop", "gone", "")]


def test_without_a_create_table_names_must_be_logged_or_given(logs: tuple[MariadbServer, Path]) -> None:
    server, folder = logs
    server.sql("SET GLOBAL binlog_row_metadata = NO_LOG")
    server.sql(
        "CREATE TABLE t (id INT UNSIGNED PRIMARY KEY, a VARCHAR(9)); FLUSH LOGS; INSERT INTO t VALUES (1, 'x')", "s"
    )
    elsewhere = folder.parent / "archive"
    elsewhere.mkdir()
    for log in server.binlog_files[1:]:
        (elsewhere / log.name).write_bytes(log.read_bytes())
    with pytest.raises(RplError, match="neither its row events") as told:
        all_of(elsewhere)
    assert "schema_file" in told.value.hint and told.value.errno == 1146
    dump = elsewhere.parent / "schema.sql"
    dump.write_text(
        "CREATE DATABASE s; USE s; CREATE TABLE t (id INT UNSIGNED PRIMARY KEY, a VARCHAR(9)) CHARSET utf8mb4;"
    )
    assert rows_of(elsewhere, schema_file=str(dump)) == [("None", "{'id': 1, 'a': 'x'}")]
    server.sql("SET GLOBAL binlog_row_metadata = FULL; FLUSH LOGS; INSERT INTO t VALUES (2, 'y')", "s")
    last = server.binlog_files[-1]
    assert rows_of(last) == [("None", "{'id': 2, 'a': 'y'}")]


@pytest.mark.slow
def test_a_statement_instead_of_rows_is_an_error_of_a_table_and_a_line_among_all(tmp_path: Path) -> None:
    unpacked_log("ma1011-torture-statement", tmp_path)
    kinds = {event[1] for event in all_of(tmp_path) if len(event) == 3}
    assert "statement" in kinds
    walk = LogWalk(QueryOptions.parse({"path": str(tmp_path)}))
    walk.to()
    table = ".".join(next(iter(walk.catalog.tables)))
    with pytest.raises(RplError, match="a statement instead of row events") as told:
        all_of(tmp_path, table=table)
    assert "statements=skip" in told.value.hint
    all_of(tmp_path, table=table, statements="skip")


def test_what_is_no_log_is_told_and_one_that_was_just_made_is_empty(tmp_path: Path) -> None:
    log = tmp_path / "binlog.000001"
    for begun in (b"", b"\xfebin"):
        log.write_bytes(begun)
        assert all_of(tmp_path) == []
    for other in (b"hello", b"nothing of the kind, but long enough"):
        log.write_bytes(other)
        with pytest.raises(SourceError, match="is not a binary log"):
            all_of(tmp_path)
    for options, says in (
        ({"path": "/nope"}, "option path"),
        ({"path": str(log), "schema_file": "/no"}, "schema_file"),
    ):
        with pytest.raises(UsageError, match=says):
            LogWalk(QueryOptions.parse(options))


def test_a_log_that_grows_is_read_on_where_it_was_left(tmp_path: Path) -> None:
    data = lzma.decompress((DATA / "binlog" / "ma1011-sysbench-mix-small.xz").read_bytes())
    log = tmp_path / "mysql-bin.000001"
    walk, found, at = None, [], len(data) // 3
    while at <= len(data):
        log.write_bytes(data[:at])  # in the middle of an event, mostly
        walk = walk or LogWalk(QueryOptions.parse({"path": str(tmp_path)}))
        found += [event for piece in walk.to() for event in events_of(changes_of(piece))]
        at = min(at + 99_991, len(data)) if at < len(data) else len(data) + 1
    assert walk is not None and walk.place == BinlogPosition(log.name, len(data))
    assert found == all_of(tmp_path)
