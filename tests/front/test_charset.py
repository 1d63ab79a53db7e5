"""Names, values and errors reach a client in its character set, with the bytes that a server sends."""

from __future__ import annotations

import os
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pymysql
import pytest

from rplctl.command.user import add_user
from rplctl.config import load_config
from rplctl.event.charset import CHARSETS
from rplctl.front.server import MysqlServer as Front
from tests.conftest import Factory
from tests.front.test_front import PASSWORD, connect, datadir, errno_of, served
from tests.kit.private_server import PASSWORD as SERVER_PASSWORD, USER
from tests.kit.servers import MariadbServer

__all__ = ["datadir"]

COMMON = ["latin1", "utf8mb3", "utf8mb4", "ascii", "binary", "NULL", "utf8"]
WIDE = ["utf16", "utf16le", "utf32", "ucs2"]
RARE = ["gbk", "big5", "euckr", "cp932", "latin2", "cp1251", "koi8r", "greek", "cp850", *WIDE]
TEXT = "aäß€₯ͺ‰\u0081Ж中\U0001f600"
STATEMENTS = [
    f"SELECT '{TEXT}' AS `äЖ€`",
    "SELECT @@character_set_client, @@character_set_connection, @@character_set_results",
    "SHOW VARIABLES LIKE 'character_set_results'",
]
OTHERS = ["SELECT 1 AS `ö`", "USE `näЖ€`", "SELECT @@`näЖ€中`"]  # in UTF-16 MySQL converts no number and has no error
SETTINGS = """
SET NAMES nope
SET NAMES nope COLLATE latin1_bin
SET NAMES ucs2
SET NAMES utf16
SET NAMES NULL
SET NAMES 'latin1'
SET NAMES latin1 COLLATE latin1_bin
SET NAMES latin1 COLLATE utf8mb4_bin
SET NAMES latin1, autocommit = 1
SET NAMES binary
SET character_set_results = nope
SET character_set_results = 8
SET character_set_results = 'latin1'
SET SESSION character_set_results = latin1
SET @@session.character_set_results = latin1
SET @@character_set_results = latin1, autocommit = 1
SET autocommit = 1, character_set_results = NULL
SET character_set_client = NULL
SET character_set_client = utf32
SET character_set_connection = NULL
SET character_set_connection = utf16
SET collation_connection = latin1_bin
SET collation_connection = nope
SET @OLD = @@character_set_client, NAMES latin1
SET @OLD = @@character_set_results
SET character_set_results = @OLD
SET character_set_client = @@character_set_results
""".strip().splitlines()


@pytest.mark.usefixtures("children_forked")
@pytest.mark.parametrize("kind", ["mariadb", "mysql"])
def test_names_values_and_errors_have_the_bytes_of_a_server(
    datadir: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    factory: Factory[MariadbServer] = request.getfixturevalue(f"{kind}_factory")
    server = factory()
    with served(datadir, flavor=kind) as front:
        for charset in [*COMMON, *RARE]:
            statements = [*STATEMENTS, *(OTHERS if charset not in WIDE else ())]
            both = []
            for port, user, password in ((server.port, USER, SERVER_PASSWORD), (front.port, "monitor", PASSWORD)):
                with closing(opened(port, user, password)) as connection:
                    connection.query(f"SET character_set_results = {charset}")
                    both.append([shown(answered(connection, sql), charset) for sql in statements])
            for sql, theirs, ours in zip(statements, *both, strict=True):
                assert ours == theirs, (charset, sql)


@pytest.mark.usefixtures("children_forked")
@pytest.mark.parametrize("kind", ["mariadb", "mysql"])
def test_a_setting_of_character_sets_is_that_of_a_server(
    datadir: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    factory: Factory[MariadbServer] = request.getfixturevalue(f"{kind}_factory")
    server = factory()
    with served(datadir, flavor=kind) as front:
        for setting in SETTINGS:
            both = []
            for port, user, password in ((server.port, USER, SERVER_PASSWORD), (front.port, "monitor", PASSWORD)):
                with closing(opened(port, user, password)) as connection:
                    error = 0
                    try:
                        connection.query(setting)
                    except pymysql.MySQLError as refused:
                        error = refused.args[0]
                    both.append((error, answered(connection, STATEMENTS[1])[-2]))
            assert both[0] == both[1], setting


def opened(port: int, user: str, password: str) -> Any:
    return pymysql.connect(host="127.0.0.1", port=port, user=user, password=password, charset="utf8mb4")


def answered(connection: Any, sql: str) -> list[bytes]:
    """The packets of the answer, as they are."""
    connection._execute_command(3, sql.encode())
    packets, ends = [], 0
    while ends < 2:
        head = connection._read_bytes(4)
        connection._next_seq_id = (head[3] + 1) % 256
        packets.append(connection._read_bytes(int.from_bytes(head[:3], "little")))
        if packets[-1][:1] == b"\xff":
            return packets
        ends += packets[-1][:1] == b"\xfe" and len(packets[-1]) < 9
    return packets


def shown(packets: list[bytes], charset: str) -> list[Any]:
    """The error, or the names, the sets and the values of the columns. Table and length of a column are others here."""
    if packets[0][:1] == b"\xff":
        return packets
    found: list[Any] = []
    count = packets[0][0]
    for column in packets[1 : count + 1]:
        parts, at = [], 0
        for _ in range(6):
            parts.append(column[at + 1 : at + 1 + column[at]])
            at += column[at] + 1
        collation = int.from_bytes(column[at + 1 : at + 3], "little")
        found.append((parts[0], parts[4], "its own" if charset in ("NULL", "utf8mb4") else collation))
    return [*found, *packets[count + 2 : -1]]


def test_a_client_may_write_its_statements_in_its_character_set(datadir: Path) -> None:
    with served(datadir) as server:
        for charset, text in {"latin1": "Größe € 100", "cp1251": "Ж", "gbk": "中文", "utf8mb4": "😀"}.items():
            with connect(server, "monitor", charset=charset) as connection, connection.cursor() as cursor:
                cursor.execute(f"SELECT '{text}' AS `{text}`")
                assert cursor.fetchall() == ((text,),)
                assert cursor.description[0][0] == text


def test_the_sign_in_and_the_change_of_an_account_choose_the_set(datadir: Path) -> None:
    config = load_config(datadir, "")
    add_user(config, "plain", "reader", PASSWORD, native=True)
    login = ["-h127.0.0.1", "-uplain", "--default-character-set=latin1", "-N", "-e", "SELECT 'gr\xfc\xdfe'"]
    with served(datadir, flavor="mariadb") as server:
        done = subprocess.run(
            [b"mariadb", f"-P{server.port}".encode(), *(part.encode("latin1") for part in login)],
            env={**os.environ, "MYSQL_PWD": PASSWORD},
            capture_output=True,
        )
        assert done.stdout == b"gr\xfc\xdfe\n", done.stderr
        with connect(server, "dba", charset="latin1") as connection, connection.cursor() as cursor:
            assert sets(server) == {("latin1", "latin1")}
            cursor.execute("SELECT 1")
            connection._execute_command(31, b"")  # COM_RESET_CONNECTION
            connection._read_ok_packet()
            assert sets(server) == {("utf8mb4", "utf8mb4")}


def sets(server: Front) -> set[tuple[str, str | None]]:
    return {(each.charsets.client, each.charsets.results.name) for each in server.front.sessions.values()}


def test_every_set_that_a_server_knows_is_accepted(datadir: Path) -> None:
    with served(datadir) as server:
        for charset in CHARSETS:
            expected = 1231 if charset in WIDE else 0
            assert errno_of(server, "monitor", f"SET NAMES {charset}") == expected, charset
            assert errno_of(server, "monitor", f"SET character_set_results = {charset}") == 0, charset
