"""The private servers themselves: they start, keep data over a crash and a restart, and dump alike."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.conftest import Factory
from tests.kit.private_server import OWNER, PrivateServer, remove_left_folders
from tests.kit.servers import MariadbServer, MysqlServer, PostgresqlServer

TABLE = "CREATE TABLE shop.t (id INT PRIMARY KEY, amount DECIMAL(10,2), at {datetime}, name VARCHAR(20))"
ROWS = "INSERT INTO shop.t VALUES (2, 1.50, '2024-02-29 12:00:00', 'Žofie'), (1, NULL, NULL, '')"
DUMP = {"t": [(1, None, None, ""), (2, "1.50", "2024-02-29 12:00:00", "Žofie")]}


def check_life(server: PrivateServer, create_database: str, datetime: str) -> None:
    server.sql(create_database)
    server.sql(TABLE.format(datetime=datetime))
    server.sql(ROWS)
    assert server.dump("shop") == DUMP
    server.kill()
    assert not server.is_running
    server.start()
    assert server.dump("shop") == DUMP
    server.restart()
    assert server.dump("shop", ["t"]) == DUMP
    assert server.sql("SELECT 1; SELECT 2") == [(2,)]


def test_mariadb_keeps_its_data_over_kill_and_restart(mariadb_factory: Factory[MariadbServer]) -> None:
    server = mariadb_factory("--max-binlog-size=8192")
    check_life(server, "CREATE DATABASE shop", "DATETIME")
    assert [path.name for path in server.binlog_files] == ["binlog.000001", "binlog.000002", "binlog.000003"]
    assert server.master_status()[0] == "binlog.000003"
    assert server.sql("SELECT @@max_binlog_size, @@binlog_format, @@binlog_row_metadata") == [(8192, "ROW", "FULL")]


@pytest.mark.long("test_mariadb_keeps_its_data_over_kill_and_restart has the same life.")
def test_mysql_keeps_its_data_over_kill_and_restart(mysql_factory: Factory[MysqlServer]) -> None:
    server = mysql_factory()
    check_life(server, "CREATE DATABASE shop", "DATETIME")
    assert server.master_status()[0] == "binlog.000003"
    assert server.sql("SELECT @@gtid_mode") == [("ON",)]


def test_postgresql_keeps_its_data_over_kill_and_restart(postgresql_factory: Factory[PostgresqlServer]) -> None:
    check_life(postgresql_factory(), "CREATE SCHEMA shop", "TIMESTAMP")


@pytest.mark.long("Many tests of make test start two servers of a kind.")
def test_two_servers_of_a_kind_are_strangers(mysql: MysqlServer, mysql_factory: Factory[MysqlServer]) -> None:
    first, second = mysql, mysql_factory()
    assert first.sql("SELECT @@server_uuid") != second.sql("SELECT @@server_uuid")
    assert first.port != second.port


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=getattr(pytest.mark, kind.kind))
        for kind in (MariadbServer, MysqlServer, PostgresqlServer)
    ],
)
def test_urls_name_the_dialect_and_driver(kind: type[PrivateServer], request: pytest.FixtureRequest) -> None:
    server: PrivateServer = request.getfixturevalue(kind.kind)
    assert server.url("shop").endswith(f"://rpl:rpl@127.0.0.1:{server.port}/shop")


def test_the_folder_of_a_server_whose_run_was_killed_goes_and_that_of_a_living_one_stays(
    mariadb_factory: Factory[MariadbServer],
) -> None:
    living = mariadb_factory()
    left = Path(tempfile.mkdtemp(prefix="rpl-ma-", dir=living.folder.parent))
    (left / OWNER).touch()
    remove_left_folders()
    assert living.folder.exists() and not left.exists()
