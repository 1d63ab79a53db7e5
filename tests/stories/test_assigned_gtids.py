"""A real MySQL source without GTIDs: each of its transactions gets one of ours, the same one however often we crash."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.kit.replica import Replica, assert_same_tables
from tests.kit.servers import MysqlServer

UUID = "aaaaaaaa-71ca-11e1-9e33-c80aa9429562"
pytestmark = [
    pytest.mark.long("tests/applier/test_assigned_gtids.py holds the rule; the whole way is rare."),
    pytest.mark.slow,
]


def test_a_source_without_gtids_gets_ours_one_for_each_transaction(
    mysql_factory: Callable[..., MysqlServer], tmp_path: Path
) -> None:
    source = mysql_factory("--gtid-mode=OFF", "--enforce-gtid-consistency=OFF")
    assert source.sql("SELECT @@gtid_mode") == [("OFF",)]
    source.sql("RESET BINARY LOGS AND GTIDS; CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY)")
    with closing(Replica(tmp_path, spark=False)) as replica:
        replica.run("init")
        where = ("--master-log-file", source.binlog_files[0].name, "--master-log-pos", "4")
        replica.change_master(source, *where, "--assign-gtids-to-anonymous-transactions", UUID)
        refused = replica.run("start", "--until-sql-after-gtids", f"{UUID}:1", expect=2).stderr
        assert "ERROR 4019: The SQL_AFTER_GTIDS or SQL_BEFORE_GTIDS clauses for START SLAVE cannot be used" in refused
        replica.run("start")
        count = 2
        for kill in (True, False):
            for _ in range(20):
                count += 1
                source.sql(f"INSERT INTO d.t VALUES ({count})")
            if kill:
                replica.kill("applier")
                replica.run("start")
        replica.wait_synced(source)
        status = replica.status()
        assert status["Executed_Gtid_Set"] == f"{UUID}:1-{count}"
        assert_same_tables(source, replica, "d")
