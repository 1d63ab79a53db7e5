"""The target fails exactly where the position moves: an error with its number that is tried again, nothing else."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Connection

from rplctl.applier.apply.batch import KEEPS_CONNECTION
from rplctl.channel import Channel
from rplctl.commit.position_store import open_position_store
from rplctl.commit.step import CommitStep
from rplctl.commit.transaction import commit_after, commit_group
from rplctl.config import Config
from rplctl.errors import TargetError
from rplctl.info import RelayLogInfo
from rplctl.own_tables.tables import create_own_tables
from rplctl.repository import create_tables, open_relay_log_info
from rplctl.target import open_target
from rplctl.target.base import Target
from tests.commit.xa_probe import at, config_of, insert, numbers, prepare
from tests.kit.servers import MariadbServer, MysqlServer, PostgresqlServer

LONG = pytest.mark.long(
    "The cases of the other kinds hold the promise; those of MySQL repeat it.", keeps=r"^(?!.*mysql)"
)

Server = MariadbServer | MysqlServer | PostgresqlServer
KILL = {
    "postgresql": "SELECT pg_terminate_backend({})",
    "mysql": "KILL {}",
    "mariadb": "KILL {}",
}
SHORT_WAIT = {
    "postgresql": "SET lock_timeout = '300ms'",
    "mysql": "SET innodb_lock_wait_timeout = 1",
    "mariadb": "SET innodb_lock_wait_timeout = 1",
}


@pytest.fixture(params=[pytest.param(kind, marks=getattr(pytest.mark, kind)) for kind in KILL])
def server(request: pytest.FixtureRequest) -> Server:
    made: Server = request.getfixturevalue(request.param)
    return made


@pytest.fixture(params=["TABLE", "FILE"])
def config(request: pytest.FixtureRequest, server: Server, tmp_path: Path) -> Config:
    url = server.url("postgres" if server.kind == "postgresql" else "")
    made = replace(config_of(tmp_path, url), commit_mode="auto", relay_log_info_repository=request.param)
    if server.kind == "postgresql":
        server.sql("DROP SCHEMA IF EXISTS rplctl CASCADE")
    else:
        server.sql("DROP DATABASE IF EXISTS rplctl")
    prepare(made)
    return made


@pytest.fixture
def target(config: Config) -> Iterator[Target]:
    made = open_target(config.target_url)
    yield made
    made.close()


def error_where_the_position_moves(
    target: Target, config: Config, incident: Callable[[], object], end: Callable[[], object]
) -> TargetError:
    """Transaction 1 with `incident` right before `advance`: nothing is left of it, and tried again it is there once."""
    way = commit_group if config.relay_log_info_repository == "TABLE" else commit_after
    store = open_position_store(config, Channel("", config.datadir), target.engine)
    info = store.open()
    really = store.advance

    def advance(connection: Connection, expected: RelayLogInfo, new: RelayLogInfo) -> None:
        incident()
        really(connection, expected, new)

    store.advance = advance  # type: ignore[method-assign]
    with pytest.raises(TargetError) as caught:
        way(target, store, CommitStep(info, at(1)), lambda: insert(target, 1))
    end()
    assert numbers(config) == []
    store.advance = really  # type: ignore[method-assign]
    if caught.value.errno not in KEEPS_CONNECTION:
        target.reconnect()  # as the applier does
    way(target, store, CommitStep(info, at(1)), lambda: insert(target, 1))
    assert numbers(config) == [1]
    assert caught.value.transient
    return caught.value


@pytest.mark.long("MariaDB with positions in tables stays.", keeps=r"^mariadb-TABLE$")
@LONG
def test_a_connection_killed_where_the_position_moves_is_lost_and_tried_again(
    server: Server, config: Config, target: Target
) -> None:
    target.fence("")
    sql = "SELECT pg_backend_pid()" if server.kind == "postgresql" else "SELECT CONNECTION_ID()"
    identifier = target.connection.exec_driver_sql(sql).scalar()
    target.connection.rollback()
    kill = KILL[server.kind].format(identifier)
    error = error_where_the_position_moves(target, config, lambda: server.sql(kill), lambda: None)
    assert error.errno in (2013, 2006), error


@pytest.mark.long("MariaDB with positions in tables stays.", keeps=r"^mariadb-TABLE$")
@LONG
def test_a_lock_wait_where_the_position_moves_is_tried_again_on_the_same_connection(
    server: Server, config: Config, target: Target
) -> None:
    table = "slave_relay_log_info" if config.relay_log_info_repository == "TABLE" else "rplctl_commit_marker"
    target.connection.exec_driver_sql(SHORT_WAIT[server.kind])
    target.connection.commit()
    with target.engine.connect() as other:
        lock = f"SELECT * FROM rplctl.{table} FOR UPDATE"
        error = error_where_the_position_moves(target, config, lambda: other.exec_driver_sql(lock), other.rollback)
    assert error.errno == 1205, error


@pytest.mark.parametrize("kind", ["TABLE", "FILE"])
def test_another_writer_in_sqlite_is_a_lock_wait_too(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rplctl.target.sqlite.target.BUSY_TIMEOUT_MS", 200)
    config = Config(tmp_path, relay_log_info_repository=kind)
    target = open_target(config.target_url)
    create_own_tables(target.engine)
    create_tables(target.engine, "")
    open_relay_log_info(config, Channel("", tmp_path), lambda: target.engine).flush(at(0), force=True)
    target.connection.exec_driver_sql("CREATE TABLE probe (seq INTEGER PRIMARY KEY)")
    target.connection.commit()
    store = open_position_store(config, Channel("", tmp_path), target.engine)
    info = store.open()
    with closing(sqlite3.connect(tmp_path / "target.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(TargetError) as caught:
            commit_group(target, store, CommitStep(info, at(1)), lambda: None)
        other.execute("ROLLBACK")
    assert (caught.value.errno, caught.value.transient) == (1205, True)
    commit_group(target, store, CommitStep(info, at(1)), lambda: None)
    stored = store.stored(target.connection)
    assert stored is not None and stored.exec_position == at(1).exec_position
    target.close()
