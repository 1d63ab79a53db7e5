"""A channel of real processes while its source does odd things: what the operator sees is true, exit codes included."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.kit.replica import Replica, assert_same_tables, wait_until
from tests.kit.servers import MariadbServer

pytestmark = [
    pytest.mark.long("Clocks that jump are rare; tests/receiver/test_pull.py holds each answer of a source."),
    pytest.mark.slow,
]


def test_clocks_that_jump_and_logs_that_begin_anew(
    replica: Replica, mariadb_factory: Callable[..., MariadbServer]
) -> None:
    source = mariadb_factory()
    source.sql("CREATE DATABASE odd; CREATE TABLE odd.t (id INT AUTO_INCREMENT PRIMARY KEY, at TIMESTAMP NULL)")
    replica.set_up(source)
    replica.run("start")
    seen = []
    for clock in (1, 2147483647, 1_000_000_000, 0):  # 0: the server's own again
        source.sql(f"SET TIMESTAMP={clock}; INSERT INTO odd.t (at) VALUES (NOW()), (NULL)")
        seen.append(replica.status()["Seconds_Behind_Master"])
    replica.wait_synced(source)
    wait_until(lambda: replica.status()["Seconds_Behind_Master"] == 0)
    assert all(behind is None or behind >= 0 for behind in seen), seen
    assert_same_tables(source, replica, "odd")

    applied = replica.status()["Exec_Master_Log_Pos"]
    time.sleep(1.1)  # a log's birth is known to the second
    source.sql("RESET MASTER; CREATE TABLE odd.other (id INT); INSERT INTO odd.t (at) VALUES (NULL)")
    source.restart()
    wait_until(lambda: replica.pid("receiver") is None)
    status = replica.status()
    assert (status["Slave_IO_Running"], status["Last_IO_Errno"], status["Exec_Master_Log_Pos"]) == ("No", 1236, applied)
    assert status["Slave_SQL_Running"] == "Yes" and status["Last_SQL_Errno"] == 0
    replica.run("stop")
    failed = replica.run("start", "--until-synced", expect=6)
    assert "1236" in failed.stderr and "change-master" in failed.stderr
    assert [row[0] for row in replica.query("SELECT name FROM sqlite_master WHERE name LIKE 'odd__other'")] == []
