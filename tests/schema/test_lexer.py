"""Tokens under each sql_mode, and which versioned comments the source executed."""

from __future__ import annotations

import pytest

from rplctl.errors import RplError
from rplctl.schema.context import ANSI_QUOTES, NO_BACKSLASH_ESCAPES, DdlContext
from rplctl.schema.lexer import expand, tokenize

MYSQL, MARIADB = DdlContext(server_version="8.0.40"), DdlContext(server_version="10.11.19-MariaDB")


def kinds(sql: str, context: DdlContext = MYSQL) -> list[tuple[str, str]]:
    return [(str(token.kind), token.value) for token in tokenize(expand(sql, context), context)][:-1]


@pytest.mark.parametrize(
    ("sql", "mode", "expected"),
    [
        (r"'a''b\'c\n\%\q'", 0, ("string", "a'b'c\n\\%q")),
        (r"'a\'", NO_BACKSLASH_ESCAPES, ("string", "a\\")),
        ('"a""b"', 0, ("string", 'a"b')),
        ('"a""b"', ANSI_QUOTES, ("quoted", 'a"b')),
        ("`a``b`", 0, ("quoted", "a`b")),
        ("N'x'", 0, ("string", "x")),
        ("x'0F'", 0, ("bits", "x'0F'")),
        ("0b01", 0, ("bits", "0b01")),
        ("0x0g", 0, ("word", "0X0G")),
        ("1e5", 0, ("number", "1e5")),
        (".5", 0, ("number", ".5")),
        ("1a", 0, ("word", "1A")),
        ("é$_1", 0, ("word", "É$_1")),
        ("->>", 0, ("symbol", "->>")),
    ],
)
def test_one_token(sql: str, mode: int, expected: tuple[str, str]) -> None:
    assert kinds(sql, DdlContext(sql_mode=mode)) == [expected]


@pytest.mark.parametrize(
    ("sql", "on_mysql", "on_mariadb"),
    [
        ("a/*!50100 b*/c", "a b c", "a b c"),
        ("a/*!80041 b*/c", "a c", "a c"),
        ("a/*!80040 b*/c", "a b c", "a c"),
        ("a/*!50700 b*/c", "a b c", "a c"),
        ("a/*!50699 b*/c", "a b c", "a b c"),
        ("a/*!100000 b*/c", "a 0 b c", "a b c"),  # five digits before MySQL 8.1
        ("a/*M!100000 b*/c", "a c", "a b c"),
        ("a/*M! b*/c", "a c", "a b c"),
        ("a/*! b*/c", "a b c", "a b c"),
        ("a/*!99999 b/*!50000 x*/ */c", "a c", "a c"),
        ("a/* b */c -- d", "a c", "a c"),
        ("a # d\nc--e", "a c - - e", "a c - - e"),
    ],
)
def test_comments(sql: str, on_mysql: str, on_mariadb: str) -> None:
    for context, expected in ((MYSQL, on_mysql), (MARIADB, on_mariadb)):
        assert [value.lower() for _, value in kinds(sql, context)] == expected.split()


@pytest.mark.parametrize("sql", ["'a", "`a", '"a', "a /*!50000 b"])
def test_what_does_not_end_is_refused(sql: str) -> None:
    with pytest.raises(RplError) as caught:
        kinds(sql)
    assert caught.value.errno == 1064
