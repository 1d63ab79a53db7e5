"""GTIDs of transactions that a channel ignores count as executed, as on a MariaDB replica.

Otherwise the source would send them again at each connection, and would refuse the channel after it has purged them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.applied_log.applied import logs_of
from tests.kit.replica import Replica, purge_logs, wait_until
from tests.kit.servers import MariadbServer, MysqlServer
from tests.kit.vendor_dump import run_tool

pytestmark = [pytest.mark.slow, pytest.mark.mariadb]


@pytest.fixture(scope="module")
def source(mariadb_factory: Callable[..., MariadbServer]) -> MariadbServer:
    return mariadb_factory()


@pytest.fixture
def replica(tmp_path: Path) -> Iterator[Replica]:
    made = Replica(tmp_path, spark=False)
    made.run("init")
    yield made
    made.close()


def fresh(source: MariadbServer) -> None:
    source.reset_binary_log()
    source.sql("DROP DATABASE IF EXISTS ring; CREATE DATABASE ring; CREATE TABLE ring.t (n INT PRIMARY KEY)")


def write(source: MariadbServer, server: int, domain: int, number: int) -> None:
    session = f"SET SESSION server_id={server}; SET SESSION gtid_domain_id={domain}"
    source.sql(f"{session}; INSERT INTO ring.t VALUES ({number})")


def rows(replica: Replica) -> list[int]:
    return [row[0] for row in replica.query("SELECT n FROM ring__t ORDER BY n")]


def purge_all(source: MariadbServer) -> None:
    source.sql("FLUSH BINARY LOGS")
    purge_logs(source, source.master_status()[0])


@pytest.mark.parametrize("domain", [0, 7])
def test_a_purge_after_ignored_transactions_of_another_server_is_no_problem(
    replica: Replica, source: MariadbServer, domain: int
) -> None:
    """Two primaries: the channel reads from B, which also has the transactions of A."""
    fresh(source)
    replica.change_master(source, "--master-use-gtid", "slave_pos", "--ignore-server-ids", "99")
    replica.run("start", "--until-synced")
    for number in range(1, 6):
        write(source, 99 if number % 2 else 1, domain if number % 2 else 0, number)
    replica.run("start", "--until-synced")
    assert rows(replica) == [2, 4]
    purge_all(source)
    write(source, 1, 0, 6)
    replica.run("start", "--until-synced")
    assert rows(replica) == [2, 4, 6]
    state = str(source.sql("SELECT @@gtid_binlog_pos")[0][0])
    assert set(replica.status()["Executed_Gtid_Set"].split(",")) == set(state.split(","))
    for path in sorted(replica.datadir.glob("relay-bin.0*")):
        done = run_tool("mariadb", path, "-vv", "--verify-binlog-checksum")
        assert (done.returncode, done.stderr) == (0, b""), path
    replica.run("recover", "--refetch")
    write(source, 1, 0, 7)
    replica.run("start", "--until-synced")
    assert rows(replica) == [2, 4, 6, 7]


def test_a_replica_of_the_replica_knows_the_ignored_transactions_too(
    replica: Replica, source: MariadbServer, tmp_path: Path
) -> None:
    """The binary log of log_bin has them as empty transactions, and reads like a server's."""
    fresh(source)
    replica.run("init", "--log-bin", "binlog")
    replica.change_master(source, "--master-use-gtid", "slave_pos", "--ignore-server-ids", "99")
    for number in range(1, 6):
        write(source, 99 if number % 2 else 1, 7 if number % 2 else 0, number)
    replica.run("start", "--until-synced")
    (tmp_path / "second").mkdir()
    second = Replica(tmp_path / "second", spark=False)
    try:
        second.run("init")
        second.run("change-master", "--master-binlog-dir", str(replica.datadir), "--master-use-gtid", "slave_pos")
        second.run("start", "--until-synced")
        assert rows(second) == rows(replica) == [2, 4]
        assert second.status()["Executed_Gtid_Set"] == replica.status()["Executed_Gtid_Set"]
        assert "7-99-" in second.status()["Executed_Gtid_Set"]
    finally:
        second.close()
    for path in logs_of(replica.datadir):
        done = run_tool("mariadb", path, "-vv", "--verify-binlog-checksum")
        assert (done.returncode, done.stderr) == (0, b""), path


def test_a_domain_that_is_no_longer_ignored_continues_from_now(replica: Replica, source: MariadbServer) -> None:
    fresh(source)
    replica.change_master(source, "--master-use-gtid", "slave_pos", "--ignore-domain-ids", "5")
    replica.run("start")
    write(source, 1, 5, 1)
    write(source, 1, 0, 2)
    wait_until(lambda: "5-1-1" in replica.status()["Executed_Gtid_Set"], 60)
    replica.run("stop")
    replica.run("change-master", "--ignore-domain-ids", "")
    write(source, 1, 5, 3)
    replica.run("start", "--until-synced")
    assert rows(replica) == [2, 3]


def test_an_ignored_ddl_statement_is_passed_without_a_heartbeat(replica: Replica, source: MariadbServer) -> None:
    """The log is silent after it, so nothing else would move the position."""
    fresh(source)
    replica.change_master(source, "--ignore-server-ids", "99", "--master-heartbeat-period", "600")
    replica.run("start")
    replica.wait_synced(source)
    source.sql("SET SESSION server_id=99; CREATE TABLE ring.u (a INT)")
    replica.wait_synced(source, timeout_s=20)
    assert replica.status()["Seconds_Behind_Master"] == 0


@pytest.mark.mysql
def test_on_mysql_the_executed_set_has_the_ignored_transactions(replica: Replica, mysql: MysqlServer) -> None:
    mysql.reset_binary_log()
    mysql.sql("DROP DATABASE IF EXISTS ring; CREATE DATABASE ring; CREATE TABLE ring.t (n INT PRIMARY KEY)")
    replica.change_master(
        mysql, "--master-auto-position", "1", "--get-master-public-key", "1", "--ignore-server-ids", "99"
    )
    replica.run("start", "--until-synced")
    mysql.sql("INSERT INTO ring.t VALUES (1)")
    other = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
    mysql.sql(f"SET gtid_next='{other}:1'; INSERT INTO ring.t VALUES (2); SET gtid_next='AUTOMATIC'")
    replica.run("start", "--until-synced")
    assert rows(replica) == [1, 2]
    replica.run("change-master", "--ignore-server-ids", str(mysql.sql("SELECT @@server_id")[0][0]))
    mysql.sql(f"SET gtid_next='{other}:2'; INSERT INTO ring.t VALUES (3); SET gtid_next='AUTOMATIC'")
    mysql.sql("INSERT INTO ring.t VALUES (4)")
    replica.run("start", "--until-synced")
    assert rows(replica) == [1, 2]
    for path in sorted(replica.datadir.glob("relay-bin.0*")):
        done = run_tool("mysql", path, "-vv", "--verify-binlog-checksum")
        assert (done.returncode, done.stderr) == (0, b""), path
    executed = replica.status()["Executed_Gtid_Set"].replace("\n", "")
    assert mysql.sql(f"SELECT GTID_SUBTRACT(@@gtid_executed, '{executed}')")[0][0] == ""
    replica.run("change-master", "--ignore-server-ids", "")
    mysql.sql("FLUSH BINARY LOGS")
    purge_logs(mysql, mysql.master_status()[0])
    mysql.sql("INSERT INTO ring.t VALUES (5)")
    replica.run("start", "--until-synced")
    assert rows(replica) == [1, 2, 5]
