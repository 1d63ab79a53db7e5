"""A MariaDB domain in which two servers write: the numbers of its GTIDs fall, and only their order in the log counts.

A source that is a replica itself, with local writes of a heartbeat or of an operator, has such a log, unless it has
gtid_strict_mode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kit.replica import Replica, purge_logs, wait_until
from tests.kit.servers import MariadbServer

pytestmark = [pytest.mark.slow, pytest.mark.mariadb]


@pytest.fixture(scope="module")
def server(mariadb_factory: Callable[..., MariadbServer]) -> MariadbServer:
    return mariadb_factory()


@pytest.fixture
def source(server: MariadbServer) -> MariadbServer:
    server.sql("DROP DATABASE IF EXISTS two; RESET MASTER; CREATE DATABASE two; CREATE TABLE two.t (n INT)")
    return server


@pytest.fixture
def replica(tmp_path: Path, source: MariadbServer) -> Iterator[Replica]:
    made = Replica(tmp_path, spark=False)
    made.run("init")
    made.change_master(source, "--master-use-gtid", "slave_pos")
    yield made
    made.close()


def write(source: MariadbServer, server: int, number: int) -> None:
    source.sql(f"SET SESSION server_id={server}; SET SESSION gtid_seq_no={number}; INSERT INTO two.t VALUES ({number})")


def rows(replica: Replica) -> list[int]:
    return [row[0] for row in replica.query("SELECT n FROM two__t ORDER BY rowid")]


def test_a_lower_number_of_another_server_is_received_once_and_applied(replica: Replica, source: MariadbServer) -> None:
    write(source, 2, 1500)
    replica.run("start", "--until-synced")
    write(source, 1, 1001)
    replica.run("start", "--until-synced")
    assert rows(replica) == [1500, 1001]
    replica.run("start", "--receiver")
    write(source, 2, 1600)
    write(source, 1, 1002)
    wait_until(lambda: replica.status()["Retrieved_Gtid_Set"].endswith("-1002"))
    replica.run("stop")
    replica.run("start", "--until-synced")
    assert rows(replica) == [1500, 1001, 1600, 1002]


def test_relay_logs_that_are_fetched_again_lose_no_lower_number(replica: Replica, source: MariadbServer) -> None:
    write(source, 2, 1500)
    replica.run("start", "--until-synced")
    replica.run("recover", "--refetch")
    write(source, 1, 1001)
    replica.run("start", "--receiver")
    wait_until(lambda: replica.status()["Retrieved_Gtid_Set"].endswith("-1001"))
    replica.run("start", "--applier")
    wait_until(lambda: rows(replica) == [1500, 1001], 60)
    replica.run("stop", "--applier")
    replica.run("start", "--applier")  # the relay logs began after a GTID with a higher number
    write(source, 1, 1002)
    wait_until(lambda: rows(replica) == [1500, 1001, 1002], 60)
    assert replica.status()["Last_SQL_Errno"] == 0


def test_a_folder_of_logs_has_the_same_order(replica: Replica, source: MariadbServer) -> None:
    replica.run("change-master", "--master-binlog-dir", str(source.data))
    write(source, 2, 1500)
    replica.run("start", "--until-synced")
    write(source, 1, 1001)
    replica.run("start", "--until-synced")
    source.sql("FLUSH BINARY LOGS")
    write(source, 1, 1002)
    write(source, 2, 1501)
    replica.run("start", "--until-synced")
    assert rows(replica) == [1500, 1001, 1002, 1501]


def test_the_logs_that_such_a_source_has_purged_are_no_problem_of_the_channel(
    replica: Replica, source: MariadbServer
) -> None:
    for server, number in ((2, 1500), (1, 1001)):
        write(source, server, number)
    replica.run("start", "--until-synced")
    source.sql("FLUSH BINARY LOGS")
    write(source, 1, 1002)
    purge_logs(source, source.master_status()[0])
    found = replica.run("check", "--online", "--json", expect=None).stdout
    assert "cannot_look" not in found and "source_purged" not in found, found
    replica.run("start", "--until-synced")
    assert rows(replica) == [1500, 1001, 1002]


def test_a_purged_log_of_an_ignored_domain_is_no_problem_of_the_channel(
    replica: Replica, source: MariadbServer
) -> None:
    replica.run("change-master", "--ignore-domain-ids", "5")
    source.sql("SET SESSION gtid_domain_id=5; INSERT INTO two.t VALUES (5)")
    write(source, 1, 1001)
    replica.run("start", "--until-synced")
    source.sql("FLUSH BINARY LOGS")
    write(source, 1, 1002)
    replica.run("start", "--until-synced")
    source.sql("FLUSH BINARY LOGS")
    purge_logs(source, source.master_status()[0])
    write(source, 1, 1003)
    found = replica.run("check", "--online", "--json", expect=None).stdout
    assert "cannot_look" not in found and "source_purged" not in found, found
    replica.run("start", "--until-synced")
    assert rows(replica) == [1001, 1002, 1003]


def test_relay_logs_that_hold_only_the_end_of_the_other_server_are_applied(
    replica: Replica, source: MariadbServer
) -> None:
    """They began at a GTID of server 1. The relay log with the last GTID of server 2 is purged."""
    write(source, 1, 1001)
    replica.run("start", "--until-synced")
    replica.run("recover", "--refetch")
    replica.run("start")
    write(source, 2, 1002)
    wait_until(lambda: rows(replica) == [1001, 1002], 60)
    for _ in range(2):
        source.sql("FLUSH BINARY LOGS")
        replica.run("flush-relay-logs")
    wait_until(lambda: replica.status()["Relay_Master_Log_File"] == source.master_status()[0], 60)
    wait_until(lambda: len(list(replica.datadir.glob("relay-bin.0*"))) == 1, 60)
    replica.run("stop", "--applier")
    replica.run("start", "--applier")
    write(source, 2, 1003)
    wait_until(lambda: rows(replica) == [1001, 1002, 1003], 60)
