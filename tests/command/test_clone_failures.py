"""What stops the reading end of a copy is told, and it goes on by itself when that is over, also elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.command.test_clone import only, wait_cloned
from tests.kit.replica import Replica, assert_same_tables, purge_logs, wait_until
from tests.kit.servers import MariadbServer
from tests.stories.test_gtid_failover import Pair, gtids_of, mariadb_pair, wait_for_gtids

__all__ = ["mariadb_pair"]
pytestmark = [pytest.mark.slow, pytest.mark.mariadb]


@pytest.fixture
def replica(tmp_path: Path) -> Iterator[Replica]:
    made = Replica(tmp_path, spark=False)
    yield made
    made.close()


def fill(source: MariadbServer) -> None:
    source.sql("CREATE DATABASE away; CREATE USER taken@'%' IDENTIFIED BY 'rpl'; GRANT SELECT ON *.* TO taken@'%'")
    source.sql("GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO taken@'%'")
    for number in range(4):
        source.sql(f"CREATE TABLE away.t{number} (id INT PRIMARY KEY, v VARCHAR(200))")
        source.sql(f"USE away; INSERT INTO away.t{number} SELECT seq, REPEAT('x', 150) FROM seq_1_to_20000")


def write(source: MariadbServer) -> None:
    for number in range(4):
        source.sql(f"UPDATE away.t{number} SET v = CONCAT(id, {number}) WHERE id % 20 = {number}")


def end_sessions(source: MariadbServer) -> None:
    """Of the reading end, not of the receiver."""
    for (number,) in source.sql(
        "SELECT id FROM information_schema.processlist WHERE user = 'taken' AND command <> 'Binlog Dump'"
    ):
        source.sql(f"KILL {number}")


def test_it_goes_on_after_a_wrong_password_a_source_that_was_away_and_a_failover(
    mariadb_pair: Pair, replica: Replica
) -> None:
    one, two = mariadb_pair
    fill(one)
    replica.run("init")
    replica.change_master(one, "--master-use-gtid", "slave_pos")
    replica.run("change-master", "--master-user", "taken")
    only(replica, "away")
    options = replica.datadir / "rplctl.toml"
    options.write_text(f"relay_log_space_limit = 50000\n{options.read_text()}")

    def is_reading() -> bool:
        folder = replica.channel.clone_folder
        return any(folder.glob("*/*.rows")) and not any(folder.glob("*/complete.json"))

    def reads_again(is_over: Callable[[], bool]) -> None:
        wait_until(is_over, 60)
        wait_until(is_reading, 60)

    replica.run("clone", "--max-rate", "1")
    wait_until(is_reading, 60)
    write(one)
    one.sql("SET PASSWORD FOR taken@'%' = PASSWORD('other')")
    end_sessions(one)
    wait_until(lambda: replica.status()["Clone_Last_Errno"] == 1045, 60)
    assert "Access denied for user 'taken'" in replica.run("show-clone").stderr
    assert replica.status()["Slave_IO_Running"] == "Yes"
    one.sql("SET PASSWORD FOR taken@'%' = PASSWORD('rpl')")
    reads_again(lambda: replica.status()["Clone_Last_Errno"] == 0)
    one.kill()
    wait_until(lambda: replica.status()["Clone_Last_Errno"] in (2002, 2003, 2006, 2013), 60)
    assert "clone_reader_error" in replica.run("check", expect=None).stdout
    one.start()
    one.sql("START SLAVE")
    reads_again(lambda: replica.status()["Clone_Last_Errno"] == 0)
    write(one)
    wait_until(lambda: gtids_of(two) == gtids_of(one))
    replica.run("stop", "--receiver")
    replica.change_master(two)
    replica.run("start", "--receiver")
    write(two)
    two.sql("FLUSH BINARY LOGS")
    purge_logs(two, two.master_status()[0])
    assert replica.run("clone", "--max-rate", "0").returncode == 0
    wait_cloned(replica)
    write(two)
    wait_for_gtids(replica, two)
    assert_same_tables(two, replica, "away")
    assert replica.status()["Passed_Over_Errors"] == 0
    again = replica.run("clone", "--databases", "away", "--replace", "--yes", "--json").stdout
    assert json.loads(again)[0]["Tables"] == 4
    wait_cloned(replica)
    wait_for_gtids(replica, two)
    assert_same_tables(two, replica, "away")
