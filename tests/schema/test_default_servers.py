"""A default that is computed here is the value that a real server gives its old rows, and the others are few."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest

from rplctl.schema.column_definition import parse_column
from rplctl.schema.context import STRICT_TRANS_TABLES, TIME_ROUND_FRACTIONAL, TIME_TRUNCATE_FRACTIONAL, DdlContext
from rplctl.schema.data_type import normalize
from rplctl.schema.default_value import NotComputable, Value, default_value
from rplctl.schema.model import Column
from rplctl.schema.token_stream import TokenStream
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
    if column.type in ("int", "bigint", "decimal", "double", "year"):
        return Decimal(str(value)) == Decimal(shown.decode())
    return (value if isinstance(value, bytes) else str(value).encode()) == shown
