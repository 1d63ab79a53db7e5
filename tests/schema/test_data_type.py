"""Every spelling of a type as the server stores it: lengths, signs, charsets, sizes of TEXT."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rplctl.errors import RplError
from rplctl.schema.context import REAL_AS_FLOAT, DdlContext
from rplctl.schema.data_type import charset_of, normalize, parse_data_type
from rplctl.schema.model import Column
from rplctl.schema.token_stream import TokenStream

MARIADB = DdlContext(server_version="10.11.1-MariaDB")


def parsed(sql: str, context: DdlContext | None = None) -> Column:
    return parse_data_type(TokenStream(sql, context or DdlContext()), "c").column


@pytest.mark.parametrize(
    ("sql", "column"),
    [
        ("INT1", Column(name="c", type="tinyint")),
        ("BOOL", Column(name="c", type="tinyint", length=1)),
        ("INTEGER(5) UNSIGNED", Column(name="c", type="int", length=5, unsigned=True)),
        ("MIDDLEINT ZEROFILL", Column(name="c", type="mediumint", length=8, unsigned=True, zerofill=True)),
        ("BIGINT SIGNED", Column(name="c", type="bigint")),
        ("DEC", Column(name="c", type="decimal", length=10, scale=0)),
        ("NUMERIC(0)", Column(name="c", type="decimal", length=10, scale=0)),
        ("FIXED(5,2)", Column(name="c", type="decimal", length=5, scale=2)),
        ("FLOAT(24)", Column(name="c", type="float")),
        ("FLOAT(25)", Column(name="c", type="double")),
        ("FLOAT(25,3)", Column(name="c", type="float", length=25, scale=3)),
        ("DOUBLE PRECISION", Column(name="c", type="double")),
        ("REAL", Column(name="c", type="double")),
        ("BIT", Column(name="c", type="bit", length=1)),
        ("YEAR(4)", Column(name="c", type="year")),
        ("YEAR(2)", Column(name="c", type="year", length=2)),
        ("DATETIME(0)", Column(name="c", type="datetime")),
        ("TIME(3)", Column(name="c", type="time", length=3)),
        ("CHAR", Column(name="c", type="char", length=1)),
        ("CHARACTER VARYING(5)", Column(name="c", type="varchar", length=5)),
        ("NATIONAL VARCHAR(5)", Column(name="c", type="varchar", length=5, charset="utf8mb3")),
        ("NCHAR(5)", Column(name="c", type="char", length=5, charset="utf8mb3")),
        ("CHAR(5) BYTE", Column(name="c", type="binary", length=5)),
        ("VARCHAR(5) CHARACTER SET binary", Column(name="c", type="varbinary", length=5)),
        ("TEXT CHARSET = binary", Column(name="c", type="blob")),
        ("CHAR(5) ASCII", Column(name="c", type="char", length=5, charset="latin1")),
        ("CHAR(5) CHARSET utf8", Column(name="c", type="char", length=5, charset="utf8mb3")),
        (
            "CHAR(5) COLLATE utf8_bin",
            Column(name="c", type="char", length=5, charset="utf8mb3", collation="utf8mb3_bin"),
        ),
        ("CHAR(5) COLLATE uca1400_ai_ci", Column(name="c", type="char", length=5, collation="uca1400_ai_ci")),
        ("LONG", Column(name="c", type="mediumtext")),
        ("LONG VARBINARY", Column(name="c", type="mediumblob")),
        ("BLOB(255)", Column(name="c", type="tinyblob")),
        ("BLOB(256)", Column(name="c", type="blob")),
        ("BLOB(65536)", Column(name="c", type="mediumblob")),
        ("TEXT(63) CHARACTER SET utf8mb4", Column(name="c", type="tinytext", charset="utf8mb4")),
        ("TEXT(64) CHARACTER SET utf8mb4", Column(name="c", type="text", charset="utf8mb4")),
        ("TEXT(64)", Column(name="c", type="text", length=64)),  # of a charset that is known later
        ("ENUM('a ','b''c')", Column(name="c", type="enum", labels=("a", "b'c"))),
        ("GEOMCOLLECTION", Column(name="c", type="geometrycollection")),
        ("VECTOR", Column(name="c", type="vector", length=2048)),
        ("JSON", Column(name="c", type="json")),
    ],
)
def test_a_type(sql: str, column: Column) -> None:
    assert parsed(sql) == column


def test_what_hangs_on_the_server_and_its_mode() -> None:
    assert parsed("REAL", DdlContext(sql_mode=REAL_AS_FLOAT)) == Column(name="c", type="float")
    text = Column(name="c", type="longtext", charset="utf8mb4", collation="utf8mb4_bin")
    assert parsed("JSON", MARIADB) == text
    assert parse_data_type(TokenStream("JSON", MARIADB), "c").is_mariadb_json
    serial = parse_data_type(TokenStream("SERIAL", MARIADB), "c")
    assert serial.is_serial
    assert serial.column == replace(Column(name="c", type="bigint", unsigned=True, auto_increment=True), nullable=False)


@pytest.mark.parametrize("sql", ["SMALLFLOAT", "CHAR()", "ENUM()", "DECIMAL(5,)", "INT('5')"])
def test_a_type_that_is_not_known_is_refused(sql: str) -> None:
    with pytest.raises(RplError) as caught:
        parsed(sql)
    assert caught.value.errno == 1064


@pytest.mark.parametrize("sql", ["DECIMAL(9,2147483648)", "NUMERIC(9,200)", "DEC(66)"])
def test_a_decimal_that_no_server_can_have_is_refused_with_the_limit(sql: str) -> None:
    with pytest.raises(
        RplError, match="exceeds the limits of MySQL and MariaDB: 65 digits, 38 of them after the point"
    ):
        parsed(sql)


def test_a_collation_tells_its_charset() -> None:
    assert charset_of("latin1_swedish_ci") == "latin1"
    assert charset_of("binary") == "binary"
    assert charset_of("uca1400_ai_ci") is None and charset_of("_bin") is None


@pytest.mark.parametrize(
    ("written", "charset", "type_"),
    [
        ("VARCHAR(70000)", "utf8mb4", "mediumtext"),
        ("VARCHAR(70000)", "latin1", "mediumtext"),
        ("VARCHAR(16383)", "utf8mb4", "varchar"),
        ("VARCHAR(6000000)", "utf8mb4", "longtext"),
        ("VARBINARY(70000)", None, "mediumblob"),
        ("VARCHAR(70000)", "binary", "mediumblob"),
    ],
)
def test_a_length_that_no_varchar_has_is_what_a_server_that_is_not_strict_makes_of_it(
    written: str, charset: str | None, type_: str
) -> None:
    """As MariaDB 10.11 and MySQL 9.7 show such a table."""
    column = parse_data_type(TokenStream(written, MARIADB), "c").column
    assert normalize(replace(column, charset=charset)).type == type_
