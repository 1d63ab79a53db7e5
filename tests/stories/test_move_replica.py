"""A replica moves to rplctl and back: real servers, their own files and tables (WL#2775)."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.replica import Replica, assert_same_tables, wait_until
from tests.kit.servers import MariadbServer, MysqlServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SCHEMA = "CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY, note VARCHAR(40) CHARACTER SET utf8mb4)"


@pytest.fixture
def ours(replica: Replica) -> Replica:
    return replica


def write(server: MariadbServer, first: int, last: int) -> None:
    for number in range(first, last):
        server.sql(f"INSERT INTO shop.t VALUES ({number}, 'row {number} ä'); UPDATE shop.t SET note=CONCAT(note,'!')"
                   f" WHERE id={number - 1}")  # fmt: skip


def rows(server: MariadbServer) -> list[tuple[object, ...]]:
    return sorted(server.rows("shop", "t"))


def seed_target(ours: Replica, server: MariadbServer) -> None:
    """The replica's data move as a backup would: its tables and rows into our target, here through load-schema."""
    import sqlite3

    dump = ours.datadir.parent / "schema.sql"
    create = server.sql("SHOW CREATE TABLE shop.t")[0][1]
    dump.write_text(f"CREATE DATABASE `shop`;\nUSE `shop`;\n{create};\n")
    ours.run("load-schema", str(dump))
    with sqlite3.connect(ours.datadir / "target.db") as connection:
        connection.executemany("INSERT INTO shop__t VALUES (?, ?)", server.rows("shop", "t"))
    connection.close()


def test_a_mariadb_replica_moves_to_rplctl_and_back(
    mariadb_factory: Callable[..., MariadbServer], ours: Replica, tmp_path: Path
) -> None:
    source, replica = mariadb_factory(), mariadb_factory()
    source.sql("RESET MASTER; " + SCHEMA)
    write(source, 1, 20)
    replica.sql(
        f"CHANGE MASTER TO MASTER_CONNECT_RETRY=1, "
        f"MASTER_HOST='{source.host}', MASTER_PORT={source.port}, MASTER_USER='rpl', "
        "MASTER_PASSWORD='rpl', MASTER_LOG_FILE='binlog.000001', MASTER_LOG_POS=4, MASTER_USE_GTID=no, "
        "MASTER_CONNECT_RETRY=1; START SLAVE"
    )
    name, position = source.master_status()
    assert replica.sql(f"SELECT MASTER_POS_WAIT('{name}', {position}, 280)")[0][0] >= 0
    replica.sql("STOP SLAVE")
    ours.run("init")
    ours.run("import-info", str(replica.data))
    seed_target(ours, replica)
    write(source, 20, 50)  # nobody but rplctl replicates these
    ours.run("start", "--until-synced")
    assert_same_tables(source, ours, "shop")
    status = ours.status()
    assert (status["Relay_Master_Log_File"], status["Exec_Master_Log_Pos"]) == source.master_status()

    write(source, 50, 60)
    ours.run("export-info", "--server", "mariadb", str(tmp_path / "back"))
    replica.sql("DELETE FROM shop.t; SET GLOBAL read_only=0")
    for row in ours.query("SELECT id, note FROM shop__t"):
        replica.sql(f"INSERT INTO shop.t VALUES ({row[0]}, '{row[1]}')")
    replica.stop()
    for file in ("master.info", "relay-log.info"):
        (replica.data / file).write_bytes((tmp_path / "back" / file).read_bytes())
    replica.options.append("--relay-log-recovery=1")
    replica.start()
    replica.sql("START SLAVE")
    wait_until(lambda: rows(replica) == rows(source))
    errors = replica.sql("SHOW SLAVE STATUS")[0]
    assert 0 in errors and rows(replica)[-1][0] == 59


@pytest.mark.long("test_a_mariadb_replica_moves_to_rplctl_and_back exports the same position.")
def test_the_exported_statement_is_taken_by_a_running_mariadb(
    mariadb_factory: Callable[..., MariadbServer], ours: Replica, tmp_path: Path
) -> None:
    source, replica = mariadb_factory(), mariadb_factory()
    source.sql("RESET MASTER; " + SCHEMA)
    ours.set_up(source)
    write(source, 1, 10)
    ours.run("start", "--until-synced")
    ours.run("export-info", "--server", "mariadb", str(tmp_path / "back"))
    replica.sql("SET sql_log_bin=0; " + SCHEMA)
    for row in ours.query("SELECT id, note FROM shop__t"):
        replica.sql(f"INSERT INTO shop.t VALUES ({row[0]}, '{row[1]}')")
    write(source, 10, 20)
    replica.sql((tmp_path / "back/change-master.sql").read_text() + "START SLAVE")
    wait_until(lambda: rows(replica) == rows(source))


@pytest.mark.long("test_a_mariadb_replica_moves_to_rplctl_and_back holds it for MariaDB.")
@pytest.mark.mysql
def test_a_mysql_9_replicas_tables_move_to_rplctl_and_back(
    mysql_factory: Callable[..., MysqlServer], ours: Replica, tmp_path: Path
) -> None:
    source, replica = mysql_factory(), mysql_factory()
    source.sql(SCHEMA)
    name, position = source.master_status()
    write(source, 1, 20)
    replica.sql(SCHEMA + "; RESET BINARY LOGS AND GTIDS")
    replica.sql(
        f"CHANGE REPLICATION SOURCE TO SOURCE_CONNECT_RETRY=1, "
        f"SOURCE_HOST='{source.host}', SOURCE_PORT={source.port}, SOURCE_USER='rpl', "
        f"SOURCE_PASSWORD='rpl', SOURCE_LOG_FILE='{name}', SOURCE_LOG_POS={position}, GET_SOURCE_PUBLIC_KEY=1, "
        "SOURCE_AUTO_POSITION=0; START REPLICA"
    )
    wait_until(lambda: rows(replica) == rows(source))
    replica.sql("STOP REPLICA")
    printed = client(replica, "SELECT * FROM mysql.slave_master_info; SELECT * FROM mysql.slave_relay_log_info")
    (tmp_path / "rows").write_text(printed)
    ours.run("init")
    ours.run("import-info", "--mysql-tables", str(tmp_path / "rows"))
    seed_target(ours, replica)
    write(source, 20, 50)
    ours.run("start", "--until-synced")
    assert_same_tables(source, ours, "shop")

    ours.run("export-info", "--server", "mysql-8.0", str(tmp_path / "back"))
    replica.sql("SET sql_log_bin=0; DELETE FROM shop.t")
    for row in ours.query("SELECT id, note FROM shop__t"):
        replica.sql(f"SET sql_log_bin=0; INSERT INTO shop.t VALUES ({row[0]}, '{row[1]}')")
    write(source, 50, 60)
    replica.sql((tmp_path / "back/change-master.sql").read_text() + "START REPLICA")
    wait_until(lambda: rows(replica) == rows(source))
    replica.sql("STOP REPLICA")


def client(server: MariadbServer, sql: str) -> str:
    """What the command line client prints with -E."""
    done = subprocess.run(
        ["mariadb", "--no-defaults", f"--socket={server.socket}", "-urpl", "-prpl", "-E", "-e", sql],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout
