"""`crash-test --clone`: an operator's own tables are copied from the living source, killed at each point of a copy."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rplctl.command.crash_test import clone_crash_test
from rplctl.command.selftest import clone_walk
from rplctl.command.selftest.clone_walk import IN_APPLIER, IN_RECEIVER, IN_VERB, POINTS
from rplctl.command.start import start
from rplctl.config import load_config
from rplctl.failpoint import CLONE_POINTS
from tests.kit.replica import Replica
from tests.kit.servers import MariadbServer

pytestmark = [pytest.mark.slow, pytest.mark.mariadb]
SOME = (IN_VERB[1], IN_RECEIVER[0], IN_APPLIER[3])
TABLES = "walked.t,walked.kid"


@pytest.fixture
def replica(tmp_path: Path, mariadb: MariadbServer) -> Iterator[Replica]:
    """Its channel is configured, and nothing of it runs; the source has tables that no test names."""
    mariadb.sql(
        "CREATE DATABASE IF NOT EXISTS beside_walked; CREATE TABLE IF NOT EXISTS beside_walked.other (id INT);"
        "DROP DATABASE IF EXISTS walked; CREATE DATABASE walked; USE walked; CREATE TABLE unnamed (id INT);"
        "CREATE TABLE t (id INT PRIMARY KEY, v INT);"
        "CREATE TABLE kid (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES t (id));"
        "INSERT INTO t SELECT seq, seq FROM seq_1_to_3000; INSERT INTO kid SELECT seq, seq FROM seq_1_to_300"
    )
    made = Replica(tmp_path, spark=False)
    made.run("init")
    made.change_master(mariadb)
    yield made
    made.close()


def test_the_walk_knows_every_point_of_a_copy() -> None:
    assert set(POINTS) == CLONE_POINTS


@pytest.mark.long(
    "tests/command/test_clone.py::test_a_living_source_is_copied_and_followed_strictly stays in make test."
)
@pytest.mark.parametrize("points", [SOME, pytest.param(POINTS, marks=pytest.mark.torture)], ids=["some", "all"])
def test_tables_are_copied_once_at_every_point_and_the_instance_is_untouched(
    replica: Replica, points: tuple[str, ...]
) -> None:
    before = replica.status()
    done = replica.run("crash-test", "--clone", TABLES, "--points", ",".join(points), "--json")
    found = {line["Crash_point"]: (line["Seen"], line["Result"]) for line in json.loads(done.stdout)}
    assert found == dict.fromkeys(points, ("copied once", "OK"))
    assert replica.status() == before and not list(replica.channel.clone_folder.glob("*/*"))


@pytest.mark.long("It plants faults into the walk of `crash-test --kinds clone`, which is long itself.")
def test_a_row_that_was_not_copied_and_a_table_that_is_not_there_are_told(
    replica: Replica, mariadb: MariadbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = replica.run("crash-test", "--clone", "walked.nothing", "--points", POINTS[0], expect=1)
    assert "walked.nothing" in done.stdout and "FAIL" in done.stdout

    def start_with_an_unlogged_row(*how: Any) -> object:
        mariadb.sql("SET sql_log_bin = 0; INSERT INTO walked.t VALUES (90001, 1)")
        return start(*how)

    monkeypatch.setattr(clone_walk, "start", start_with_an_unlogged_row)
    (line,) = clone_crash_test(load_config(replica.datadir), "", TABLES, [IN_APPLIER[-1]])
    assert (line.Seen, line.Result) == ("1 differences", "FAIL")


@pytest.mark.long("The walk itself is for the long part, too.")
def test_what_it_does_not_take_is_refused(replica: Replica) -> None:
    assert (
        "crash_commit_before"
        in replica.run("crash-test", "--clone", "a.b", "--points", "crash_commit_before", expect=2).stderr
    )
    assert "--clone" in replica.run("crash-test", "--clone", "a.b", "--mode", "xa", expect=2).stderr
    assert "db.table" in replica.run("crash-test", "--clone", "a", expect=2).stderr
