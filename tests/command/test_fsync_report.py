"""WL#5125's numbers, counted: on SQLite through strace, on MariaDB and PostgreSQL by their own counters."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rplctl.command.fsync_report import NOT_MEASURED, VARIANTS, FsyncLine, fsync_report
from rplctl.config import Config
from rplctl.errors import UsageError
from tests.servers import MariadbServer, PostgresqlServer

EXPECTED = [("4", 0), ("-", 0), ("-", 2)]


def counted(lines: list[FsyncLine]) -> list[tuple[str, float | None]]:
    return [(line.Variant, line.Counted) for line in lines[: len(VARIANTS)]]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed (apt-get install strace)")
def test_sqlite_adds_no_fsync_in_the_same_engine_and_two_for_a_synced_file(tmp_path: Path) -> None:
    lines = fsync_report(Config(tmp_path), 20)
    assert counted(lines) == EXPECTED
    assert [line.Result for line in lines[:3]] == ["OK"] * 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.mariadb
def test_mariadb_adds_no_fsync_in_the_same_engine_and_leaves_nothing_behind(
    tmp_path: Path, mariadb_factory: Callable[..., MariadbServer]
) -> None:
    server = mariadb_factory("--innodb-flush-log-at-trx-commit=1", "--skip-log-bin", "--skip-log-slave-updates")
    lines = fsync_report(Config(tmp_path, target=server.url()), 50, on_target=True)
    assert counted(lines) == EXPECTED, lines
    assert float(lines[0].Note.split()[0]) >= 1, "the engine syncs each commit"
    assert server.sql("SELECT COUNT(*) FROM rplctl.slave_relay_log_info")[0][0] == 0
    assert server.sql("SELECT COUNT(*) FROM rplctl.rplctl_commit_marker")[0][0] == 0
    assert "rplctl_fsync_probe" not in server.tables("rplctl")


@pytest.mark.slow
@pytest.mark.postgresql
def test_postgresql_adds_no_fsync_in_the_same_engine(
    tmp_path: Path, postgresql: PostgresqlServer, postgresql_factory: Callable[..., PostgresqlServer]
) -> None:
    server = postgresql_factory("-c", "fsync=on", "-c", "autovacuum=off")
    lines = fsync_report(Config(tmp_path, target=server.url()), 50, on_target=True)
    assert counted(lines) == EXPECTED, lines
    assert float(lines[0].Note.split()[0]) >= 1, "the engine syncs each commit"
    assert "rplctl_fsync_probe" not in server.tables("rplctl")
    without = fsync_report(Config(tmp_path, target=postgresql.url()), 1, on_target=True)
    assert "fsync is off" in without[0].Note


def test_what_cannot_be_measured_yet_is_said_with_the_worklogs_number() -> None:
    assert {number: wanted for number, _, wanted, _ in NOT_MEASURED} == {"1": 2, "2": 3, "3": 4, "5": 2}
    assert all("needs" in why for *_, why in NOT_MEASURED)


def test_without_strace_nothing_is_claimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    lines = fsync_report(Config(tmp_path), 1)
    assert [(line.Counted, line.Result) for line in lines] == [(None, "-")] * len(lines)
    assert "strace is not installed" in lines[0].Note


def test_a_wrong_number_of_transactions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="1 to 10000"):
        fsync_report(Config(tmp_path), 0)
