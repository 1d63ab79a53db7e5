"""A target put back from an older backup, and the channel that goes on with it: what an operator sees (design D3)."""

from __future__ import annotations

import shutil

import pytest

from tests.kit.replica import Replica, assert_same_tables
from tests.kit.servers import MariadbServer

DATABASE = "restored"

pytestmark = [pytest.mark.slow, pytest.mark.mariadb]


def write(source: MariadbServer, first: int, last: int) -> None:
    rows = ", ".join(f"({n}, 1)" for n in range(first, last))
    source.sql(f"INSERT INTO {DATABASE}.t VALUES {rows}; UPDATE {DATABASE}.t SET b = b + 1; FLUSH LOGS")


def test_what_a_restored_target_lacks_is_fetched_and_applied_again_once(
    mariadb: MariadbServer, replica: Replica
) -> None:
    """Stopped in order each time, positions in files, relay logs purged: the target's own position is what counts."""
    mariadb.sql(f"DROP DATABASE IF EXISTS {DATABASE}")
    name, position = mariadb.master_status()
    replica.set_up(mariadb, change=("--master-log-file", name, "--master-log-pos", str(position)))
    mariadb.sql(f"CREATE DATABASE {DATABASE}; CREATE TABLE {DATABASE}.t (a INT PRIMARY KEY, b INT)")
    target, backup = replica.datadir / "target.db", replica.datadir.parent / "backup.db"
    write(mariadb, 1, 10)
    replica.run("start", "--until-synced")
    shutil.copy(target, backup)
    at_backup = replica.status()["Exec_Master_Log_Pos"]
    write(mariadb, 10, 20)
    write(mariadb, 20, 30)
    replica.run("start", "--until-synced")
    assert not (replica.datadir / "relay-bin.000001").exists()
    for path in target.parent.glob("target.db-*"):
        path.unlink()
    shutil.copy(backup, target)
    found = replica.run("check", "--json", expect=None)
    assert "target_gone_back" in found.stdout, found.stdout
    done = replica.run("start", "--until-synced")
    assert f":{at_backup}, " in done.stderr and "restored from a backup" in done.stderr
    assert_same_tables(mariadb, replica, DATABASE)
    assert "target_gone_back" not in replica.run("check", "--json", expect=None).stdout
