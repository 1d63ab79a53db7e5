"""A MariaDB replica of rplctl ends at its UNTIL as a replica of a MariaDB source does."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.front.test_binlog_server import LAST, PASSWORD, logged, of_mariadb, served
from tests.kit.replica import wait_until
from tests.kit.servers import Mariadb118Server, MariadbServer

pytestmark = pytest.mark.slow
__all__ = ["of_mariadb"]


def following(replica: MariadbServer, port: int, user: str, password: str) -> None:
    replica.sql(
        f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='{user}', MASTER_PASSWORD="
        f'"{password}", MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1, MASTER_SSL=0'
    )


def stopped_at(replica: MariadbServer, until: str) -> str:
    """The GTIDs of the replica after both of its threads have stopped by themselves."""
    replica.sql(f"START SLAVE UNTIL {until}")
    wait_until(lambda: threads(replica) == ("No", "No"), 120)
    errors = replica.sql("SHOW SLAVE STATUS")[0]
    assert (errors[18], errors[34], errors[36]) == (0, 0, 0), errors
    return str(replica.sql("SELECT @@gtid_slave_pos")[0][0])


def threads(replica: MariadbServer) -> tuple[str, str]:
    row = replica.sql("SHOW SLAVE STATUS")[0]
    return str(row[10]), str(row[11])


def test_both_threads_of_a_replica_stop_at_its_gtid(
    of_mariadb: Path, mariadb_factory: Callable[..., MariadbServer]
) -> None:
    replica = mariadb_factory()
    with served(of_mariadb) as server:
        following(replica, server.port, "old", PASSWORD)
        for gtid in ("0-1-3", "0-1-57", "0-1-100"):
            assert stopped_at(replica, f"master_gtid_pos = '{gtid}'") == gtid
        for gtid in ("0-1-100", "0-1-57", ""):  # it has these already
            assert stopped_at(replica, f"master_gtid_pos = '{gtid}'") == "0-1-100"
        assert stopped_at(replica, f"master_gtid_pos = '{LAST}'") == LAST


def test_a_replica_may_stop_before_its_gtid(
    of_mariadb: Path, mariadb_118_factory: Callable[..., Mariadb118Server]
) -> None:
    replica = mariadb_118_factory()
    with served(of_mariadb) as server:
        following(replica, server.port, "old", PASSWORD)
        assert stopped_at(replica, "SQL_BEFORE_GTIDS = '0-1-57'") == "0-1-56"
        assert stopped_at(replica, "SQL_BEFORE_GTIDS = '0-1-57'") == "0-1-56"
        assert stopped_at(replica, "SQL_AFTER_GTIDS = '0-1-57'") == "0-1-57"
        assert stopped_at(replica, "SQL_BEFORE_GTIDS = '0-1-57'") == "0-1-57"


def test_each_domain_ends_at_its_own_gtid_as_with_the_source(
    mariadb_factory: Callable[..., MariadbServer], tmp_path: Path
) -> None:
    source, replica = mariadb_factory(), mariadb_factory()
    source.sql("RESET MASTER; CREATE DATABASE d; CREATE TABLE d.t (a INT PRIMARY KEY, b LONGBLOB)")
    for number in range(1, 13):
        value = "REPEAT('b', 1500000)" if number == 5 else "'b'"  # larger than a chunk
        source.sql(f"SET gtid_domain_id = {number % 3}; INSERT INTO d.t VALUES ({number}, {value})")
    gtids = {domain: str(source.server_id) for domain in range(3)}
    log = source.binlog_files[-1]
    source.sql("FLUSH BINARY LOGS")
    copy = tmp_path / "binlog.000001"
    shutil.copy(log, copy)
    datadir = logged(tmp_path / "replica", copy)
    wanted = [
        f"0-{gtids[0]}-3",
        f"0-{gtids[0]}-3,1-{gtids[1]}-2",
        f"0-{gtids[0]}-4,1-{gtids[1]}-2,2-{gtids[2]}-4",
        f"1-{gtids[1]}-3",
        f"0-{gtids[0]}-6,1-{gtids[1]}-4",
    ]
    ends: list[list[str]] = []
    with served(datadir) as server:
        for port, user, password in ((source.port, "rpl", "rpl"), (server.port, "old", PASSWORD)):
            following(replica, port, user, password)
            ends.append([stopped_at(replica, f"master_gtid_pos = '{until}'") for until in wanted])
            replica.sql("RESET SLAVE ALL; DROP DATABASE d; RESET MASTER; SET GLOBAL gtid_slave_pos = ''")
    assert ends[0] == ends[1]
    assert len(set(ends[0])) > 3
