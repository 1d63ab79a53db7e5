"""A channel that stops at a row: the commands of its hint, typed as they are, lead back to a copy that is verified."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer

pytestmark = [pytest.mark.slow, pytest.mark.mariadb]
SCHEMA = """DROP DATABASE IF EXISTS shop; CREATE DATABASE shop; USE shop; CREATE TABLE t (id INT PRIMARY KEY, v INT);
INSERT INTO t SELECT seq, seq FROM seq_1_to_100"""
STOPS = {  # what is wrong in the target, and two changes of the source that meet it
    1032: ("DELETE FROM shop__t WHERE id IN (7, 8)", "UPDATE t SET v = 0 WHERE id = 7; DELETE FROM t WHERE id = 8"),
    1062: (
        "INSERT INTO shop__t VALUES (201, -1), (202, -1), (203, -1)",
        "INSERT INTO t VALUES (201, 1); INSERT INTO t VALUES (202, 2)",
    ),
}


def type_in(replica: Replica, commands: str) -> list[int | None]:
    """Their exit codes."""
    codes: list[int | None] = []
    for command in commands.split("; "):
        words = command.split()
        variables = dict(word.split("=", 1) for word in words[: words.index("rplctl")])
        arguments = words[words.index("rplctl") + 1 :]
        codes.append(replica.run(*arguments, expect=None, environment=variables or None).returncode)
    return codes


def test_the_hint_of_a_stop_at_a_row_leads_to_a_verified_copy(replica: Replica, source: MariadbServer) -> None:
    replica.run("init")
    options = replica.datadir / "rplctl.toml"
    options.write_text(f'replicate_do_db = "shop"\n{options.read_text()}')
    replica.change_master(source)
    replica.run("start")
    replica.wait_synced(source)
    for errno, (fault, changes) in STOPS.items():
        with closing(sqlite3.connect(replica.datadir / "target.db", timeout=30)) as connection, connection:
            connection.execute(fault)
        source.sql(changes, "shop")
        wait_until(lambda: replica.pid("applier") is None)
        status = replica.status()
        assert status["Last_SQL_Errno"] == errno
        hint = status["Last_SQL_Error"].partition("run: ")[2].rstrip(")")
        codes = type_in(replica, hint)
        assert codes[0] == codes[-2] == codes[-1] == 0, (errno, hint, codes, replica.logs())
        replica.wait_synced(source)
        replica.run("verify")
    assert replica.query("SELECT v FROM shop__t WHERE id IN (7, 8, 201, 202, 203) ORDER BY id") == [(0,), (1,), (2,)]
