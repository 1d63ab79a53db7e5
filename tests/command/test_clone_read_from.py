"""`clone --read-from`: the rows come from a replica of the source, and what follows from the source, as if from one."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from rplctl.clone.throttle import read_limits
from tests.command.test_clone import only, wait_cloned
from tests.command.test_clone_ladder import copied, fill, replica
from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer, MysqlServer

__all__ = ["replica"]
pytestmark = [
    pytest.mark.long("Reading from a replica is rare; tests/clone/test_read_from.py holds the rules."),
    pytest.mark.slow,
]


def address(server: MariadbServer) -> str:
    return f"{server.host}:{server.port}"


def refused(replica: Replica, server: MariadbServer, why: str) -> None:
    said = replica.run("clone", "--read-from", address(server), expect=None).stderr
    assert why in said and "--read-from ''" in said, said
    assert replica.pid("receiver") is None


def copied_from(source: MariadbServer, between: MariadbServer, replica: Replica, name: str) -> None:
    """The replica between applies with several threads, and is as far behind as it happens to be."""
    between.follow(source)
    fill(source, name, 3000)
    only(replica, name)
    refused(replica, between, "living.rests is not InnoDB")
    source.sql(f"ALTER TABLE {name}.rests ENGINE=InnoDB")
    wait_until(lambda: "InnoDB" in between.sql(f"SHOW CREATE TABLE {name}.rests")[0][1], 60)
    before = between.sql("SHOW GLOBAL STATUS LIKE 'Com_select'")[0][1]
    copied(source, replica, name, options=("--read-from", address(between)))
    assert int(between.sql("SHOW GLOBAL STATUS LIKE 'Com_select'")[0][1]) > int(before) + 50
    said = replica.channel.log_path("receiver").read_text()
    assert all(line.endswith(f" of {address(between)}") for line in re.findall(r"family \d+ at .*", said))
    assert read_limits(replica.channel).read_from == address(between)
    between.sql(f"DELETE FROM {name}.plain LIMIT 1")  # of its own
    replica.run("stop")
    refused(replica, between, "has transactions that the source does not have")
    replica.run("clone", "--read-from", "")
    assert read_limits(replica.channel).read_from == ""


@pytest.mark.parametrize("by_gtid", [pytest.param(False, marks=pytest.mark.torture), True])
def test_rows_of_a_mariadb_replica_fit_into_the_sources_log(
    mariadb_factory: Callable[..., MariadbServer], replica: Replica, by_gtid: bool
) -> None:
    source, between = mariadb_factory(), mariadb_factory("--slave-parallel-threads=3")
    replica.change_master(source, *(["--master-use-gtid", "slave_pos"] if by_gtid else []))
    copied_from(source, between, replica, "living")


def test_rows_of_a_mysql_replica_fit_into_the_sources_log(
    mysql_factory: Callable[..., MysqlServer], replica: Replica
) -> None:
    source, between = mysql_factory(), mysql_factory("--replica-parallel-workers=3")
    replica.change_master(source, "--master-auto-position", "1", "--get-master-public-key", "1")
    copied_from(source, between, replica, "living")


def test_a_replica_that_is_no_copy_is_refused(mariadb_factory: Callable[..., MariadbServer], replica: Replica) -> None:
    source, filters = mariadb_factory(), mariadb_factory("--replicate-ignore-db=scratch")
    silent = mariadb_factory("--skip-log-bin")
    source.sql("CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY)")
    replica.change_master(source)
    refused(replica, filters, "skips some of the source's transactions: replicate_ignore_db=scratch")
    refused(replica, silent, "does not log the transactions that it applies")
    said = replica.run("clone", "--read-from", "me@there", expect=2).stderr
    assert "HOST or HOST:PORT" in said


def test_a_table_that_the_replica_lacks_is_told_and_not_taken_for_gone(
    mariadb_factory: Callable[..., MariadbServer], replica: Replica
) -> None:
    source, between = mariadb_factory(), mariadb_factory()
    between.follow(source)
    source.sql("CREATE DATABASE lack; CREATE TABLE lack.t (id INT PRIMARY KEY); INSERT INTO lack.t VALUES (7)")
    wait_until(lambda: between.sql("SELECT 1 FROM information_schema.tables WHERE table_schema = 'lack'"), 60)
    between.sql("SET sql_log_bin = 0; DROP TABLE lack.t")
    replica.change_master(source, "--master-use-gtid", "slave_pos")
    only(replica, "lack")
    replica.run("clone", "--read-from", address(between))
    wait_until(lambda: f"lack.t is missing on {address(between)}" in replica.logs(), 60)
    replica.run("stop")
    replica.run("clone", "--read-from", "")
    wait_cloned(replica)
    replica.wait_synced(source, 60)
    assert replica.status()["Passed_Over_Errors"] == 0
