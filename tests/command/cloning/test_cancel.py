"""`clone --cancel`: what is done stays, what is not goes, and its events break nothing."""

from __future__ import annotations

import json

import pytest

from tests.cli.test_json_page import PAGE
from tests.command.test_clone import Compare, compare, fill, only, replica, wait_cloned, writing
from tests.command.test_clone_again import IN_VERB, on, states
from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer

__all__ = ["compare", "replica"]
pytestmark = [pytest.mark.slow, pytest.mark.mariadb]


@pytest.mark.long(
    "A cancelled copy is rare; tests/command/test_clone_ladder.py::test_a_mysql_source_is_copied_by_gtid copies."
)
@on(suite="postgresql")
def test_what_is_cancelled_is_taken_back_and_left_out_until_it_is_copied(
    mariadb: MariadbServer, replica: Replica, compare: Compare
) -> None:
    fill(mariadb, "living", 2000)
    replica.change_master(mariadb)
    only(replica, "living")
    with writing(mariadb, "living", 9, 0.3):
        replica.run("clone", "--max-rate", "0.001")  # the first chunk of each table, and a long wait
        wait_until(lambda: "copying" in states(replica).values(), 60)
        assert "3081" in replica.run("clone", "--cancel", "--yes", expect=2).stderr
        replica.run("stop")
        assert "add --yes" in replica.run("clone", "--cancel", expect=2).stderr
        kill = {"RPLCTL_FAILPOINTS": f"{IN_VERB[1]}=kill"}
        replica.run("clone", "--cancel", "--yes", expect=-9, environment=kill)
        said = json.loads(replica.run("clone", "--cancel", "--yes", "--json").stdout)[0]
        assert list(said) == PAGE["clone --cancel"]
        assert said["Taken_Back"] == [
            f"living.{name}" for name in states(replica) if states(replica)[name] == "left out"
        ]
        assert said["Taken_Back"] and not (replica.channel.clone_folder).exists()
        replica.run("start")
        mariadb.sql("USE living; INSERT INTO plain VALUES (90009, 'left out', 1)")
        replica.wait_synced(mariadb, 120)
        assert replica.pid("applier") and "left out" in states(replica).values()
        check = json.loads(replica.run("check", "--json", expect=None).stdout)[0]
        assert "clone_left_out" in [found["code"] for found in check["findings"]]
        replica.run("clone", "--max-rate", "0")
        wait_cloned(replica)
    replica.wait_synced(mariadb, 120)
    compare(mariadb, "living")


@pytest.mark.long(
    "A cancelled copy is rare; tests/command/test_clone_ladder.py::test_a_mysql_source_is_copied_by_gtid copies."
)
def test_what_is_cancelled_and_then_filtered_out_is_no_longer_missed(mariadb: MariadbServer, replica: Replica) -> None:
    mariadb.sql("CREATE OR REPLACE DATABASE odd; USE odd; CREATE TABLE a (i INT PRIMARY KEY); CREATE TABLE b LIKE a;"
                "INSERT INTO a SELECT seq FROM seq_1_to_2000; INSERT INTO b SELECT * FROM a")  # fmt: skip
    replica.run("init")
    replica.change_master(mariadb)
    only(replica, "odd")
    replica.run("clone", "--max-rate", "0.001")
    wait_until(lambda: "copying" in states(replica).values(), 60)
    replica.run("stop")
    replica.run("clone", "--cancel", "--yes")
    assert states(replica)["a"] == "left out"
    replica.run("change-filter", "--replicate-ignore-table", "odd.a")
    replica.run("clone", "--max-rate", "0")
    wait_until(lambda: states(replica)["b"] == "done", 60)
    replica.wait_synced(mariadb, 60)
    assert "clone_left_out" not in replica.run("check", "--json", expect=None).stdout
    assert "odd.a" not in replica.run("verify").stdout
