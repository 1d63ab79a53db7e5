"""WL#5125's numbers, counted: on SQLite through strace, on MariaDB and PostgreSQL by their own counters."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rplctl.command.fsync_report import VARIANTS, FsyncLine, fsync_report
from rplctl.config import Config
from rplctl.errors import UsageError
from tests.cli.test_json_page import PAGE
from tests.kit.servers import MariadbServer, PostgresqlServer

EVERYWHERE = [("4", 0.0), ("-", 0.0), ("-", 2.0)]


Counted = list[tuple[str, float | None]]


def on_server(folder: Path, url: str, expected: Counted) -> list[FsyncLine]:
    """The report. A server also syncs for itself, when it comes to it, and counts that along: then once more."""
    for _ in range(5):
        lines = fsync_report(Config(folder, target=url), 50, on_target=True)
        if counted(lines) == expected:
            break
    assert counted(lines) == expected, lines
    return lines


def counted(lines: list[FsyncLine]) -> Counted:
    """Of the variants that were counted."""
    return [(line.Variant, line.Counted) for line in lines if line.Counted is not None]


def test_page() -> None:
    assert PAGE["fsync-report"] == list(FsyncLine.__dataclass_fields__)


@pytest.mark.long("It measures a disk; no promise of the replica depends on it.")
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed (apt-get install strace)")
def test_sqlite_adds_no_fsync_in_the_same_engine_and_two_for_a_synced_file(tmp_path: Path) -> None:
    lines = fsync_report(Config(tmp_path), 20)
    assert counted(lines) == EVERYWHERE
    assert {line.Result for line in lines} == {"OK", "-"}
    assert "SQLite cannot prepare" in lines[0].Note
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long("It measures a disk; no promise of the replica depends on it.")
@pytest.mark.slow
@pytest.mark.mariadb
def test_mariadb_adds_what_the_worklog_says_and_nothing_is_left_behind(
    tmp_path: Path, mariadb_factory: Callable[..., MariadbServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MariadbServer, "in_memory", False)  # InnoDB syncs less there
    server = mariadb_factory("--innodb-flush-log-at-trx-commit=1", "--skip-log-bin", "--skip-log-slave-updates")
    expected: Counted = [("1", 2.0), ("2", 3.0), ("3", 4.0), ("4", 0.0), ("5", 2.0), ("-", 4.0), ("-", 0.0), ("-", 2.0)]
    lines = on_server(tmp_path, server.url(), expected)
    assert float(lines[0].Note.split()[0]) >= 1, "the engine syncs each commit"
    in_innodb = "SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_NAME = 'slave_relay_log_info'"
    assert server.sql(f"{in_innodb} AND TABLE_SCHEMA = 'rplctl'") == [("InnoDB",)]
    assert server.sql("XA RECOVER") == []
    assert server.sql("SELECT COUNT(*) FROM rplctl.slave_relay_log_info")[0][0] == 0
    assert server.sql("SELECT COUNT(*) FROM rplctl.rplctl_commit_marker")[0][0] == 0
    assert "rplctl_fsync_probe" not in server.tables("rplctl")
    assert server.sql("SELECT COUNT(*) FROM rplctl.rplctl_channel_owner")[0][0] == 0
    again = fsync_report(Config(tmp_path, target=server.url()), 5, on_target=True)
    assert [line.Counted is None for line in again] == [line.Counted is None for line in lines]


@pytest.mark.long("It measures a disk; no promise of the replica depends on it.")
@pytest.mark.slow
@pytest.mark.postgresql
def test_postgresql_adds_what_the_worklog_says(
    tmp_path: Path, postgresql: PostgresqlServer, postgresql_factory: Callable[..., PostgresqlServer]
) -> None:
    server = postgresql_factory("-c", "fsync=on", "-c", "autovacuum=off")
    expected: Counted = [("1", 2.0), ("2", 3.0), ("3", 4.0), ("4", 0.0), ("-", 4.0), ("-", 0.0), ("-", 2.0)]
    lines = on_server(tmp_path, server.url(), expected)
    assert float(lines[0].Note.split()[0]) >= 1, "the engine syncs each commit"
    assert "rplctl_fsync_probe" not in server.tables("rplctl")
    without = fsync_report(Config(tmp_path, target=postgresql.url()), 1, on_target=True)
    assert "fsync is off" in without[0].Note


def test_the_variants_are_the_worklogs_with_its_numbers() -> None:
    assert {v.number: v.expected for v in VARIANTS if v.number != "-"} == {"1": 2, "2": 3, "3": 4, "4": 0, "5": 2}


def test_without_strace_nothing_is_claimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    lines = fsync_report(Config(tmp_path), 1)
    assert [(line.Counted, line.Result) for line in lines] == [(None, "-")] * len(lines)
    assert "strace is not installed" in lines[0].Note


def test_a_wrong_number_of_transactions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="1 to 10000"):
        fsync_report(Config(tmp_path), 0)
