"""What happened to a row is told from relay logs or an archive, by key, in order, beside what happened to its table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rplctl.demo import BINLOG_FOLDER
from tests.cli.program import Program
from tests.kit.replica import Replica
from tests.kit.servers import MariadbServer


@pytest.fixture
def program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Program:
    found = Program(tmp_path / "instance", capsys)
    assert found("change-master", "--master-binlog-dir", str(BINLOG_FOLDER)).code == 0
    return found


def told(program: Program, *words: str) -> list[dict[str, Any]]:
    done = program("show-changes", *words, "--json")
    assert done.code == 0, done
    found: list[dict[str, Any]] = json.loads(done.out)
    return found


def test_the_life_of_one_row(program: Program) -> None:
    life = told(program, "--table", "shop.orders", "--key", "id=3")
    assert [change["Op"] for change in life] == ["ddl", "insert", "update", "update", "update", "delete"]
    rows = [change for change in life if change["Op"] != "ddl"]
    for one, other in zip(rows, rows[1:], strict=False):
        assert one["After"] == other["Before"]
    assert rows[0]["Before"] is None and rows[-1]["After"] is None
    assert [(row["Log_name"], row["Pos"]) for row in rows] == sorted((row["Log_name"], row["Pos"]) for row in rows)
    text = program("show-changes", "--table", "shop.orders", "--key", "id=3,status=paid").out
    assert "id=3, status: new → paid" in text and "delete" not in text


def test_times_and_limits_bound_it(program: Program) -> None:
    whole = [change for change in told(program, "--table", "shop.orders") if change["Op"] != "ddl"]
    middle = whole[len(whole) // 2]["Time"].replace(" ", "T")
    parts = [told(program, "--table", "shop.orders", option, middle) for option in ("--end-time", "--start-time")]
    assert [change for part in parts for change in part if change["Op"] != "ddl"] == whole and all(parts)
    assert told(program, "--table", "shop.orders", "--limit", "0") == []
    assert told(program, "--table", "shop.orders", "--in", str(BINLOG_FOLDER), "--limit", "2") == told(
        program, "--table", "shop.orders", "--limit", "2"
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "--table DB.TABLE"),
        (("--table", "orders"), "option table: 'orders'"),
        (("--table", "shop.nope"), "do not mention the table shop.nope"),
        (("--table", "shop.orders", "--key", "5"), "--key 5: the condition must be COLUMN=VALUE"),
        (("--table", "shop.orders", "--start-time", "noon"), "option start_time"),
    ],
)
def test_what_cannot_be_read_is_said(program: Program, words: tuple[str, ...], says: str) -> None:
    done = program("show-changes", *words)
    assert (done.code, done.out) == (2, "") and says in done.err


def test_without_an_option_the_relay_logs_are_read(mariadb: MariadbServer, tmp_path: Path) -> None:
    replica = Replica(tmp_path, spark=False)
    try:
        mariadb.sql("CREATE OR REPLACE DATABASE told")
        name, offset = mariadb.master_status()
        replica.run("init")
        replica.change_master(mariadb, "--master-log-file", name, "--master-log-pos", str(offset))
        missing = replica.run("show-changes", "--table", "told.t", expect=2)
        assert "has no relay logs" in missing.stderr and "hint: to fetch logs, run: rplctl start" in missing.stderr
        replica.run("start")
        mariadb.sql(
            "CREATE TABLE t (id INT PRIMARY KEY, b VARBINARY(3), n INT); INSERT INTO t VALUES (1, x'00ff', 2)", "told"
        )
        mariadb.sql("FLUSH BINARY LOGS; UPDATE t SET n = NULL; INSERT INTO t VALUES (2, NULL, 3)", "told")
        replica.wait_synced(mariadb)
        found = json.loads(replica.run("show-changes", "--table", "told.t", "--key", "n=NULL", "--json").stdout)
        assert [(change["Op"], change["After"]) for change in found] == [
            ("ddl", None),
            ("update", {"id": 1, "b": "00FF", "n": None}),
        ]
    finally:
        replica.close()
        mariadb.sql("DROP DATABASE IF EXISTS told")
