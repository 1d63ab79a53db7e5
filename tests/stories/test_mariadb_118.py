"""A live MariaDB 11.8 as the source: end positions of 0 inside groups, ALTERs in two phases, `.idx` files beside logs.

Skipped with the reason where 11.8 cannot be fetched (tests/kit/fetch_mariadb.py).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.kit.replica import Replica, assert_same_tables
from tests.kit.servers import Mariadb118Server

pytestmark = [
    pytest.mark.long("A second version; tests/stories/test_replication.py holds it for the installed MariaDB."),
    pytest.mark.slow,
    pytest.mark.timeout(900),
]

TABLES = """
CREATE DATABASE d;
CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, u UUID DEFAULT UUID_v7(), at TIMESTAMP(6) NULL, n INT, v TEXT);
CREATE TABLE d.nokey (a INT, b VARCHAR(20));
"""
WRITES = """
SET SESSION binlog_alter_two_phase=ON;
BEGIN;
INSERT INTO d.t (at, n, v) SELECT NOW(6), seq, REPEAT('x', seq % 50) FROM d.numbers;
INSERT INTO d.nokey SELECT n, v FROM d.t WHERE n < 4;
COMMIT;
UPDATE d.t SET n=n+1 WHERE id % 3 = 0;
DELETE FROM d.nokey LIMIT 1;
ALTER TABLE d.t ADD COLUMN more INT DEFAULT 3;
UPDATE d.t SET more=n WHERE id % 7 = 0;
ALTER TABLE d.t DROP COLUMN more;
"""


@pytest.fixture
def source(mariadb_118_factory: Callable[..., Mariadb118Server]) -> Mariadb118Server:
    server = mariadb_118_factory()
    assert server.sql("SELECT @@binlog_legacy_event_pos") == [(0,)]
    server.sql(TABLES)
    numbers = ",".join(f"({number})" for number in range(1000))
    server.sql(f"CREATE TABLE d.numbers (seq INT PRIMARY KEY); INSERT INTO d.numbers VALUES {numbers}")
    return server


def test_a_replica_of_118_by_gtid_survives_its_own_crash_and_the_sources_restart(
    replica: Replica, source: Mariadb118Server
) -> None:
    replica.set_up(source, change=["--master-use-gtid", "slave_pos"])
    replica.run("start")
    source.sql(WRITES)
    replica.kill("receiver")
    replica.kill("applier")
    source.sql(WRITES)
    source.restart()
    source.sql(WRITES)
    replica.run("start")
    replica.wait_synced(source)
    assert_same_tables(source, replica, "d")
    assert replica.status()["Executed_Gtid_Set"] == source.sql("SELECT @@gtid_binlog_pos")[0][0]


def test_the_logs_of_118_are_read_from_their_folder_beside_their_idx_files(
    replica: Replica, source: Mariadb118Server, tmp_path: Path
) -> None:
    source.sql(WRITES)
    source.sql("FLUSH BINARY LOGS")
    source.sql(WRITES)
    assert list(source.data.glob("binlog.*.idx"))
    replica.run("init")
    replica.run("change-master", "--master-binlog-dir", str(source.data))
    replica.run("start", "--until-synced")
    assert_same_tables(source, replica, "d")


def test_doctor_warns_of_generated_columns_that_118_does_not_log(replica: Replica, source: Mariadb118Server) -> None:
    replica.set_up(source)
    assert "generated column" not in replica.run("doctor", expect=None).stdout
    source.sql("CREATE TABLE d.made (a INT PRIMARY KEY, b VARCHAR(20) AS (CONCAT(a, 'x')) STORED)")
    if source.sql("SELECT VERSION() LIKE '11.8.9-%'") == [(1,)]:
        told = replica.run("doctor", expect=None).stdout
        assert "lack generated columns: 1 tables, d.made first" in told and "rplctl-types" in told
        replica.run("change-filter", "--replicate-ignore-table", "d.made")
        assert "generated column" not in replica.run("doctor", expect=None).stdout  # as it said


def test_a_server_of_118_takes_its_statements_with_the_collations_they_meant(
    mariadb_118_factory: Callable[..., Mariadb118Server], tmp_path: Path
) -> None:
    """Which collation a charset means by itself is the session's (character_set_collations), told by numbers."""
    source, target = mariadb_118_factory(), mariadb_118_factory()
    chosen = "SET character_set_collations='utf8mb4=uca1400_as_ci'; CREATE TABLE d.u (v TEXT CHARACTER SET utf8mb4)"
    source.sql(f"{TABLES} {chosen}")
    log = groups_of(source.binlog_files[-1])
    target.sql("CREATE DATABASE rplctl")
    instance = Instance(tmp_path, log, target=target.url())
    instance.apply(log)
    instance.target.close()
    for table in ("t", "u"):
        assert target.sql(f"SHOW CREATE TABLE d.{table}") == source.sql(f"SHOW CREATE TABLE d.{table}")
    assert "uca1400_as_ci" in target.sql("SHOW CREATE TABLE d.u")[0][1]
