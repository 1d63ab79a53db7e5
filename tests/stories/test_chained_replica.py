"""MariaDB → rplctl with log_bin → a second rplctl that reads the first one's binary log, while appliers are killed."""

from __future__ import annotations

import random
import shutil
import subprocess
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.applied_log.applied import logs_of, positions_are_exact
from tests.kit.replica import Replica, assert_same_tables, wait_until
from tests.kit.servers import MariadbServer

pytestmark = [
    pytest.mark.long(
        "tests/applier/log_bin/test_events.py::test_a_replica_of_the_log_equals_it holds it without kills."
    ),
    pytest.mark.slow,
    pytest.mark.mariadb,
    pytest.mark.timeout(900),
]

KILLS = 2


class Load:
    """Small transactions until told to stop."""

    def __init__(self, source: MariadbServer) -> None:
        self._source = source
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        chance = random.Random(7)
        with closing(self._source.connect("chain")) as connection, connection.cursor() as cursor:
            number = 0
            while not self.stop.wait(0.05):
                cursor.execute("BEGIN")
                for _ in range(chance.randint(1, 4)):
                    number += 1
                    cursor.execute(f"INSERT INTO t VALUES ({number}, '{'v' * chance.randint(1, 60)}')")
                cursor.execute(f"UPDATE t SET v='changed {number}' WHERE id={chance.randint(1, number)}")
                cursor.execute("COMMIT")


def size_of_logs(replica: Replica) -> int:
    return sum(path.stat().st_size for path in logs_of(replica.datadir))


def test_a_chained_replica_equals_the_source_though_the_first_ones_applier_is_killed(
    tmp_path: Path, mariadb_factory: Callable[..., MariadbServer]
) -> None:
    source = mariadb_factory()
    source.sql("CREATE DATABASE chain; CREATE TABLE chain.t (id INT PRIMARY KEY, v VARCHAR(80))")
    first, second = (Replica(tmp_path / name, spark=False) for name in ("first", "second"))
    load = Load(source)
    load.thread.start()
    try:
        options = ("--log-bin", "binlog", "--max-binlog-size", "60000", "--commit-group-transactions", "20")
        first.set_up(source, *options)
        first.run("start")
        wait_until(lambda: size_of_logs(first) > 0, 240)
        second.run("init")
        second.run("change-master", "--master-binlog-dir", str(first.datadir))
        second.run("start")
        chance = random.Random(11)
        for _ in range(KILLS):
            wanted = size_of_logs(first) + chance.randint(1, 40_000)
            wait_until(lambda wanted=wanted: size_of_logs(first) > wanted, 240)  # type: ignore[misc]
            assert first.kill("applier")
            first.run("start")
        load.stop.set()
        load.thread.join()
        first.wait_synced(source)
        last = logs_of(first.datadir)[-1]
        second.run("wait", "--pos", f"{last.name}:{last.stat().st_size}", "--timeout", "240")
        assert_same_tables(source, first, "chain")
        assert_same_tables(source, second, "chain")
        gtids = [replica.status()["Executed_Gtid_Set"] for replica in (first, second)]
        assert gtids == [source.sql("SELECT @@gtid_binlog_pos")[0][0]] * 2
        status = first.run("log-status", "--json").stdout
        assert f'"binary_log_file": "{last.name}", "binary_log_position": {last.stat().st_size}' in status
        assert all(positions_are_exact(path) for path in logs_of(first.datadir))
        tool = shutil.which("mariadb-binlog")
        assert tool is not None
        command = [tool, "--no-defaults", "--verify-binlog-checksum", *map(str, logs_of(first.datadir))]
        subprocess.run(command, check=True, capture_output=True)
        purged = first.run("purge-binary-logs", "--to", last.name)
        assert "removed" in purged.stdout and logs_of(first.datadir) == [last]
    finally:
        load.stop.set()
        load.thread.join()
        first.close()
        second.close()
