"""doctor's answer about power cuts: what each kind of target's settings let it take, read from real servers."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rplctl.command.doctor import doctor
from rplctl.config import Config
from rplctl.target import open_target
from rplctl.target.dialect import FAIL, OK, WARN
from rplctl.target.mysql.doctor import judge_innodb
from tests.kit.servers import MariadbServer, MysqlServer, PostgresqlServer


def answers(config: Config) -> list[tuple[str, str, str]]:
    """(result, detail, hint) of what is said of the target."""
    return [(f.Result, f.Detail, f.Hint) for f in doctor(config, []) if f.Check == "power cut"]


def test_sqlite_keeps_what_it_committed_and_the_relay_log_is_fetched_again(tmp_path: Path) -> None:
    config = Config(tmp_path)
    target = open_target(config.target_url)
    target.connection.exec_driver_sql("CREATE TABLE t (id int)")
    target.close()
    assert answers(config) == [(OK, "takes no committed row from the target, nor its position", "")]
    said = {f.Check: f.Detail for f in doctor(replace(config, sync_relay_log=0), [])}
    assert "since its last rotation" in said["power cut, relay log"]


def innodb(server: MariadbServer | MysqlServer, folder: Path, *names: str) -> None:
    """Each setting in turn is named with the one that mends it; all sound, nothing is."""
    config = Config(folder, target=server.url())
    before = {name: server.sql(f"SELECT @@GLOBAL.{name}")[0][0] for name in names}
    sound = dict.fromkeys(names, 1)
    try:
        for name, value in sound.items():
            server.sql(f"SET GLOBAL {name}={value}")
        doublewrite = [line for line in answers(config) if "innodb_doublewrite" not in line[1]]
        assert all(line[0] == OK for line in doublewrite), doublewrite
        for name in names:
            for value in (0, 2):
                server.sql(f"SET GLOBAL {name}={value}")
                found = [line for line in answers(config) if line[1].startswith(f"{name} is {value}: loses ")]
                assert len(found) == 1 and found[0][0] == WARN and f"SET GLOBAL {name}=1" in found[0][2]
                assert "rows and position together" in found[0][1]
            apart = [line for line in answers(replace(config, commit_mode="xa")) if line[1].startswith(name)]
            assert "without their position" in apart[0][1]
            server.sql(f"SET GLOBAL {name}=1")
    finally:
        for name, value in before.items():
            server.sql(f"SET GLOBAL {name}={value}")


@pytest.mark.mariadb
def test_mariadb_is_asked_how_it_syncs_its_log_and_its_commits(tmp_path: Path, mariadb: MariadbServer) -> None:
    innodb(mariadb, tmp_path, "innodb_flush_log_at_trx_commit", "sync_binlog")
    before = mariadb.sql("SELECT @@GLOBAL.innodb_flush_log_at_trx_commit")[0][0]
    mariadb.sql("SET GLOBAL innodb_flush_log_at_trx_commit=3")
    try:
        assert not any("trx_commit" in line[1] for line in answers(Config(tmp_path, target=mariadb.url())))
    finally:
        mariadb.sql(f"SET GLOBAL innodb_flush_log_at_trx_commit={before}")


@pytest.mark.mysql
def test_mysql_is_asked_how_it_syncs_its_log_and_its_commits(tmp_path: Path, mysql: MysqlServer) -> None:
    innodb(mysql, tmp_path, "innodb_flush_log_at_trx_commit", "sync_binlog")


@pytest.mark.postgresql
def test_postgresql_is_asked_whether_it_syncs_and_writes_whole_pages(
    tmp_path: Path, postgresql_factory: Callable[..., PostgresqlServer]
) -> None:
    """synchronous_commit=off is none of it: our sessions commit synchronously whatever the server's default is."""
    server = postgresql_factory("-c", "fsync=off", "-c", "full_page_writes=off", "-c", "synchronous_commit=off")
    config = Config(tmp_path, target=server.url("postgres"))
    found = answers(config)
    assert [(result, detail.partition(":")[0]) for result, detail, _ in found] == [
        (WARN, "fsync is off"),
        (WARN, "full_page_writes is off"),
    ]
    assert all("ALTER SYSTEM" in hint for _, _, hint in found)
    target = open_target(config.target_url)
    assert target.connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
    target.close()


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("innodb_doublewrite", "OFF"),
        ("innodb_doublewrite", "DETECT_ONLY"),
        ("innodb_flush_method", "nosync"),
        ("innodb_redo_log_enabled", "OFF"),
    ],
)
def test_what_may_damage_an_innodb_says_so(setting: str, value: str) -> None:
    sound = {"innodb_doublewrite": "ON", "innodb_flush_method": "O_DIRECT", "innodb_redo_log_enabled": "ON"}
    assert list(judge_innodb(sound, "")) == []
    found = list(judge_innodb(sound | {setting: value}, ""))
    assert len(found) == 1 and found[0].Result == WARN and "may be damaged" in found[0].Detail and found[0].Hint


@pytest.mark.long("One case stays in make test.", keeps=r"^wanted0$")
@pytest.mark.postgresql
@pytest.mark.parametrize("wanted", [{"commit_mode": "xa"}, {"replica_parallel_workers": 4}])
def test_whether_a_target_can_prepare_is_told_before_a_start(
    tmp_path: Path, postgresql_factory: Callable[..., PostgresqlServer], wanted: dict[str, Any]
) -> None:
    def told(slots: int) -> list[tuple[str, str]]:
        server = postgresql_factory("-c", f"max_prepared_transactions={slots}", "-c", "fsync=on")
        config = Config(tmp_path, target=server.url("postgres"), **wanted)
        return [(line.Result, line.Hint) for line in doctor(config, []) if line.Check == "two phases"]

    ((result, hint),) = told(0)
    assert result == FAIL and "ALTER SYSTEM SET max_prepared_transactions" in hint
    assert told(4) == [(OK, "")]


@pytest.mark.parametrize("is_made", [True, False])
def test_a_target_that_never_prepares_is_told_only_where_that_is_asked_for(tmp_path: Path, *, is_made: bool) -> None:
    if is_made:
        sqlite3.connect(tmp_path / "target.db").close()
    lines = {line.Check: line.Result for line in doctor(Config(tmp_path, replica_parallel_workers=2), [])}
    assert lines["two phases"] == FAIL
    assert "two phases" not in {line.Check for line in doctor(Config(tmp_path), [])}
