"""Live sources of the releases that people still run: MariaDB 10.5, MySQL 5.7, 8.0 and 8.4, followed through crashes.

Skipped with the reason where one cannot be fetched (tests/kit/fetch_mariadb.py, tests/kit/fetch_mysql.py).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.kit.private_server import ServerUnavailable
from tests.kit.replica import Replica, assert_same_tables
from tests.kit.servers import Mariadb105Server, MariadbServer, Mysql57Server, Mysql80Server, Mysql84Server

pytestmark = [
    pytest.mark.long("Older versions; tests/stories/test_replication.py holds it for the installed MariaDB."),
    pytest.mark.slow,
    pytest.mark.timeout(900),
]

WRITES = """
BEGIN;
INSERT INTO d.t (at, n, v, j) SELECT NOW(6), n, REPEAT('x', n % 50), '{"a": [1, 2.5]}' FROM d.numbers;
INSERT INTO d.nokey SELECT n, v FROM d.t WHERE n < 4;
COMMIT;
UPDATE d.t SET n=n+1, e='c' WHERE id % 3 = 0;
DELETE FROM d.nokey LIMIT 1;
ALTER TABLE d.t ADD COLUMN more INT DEFAULT 3;
UPDATE d.t SET more=n WHERE id % 7 = 0;
ALTER TABLE d.t DROP COLUMN more;
SET @last = (SELECT MAX(id) FROM d.t);
INSERT INTO d.child (t) VALUES (@last), (NULL);
DELETE FROM d.t WHERE id = @last;
"""
TABLES = """
CREATE DATABASE d;
CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, at TIMESTAMP(6) NULL, n BIGINT UNSIGNED, v TEXT, j JSON,
    e ENUM('a','b','c') DEFAULT 'b', c VARCHAR(9) CHARACTER SET latin1 DEFAULT 'ä€');
CREATE TABLE d.nokey (a INT, b VARCHAR(20));
CREATE TABLE d.numbers (n INT PRIMARY KEY);
CREATE TABLE d.child (id INT AUTO_INCREMENT PRIMARY KEY, t INT REFERENCES d.t (id) ON DELETE CASCADE);
"""


@pytest.fixture(params=[Mariadb105Server, Mysql57Server, Mysql80Server, Mysql84Server], ids=lambda kind: kind.__name__)
def source(request: pytest.FixtureRequest) -> Iterator[MariadbServer]:
    try:
        server: MariadbServer = request.param()
    except ServerUnavailable as reason:
        pytest.skip(str(reason))
    with server:
        server.sql(TABLES + f"INSERT INTO d.numbers VALUES {','.join(f'({number})' for number in range(700))}")
        yield server


def test_an_older_source_is_followed_by_gtid_through_crashes_of_both(replica: Replica, source: MariadbServer) -> None:
    by_gtid = ["--master-use-gtid", "slave_pos"] if source.kind == "mariadb" else ["--master-auto-position", "1"]
    replica.set_up(source, change=by_gtid)
    replica.run("start")
    source.sql(WRITES)
    replica.kill("receiver")
    replica.kill("applier")
    source.sql(WRITES)
    source.kill()
    source.start()
    source.sql(WRITES)
    replica.run("start")
    replica.wait_synced(source)
    assert_same_tables(source, replica, "d")
    target_is_loaded_from_a_dump(replica, source)
    executed = "SELECT @@gtid_binlog_pos" if source.kind == "mariadb" else "SELECT @@global.gtid_executed"
    assert replica.status()["Executed_Gtid_Set"] == source.sql(executed)[0][0].replace("\n", "")


def target_is_loaded_from_a_dump(replica: Replica, source: MariadbServer) -> None:
    """Rows without a key are found although JSON in them is as the source prints it: the DOUBLE 3.0 of 5.7 as 3."""
    documents = """(1, '{"a": 3.0, "b": "3.0"}'), (2, '[-2.0, 1.5, 1e30]')"""
    source.sql(f"CREATE TABLE d.loaded (n INT, j JSON); INSERT INTO d.loaded VALUES {documents}")
    replica.wait_synced(source)
    with closing(sqlite3.connect(replica.datadir / "target.db", timeout=600)) as target, target:
        for n, text in source.sql("SELECT n, CAST(j AS CHAR) FROM d.loaded"):
            target.execute("UPDATE d__loaded SET j=? WHERE n=?", (text, int(n)))
    source.sql("UPDATE d.loaded SET j='[7]' WHERE n=1; DELETE FROM d.loaded WHERE n=2")
    replica.wait_synced(source)
    assert_same_tables(source, replica, "d")
