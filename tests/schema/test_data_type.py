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
        ("INT1", Column("c", "tinyint")),
        ("BOOL", Column("c", "tinyint", 1)),
        ("INTEGER(5) UNSIGNED", Column("c", "int", 5, unsigned=True)),
        ("MIDDLEINT ZEROFILL", Column("c", "mediumint", 8, unsigned=True, zerofill=True)),
        ("BIGINT SIGNED", Column("c", "bigint")),
        ("DEC", Column("c", "decimal", 10, 0)),
        ("NUMERIC(0)", Column("c", "decimal", 10, 0)),
        ("FIXED(5,2)", Column("c", "decimal", 5, 2)),
        ("FLOAT(24)", Column("c", "float")),
        ("FLOAT(25)", Column("c", "double")),
        ("FLOAT(25,3)", Column("c", "float", 25, 3)),
        ("DOUBLE PRECISION", Column("c", "double")),
        ("REAL", Column("c", "double")),
        ("BIT", Column("c", "bit", 1)),
        ("YEAR(4)", Column("c", "year")),
        ("YEAR(2)", Column("c", "year", 2)),
        ("DATETIME(0)", Column("c", "datetime")),
        ("TIME(3)", Column("c", "time", 3)),
        ("CHAR", Column("c", "char", 1)),
        ("CHARACTER VARYING(5)", Column("c", "varchar", 5)),
        ("NATIONAL VARCHAR(5)", Column("c", "varchar", 5, charset="utf8mb3")),
        ("NCHAR(5)", Column("c", "char", 5, charset="utf8mb3")),
        ("CHAR(5) BYTE", Column("c", "binary", 5)),
        ("VARCHAR(5) CHARACTER SET binary", Column("c", "varbinary", 5)),
        ("TEXT CHARSET = binary", Column("c", "blob")),
        ("CHAR(5) ASCII", Column("c", "char", 5, charset="latin1")),
        ("CHAR(5) CHARSET utf8", Column("c", "char", 5, charset="utf8mb3")),
        ("CHAR(5) COLLATE utf8_bin", Column("c", "char", 5, charset="utf8mb3", collation="utf8mb3_bin")),
        ("CHAR(5) COLLATE uca1400_ai_ci", Column("c", "char", 5, collation="uca1400_ai_ci")),
        ("LONG", Column("c", "mediumtext")),
        ("LONG VARBINARY", Column("c", "mediumblob")),
        ("BLOB(255)", Column("c", "tinyblob")),
        ("BLOB(256)", Column("c", "blob")),
        ("BLOB(65536)", Column("c", "mediumblob")),
        ("TEXT(63) CHARACTER SET utf8mb4", Column("c", "tinytext", charset="utf8mb4")),
        ("TEXT(64) CHARACTER SET utf8mb4", Column("c", "text", charset="utf8mb4")),
        ("TEXT(64)", Column("c", "text", 64)),  # of a charset that is known later
        ("ENUM('a ','b''c')", Column("c", "enum", labels=("a", "b'c"))),
        ("GEOMCOLLECTION", Column("c", "geometrycollection")),
        ("VECTOR", Column("c", "vector", 2048)),
        ("JSON", Column("c", "json")),
    ],
)
def test_a_type(sql: str, column: Column) -> None:
    assert parsed(sql) == column


def test_what_hangs_on_the_server_and_its_mode() -> None:
    assert parsed("REAL", DdlContext(sql_mode=REAL_AS_FLOAT)) == Column("c", "float")
    text = Column("c", "longtext", charset="utf8mb4", collation="utf8mb4_bin")
    assert parsed("JSON", MARIADB) == text
    assert parse_data_type(TokenStream("JSON", MARIADB), "c").is_mariadb_json
    serial = parse_data_type(TokenStream("SERIAL", MARIADB), "c")
    assert serial.is_serial
    assert serial.column == replace(Column("c", "bigint", unsigned=True, auto_increment=True), nullable=False)


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
