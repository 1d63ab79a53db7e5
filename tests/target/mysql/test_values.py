"""Literals that the server stores byte for byte, and comparisons that hold for one value only."""

from __future__ import annotations

import pytest

from rplctl.errors import RplError
from rplctl.event.large_text import LargeText, checked_text
from rplctl.schema.model import Column
from rplctl.sql_text import float_literal, written_bytes
from rplctl.target.base import Value
from rplctl.target.mysql.values import (
    LONGEST_HEX,
    StagedCell,
    comparand,
    is_empty_enum,
    is_equal,
    literal,
    quote,
)

TEXT = Column(name="c", type="varchar", length=20, charset="latin1")
MODERN = Column(name="c", type="varchar", length=20, charset="utf8mb4")


@pytest.mark.parametrize(
    ("value", "column", "expected"),
    [
        (None, TEXT, b"NULL"),
        (-7, Column(name="c", type="int"), b"-7"),
        (2**64 - 1, Column(name="c", type="bigint", unsigned=True), b"18446744073709551615"),
        (0.1, Column(name="c", type="double"), b"0.1e0"),
        (1e300, Column(name="c", type="double"), b"1e+300"),
        (-0.0, Column(name="c", type="double"), b"-0.0e0"),
        ("-12345678901234567890.10", Column(name="c", type="decimal", length=30, scale=2), b"-12345678901234567890.10"),
        ("2024-01-02", Column(name="c", type="date"), b"'2024-01-02'"),
        (b"\xe9'\\\0", TEXT, b"X'e9275c00'"),
        (memoryview(b"\x00\xff"), Column(name="c", type="blob"), b"X'00ff'"),
        (b"", Column(name="c", type="blob"), b"X''"),
        ("a'b\\c", MODERN, b"'a\\'b\\\\c'"),
        ("€\0", MODERN, b"'\xe2\x82\xac\0'"),
    ],
)
def test_a_literal_is_the_value(value: Value, column: Column, expected: bytes) -> None:
    assert literal(value, column) == expected


def test_long_bytes_are_escaped_and_short_ones_are_hex() -> None:
    blob = Column(name="c", type="longblob")
    longest = b"\\" * LONGEST_HEX
    assert literal(longest, blob) == b"X'" + b"5c" * LONGEST_HEX + b"'"
    assert literal(longest + b"'", blob) == b"_binary'" + b"\\\\" * LONGEST_HEX + b"\\''"


def test_large_text_and_staged_cells() -> None:
    found = checked_text("é'x")
    assert isinstance(found, LargeText)
    assert literal(found, MODERN) == "'é\\'x'".encode()
    assert literal(StagedCell(written_bytes(b"`rplctl`.`t`")), MODERN) == b"(SELECT v FROM `rplctl`.`t`)"


@pytest.mark.parametrize(
    ("number", "text"), [(1.0, "1.0e0"), (1e16, "1e+16"), (5e-324, "5e-324"), (0.1 + 0.2, "0.30000000000000004e0")]
)
def test_a_double_gives_itself_back_and_is_no_decimal(number: float, text: str) -> None:
    assert float_literal(number) == text
    assert float(float_literal(number)) == number


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_what_is_no_number_does_not_become_the_name_of_a_column(number: float) -> None:
    with pytest.raises(RplError, match="is not a DOUBLE") as caught:
        literal(number, Column(name="c", type="double"))
    assert caught.value.errno == 1064


def test_a_key_is_compared_in_the_charset_of_its_column() -> None:
    assert comparand(b"\xe9", TEXT) == b"_latin1 X'e9'"
    assert comparand(b"\xe9", Column(name="c", type="varchar", length=20, charset="binary")) == b"X'e9'"
    assert comparand(b"\xe9", Column(name="c", type="varchar", length=20)) == b"X'e9'"
    assert comparand(b"\xe9", Column(name="c", type="varbinary", length=20)) == b"X'e9'"
    assert comparand("x", MODERN) == b"'x'"


def test_a_set_is_compared_as_the_signed_number_that_servers_make_of_it() -> None:
    column = Column(name="c", type="set", labels=("a", "b"))
    assert comparand((1 << 63) | 1, column) == b"-9223372036854775807"
    assert comparand((1 << 63) - 1, column) == b"9223372036854775807"
    assert comparand(1 << 63, Column(name="c", type="bigint", unsigned=True)) == b"9223372036854775808"


@pytest.mark.parametrize(
    ("value", "column", "expected"),
    [
        (None, TEXT, b"`c` IS NULL"),
        (3, Column(name="c", type="enum", labels=("a",)), b"CAST(`c` AS UNSIGNED)=3"),
        (1 << 63, Column(name="c", type="set"), b"CAST(`c` AS UNSIGNED)=9223372036854775808"),
        (3, Column(name="c", type="int"), b"`c`=3"),
        ("1.10", Column(name="c", type="decimal", length=5, scale=2), b"`c`=1.10"),
        ("2024-01-02", Column(name="c", type="date"), b"CAST(`c` AS CHAR)='2024-01-02'"),
        ("x", MODERN, b"CAST(CONVERT(`c` USING utf8mb4) AS BINARY)=CAST('x' AS BINARY)"),
        (b"x", TEXT, b"CAST(`c` AS BINARY)=X'78'"),
        (b"\x0a", Column(name="c", type="point"), b"LENGTH(`c`)=1 AND HEX(`c`)='0A'"),
        (b"\x0a", Column(name="c", type="vector", length=1), b"HEX(`c`)='0A'"),
        (b"ab", Column(name="c", type="longblob"), b"LENGTH(`c`)=2 AND CAST(`c` AS BINARY)=X'6162'"),
        (StagedCell(written_bytes(b"t")), Column(name="c", type="longblob"), b"`c`=(SELECT v FROM t)"),
    ],
)
def test_equal_is_by_bytes_and_never_by_collation(value: Value | StagedCell, column: Column, expected: bytes) -> None:
    assert is_equal(value, column) == expected


def test_only_number_0_of_an_enum_is_its_error_value() -> None:
    column = Column(name="c", type="enum", labels=("", "a"))
    assert is_empty_enum(0, column)
    assert not is_empty_enum(1, column) and not is_empty_enum(None, column)
    assert not is_empty_enum(0, Column(name="c", type="set", labels=("a",)))


def test_a_name_ends_at_no_backtick_of_its_own() -> None:
    assert quote("a`b``") == b"`a``b`````"
    assert quote("é") == "`é`".encode()
