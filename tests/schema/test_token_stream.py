"""Questions of a grammar: what is taken, what is given back, what stops the statement."""

from __future__ import annotations

import pytest

from rplctl.errors import RplError
from rplctl.schema.context import DdlContext
from rplctl.schema.token_stream import TokenStream


def of(sql: str) -> TokenStream:
    return TokenStream(sql, DdlContext())


def test_a_phrase_is_taken_as_a_whole_or_not_at_all() -> None:
    tokens = of("if not exists t")
    assert not tokens.accept("IF EXISTS") and tokens.accept("IF NOT EXISTS")
    assert tokens.identifier() == "t" and tokens.at_end
    assert not tokens.accept("X")


def test_lists() -> None:
    tokens = of("(a, `b c`) , d = 5 =6 7")
    assert tokens.in_parentheses(tokens.identifier) == ("a", "b c")
    assert tokens.accept_symbol(",") and tokens.each(tokens.identifier) == ("d",)
    tokens.skip_value()
    tokens.skip_value()
    assert tokens.integer() == 7
    for broken in ("(a, )", "(a b)", "a, b", "()"):
        with pytest.raises(RplError):
            (again := of(broken)).in_parentheses(again.identifier)


def test_what_is_no_name_number_or_string_is_given_back() -> None:
    tokens = of("5 'a' 'b' _utf8'c' x.y")
    with pytest.raises(RplError):
        tokens.identifier()
    assert tokens.integer() == 5
    with pytest.raises(RplError):
        tokens.integer()
    assert tokens.string() == "ab" and tokens.string() == "c"
    with pytest.raises(RplError):
        tokens.string()
    assert tokens.table_name("d") == ("x", "y")
    with pytest.raises(RplError, match="No database selected"):
        of("t").table_name("")


def test_groups_and_clauses_are_taken_with_what_they_nest() -> None:
    tokens = of("(a (b) ')') less than (1, (2)), rest of it")
    assert tokens.skip_group() == "a (b) ')'"
    assert tokens.skip_clause() == "less than (1, (2))"
    assert tokens.accept_symbol(",") and tokens.rest() == "rest of it" and tokens.at_end
    with pytest.raises(RplError):
        of("(a").skip_group()


def test_a_statement_ends_at_its_last_semicolon_only() -> None:
    assert of(";").at_end and not of("; x").at_end
    with pytest.raises(RplError):
        of("x").expect_end()
