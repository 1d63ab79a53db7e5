"""SHOW BINLOG EVENTS and BINLOG_GTID_POS answer as a real server that has the same binary log."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pymysql
import pytest

from rplctl.command.purge_binary_logs import purge_binary_logs
from rplctl.config import load_config
from rplctl.front.dump.sendable import SendableLog
from tests.applied_log.applied import logs_of
from tests.front.test_binlog_server import DEMO, PASSWORD, ask, copied, files, logged, served
from tests.kit.servers import MariadbServer, MysqlServer

pytestmark = pytest.mark.slow
Answer = tuple[int, list[str], list[tuple[Any, ...]]]


@pytest.fixture(scope="module")
def of_mariadb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return logged(tmp_path_factory.mktemp("mariadb") / "replica", DEMO)


def with_logs(server: MariadbServer, logs: list[Path]) -> MariadbServer:
    """The server with these logs before its own."""
    server.stop()
    folder = server.binlog_files[0].parent
    index = folder / f"{server.binlog_files[0].stem}.index"
    for log in logs:
        shutil.copy(log, folder / log.name)
    index.write_text("".join(f"./{log.name}\n" for log in logs) + index.read_text())
    server.start()
    return server


def answered(connection: Any, sql: str) -> Answer:
    with connection.cursor() as cursor:
        try:
            cursor.execute(sql)
        except pymysql.MySQLError as error:
            return error.args[0], [], []
        return 0, [column[0] for column in cursor.description], list(cursor.fetchall())


def assert_alike(datadir: Path, server: MariadbServer, user: str, statements: list[str]) -> None:
    with (
        served(datadir, server.kind) as front,
        closing(pymysql.connect(host="127.0.0.1", port=front.port, user=user, password=PASSWORD)) as ours,
        closing(server.connect()) as theirs,
    ):
        for sql in statements:
            expected = answered(theirs, sql)
            found = answered(ours, sql)
            assert found[:2] == expected[:2], sql
            differing = [pair for pair in zip(found[2], expected[2], strict=True) if pair[0] != pair[1]]
            assert not differing, f"{sql}: {differing}"


def renamed(datadir: Path) -> None:
    """Give the logs a name that a server's own logs do not have."""
    index = datadir / "binlog.index"
    for path in logs_of(datadir):
        path.rename(path.with_name(path.name.replace("binlog.", "applied.")))
    index.rename(datadir / "applied.index")
    (datadir / "applied.index").write_text((datadir / "applied.index").read_text().replace("binlog.", "applied."))
    options = datadir / "rplctl.toml"
    options.write_text(options.read_text().replace('log_bin = "binlog"', 'log_bin = "applied"'))


def test_events_are_listed_as_by_mariadb(
    of_mariadb: Path, tmp_path: Path, mariadb_factory: Callable[..., MariadbServer]
) -> None:
    datadir = copied(of_mariadb, tmp_path)
    renamed(datadir)
    logs = sorted(datadir.glob("applied.0*"))
    server = with_logs(mariadb_factory(), logs)
    middle, last = logs[2].name, logs[-2].name
    positions = [row[1] for row in server.sql(f"SHOW BINLOG EVENTS IN '{middle}'")]
    size = logs[2].stat().st_size
    odd = ["'x'", "''", "'inf'", "'nan'", "'1e400'", "99999999999999999999", "'99999999999999999999'", "1e30"]
    odd += [
        form.format(positions[1]) for form in ("'{}x'", "' {}'", "'{}.9'", "'{}e0'", "{}.4", "{}.6", "'+{}'", "'-{}'")
    ]
    statements = [
        "SHOW BINLOG EVENTS",
        "SHOW BINLOG EVENTS LIMIT 0",
        f"SHOW BINLOG EVENTS IN '{middle}'",
        f"SHOW BINLOG EVENTS IN '{last}' LIMIT 3, 4",
        f"SHOW BINLOG EVENTS IN '{last}' LIMIT 2 OFFSET 5",
        f"SHOW BINLOG EVENTS IN '{last}' LIMIT 1000000, 5",
        f"SHOW BINLOG EVENTS IN '{middle}' FROM {positions[4]} LIMIT 2",
        f"SHOW BINLOG EVENTS IN '{middle}' FROM {positions[4] + 1}",
        f"SHOW BINLOG EVENTS IN '{middle}' FROM 0 LIMIT 1",
        f"SHOW BINLOG EVENTS IN '{middle}' FROM {size}",
        f"SHOW BINLOG EVENTS IN '{middle}' FROM {size + 1}",
        "SHOW BINLOG EVENTS IN 'nope'",
        "SHOW BINLOG EVENTS IN ''",
        "SHOW BINLOG EVENTS LIMIT 1, 2, 3",
        *(f"SELECT BINLOG_GTID_POS('{middle}', {position})" for position in [*positions, size]),
        f"SELECT BINLOG_GTID_POS('{logs[0].name}', 4)",
        f"SELECT BINLOG_GTID_POS('{middle}', 0)",
        f"SELECT BINLOG_GTID_POS('{middle}', 5)",
        f"SELECT BINLOG_GTID_POS('{middle}', -1)",
        *(f"SELECT BINLOG_GTID_POS('{middle}', {position})" for position in odd),
        f"SELECT BINLOG_GTID_POS('{middle}', NULL)",
        f"SELECT BINLOG_GTID_POS('{middle}', {size + 1})",
        "SELECT BINLOG_GTID_POS(NULL, 4)",
        "SELECT BINLOG_GTID_POS('', 4)",
        "SELECT BINLOG_GTID_POS('nope', 4)",
    ]
    for user in ("monitor", "chain"):
        assert_alike(datadir, server, user, statements)


def test_events_are_listed_as_by_mysql(
    mysql: MysqlServer, mysql_factory: Callable[..., MysqlServer], tmp_path: Path
) -> None:
    mysql.sql("FLUSH BINARY LOGS; CREATE DATABASE listed; CREATE TABLE listed.t (id INT PRIMARY KEY, big LONGBLOB)")
    mysql.sql("INSERT INTO listed.t VALUES (1, 'a'), (2, NULL)")
    mysql.sql("INSERT INTO listed.t VALUES (3, REPEAT('b', 2000000))")
    mysql.sql("SET foreign_key_checks = 0, unique_checks = 0; INSERT INTO listed.t VALUES (4, 'd')")
    mysql.sql("UPDATE listed.t SET big = 'c' WHERE id = 2; DROP DATABASE listed; FLUSH BINARY LOGS")
    log = tmp_path / "binlog.000001"
    shutil.copy(mysql.binlog_files[-2], log)
    datadir = logged(tmp_path / "replica", log)
    renamed(datadir)
    logs = sorted(datadir.glob("applied.0*"))
    server = with_logs(mysql_factory(), logs)
    name = logs[0].name
    positions = [row[1] for row in server.sql(f"SHOW BINLOG EVENTS IN '{name}'")]
    statements = [
        *(f"SHOW BINLOG EVENTS IN '{path.name}'" for path in logs),
        "SHOW BINLOG EVENTS LIMIT 0",
        f"SHOW BINLOG EVENTS IN '{name}' FROM {positions[3]} LIMIT 2",
        f"SHOW BINLOG EVENTS IN '{name}' FROM {positions[3] + 1} LIMIT 2",
        f"SHOW BINLOG EVENTS IN '{name}' FROM {logs[0].stat().st_size}",
        f"SHOW BINLOG EVENTS IN '{name}' FROM 99999999",
        "SHOW BINLOG EVENTS IN 'nope'",
        "SHOW BINLOG EVENTS IN ''",
    ]
    assert_alike(datadir, server, "monitor", statements)


def test_no_event_is_listed_that_a_replica_may_not_read(of_mariadb: Path, tmp_path: Path) -> None:
    datadir = copied(of_mariadb, tmp_path)
    path = logs_of(datadir)[-1]
    with path.open("ab") as file:
        file.write(bytes(5000))
    with served(datadir) as server:
        rows = ask(server, "monitor", f"SHOW BINLOG EVENTS IN '{path.name}'")
        last = rows[-1][1] + int.from_bytes(path.read_bytes()[rows[-1][1] + 9 :][:4], "little")
        assert last == SendableLog(files(datadir)).look(path.name).end < path.stat().st_size
        purge_binary_logs(load_config(datadir, ""), "", to=path.name)
        assert ask(server, "monitor", "SHOW BINLOG EVENTS LIMIT 1")[0][0] == path.name
