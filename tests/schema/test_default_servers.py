"""A default that is computed here is the value that a real server gives its old rows, and the others are few."""

from __future__ import annotations

import re
from contextlib import closing
from decimal import Decimal

import pymysql
import pytest

from rplctl.schema.column_definition import parse_column
from rplctl.schema.context import STRICT_TRANS_TABLES, TIME_ROUND_FRACTIONAL, TIME_TRUNCATE_FRACTIONAL, DdlContext
from rplctl.schema.data_type import normalize
from rplctl.schema.default_value import default_value
from rplctl.schema.model import INTEGER_BITS, Column
from rplctl.schema.structure import resolve_column
from rplctl.schema.token_stream import TokenStream
from rplctl.schema.value import NotComputable, Value
from tests.kit.servers import MariadbServer, MysqlServer

TIMES = """TIME DEFAULT '10:11'; TIME DEFAULT '1:2:3'; TIME DEFAULT '-1:02'; TIME DEFAULT 101112; TIME DEFAULT '101112'
TIME DEFAULT '10:11:12.6'; TIME(1) DEFAULT '10:11:12.66'; TIME(2) DEFAULT '23:59:59.999'; TIME DEFAULT '-0:0:0.4'
TIME DEFAULT '100:11:12'; TIME(3) DEFAULT '-10:11:12.3455'; DATE DEFAULT '2024-1-5'; DATE DEFAULT 20240105
DATE DEFAULT '20240105'; DATETIME DEFAULT '2024-1-5 1:2:3'; DATETIME DEFAULT 20240105101112
DATETIME DEFAULT '20240105101112'; DATETIME DEFAULT '2024-01-05 10:11'; DATETIME DEFAULT '2024-01-05 10:11:12.6'
DATETIME(2) DEFAULT '2024-01-05 10:11:12.345'; DATETIME(2) DEFAULT '2024-01-05 10:11:12.344'
DATETIME DEFAULT 20240105; DATETIME DEFAULT '2024-01-05T10:11:12'; DATETIME DEFAULT '2024-12-31 23:59:59.9'
DATETIME(1) DEFAULT '0999-1-2 3:4:5.25'; TIMESTAMP(2) DEFAULT '2024-01-05 10:11:12.345'
TIMESTAMP DEFAULT '2024-1-5 1:2:3'; TIMESTAMP DEFAULT 20240105101112; TIMESTAMP DEFAULT '2024-12-31 23:59:59.9'"""
OTHERS = """VARCHAR(9) DEFAULT X'4142'; VARCHAR(9) DEFAULT 0x4142; CHAR(9) DEFAULT X'4120'; TEXT DEFAULT (X'41')
DECIMAL(9,2) DEFAULT X'31'; DECIMAL(9,2) DEFAULT 0x31; INT DEFAULT X'31'; INT DEFAULT 0x31; INT DEFAULT b'11'
DOUBLE DEFAULT X'31'; VARCHAR(9) DEFAULT b'1000001'; ENUM('a','b') DEFAULT 0x61; ENUM('Ab','b') DEFAULT 'aB'
SET('Ab','b') DEFAULT 'B,AB'; YEAR DEFAULT '70'; YEAR DEFAULT 24; INT DEFAULT 1e2; VARCHAR(10) DEFAULT 1e3
VARCHAR(20) DEFAULT 12e12; VARCHAR(10) DEFAULT 1.50; INT DEFAULT '1.5'; INT DEFAULT '1e1'; DECIMAL(5,2) DEFAULT '1e1'
VARCHAR(10) DEFAULT -2e2; BIGINT DEFAULT 0x7FFFFFFFFFFFFFFF; BINARY(3) DEFAULT X'41'"""
# MySQL has these in brackets only
LITERALS = """DATE DEFAULT DATE'2024-01-05'; DATETIME DEFAULT DATE'2024-01-05'; INT DEFAULT DATE'2024-01-05'
DATETIME(2) DEFAULT TIMESTAMP'2024-01-05 10:11:12'; TIMESTAMP DEFAULT TIMESTAMP'2024-01-05 10:11:12'
TIME DEFAULT TIME'10:11:12'; VARCHAR(30) DEFAULT TIMESTAMP'2024-01-05 10:11:12'; VARCHAR(30) DEFAULT DATE'2024-01-05'
VARCHAR(9) DEFAULT TIME'10:11:12'; BIGINT DEFAULT TIMESTAMP'2024-01-05 10:11:12'; DOUBLE DEFAULT TIME'10:11:12'
DATE DEFAULT TIMESTAMP'2024-01-05 10:11:12'; DECIMAL(20,2) DEFAULT DATE'2024-01-05'"""
MARIADB = """UUID DEFAULT 'AABBCCDD-1122-3344-5566-778899AABBCC'; UUID DEFAULT 'aabbccdd112233445566778899aabbcc'
INET6 DEFAULT '2001:DB8::1'; INET6 DEFAULT '2001:db8:0:0:0:0:0:1'; INET6 DEFAULT '2001:db8:0:1:1:1:0:1'
INET6 DEFAULT 'FE80::'; JSON DEFAULT '[]'; JSON NOT NULL"""
MYSQL = "JSON NOT NULL; JSON DEFAULT ('[]'); JSON NOT NULL DEFAULT ('{}')"
MODES = {"": 0, "TIME_ROUND_FRACTIONAL": TIME_ROUND_FRACTIONAL, "TIME_TRUNCATE_FRACTIONAL": TIME_TRUNCATE_FRACTIONAL}
TYPES = """TINYINT; INT UNSIGNED; BIGINT; YEAR; BIT(1); BIT(33); DECIMAL(5,2); DECIMAL(20,4) UNSIGNED; FLOAT; DOUBLE
DOUBLE(9,3); FLOAT(7,2); CHAR(5); VARCHAR(30); VARCHAR(30) CHARACTER SET ascii; VARCHAR(30) CHARACTER SET latin1
TEXT; BINARY(4); VARBINARY(30); BLOB; DATE; TIME; TIME(3); DATETIME; DATETIME(2); TIMESTAMP NULL; JSON
ENUM('a','b','c'); ENUM('2','1','x'); SET('2','1','x'); ENUM('a','b') CHARACTER SET binary; ENUM('','x','ä')
ENUM('a','b') COLLATE utf8mb4_bin"""
ALL = """0|1|-1|7|007|100|5959|10000|8385959|8385960|1.5|-2.50|.5|-0.5|2.5|1e2|1e0|''|'a'|'B'|'12'|'-1'|'1.5'|'1e1'|'a '
'Ä'|'007'|'5960'|'101112.6'|'839:00:00'|X'31'|0x31|b'101'|TRUE|'2024-1-5'|20240105|DATE'2024-01-05'|'10:11'|'23:59:59.9'
TIME'10:11:12'|'2024-01-05 10:11:12.6'|'2024-01-05 23:59:59.9'|TIMESTAMP'2024-01-05 10:11:12'|'a,b'|'[]'|'[1]'|'null'
'00'|'0000'|'abc'|99999999999|(1+1)|(2*3-4)|(1-3)|(CONCAT('a','b'))|(CONCAT('1','2'))|(UPPER('x'))|(LENGTH('abc'))|('x')|(4)"""


@pytest.mark.long("MariaDB without strict mode stays; MySQL without it has most rules.", keeps=r"mariadb-$|mysql-$")
@pytest.mark.parametrize("mode", ["", "STRICT_TRANS_TABLES"])
@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
def test_every_literal_in_every_type_is_the_servers_or_not_computed(
    request: pytest.FixtureRequest, vendor: str, mode: str
) -> None:
    """A server refuses many of them. MySQL without strict mode accepts any expression, and stores zero for most."""
    server: MariadbServer | MysqlServer = request.getfixturevalue(vendor)
    server.sql("DROP DATABASE IF EXISTS every; CREATE DATABASE every CHARACTER SET utf8mb4")
    context = DdlContext(sql_mode=STRICT_TRANS_TABLES if mode else 0, server_version=server.version,
                         time_zone="+02:00", timestamp=1700000000, microseconds=250000)  # fmt: skip
    literals = [text for line in ALL.splitlines() for text in line.split("|")]
    literals += [f"({text})" for text in literals if text[0] != "("] if vendor == "mysql" else []
    computed, wrong = 0, []
    with closing(server.connect("every")) as connection, connection.cursor() as cursor:
        cursor.execute(f"SET NAMES utf8mb4, sql_mode='{mode}', timestamp=1700000000.25")
        for kind in (text.strip() for line in TYPES.splitlines() for text in line.split(";")):
            for literal in literals:
                definition = f"{kind} DEFAULT {literal}"
                cursor.execute("CREATE TEMPORARY TABLE t (id INT) ENGINE=MyISAM")
                cursor.execute("INSERT INTO t VALUES (1)")
                cursor.execute("SET time_zone='+02:00'")
                try:
                    cursor.execute(f"ALTER TABLE t ADD c {definition}")
                except pymysql.Error:
                    continue
                finally:
                    shown = stored(cursor, kind)
                    cursor.execute("DROP TEMPORARY TABLE t")
                parsed = normalize(parse_column(TokenStream(definition, context), "every", "c")[0])
                column = resolve_column(parsed, "utf8mb4", None)
                try:
                    value = default_value(column, context)
                except NotComputable:
                    continue
                computed += 1
                if (value is None) != (shown is None) or (shown is not None and not same(column, value, shown)):
                    wrong.append((definition, value, shown))
    assert wrong == [], wrong
    assert computed > 600, computed


def stored(cursor: pymysql.cursors.Cursor, kind: str) -> bytes | None:
    """The value of the column as text, or None if it is NULL or was refused."""
    cursor.execute("SET time_zone='+00:00'")
    what = (
        "CAST(c + 0 AS CHAR)"
        if kind.startswith("BIT")
        else f"CAST(c AS {'BINARY' if re.search('BLOB|BINARY', kind) else 'CHAR'})"
    )
    try:
        cursor.execute(f"SELECT HEX({what}) FROM t")
    except pymysql.Error:
        return None
    ((shown,),) = cursor.fetchall()
    return None if shown is None else bytes.fromhex(shown)


@pytest.mark.long(
    "MariaDB with its default mode stays; the rules of each vendor are beside each other.", keeps="mariadb-$"
)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
def test_a_value_that_is_computed_is_the_servers(request: pytest.FixtureRequest, vendor: str, mode: str) -> None:
    server: MariadbServer | MysqlServer = request.getfixturevalue(vendor)
    if (mode == "TIME_ROUND_FRACTIONAL") is (vendor == "mysql") and mode:
        pytest.skip("the other vendor has this mode")
    literals = LITERALS if vendor == "mariadb" else re.sub(r"(?<=DEFAULT )(\w+'[^']*')", r"(\1)", LITERALS)
    lists = "\n".join((TIMES, OTHERS, literals, MARIADB if vendor == "mariadb" else MYSQL))
    definitions = [text.strip() for line in lists.splitlines() for text in line.split(";")]
    server.sql("DROP DATABASE IF EXISTS old; CREATE DATABASE old CHARACTER SET utf8mb4; USE old; "
               "CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1)")  # fmt: skip
    added = "; ".join(f"ALTER TABLE t ADD c{number} {text}" for number, text in enumerate(definitions))
    server.sql(f"SET sql_mode='STRICT_TRANS_TABLES,{mode}', time_zone='+02:00'; {added}", "old")
    context = DdlContext(sql_mode=STRICT_TRANS_TABLES | MODES[mode], server_version=server.version, time_zone="+02:00")
    computed = 0
    for number, text in enumerate(definitions):
        shown = server.sql(f"SET time_zone='+00:00'; SELECT HEX(CAST(c{number} AS CHAR)) FROM t", "old")[0][0]
        column = normalize(parse_column(TokenStream(text, context), "old", f"c{number}")[0])
        try:
            value = default_value(column, context)
        except NotComputable:
            continue
        assert same(column, value, bytes.fromhex(shown)), (text, value, bytes.fromhex(shown))
        computed += 1
    assert computed >= len(definitions) - 3


def same(column: Column, value: Value, shown: bytes) -> bool:
    if column.type in (*INTEGER_BITS, "decimal", "double", "year", "bit"):
        return Decimal(str(value)) == Decimal(shown.decode())
    if column.type == "float":  # which the server prints with six digits
        return isinstance(value, float) and f"{value:.6g}" == f"{float(shown):.6g}"
    return (value if isinstance(value, bytes) else str(value).encode()) == shown
