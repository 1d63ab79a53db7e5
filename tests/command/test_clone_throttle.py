"""A copy spares the source: it waits for replicas that are behind, and keeps no history from its purge."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from functools import partial

import pytest

from tests.command.test_clone import only, wait_cloned
from tests.command.test_clone_ladder import replica
from tests.kit.private_server import PASSWORD
from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer, MysqlServer

__all__ = ["replica"]
pytestmark = [pytest.mark.long("tests/clone/test_throttle.py holds the rules."), pytest.mark.slow]


def state(replica: Replica) -> str:
    return str(replica.status()["Clone_Reader_State"])


def says(replica: Replica, text: str) -> None:
    wait_until(lambda: text in state(replica), 60)


def test_a_copy_waits_for_a_replica_that_is_behind_or_stands_still(
    mariadb_factory: Callable[..., MariadbServer], replica: Replica
) -> None:
    source, other = mariadb_factory(), mariadb_factory()
    source.sql(
        "CREATE DATABASE spared; USE spared; CREATE TABLE t (id INT PRIMARY KEY) SELECT seq id FROM seq_1_to_5000"
    )
    replica.change_master(source)
    only(replica, "spared")
    address = f"{other.host}:{other.port}"
    assert "is not a replica" in replica.run("clone", "--lag-of", address, expect=6).stderr
    assert "--lag-of a/b" in replica.run("clone", "--lag-of", "a/b", expect=2).stderr
    assert "Can't connect" in replica.run("clone", "--lag-of", "127.0.0.1:1", expect=6).stderr
    other.follow(source)
    other.sql("STOP SLAVE; CHANGE MASTER TO MASTER_DELAY=1000; START SLAVE")
    source.sql("INSERT INTO spared.t VALUES (0)")
    wait_until(lambda: int(other.sql("SHOW SLAVE STATUS")[0][32] or 0) > 1, 60)
    replica.run("clone", "--lag-of", address, "--max-lag", "1")
    wait_until(lambda: re.search(rf"the replica {address} is \d+ s behind, --max-lag 1", state(replica)), 60)
    other.sql("STOP SLAVE")
    says(replica, f"the replica {address} does not replicate")
    assert replica.status()["Clone_Tables_Done"] == 0
    other.sql("CHANGE MASTER TO MASTER_DELAY=0; START SLAVE")
    wait_cloned(replica)
    replica.run("verify")


def test_no_snapshot_is_open_while_history_is_long_and_the_copy_goes_on_with_what_it_had(
    mariadb_factory: Callable[..., MariadbServer], replica: Replica
) -> None:
    source = mariadb_factory("--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0")
    source.sql("CREATE DATABASE spared; CREATE TABLE spared.t (id INT PRIMARY KEY, v INT, w LONGTEXT CHARSET latin1)")
    source.sql("USE spared; INSERT INTO t SELECT seq, 0, REPEAT('x', 16000) FROM seq_1_to_5000")  # a chunk has 1,000
    source.sql("ANALYZE TABLE spared.t")
    replica.change_master(source)
    only(replica, "spared")

    def write() -> None:
        with closing(source.connect()) as writer, writer.cursor() as cursor:
            for _ in range(200):
                cursor.execute("UPDATE spared.t SET v = v + 1 WHERE id = 1 + FLOOR(RAND() * 5000)")

    log = replica.channel.log_path("receiver")
    with closing(source.connect()) as reader, reader.cursor() as cursor:
        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        write()
        replica.run("clone", "--max-history", "100", "--max-rate", "5")
        says(replica, "old versions, --max-history 100")
        assert "table group 1 at" not in log.read_text()
    wait_until(lambda: "table group 1 at" in log.read_text(), 60)  # what is old is purged, and it begins

    def given_up() -> bool:
        write()
        return "the snapshot is given up, and another one continues it" in log.read_text()

    wait_until(given_up, 60)
    wait_until(lambda: "is continued: spared.t after" in log.read_text(), 60)
    replica.run("clone", "--max-history", "0", "--max-rate", "0")
    wait_cloned(replica)
    replica.wait_synced(source, 60)
    replica.run("verify")


def test_a_mysql_that_does_not_tell_its_history_is_refused_with_the_grant(mysql: MysqlServer, replica: Replica) -> None:
    mysql.sql(f"DROP USER IF EXISTS bare@'%'; CREATE USER bare@'%' IDENTIFIED BY '{PASSWORD}'")
    mysql.sql("GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO bare@'%'")
    mysql.sql(
        "DROP DATABASE IF EXISTS spared; CREATE DATABASE spared; USE spared; CREATE TABLE spared.t (id INT PRIMARY KEY)"
    )
    replica.change_master(mysql, "--master-auto-position", "1", "--get-master-public-key", "1")
    replica.run("change-master", "--master-user", "bare")
    only(replica, "spared")
    clone = partial(replica.run, "clone", "--max-history", "1000000")
    said = clone(expect=6).stderr
    assert "1227" in said and "PROCESS ON *.*" in said, said
    mysql.sql("GRANT PROCESS ON *.* TO bare@'%'")
    clone()
    wait_cloned(replica)
