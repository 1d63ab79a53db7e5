"""MariaDB → rplctl with log_bin → MySQL front → MariaDB and a second rplctl, while each process is killed in turn."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pymysql
import pytest

from tests.applied_log.applied import logs_of
from tests.kit.private_server import free_port
from tests.kit.replica import Replica, assert_same_tables, wait_until
from tests.kit.servers import MariadbServer
from tests.stories.test_chained_replica import Load, size_of_logs

pytestmark = [
    pytest.mark.long(
        "tests/front/test_binlog_server.py::"
        "test_a_mariadb_replica_equals_the_target_though_front_and_replica_are_killed holds it without load."
    ),
    pytest.mark.slow,
    pytest.mark.mariadb,
    pytest.mark.timeout(900),
]

PASSWORD = "ch4in"


class Front:
    """`rplctl serve --mysql` as a process on one port."""

    def __init__(self, first: Replica, port: int) -> None:
        command = ["--datadir", str(first.datadir), "serve", "--listen", "", "--mysql", f"127.0.0.1:{port}"]
        self._command = [sys.executable, "-m", "rplctl", *command, "--mysql-flavor", "mariadb"]
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stderr=subprocess.DEVNULL)
        wait_until(self._answers, 120)

    def _answers(self) -> bool:
        with suppress(pymysql.MySQLError):
            pymysql.connect(host="127.0.0.1", port=self._port, user="chain", password=PASSWORD).close()
            return True
        return False

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def follow(replica: MariadbServer, port: int) -> None:
    replica.sql(
        f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='chain', MASTER_PASSWORD="
        f"'{PASSWORD}', MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1; START SLAVE"
    )


def test_replicas_of_the_front_equal_the_source_though_each_process_is_killed(
    tmp_path: Path, mariadb_factory: Callable[..., MariadbServer]
) -> None:
    source, server = mariadb_factory(), mariadb_factory()
    source.sql("CREATE DATABASE chain; CREATE TABLE chain.t (id INT PRIMARY KEY, v VARCHAR(80))")
    first, second = (Replica(tmp_path / name, spark=False) for name in ("first", "second"))
    first.set_up(source, "--log-bin", "binlog", "--max-binlog-size", "60000", "--commit-group-transactions", "20")
    first.run("user", "add", "chain", "--role", "replication", "--native", "--password-stdin", password=PASSWORD)
    port = free_port()
    front, load = Front(first, port), Load(source)
    load.thread.start()
    try:
        first.run("start")
        wait_until(lambda: size_of_logs(first) > 0, 240)
        front.start()
        follow(server, port)
        where = ("--master-host", "127.0.0.1", "--master-port", str(port), "--master-user", "chain", "--password-stdin")
        second.run("init")
        gtid = ("--master-use-gtid", "slave_pos", "--master-connect-retry", "1")
        second.run("change-master", *where, *gtid, password=PASSWORD)
        second.run("start")
        chance = random.Random(3)
        for kill in (front.kill, server.kill, lambda: first.kill("applier"), lambda: second.kill("receiver")):
            wanted = size_of_logs(first) + chance.randint(1, 30_000)
            wait_until(lambda wanted=wanted: size_of_logs(first) > wanted, 240)  # type: ignore[misc]
            kill()
            if kill == front.kill:
                front.start()
            elif kill == server.kill:
                server.start()
                server.sql("START SLAVE")
            else:
                first.run("start")
                second.run("start")
        load.stop.set()
        load.thread.join()
        first.wait_synced(source)
        end = source.sql("SELECT @@gtid_binlog_pos")[0][0]
        wait_until(lambda: server.sql("SELECT @@gtid_slave_pos")[0][0] == end, 240)
        wait_until(lambda: second.status()["Executed_Gtid_Set"] == end, 240)
        for replica in (first, second):
            assert_same_tables(source, replica, "chain")
        assert server.sql("CHECKSUM TABLE chain.t") == source.sql("CHECKSUM TABLE chain.t")
        assert len(logs_of(first.datadir)) > 1
    finally:
        load.stop.set()
        load.thread.join()
        front.kill()
        first.close()
        second.close()
