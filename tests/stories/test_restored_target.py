"""A target put back from an older backup, and the channel that goes on with it: what an operator sees (design D3)."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from tests.kit.replica import Replica, assert_same_tables, purge_logs, wait_until
from tests.kit.servers import MariadbServer

DATABASE = "restored"

pytestmark = [pytest.mark.slow, pytest.mark.mariadb]


def write(source: MariadbServer, first: int, last: int) -> None:
    rows = ", ".join(f"({n}, 1)" for n in range(first, last))
    source.sql(f"INSERT INTO {DATABASE}.t VALUES {rows}; UPDATE {DATABASE}.t SET b = b + 1; FLUSH LOGS")


@pytest.mark.long("tests/command/process/test_unfit_target.py meets such targets in make test.")
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


def test_a_purge_keeps_the_relay_logs_that_a_restored_target_lacks(mariadb: MariadbServer, replica: Replica) -> None:
    """The source has purged its logs, and cron purges the relay logs before anybody starts the channel."""
    mariadb.sql(f"DROP DATABASE IF EXISTS {DATABASE}; RESET MASTER")
    replica.set_up(mariadb, "--relay-log-purge", "false")
    mariadb.sql(f"CREATE DATABASE {DATABASE}; CREATE TABLE {DATABASE}.t (a INT PRIMARY KEY, b INT)")
    target, backup = replica.datadir / "target.db", replica.datadir.parent / "backup.db"
    write(mariadb, 1, 10)
    replica.run("start", "--until-synced")
    shutil.copy(target, backup)
    for first in (10, 20):
        write(mariadb, first, first + 10)
        replica.run("start", "--until-synced")  # each start begins a relay log
    for path in target.parent.glob("target.db-*"):
        path.unlink()
    shutil.copy(backup, target)
    replica.run("purge-relay-logs")
    purge_logs(mariadb, mariadb.master_status()[0])
    replica.run("start", "--until-synced")
    assert_same_tables(mariadb, replica, DATABASE)
    removed = re.search(r"(\d+) relay logs removed", replica.run("purge-relay-logs").stdout)
    assert removed and int(removed[1]) >= 2, "a start begins one relay log, and one more if the source's log just ended"


def test_a_target_that_was_removed_is_refused_and_the_hint_leads_back(mariadb: MariadbServer, replica: Replica) -> None:
    """Nothing is applied into the empty target; what the error names, typed as it stands, ends with an equal copy."""
    mariadb.sql(f"DROP DATABASE IF EXISTS {DATABASE}")
    name, position = mariadb.master_status()
    replica.set_up(mariadb, change=("--master-log-file", name, "--master-log-pos", str(position)))
    mariadb.sql(f"CREATE DATABASE {DATABASE}; CREATE TABLE {DATABASE}.t (a INT PRIMARY KEY, b INT)")
    write(mariadb, 1, 10)
    replica.run("start", "--until-synced")
    for path in replica.datadir.glob("target.db*"):
        path.unlink()
    write(mariadb, 10, 20)
    refused = replica.run("start", "--until-synced", expect=7)
    assert "is lost" in refused.stderr and not (replica.datadir / "target.db").exists()
    for arguments in (("check",), ("check", "--offline"), ("check", "--online")):
        assert "target_lost" in replica.run(*arguments, expect=2).stdout
    assert replica.status()["Target_State"] == "target_lost"
    line = next(line for line in refused.stderr.splitlines() if "empty target" in line)
    commands = line.partition("empty target, run: ")[2].split(" && ")
    assert commands == ["rplctl reset --yes", "rplctl clone", "rplctl start"]
    for command in commands:
        replica.run(*command.split()[1:])
    wait_until(lambda: {row["State"] for row in json.loads(replica.run("show-clone", "--json").stdout)} == {"done"})
    replica.wait_synced(mariadb)
    replica.run("verify")
    replica.run("stop")
    assert_same_tables(mariadb, replica, DATABASE)
