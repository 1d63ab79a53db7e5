"""The same filters on a MariaDB replica and on ours: the same tables arrive, with the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kit.replica import Replica
from tests.kit.servers import MariadbServer

pytestmark = [pytest.mark.slow, pytest.mark.mariadb]

DATABASES = ("shop", "other", "tmp_1", "tmpx1", "store")
SCRIPT = (
    *(f"CREATE DATABASE IF NOT EXISTS {name}" for name in DATABASES),
    "USE shop",
    "CREATE TABLE items (id INT PRIMARY KEY, name VARCHAR(20))",
    "CREATE TABLE Things (id INT PRIMARY KEY)",
    "CREATE TABLE log_a (id INT PRIMARY KEY)",
    "CREATE TABLE logxb (id INT PRIMARY KEY)",
    "CREATE TABLE old (id INT PRIMARY KEY)",
    "CREATE TABLE other.made_in_shop (id INT PRIMARY KEY)",
    "USE other",
    "CREATE TABLE items (id INT PRIMARY KEY)",
    "CREATE TABLE shop.made_in_other (id INT PRIMARY KEY)",
    "CREATE TABLE tmp_1.t (id INT PRIMARY KEY)",
    "CREATE TABLE tmpx1.t (id INT PRIMARY KEY)",
    "BEGIN",
    "INSERT INTO shop.items VALUES (1, 'one'), (2, 'two')",
    "INSERT INTO items VALUES (1)",
    "INSERT INTO shop.logxb VALUES (1), (2)",
    "UPDATE shop.items SET name = 'uno' WHERE id = 1",
    "COMMIT",
    "USE shop",
    "INSERT INTO log_a VALUES (1)",
    "INSERT INTO Things VALUES (7)",
    "ALTER TABLE log_a ADD COLUMN more INT",
    "INSERT INTO log_a VALUES (2, 2)",
    "RENAME TABLE old TO older",
    "INSERT INTO older VALUES (1)",
    "TRUNCATE TABLE logxb",
    "INSERT INTO items VALUES (3, 'three')",
)


@pytest.fixture(scope="module")
def source(mariadb_factory: Callable[..., MariadbServer]) -> Iterator[MariadbServer]:
    server = mariadb_factory("--binlog-row-metadata=FULL")
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in SCRIPT:
            cursor.execute(statement)
    yield server


def server_side(server: MariadbServer, source: MariadbServer) -> dict[str, int]:
    """Tables and their rows on a MariaDB replica with the options it was started with."""
    for name in DATABASES:
        server.sql(f"CREATE DATABASE {name}")
    log, position = source.master_status()
    server.sql(
        f"CHANGE MASTER TO MASTER_CONNECT_RETRY=1, "
        f"MASTER_HOST='{source.host}', MASTER_PORT={source.port}, MASTER_USER='rpl',"
        " MASTER_PASSWORD='rpl', MASTER_LOG_FILE='binlog.000001', MASTER_LOG_POS=4; START SLAVE"
    )
    assert server.sql(f"SELECT MASTER_POS_WAIT('{log}', {position}, 280)")[0][0] >= 0, server.sql("SHOW SLAVE STATUS")
    names = [(name, table) for name in DATABASES for table in server.tables(name)]
    return {f"{name}.{table}": int(server.sql(f"SELECT COUNT(*) FROM {name}.{table}")[0][0]) for name, table in names}


def our_side(replica: Replica, source: MariadbServer, options: dict[str, str]) -> dict[str, int]:
    replica.set_up(source)
    flags = [part for name, value in options.items() for rule in value.split(",") for part in (f"--{name}", rule)]
    if flags:
        replica.run("change-filter", *flags)
    replica.run("start", "--until-synced", "--max-time", "120")
    names = replica.query("SELECT name FROM sqlite_master WHERE type='table' AND name LIKE '%\\_\\_%' ESCAPE '\\'")
    return {
        name.replace("__", ".", 1): int(replica.query(f'SELECT COUNT(*) FROM "{name}"')[0][0])
        for (name,) in names
        if name.split("__")[0] in DATABASES
    }


@pytest.mark.long("One set of filters stays.", keeps=r"^wild-do-table")
@pytest.mark.parametrize(
    "options",
    [
        {"replicate-do-db": "shop"},
        {"replicate-ignore-db": "other"},
        {"replicate-wild-do-table": r"shop.%,tmp\_1.%", "replicate-ignore-table": "shop.log_a"},
        {"replicate-do-table": "shop.items,other.items", "replicate-wild-ignore-table": "%.%"},
        {"replicate-wild-ignore-table": "shop.log_%,tmp%.%"},
        {"replicate-rewrite-db": "shop->store", "replicate-do-db": "store"},
        {"replicate-rewrite-db": "shop->store,other->tmpx1", "replicate-wild-ignore-table": "tmp%.%"},
    ],
    ids=lambda options: " ".join(f"{name.removeprefix('replicate-')}={value}" for name, value in options.items()),
)
def test_the_same_tables_and_rows_arrive_as_on_a_mariadb_replica(
    source: MariadbServer, mariadb_factory: Callable[..., MariadbServer], tmp_path: Path, options: dict[str, str]
) -> None:
    given = [f"--{name}={rule}" for name, value in options.items() for rule in value.split(",")]
    server = mariadb_factory(*given)
    try:
        expected = server_side(server, source)
    finally:
        server.kill()
    replica = Replica(tmp_path, spark=False)
    try:
        assert our_side(replica, source, options) == expected
        assert expected and expected != source_side(source)
        shown = replica.status()
        assert not shown["Last_SQL_Error"]
        assert (shown["Relay_Master_Log_File"], shown["Exec_Master_Log_Pos"]) == source.master_status()
    finally:
        replica.close()


def source_side(source: MariadbServer) -> dict[str, int]:
    names = [(name, table) for name in DATABASES for table in source.tables(name)]
    return {f"{name}.{table}": int(source.sql(f"SELECT COUNT(*) FROM {name}.{table}")[0][0]) for name, table in names}


def test_a_statement_without_a_default_database_passes_by_its_tables(
    mariadb_factory: Callable[..., MariadbServer], tmp_path: Path
) -> None:
    """A native replica leaves both tables out, and its rows stop for want of the first."""
    source, native = mariadb_factory(), mariadb_factory("--replicate-do-db=shop")
    source.sql("CREATE DATABASE shop; CREATE DATABASE other")
    source.sql("CREATE TABLE shop.bare (n INT); CREATE TABLE other.bare (n INT)")
    source.sql("USE shop; CREATE TABLE made (n INT); CREATE TABLE shop.x (n INT)")
    expected = {name: rows for name, rows in server_side(native, source).items() if "bare" not in name}
    replica = Replica(tmp_path, spark=False)
    try:
        assert our_side(replica, source, {"replicate-do-db": "shop"}) == expected | {"shop.bare": 0}
    finally:
        replica.close()
    assert native.tables("shop") == ["made", "x"] and native.tables("other") == []
