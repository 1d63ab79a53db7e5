"""Layouts byte for byte: scripts grep them."""

from __future__ import annotations

import json

import pytest

from rplctl.cli.text import ascii_table, clean, short, to_json, tsv, vertical

COLUMNS = ("Name", "Pos", "Is")
ROWS: list[dict[str, object]] = [{"Name": "a\tb\\", "Pos": 12, "Is": True}, {"Name": "", "Pos": None, "Is": False}]


def test_vertical_is_the_mysql_clients_layout() -> None:
    assert vertical(ROWS) == (
        "*************************** 1. row ***************************\n"
        "Name: a\\tb\\\n Pos: 12\n  Is: Yes\n"
        "*************************** 2. row ***************************\n"
        "Name: \n Pos: NULL\n  Is: No\n"
    )


def test_tsv_is_the_mysql_clients_batch_layout() -> None:
    assert tsv(COLUMNS, ROWS) == "Name\tPos\tIs\na\\tb\\\\\t12\tYes\n\tNULL\tNo\n"


def test_a_table_is_as_wide_as_it_needs() -> None:
    wide = "x" * 500
    assert ascii_table(("A", "N"), [{"A": wide, "N": 7}]) == (
        f"+{'-' * 502}+---+\n| A{' ' * 499} | N |\n+{'-' * 502}+---+\n| {wide} | 7 |\n+{'-' * 502}+---+\n"
    )
    assert ascii_table(("A",), []) == "+---+\n| A |\n+---+\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ünï 日本", "plain ünï 日本"),
        ("a\nb\rc\td\0", "a\\nb\\rc\\td\\0"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("line\u2028break", "line\\u2028break"),
        ("[bold]not markup[/bold]", "[bold]not markup[/bold]"),
    ],
)
def test_nothing_shown_moves_the_cursor_or_ends_a_line(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_json_is_one_ascii_line_that_comes_back() -> None:
    text = to_json([{"Last_Error": "ü\n\x1b\u2028"}])
    assert text.isascii() and text.count("\n") == 1
    assert json.loads(text) == [{"Last_Error": "ü\n\x1b\u2028"}]


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [
        (1, " rows", "1 rows"),
        (0, "B", "0 B"),
        (499, "", "499"),
        (16384, "B", "16 kB"),
        (700_000, " rows", "0.7 M rows"),
    ],
)
def test_large_numbers_are_short(number: float, unit: str, text: str) -> None:
    assert short(number, unit) == text
