"""The value a column takes by itself, as the server stores it (recorded cases: test_conversion)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rplctl.schema.column_definition import parse_column
from rplctl.schema.context import DdlContext
from rplctl.schema.default_value import default_value, implicit_default
from rplctl.schema.model import Column
from rplctl.schema.token_stream import TokenStream
from rplctl.schema.value import NotComputable, Value

NEW_YEAR = DdlContext(timestamp=1767225600, microseconds=123456, time_zone="+02:00")


def column(definition: str) -> Column:
    return parse_column(TokenStream(definition, DdlContext()), "d", "c")[0]


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        ("INT", None),
        ("INT NOT NULL", 0),
        ("DECIMAL(5,2) NOT NULL", "0.00"),
        ("ENUM('b','a') NOT NULL", "b"),
        ("CHAR(3) NOT NULL", ""),
        ("BINARY(2) NOT NULL", b"\0\0"),
        ("DATETIME(2) NOT NULL", "0000-00-00 00:00:00.00"),
        ("INT DEFAULT NULL", None),
        ("INT DEFAULT -7", -7),
        ("INT DEFAULT '0012'", 12),
        ("INT DEFAULT 2.5", 3),
        ("INT DEFAULT ((5))", 5),
        ("BOOL DEFAULT TRUE", 1),
        ("DECIMAL(6,3) DEFAULT 1.0005", "1.001"),
        ("DECIMAL(6,3) DEFAULT -0.0001", "0.000"),
        ("FLOAT DEFAULT 0.5", 0.5),
        ("DOUBLE DEFAULT -1e308", -1e308),
        (
            "DECIMAL(65,30) DEFAULT 12345678901234567890123456789012345.5",
            "12345678901234567890123456789012345.5" + "0" * 29,
        ),
        ("BIT(8) DEFAULT b'101'", 5),
        ("BIT(8) DEFAULT 0x1F", 31),
        ("VARBINARY(3) DEFAULT x'00ff'", b"\0\xff"),
        ("YEAR DEFAULT 70", 1970),
        ("YEAR DEFAULT '0'", 2000),
        ("YEAR DEFAULT '1.5'", 2002),
        ("INT DEFAULT (1 + 2 * 3)", 7),
        ("VARCHAR(9) DEFAULT (CONCAT('a', 'b'))", "ab"),
        ("TIME DEFAULT 7", "00:00:07"),
        ("TIME(1) DEFAULT '-10203.5'", "-01:02:03.5"),
        ("ENUM('b','a') DEFAULT (2)", "a"),
        ("BIT(16) DEFAULT 'ab'", 24930),
        ("TEXT DEFAULT ''", None),
        ("JSON DEFAULT ('[1]')", "[1]"),
        ("YEAR DEFAULT 0", 0),
        ("SET('a','b') DEFAULT 'b,a'", "a,b"),
        ("ENUM('A') DEFAULT 'a'", "A"),
        ("VARCHAR(9) DEFAULT _utf8mb4'x' 'y'", "xy"),
        ("VARCHAR(9) DEFAULT 5", "5"),
        ("DATE DEFAULT '2024-02-29'", "2024-02-29"),
        ("TIME(2) DEFAULT '-11:22:33.5'", "-11:22:33.50"),
        ("TIME DEFAULT '838:59:59'", "838:59:59"),
        ("DATETIME DEFAULT '2024-02-30 10:11:12'", "2024-02-30 10:11:12"),
        ("DATETIME DEFAULT '0000-00-00 00:00:00'", "0000-00-00 00:00:00"),
        ("TIMESTAMP DEFAULT 0", "0000-00-00 00:00:00"),
        ("TIMESTAMP(3) DEFAULT '2026-01-01 02:00:00'", "2026-01-01 00:00:00.000"),
        ("DATETIME(3) DEFAULT NOW(3)", "2026-01-01 02:00:00.123"),
        ("TIMESTAMP DEFAULT CURRENT_TIMESTAMP", "2026-01-01 00:00:00"),
        ("DATE DEFAULT (CURRENT_DATE)", "2026-01-01"),
        ("DATE DEFAULT (NOW())", "2026-01-01"),
        ("DATETIME(6) DEFAULT (NOW(2))", "2026-01-01 02:00:00.120000"),
        ("TIME(2) DEFAULT (CURTIME())", "02:00:00.00"),
    ],
)
def test_a_constant_is_stored_as_the_server_stores_it(definition: str, expected: Value) -> None:
    value = default_value(column(definition), NEW_YEAR)
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    "definition",
    [
        "INT DEFAULT (1 DIV 2)",
        "VARCHAR(36) DEFAULT (UUID())",
        "INT AS (1)",
        "INT AUTO_INCREMENT",
        "POINT NOT NULL",
        "INT DEFAULT 'x'",
        "ENUM('a') DEFAULT 'z'",
        "DATETIME DEFAULT '2024-13-1'",
        "DATETIME DEFAULT '9999-12-31 23:59:59.9'",
        "TIMESTAMP DEFAULT '0001-01-01 00:00:00'",
        "TIME DEFAULT '839:00:00'",
        "DATE DEFAULT 2.0240105e7",
        "INT DEFAULT 0x313131313131313131",
        "VARCHAR(9) CHARACTER SET utf16 DEFAULT X'0041'",
        "INET6 DEFAULT '::1'",
        "JSON DEFAULT ('[1, 2]')",
        "BLOB DEFAULT ('é')",
        "INT DEFAULT (RAND())",
        "VARCHAR(9) DEFAULT CURRENT_USER",
        "FLOAT DEFAULT 1e300",
        "VARCHAR(9) DEFAULT CURRENT_TIMESTAMP",
        "DATETIME DEFAULT (NOW() + INTERVAL 1 DAY)",
        "DATETIME DEFAULT (CURDATE())",
        "DATE DEFAULT (CURRENT_TIME)",
        "DATE DEFAULT (NOW(6))",
        "YEAR DEFAULT '0.4'",
        "TINYINT DEFAULT (300)",
        "INT UNSIGNED DEFAULT (-1)",
        "BIT(3) DEFAULT (9)",
        "DECIMAL(3,1) DEFAULT (1000)",
        "DOUBLE UNSIGNED DEFAULT (-1)",
        "VARCHAR(2) DEFAULT ('a   ')",
        "BINARY(1) DEFAULT (X'6162')",
    ],
)
def test_what_only_the_source_can_compute_is_said(definition: str) -> None:
    with pytest.raises(NotComputable):
        default_value(column(definition), NEW_YEAR)


def test_now_without_digits_fills_a_column_of_mariadb_and_not_of_mysql() -> None:
    now = column("DATETIME(3) DEFAULT (NOW())")
    mysql, mariadb = (replace(NEW_YEAR, server_version=version) for version in ("9.7.4", "10.11.19-MariaDB"))
    assert (default_value(now, mysql), default_value(now, mariadb)) == (
        "2026-01-01 02:00:00.000",
        "2026-01-01 02:00:00.123",
    )
    longer = column("DATETIME DEFAULT (NOW(6))")
    assert default_value(longer, mariadb) == "2026-01-01 02:00:00"
    with pytest.raises(NotComputable):
        default_value(longer, mysql)  # MySQL rounds


def test_named_time_zones_are_computed_unknown_ones_are_not() -> None:
    now = column("DATETIME DEFAULT CURRENT_TIMESTAMP")
    assert default_value(now, DdlContext(timestamp=1767225600, time_zone="Asia/Tokyo")) == "2026-01-01 09:00:00"
    for zone in ("SYSTEM", "Nowhere/Else"):
        with pytest.raises(NotComputable):
            default_value(now, DdlContext(timestamp=1767225600, time_zone=zone))


def test_every_type_with_an_implicit_default_has_one() -> None:
    assert implicit_default(Column(name="c", type="uuid")) == "00000000-0000-0000-0000-000000000000"
    assert implicit_default(Column(name="c", type="varchar", length=9)) == ""
