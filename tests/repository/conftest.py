"""Engines on an empty target of each kind: SQLite always, the servers of tests/kit/servers.py where they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, NullPool, create_engine, event, text

from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.info import MasterInfo, RelayLogInfo

SERVERS = [
    pytest.param("mariadb", marks=pytest.mark.mariadb),
    pytest.param("mysql", marks=[pytest.mark.mysql, pytest.mark.slow]),
    pytest.param("postgresql", marks=pytest.mark.postgresql),
]

MASTER = MasterInfo(
    master_log_name="binlog.000003",
    master_log_pos=(1 << 32) + 1170,
    host="db1.example.org",
    user_name="repl",
    user_password="encrypted:Zm9v",
    heartbeat=4294967.125,
    enabled_ssl=True,
    ssl_ca="/etc/ssl/ca.pem",
    ignored_server_ids=(3, 7),
    uuid="944e4cd0-e54e-11f1-8477-02fc00000001",
    using_gtid=2,
    do_domain_ids=(1, 3),
    tls_ciphersuites="",
    master_id=7,
    master_server_id=15001,
    flushed_relay_log_name="relay-bin.000002",
    flushed_relay_log_pos=2763,
)
RELAY = RelayLogInfo(
    relay_log_name="relay-bin.000002",
    relay_log_pos=2763,
    master_log_name="binlog.000001",
    master_log_pos=2552,
    sql_delay=30,
    privilege_checks_username="applier",
    require_table_primary_key_check="GENERATE",
    master_id=7,
    gtid_executed="4a792a7a-e547-11f1-801b-02fc00000001:1-9",
)


@dataclass(frozen=True)
class Target:
    """An empty target: `engine()` opens it anew, as each command does."""

    kind: str
    engine: Callable[[], Engine]

    def execute(self, statement: str) -> None:
        """As its super user; names as MySQL writes them."""
        with self.engine().begin() as connection:
            connection.execute(text(statement))

    def table(self, name: str) -> str:
        return name if self.kind == "sqlite" else f"rplctl.{name}"


def sqlite_engine(path: Path) -> Engine:
    engine = create_engine(
        f"sqlite:///{path}", connect_args={"isolation_level": None, "timeout": 180}, poolclass=NullPool
    )

    @event.listens_for(engine, "begin")
    def begin(connection: Any) -> None:
        read_only = connection.get_execution_options().get("rplctl_read_only")
        connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")

    return engine


def server_engine(kind: str, server: Any) -> Callable[[], Engine]:
    if kind == "postgresql":
        return lambda: create_engine(server.url("postgres"), poolclass=NullPool)
    # a socket needs no TLS, for which PyMySQL would read all of the machine's certificates: 50 ms of each connection
    options = {"unix_socket": str(server.socket), "ssl_disabled": True}
    return lambda: create_engine(server.url(), connect_args=options, poolclass=NullPool)


def open_target(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Target:
    if kind == "sqlite":
        return Target(kind, lambda: sqlite_engine(tmp_path / "target.db"))
    target = Target(kind, server_engine(kind, request.getfixturevalue(kind)))
    target.execute("DROP SCHEMA IF EXISTS rplctl" + (" CASCADE" if kind == "postgresql" else ""))
    return target


@pytest.fixture(params=["sqlite", *SERVERS])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Target:
    return open_target(request.param, tmp_path, request)


@pytest.fixture
def sqlite_target(request: pytest.FixtureRequest, tmp_path: Path) -> Target:
    return open_target("sqlite", tmp_path, request)


@pytest.fixture
def channel(datadir: Path) -> Channel:
    return Channel("East 1/ä", datadir)


@pytest.fixture
def datadir(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "instance"
    folder.mkdir(mode=0o700)
    yield folder


def config_of(datadir: Path, kind: str, **options: Any) -> Config:
    return Config(datadir, master_info_repository=kind, relay_log_info_repository=kind, **options)
