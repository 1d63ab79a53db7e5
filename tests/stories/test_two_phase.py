"""Commit mode xa from the command line: recorded sources into real servers, killed on the way, as every other mode."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rplctl.failpoint import ENVIRONMENT
from tests.kit.recorded_state import differences, unpacked_log
from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer, MysqlServer
from tests.stories.test_replication_mysql import set_up

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def run_and_be_killed(case: str, replica: Replica, target: MariadbServer, folder: Path, *init: str) -> None:
    """Everything of the recorded source; the applier is killed at its third decision and started again."""
    archive = folder / "archive"
    archive.mkdir()
    unpacked_log(case, archive)
    set_up(replica, target, "--commit-mode", "xa", "--source-time-zone", "UTC", *init)
    replica.run("change-master", "--master-binlog-dir", str(archive))
    points = {ENVIRONMENT: "crash_commit_after_log=kill@3"}
    replica.run("start", "--until-synced", environment=points, expect=None)
    assert len(target.sql("XA RECOVER")) == 1, f"the crash point was not passed: {replica.logs()}"
    replica.run("start", "--until-synced")
    assert replica.status()["Commit_Mode"] == "xa"
    assert target.sql("XA RECOVER") == []
    assert b"prepared:" not in (replica.datadir / "relay-log.info").read_bytes()
    assert sorted(path.name for path in replica.datadir.glob("*.pages")) == []


LONG = [pytest.mark.torture, pytest.mark.spark]


@pytest.mark.long("tests/applier/test_two_phase.py kills an applier at each decision, with fewer statements.")
@pytest.mark.parametrize(
    ("case", "position"),
    [("ma1011-torture-mixed", "line"), pytest.param("ma1011-torture-statement", "pages", marks=LONG)],
)
def test_mariadb_in_two_phases_becomes_what_the_source_was(
    case: str, position: str, replica: Replica, mariadb_factory: Callable[..., MariadbServer], tmp_path: Path
) -> None:
    target = mariadb_factory()
    run_and_be_killed(case, replica, target, tmp_path, "--prepared-position", position)
    assert differences(case, target) == []


@pytest.mark.torture
@pytest.mark.spark
def test_mysql_in_two_phases_becomes_what_the_source_was(
    replica: Replica, mysql_factory: Callable[..., MysqlServer], tmp_path: Path
) -> None:
    target = mysql_factory()
    run_and_be_killed("my97-torture-mixed", replica, target, tmp_path)
    assert differences("my97-torture-mixed", target) == []


@pytest.mark.long("A period of three transactions stays.", keeps=r"3-3")
@pytest.mark.parametrize(("period", "commits"), [(3, 3), (1, 7), (0, 1)])
def test_as_many_transactions_as_sync_relay_log_info_says_share_one_commit_and_sync(
    replica: Replica, mariadb: MariadbServer, mariadb_factory: Callable[..., MariadbServer], period: int, commits: int
) -> None:
    """WL#3970: SYNC_RLI_PERIOD. Seven transactions wait in the relay log; the target counts its XA COMMITs."""
    target = mariadb_factory()
    mariadb.sql("DROP DATABASE IF EXISTS period; CREATE DATABASE period; CREATE TABLE period.t (a INT PRIMARY KEY)")
    set_up(replica, target, "--commit-mode", "xa", "--sync-relay-log-info", str(period))
    target.sql("CREATE DATABASE period; CREATE TABLE period.t (a INT PRIMARY KEY)")
    name, position = mariadb.master_status()
    replica.change_master(mariadb, "--master-log-file", name, "--master-log-pos", str(position))
    replica.run("start", "--until-synced")
    for number in range(7):
        mariadb.sql(f"INSERT INTO period.t VALUES ({number})")
    replica.run("start", "--receiver")
    wait_until(lambda: replica.status()["Read_Master_Log_Pos"] == mariadb.master_status()[1])
    replica.run("stop")
    before = committed(target)
    replica.run("start", "--until-synced")
    assert replica.status()["Commit_Mode"] == "xa"
    assert (committed(target) - before, target.sql("SELECT COUNT(*) FROM period.t")[0][0]) == (commits, 7)


def committed(server: MariadbServer) -> int:
    return int(server.sql("SHOW GLOBAL STATUS LIKE 'Com_xa_commit'")[0][1])
