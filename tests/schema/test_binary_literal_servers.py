"""A literal after SET NAMES binary is read as a real server reads it, in each character set."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pymysql
import pytest

from rplctl.errors import RplError
from rplctl.schema.binary_literal import read_literals
from rplctl.schema.column_definition import parse_column
from rplctl.schema.context import DdlContext
from rplctl.schema.data_type import normalize
from rplctl.schema.default_value import default_value
from rplctl.schema.token_stream import TokenStream
from tests.kit.servers import MariadbServer, MysqlServer

CHARSETS = ["ucs2", "utf16", "utf16le", "utf32", "gbk", "gb18030", "big5", "sjis", "cp932", "euckr", "swe7", "latin1"]
TEXTS = ["a", "ab", "abc", "12", "it''s", "", "[1]", "Ä", "日本"]


@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
def test_a_literal_after_set_names_binary_is_the_servers(request: pytest.FixtureRequest, vendor: str) -> None:
    server: MariadbServer | MysqlServer = request.getfixturevalue(vendor)
    server.sql("DROP DATABASE IF EXISTS literals; CREATE DATABASE literals CHARACTER SET utf8mb4")
    context = DdlContext(server_version=server.version, sql_mode=0)
    compared = 0
    with closing(server.connect("literals")) as connection, connection.cursor() as cursor:
        for charset in CHARSETS:
            for number, text in enumerate(TEXTS):
                definition = f"VARCHAR(30) CHARACTER SET {charset} NOT NULL DEFAULT '{text}'"
                name = f"{charset}_{number}"
                cursor.execute("SET NAMES binary, sql_mode=''")
                try:
                    cursor.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY, c {definition})")
                except pymysql.Error:  # bytes that are not text in this character set
                    continue
                cursor.execute(f"INSERT INTO {name} (id) VALUES (1)")
                cursor.execute("SET NAMES utf8mb4")
                cursor.execute(f"SELECT HEX(CONVERT(c USING utf8mb4)) FROM {name}")
                shown = bytes.fromhex(cursor.fetchall()[0][0]).decode()
                parsed = normalize(parse_column(TokenStream(definition, context), "literals", "c")[0])
                try:
                    column = read_literals(replace(parsed, charset=charset))
                except RplError:  # the server shows a character that it cannot convert as "?"
                    assert "?" in shown, (charset, text, shown)
                    continue
                assert default_value(column, context) == shown, (charset, text)
                compared += 1
    assert compared > len(CHARSETS) * (len(TEXTS) - 2)
    server.sql("DROP DATABASE literals")
