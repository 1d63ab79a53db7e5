"""A channel as an operator has it: an environment with a PATH alone, servers with their defaults, an ordinary account.

The kit sets more elsewhere (tests/kit/prepared.py).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.private_server import ServerUnavailable
from tests.kit.replica import Replica
from tests.kit.servers import MariadbServer, MysqlServer

pytestmark = [pytest.mark.slow, pytest.mark.spark]

ROWS = (
    "INSERT INTO bare.t VALUES (1, 255, 'ä€😀', '2026-03-29 02:30:00', 'ö', 'x,y', -12345.6789), "
    "(2, 0, NULL, NULL, 'a', '', 0); UPDATE bare.t SET n = 254 WHERE id = 1; "
    "INSERT INTO bare.keyless VALUES ('a', -1), ('a', -1), ('b', 4000000); DELETE FROM bare.keyless WHERE a = 'b'"
)
TABLES = (
    "CREATE DATABASE bare; CREATE TABLE bare.t (id INT UNSIGNED PRIMARY KEY, n TINYINT UNSIGNED, "
    "name VARCHAR(40) CHARACTER SET utf8mb4, at TIMESTAMP NULL, e ENUM('a', 'ö') CHARACTER SET utf8mb4, "
    "s SET('x', 'y'), d DECIMAL(20, 4)); CREATE TABLE bare.keyless (a VARCHAR(20), c INT)"
)


class PlainMariadb(MariadbServer):
    """With what the quick start sets."""

    base_options = ("--log-bin", "--binlog-format=ROW", "--bind-address=127.0.0.1", "--user=root")
    own_options = ()
    grants = "SELECT, REPLICATION SLAVE, BINLOG MONITOR, BINLOG ADMIN"
    change = ()


class PlainMysql(MysqlServer):
    """With its defaults: no GTIDs, the least metadata, TLS."""

    base_options = ("--secure-file-priv=", "--bind-address=127.0.0.1", "--user=root")
    own_options = ("--mysqlx=OFF",)  # type: ignore[assignment]
    grants = "SELECT, REPLICATION SLAVE, REPLICATION CLIENT"
    change = ("--master-ssl", "1")


KEPT = pytest.mark.long("The other vendor's defaults stay in make test.", keeps=r"PlainMariadb")


@pytest.fixture(params=[PlainMariadb, PlainMysql], ids=lambda kind: kind.__name__)
def source(request: pytest.FixtureRequest) -> Iterator[PlainMariadb | PlainMysql]:
    try:
        server = request.param()
    except ServerUnavailable as error:
        pytest.skip(str(error))
    server.variables = {"TZ": "America/Caracas"}
    server.start()
    yield server
    server.close()


@KEPT
def test_a_channel_follows_a_plain_source_with_nothing_but_a_path(
    source: PlainMariadb | PlainMysql, tmp_path: Path
) -> None:
    """The rows arrive as they are on the source, and no file is open to others."""
    source.sql(f"CREATE USER repl@'%' IDENTIFIED BY 'secret'; GRANT {source.grants} ON *.* TO repl@'%'")
    source.sql(f"SET NAMES utf8mb4; {TABLES}; {ROWS}")
    replica = Replica(tmp_path)

    def rplctl(*words: str, password: str = "") -> str:
        done = subprocess.run(
            [Path(sys.executable).with_name("rplctl"), "--datadir", replica.datadir, *words],
            env={"PATH": os.defpath},
            umask=0o022,
            cwd=tmp_path,
            input=password,
            timeout=280,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}{replica.logs()}"
        return done.stdout

    where = ("--master-host", source.host, "--master-port", str(source.port), "--master-user", "repl")
    rplctl("init")
    rplctl("change-master", *where, "--password-stdin", *source.change, password="secret")
    rplctl("start", "--until-synced")
    assert rplctl("check").startswith("RPLCTL OK")
    asked = "SELECT id, n, name, at, e, s, CAST(d * 10000 AS {}) FROM bare{}t ORDER BY id"
    expected = [tuple(row) for row in source.sql(asked.format("SIGNED", "."))]
    assert replica.query(asked.format("INTEGER", "__")) == expected
    assert replica.query("SELECT a, c FROM bare__keyless") == [("a", -1), ("a", -1)]
    paths = [path for path in replica.datadir.rglob("*") if not path.is_symlink()]
    assert [path for path in paths if path.stat().st_mode & 0o077] == []
