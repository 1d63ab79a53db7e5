"""End to end into MySQL and MariaDB: recorded logs of real sources, the command line, a real server; a real Spark
where marked.

The expectation is what the source itself printed at its end: every type, charset and key, rows and statements, DDL,
triggers, XA, savepoints, MyISAM, system versioning (issue: a target of the same kind, types between real servers).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.recorded_state import differences, unpacked_log
from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer, MysqlServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

MARIADB_CASES = [
    pytest.param("ma1011-torture-row", marks=pytest.mark.torture),  # half of the mixed one
    pytest.param("ma1011-torture-mixed", marks=pytest.mark.spark),
    "ma1011-torture-statement",
]
OTHER_FORMS = ("my97-torture-rowsquery", "my97-torture-compress-l1", "my97-torture-nogtid")  # of the row log
MYSQL_CASES = [
    pytest.param("my97-torture-row", marks=pytest.mark.torture),
    pytest.param("my97-torture-mixed", marks=pytest.mark.spark),
    *(pytest.param(case, marks=[pytest.mark.spark, pytest.mark.torture]) for case in OTHER_FORMS),
]


def set_up(replica: Replica, target: MariadbServer, *init: str) -> None:
    """init with the target's URL on the command line and its password in a file."""
    replica.run("init", *replica.into(target), *init)


def apply(case: str, replica: Replica, target: MariadbServer, folder: Path, repository: str) -> None:
    archive = folder / "archive"
    archive.mkdir()
    unpacked_log(case, archive)
    kinds = ("--relay-log-info-repository", repository, "--master-info-repository", repository)
    set_up(replica, target, *kinds, "--source-time-zone", "UTC")  # a folder does not say it, and statements use it
    replica.run("change-master", "--master-binlog-dir", str(archive))
    replica.run("start", "--until-synced")


@pytest.mark.long("tests/stories/test_examples.py applies a log to a MariaDB in make test.")
@pytest.mark.parametrize("case", MARIADB_CASES)
def test_mariadb_becomes_what_the_mariadb_source_was(
    case: str, replica: Replica, mariadb_factory: Callable[..., MariadbServer], tmp_path: Path
) -> None:
    target = mariadb_factory()
    apply(case, replica, target, tmp_path, "file" if case.endswith("mixed") else "table")
    assert differences(case, target) == []


@pytest.mark.long(
    "tests/command/test_clone_ladder.py::test_a_mysql_source_is_copied_by_gtid follows a MySQL in make test.",
)
@pytest.mark.parametrize("case", MYSQL_CASES)
def test_mysql_becomes_what_the_mysql_source_was(
    case: str, replica: Replica, mysql_factory: Callable[..., MysqlServer], tmp_path: Path
) -> None:
    target = mysql_factory()
    apply(case, replica, target, tmp_path, "file" if case.endswith("mixed") else "table")
    assert differences(case, target) == []


LIVE = """
DROP DATABASE IF EXISTS live;
CREATE DATABASE live;
USE live;
CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(20) CHARACTER SET latin1, at TIMESTAMP(6) NULL);
INSERT INTO t (v, at) VALUES ('a', NOW(6)), ('ä', NULL);
SET SESSION binlog_format=STATEMENT;
SET @chosen := 'from a variable';
INSERT INTO t (v, at) VALUES (@chosen, NOW(6)), (CONCAT('r', FLOOR(RAND() * 1000000)), NULL);
SET SESSION binlog_format=ROW;
"""


@pytest.fixture
def source_and_target(
    mariadb: MariadbServer, mariadb_factory: Callable[..., MariadbServer]
) -> tuple[MariadbServer, MariadbServer]:
    mariadb.sql("RESET MASTER")
    mariadb.sql(LIVE)
    return mariadb, mariadb_factory()


@pytest.mark.long("tests/commit/test_noted.py kills around each statement in make test.")
def test_a_crash_between_ddl_and_its_position_moves_only_the_position(
    replica: Replica, source_and_target: tuple[MariadbServer, MariadbServer]
) -> None:
    source, target = source_and_target
    set_up(replica, target, "--relay-log-info-repository", "table")
    replica.change_master(source)
    replica.run("start", "--until-synced")
    assert target.dump("live") == source.dump("live")

    source.sql("ALTER TABLE live.t ADD COLUMN n INT DEFAULT 7")
    replica.run("start", "--receiver")
    wait_until(lambda: replica.status()["Read_Master_Log_Pos"] == source.master_status()[1])
    replica.run("stop")
    armed = {"RPLCTL_FAILPOINTS": "crash_after_commit_before_update_pos=kill"}
    for _ in range(5):  # the point is passed after the control events before it, too
        replica.run("start", "--applier", expect=None, environment=armed)
        wait_until(lambda: replica.pid("applier") is None)
        if target.rows("live", "t") == source.rows("live", "t"):
            break
    assert len(target.rows("live", "t")[0]) == 4  # altered, but its position was not stored
    source.sql("INSERT INTO live.t (v) VALUES ('after')")
    replica.run("start", "--until-synced")
    assert target.dump("live") == source.dump("live")


def test_the_target_password_is_refused_on_the_command_line_and_kept_in_no_file_in_clear(
    replica: Replica, mariadb: MariadbServer
) -> None:
    refused = replica.run("init", "--target", mariadb.url(), expect=2)
    assert "--target-password-file" in refused.stderr
    set_up(replica, mariadb, "--relay-log-info-repository", "table", "--master-info-repository", "table")
    written = b"".join(path.read_bytes() for path in replica.datadir.rglob("*") if path.is_file())
    assert b"mysql://rpl@" in written
    assert b"rpl:rpl" not in written
    assert b'target_password = "rpl"' not in written
