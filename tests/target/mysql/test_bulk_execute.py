"""Bulk execution is agreed on with each MariaDB, encrypted or not, and its rows are whole."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pymysql import err
from pymysql.constants import CLIENT

from rplctl.event.fields import EncodedText, text_fields
from rplctl.handshake import Security, TlsMode, TlsSettings
from rplctl.sql_text import written, written_bytes
from rplctl.target.base import EncodedRows
from rplctl.target.mysql import bulk_execute as mysql_frames
from rplctl.target.mysql.bulk_execute import BulkCounts, execute_length_prefixed
from rplctl.target.mysql.connection import LoadingConnection
from tests.conftest import Factory
from tests.kit.private_server import PASSWORD, USER
from tests.kit.servers import MariadbServer

pytestmark = pytest.mark.mariadb
INSERT = written_bytes(b"INSERT INTO d.t VALUES (?, ?)")


def length_prefixed(*columns: list[bytes | None]) -> EncodedRows:
    text = b"".join(EncodedText([text_fields(column) for column in columns], length_prefixed=True))
    return EncodedRows(tuple(range(len(columns))), len(columns[0]), text, length_prefixed=True)


def connected(server: MariadbServer, security: Security = Security(), **options: Any) -> LoadingConnection:  # noqa: B008
    options |= {"host": server.host, "port": server.port, "user": USER, "password": PASSWORD}
    connection = LoadingConnection(security=security, sign_in_s=60, client_flag=CLIENT.FOUND_ROWS, **options)
    connection.connect()
    return connection


@pytest.mark.parametrize("most", [64, 1 << 20])
def test_rows_arrive_whatever_the_size_of_packets_and_a_duplicate_is_an_error(
    mariadb: MariadbServer, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(mysql_frames, "PACKET_BYTES", most)
    mariadb.sql("CREATE OR REPLACE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v BLOB)")
    numbers: list[bytes | None] = [b"%d" % number for number in range(1001)]
    values = [b"%d" % number * (number % 40) if number % 7 else None for number in range(1001)]
    again = written_bytes(b"%s ON DUPLICATE KEY UPDATE v=VALUES(v)", INSERT)
    with closing(connected(mariadb, autocommit=True)) as connection:
        assert execute_length_prefixed(connection, INSERT, length_prefixed(numbers, values)) == BulkCounts(
            records=1001, replaced=0, skipped=0, warnings=0
        )
        with pytest.raises(err.IntegrityError, match="1062"):
            execute_length_prefixed(connection, INSERT, length_prefixed([b"7", b"2000"], [b"", b""]))
        assert mariadb.sql("SELECT id, v FROM d.t ORDER BY id") == list(enumerate(values))
        assert execute_length_prefixed(connection, again, length_prefixed(numbers, values[::-1])) == BulkCounts(
            records=1001, replaced=1001, skipped=0, warnings=0
        )
        assert execute_length_prefixed(connection, again, length_prefixed(numbers, values[::-1])) == BulkCounts(
            records=1001, replaced=1001, skipped=0, warnings=0
        )
    assert mariadb.sql("SELECT id, v FROM d.t ORDER BY id") == list(enumerate(values[::-1]))
    assert mariadb.sql("SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'")[0][1] == "0"
    mariadb.sql("DROP DATABASE d")


def test_it_is_agreed_on_within_tls_too(mariadb_factory: Factory[MariadbServer], tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed, which makes the certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    words = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command = ["openssl", "req", *words, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    server = mariadb_factory(f"--ssl-cert={certificate}", f"--ssl-key={key}")
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT, v INT)")
    security = Security(TlsSettings(mode=TlsMode.VERIFY_CA, ca=str(certificate)))
    with closing(connected(server, security, autocommit=True)) as connection, connection.cursor() as cursor:
        cursor.execute(written("SHOW STATUS LIKE 'Ssl_cipher'"))
        found = cursor.fetchone()
        assert found is not None and found[1]
        assert execute_length_prefixed(connection, INSERT, length_prefixed([b"1", b"2"], [None, b"4"])) == BulkCounts(
            records=2, replaced=0, skipped=0, warnings=0
        )
    assert server.sql("SELECT * FROM d.t") == [(1, None), (2, 4)]
