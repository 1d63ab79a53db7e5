"""The neutral text is exact: two tables have one checksum only if they hold the same values."""

from __future__ import annotations

import hashlib
import sqlite3

import pytest
from hypothesis import given, strategies as st

from rplctl.demo.checksum import Value, neutral_text, rows_checksum, sqlite_checksum


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, r"\N"),
        ("", ""),
        (r"\N", r"\\N"),
        (-12, "-12"),
        (2**64 - 1, "18446744073709551615"),
        ("12.50", "12.50"),
        ("2026-03-01 10:00:00.250", "2026-03-01 10:00:00.250"),
        ("東京", "東京"),
        ("a\x1fb\x1ec", "a\\\x1fb\\\x1ec"),
        (0.1, "0.1"),
        (b"\x00\xff", "0x00FF"),
    ],
)
def test_each_kind_of_value_has_its_text(value: Value, text: str) -> None:
    assert neutral_text(value) == text


def test_the_checksum_is_sha256_of_fields_and_row_ends() -> None:
    assert rows_checksum([(1, None), (2, "x")]) == (2, hashlib.sha256(b"1\x1f\\N\x1e2\x1fx\x1e").hexdigest())
    assert rows_checksum([]) == (0, hashlib.sha256().hexdigest())


ROWS = st.lists(st.tuples(st.none() | st.text(max_size=4), st.none() | st.text(max_size=4)), max_size=4)


@pytest.mark.long("tests/demo/test_demo.py holds that the demo ends equal.")
@pytest.mark.slow
@given(ROWS, ROWS)
def test_different_text_rows_have_different_checksums(
    left: list[tuple[Value, ...]], right: list[tuple[Value, ...]]
) -> None:
    assert (rows_checksum(left) == rows_checksum(right)) == (left == right)


def test_sqlite_rows_are_read_in_primary_key_order() -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute('CREATE TABLE "shop__a ""b" (id INTEGER PRIMARY KEY, "order" TEXT)')
    connection.execute('INSERT INTO "shop__a ""b" VALUES (10, \'ten\'), (9, NULL)')
    found = sqlite_checksum(connection, 'shop__a "b', ["order", "id"], ["id"])
    connection.close()
    assert found == rows_checksum([(None, 9), ("ten", 10)])
