"""Spark reads binary logs as DataFrames: found without registration, typed, filtered, streamed once each."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.private_server import PASSWORD, USER
from tests.kit.recorded_state import unpacked_log
from tests.kit.servers import MariadbServer
from tests.kit.spark_query import command, query
from tests.kit.torture_page import run_seed

READ = """
import sys
path = {path!r}
spark.sql(f"CREATE TEMPORARY VIEW log USING binlog OPTIONS (path '{path}')")
tell({{row["op"]: row["count"] for row in spark.table("log").groupBy("op").count().collect()}})
one = spark.table("log").filter("database = 'sbtest' AND table = 'sbtest1'")
tell(one.count())
tell(one.selectExpr("count(DISTINCT log, pos, row_number)").collect()[0][0])
tell(one.filter("ts > now()").rdd.getNumPartitions() < 2 and one.filter("ts > now()").count())
tell(one.filter("ts < now() AND ts > timestamp'2026-01-01'").count())
typed = spark.read.format("binlog").option("table", "sbtest.sbtest1").load(path)
tell(typed.schema.simpleString())
tell(typed.filter("after IS NOT NULL").selectExpr("sum(after.k)", "count(DISTINCT gtid)").collect()[0].asDict())
after = one.filter("after IS NOT NULL")
tell(after.selectExpr("sum(get_json_object(after, '$.k'))", "count(DISTINCT gtid)").collect()[0])
try:
    spark.read.format("binlog").option("table", "sbtest.nope").load(path)
except Exception as error:
    tell(str(error))
"""


@pytest.mark.long("The JVM of a plain session takes half a minute; tests/data_source/test_walk.py reads the same rows.")
@pytest.mark.spark
@pytest.mark.slow
def test_spark_finds_the_format_by_itself_typed_rows_are_those_of_the_json_and_the_manual_pages_queries_run(
    mariadb_factory: Callable[..., MariadbServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one Spark: its start is most of the time."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # where a copy lies by default
    unpacked_log("ma1011-sysbench-mix-small", tmp_path)
    server = mariadb_factory()
    server.sql("CREATE DATABASE sbtest; CREATE TABLE sbtest.sbtest1 (id INT PRIMARY KEY)")
    (tmp_path / "password").touch(0o600)
    (tmp_path / "password").write_text(PASSWORD)
    of_page = f"{shown_code(server, tmp_path)}\ntell(latest.count())\ntell(ids.where('id > 0').count())\n"
    of_page += f"tell(spark.read.parquet('{tmp_path}/lake/orders').count())\n"
    told = query(of_page + "spark.sql('DROP VIEW log')\n" + READ.format(path=str(tmp_path)), tmp_path / "spark")
    assert min(told[:3]) > 100
    ops, rows, keys, later, earlier, schema, typed, untyped, error = told[3:]
    assert ops["insert"] > 1000 and ops["update"] > 100 and ops["delete"] > 10 and ops["ddl"] > 3
    assert rows == keys == earlier > 100 and later == 0
    assert "after:struct<id:int,k:int,c:string,pad:string>" in schema
    assert [*typed.values()] == [int(float(value)) for value in untyped]
    assert "do not mention the table sbtest.nope" in error and "schema_file" in error


def shown_code(server: MariadbServer, folder: Path) -> str:
    """The Python of the manual page, with names that are there."""
    page = (Path(__file__).parents[2] / "man/rplctl-dataframe.7").read_text()
    blocks = [block.partition(".EE")[0] for block in page.split(".EX\n")[1:]]
    code = "\n".join(block.replace("\\-", "-") for block in blocks if "spark" in block)
    for shown, real in {
        "/archive/binlogs": f"{folder}",
        "/lake": f"{folder}/lake",
        "shop.orders": "sbtest.sbtest1",
        "'orders'": "'sbtest1'",
        "/etc/rplctl/password": f"{folder}/password",
        "mysql://repl@db1:3306": f"mysql://{USER}@{server.host}:{server.port}",
    }.items():
        code = code.replace(shown, real)
    return code


STREAM = """
begun = []
for name, path in {paths!r}.items():
    log = spark.readStream.format("binlog").option("table", "s.t").option("max_bytes_per_trigger", 200_000)
    log = log.option("spool", {folder!r} + "/spool").option("password_file", {folder!r} + "/password").load(path)
    told = ("op", "log", "pos", "row_number", "gtid", "before.id AS was", "after.id AS id", "after.n AS n")
    written = log.selectExpr(*told).writeStream.format("json").option("checkpointLocation", {folder!r} + "/at/" + name)
    begun.append(written.start({folder!r} + "/out/" + name))
tell("started")
for stream in begun:
    stream.awaitTermination()
"""
TELL = """
for name in {paths!r}:
    rows = spark.read.json({folder!r} + "/out/" + name)
    tell([row[0] for row in rows.selectExpr("to_json(struct(*))").collect()])
"""


def killed_streams(
    server: MariadbServer, folder: Path, kills: int, chance: random.Random
) -> Iterator[list[dict[str, Any]]]:
    """Streams beside a writer, of a server's folder and of the server itself, in one Spark that is killed so often;
    all that each of them wrote in the end.
    """
    server.sql("CREATE DATABASE s; CREATE TABLE s.t (id INT PRIMARY KEY, n INT)")
    paths = {"folder": str(server.binlog_files[0].parent), "live": f"mysql://{USER}@{server.host}:{server.port}"}
    over = threading.Event()
    (folder / "password").touch(0o600)
    (folder / "password").write_text(PASSWORD)

    def write() -> None:
        number = 0
        while not over.is_set():
            values = ",".join(f"({number + at}, {at})" for at in range(50))
            server.sql(f"INSERT INTO t VALUES {values}; UPDATE t SET n = n + 1 WHERE id > {number - 20}", "s")
            server.sql(f"DELETE FROM t WHERE id = {number}; {'FLUSH LOGS' if number % 1000 == 0 else 'DO 1'}", "s")
            number += 50
            time.sleep(0.2)

    code = STREAM.format(paths=paths, folder=str(folder))
    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(kills):
            done = {name: len(batches(folder, name)) for name in paths}
            stream = started(code, folder)
            try:
                while any(len(batches(folder, name)) == done[name] for name in paths):
                    if stream.poll() is not None:  # Spark gives its Python ten seconds to start: not on a busy machine
                        assert "worker failed to connect back" in (folder / "stderr").read_text()
                        stream = started(code, folder)
                    time.sleep(0.05)
                time.sleep(chance.uniform(0, 3))
            finally:
                os.killpg(stream.pid, signal.SIGKILL)
                stream.wait()
    finally:
        over.set()
        writer.join()
    last = code.replace("written.start(", "written.trigger(availableNow=True).start(").replace("200_000", "5_000_000")
    told = query(last + TELL.format(paths=[*paths], folder=str(folder)), folder / "spark")
    for lines in told[-len(paths) :]:
        yield [json.loads(line) for line in lines]


def batches(folder: Path, name: str) -> list[Path]:
    """Those that a stream has committed."""
    return [*(folder / "at" / name / "commits").glob("[0-9]*")]


def started(code: str, folder: Path) -> subprocess.Popen[str]:
    with (folder / "stderr").open("w") as errors:
        stream = subprocess.Popen(
            command(folder / "spark"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
            start_new_session=True,
        )  # fmt: skip
    assert stream.stdin is not None and stream.stdout is not None
    stream.stdin.write(code)
    stream.stdin.close()
    assert stream.stdout.readline() == '"started"\n'
    stream.stdout.close()
    return stream


def check_each_change_once(rows: list[dict[str, Any]], server: MariadbServer) -> None:
    changes = [row for row in rows if row["op"] in ("insert", "update", "delete")]
    assert len({(row["log"], row["pos"], row["row_number"]) for row in changes}) == len(changes)
    made: dict[int, int] = {}
    for row in sorted(changes, key=lambda row: (row["log"], row["pos"], row["row_number"])):
        if "was" in row:
            assert row["was"] in made
            del made[row["was"]]
        if "id" in row:
            made[row["id"]] = row["n"]
    assert made == {int(key): int(n) for key, n in server.sql("SELECT id, n FROM s.t")}


@pytest.mark.long("tests/data_source/test_walk.py holds the offsets; kills of a stream take minutes.")
@pytest.mark.spark
@pytest.mark.parametrize(
    "kills",
    [pytest.param(1, marks=[pytest.mark.slow, pytest.mark.timeout(900)]), pytest.param(50, marks=pytest.mark.torture)],
)
def test_streams_of_logs_and_of_a_live_server_that_are_killed_tell_each_change_once(
    kills: int, mariadb_factory: Callable[..., MariadbServer], tmp_path: Path
) -> None:
    server = mariadb_factory()
    for rows in killed_streams(server, tmp_path, kills, random.Random(1 if kills == 1 else run_seed())):
        check_each_change_once(rows, server)
