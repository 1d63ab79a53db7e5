"""relay_log_space_limit: as on a server, receiver and applier never wait for each other."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.kit.replica import Replica, assert_same_tables, wait_until
from tests.kit.servers import MariadbServer

pytestmark = [pytest.mark.slow, pytest.mark.mariadb]


@pytest.fixture
def replica(tmp_path: Path, mariadb: MariadbServer) -> Iterator[Replica]:
    mariadb.sql(
        "DROP DATABASE IF EXISTS full; CREATE DATABASE full; CREATE TABLE full.t (id INT PRIMARY KEY, v LONGTEXT)"
    )
    made = Replica(tmp_path, spark=False)
    yield made
    made.close()


def set_up(replica: Replica, source: MariadbServer, *init: str, options: tuple[str, ...] = ()) -> None:
    replica.run("init", "--relay-log-space-limit", "1M", *init)
    path = replica.datadir / "rplctl.toml"
    path.write_text(f'replicate_do_db = "full"\n{path.read_text()}')
    replica.change_master(source, *options)
    replica.run("start")


def is_complete(replica: Replica, rows: int) -> bool:
    with suppress(sqlite3.OperationalError):  # the table is not there yet
        return bool(replica.query("SELECT count(*) FROM full__t")[0][0] == rows)
    return False


def test_a_transaction_above_the_limit_arrives_after_a_reconnect_by_gtid(
    replica: Replica, mariadb: MariadbServer
) -> None:
    """The events behind a reconnect move no position, so the applier frees no relay log before it has a transaction."""
    set_up(replica, mariadb, options=("--master-use-gtid", "slave_pos"))
    mariadb.sql(";".join(f"INSERT INTO t VALUES ({number}, REPEAT('x', 30000))" for number in range(30)), "full")
    wait_until(lambda: is_complete(replica, 30))
    replica.run("stop")
    mariadb.sql("INSERT INTO t SELECT 99 + seq, REPEAT('y', 50000) FROM seq_1_to_100", "full")
    replica.run("start")
    wait_until(lambda: is_complete(replica, 130))
    assert_same_tables(mariadb, replica, "full")


def test_a_limit_without_purging_does_not_end_the_reception(replica: Replica, mariadb: MariadbServer) -> None:
    set_up(replica, mariadb, "--relay-log-purge", "false")
    mariadb.sql(";".join(f"INSERT INTO t VALUES ({number}, REPEAT('x', 50000))" for number in range(60)), "full")
    wait_until(lambda: is_complete(replica, 60))
    assert len(list(replica.datadir.glob("relay-bin.0*"))) > 1
