"""Reads the character sets that a SET statement changes: SET NAMES, SET CHARACTER SET, and SET character_set_… = …"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rplctl.front.charset import CLIENT, COLLATION, CONNECTION, RESULTS, ConnectionCharsets
from rplctl.front.statement import ClientStatement
from rplctl.schema.lexer import Token

_VARIABLES: Final = (CLIENT, CONNECTION, RESULTS, COLLATION)
_SCOPES: Final = ("SESSION", "LOCAL")


def changed_charsets(
    charsets: ConnectionCharsets, words: ClientStatement, variables: Mapping[str, object]
) -> ConnectionCharsets:
    """Return the character sets of the connection after a SET statement.

    `charsets`: the character sets before it. `words`: the statement, whose next word is the first word after SET; the
    function does not change this. `variables`: the user variables, which a value may name. Raises RplError 1115, 1231,
    1253 or 1273 for a value that is not valid.
    """
    for tokens in _assignments(words):
        charsets = _assigned(charsets, words, tokens, variables)
    return charsets


def _assignments(words: ClientStatement) -> list[list[Token]]:
    """Return the words of each assignment of a SET statement. A comma in parentheses does not end an assignment."""
    found: list[list[Token]] = [[]]
    depth = 0
    for token in words.tokens[words.index : -1]:
        depth += (token.value == "(") - (token.value == ")") if token.kind == "symbol" else 0
        if token.kind == "symbol" and token.value == "," and depth == 0:
            found.append([])
        else:
            found[-1].append(token)
    return found


def _assigned(
    charsets: ConnectionCharsets, words: ClientStatement, tokens: list[Token], variables: Mapping[str, object]
) -> ConnectionCharsets:
    values = [token.value for token in tokens]
    if values[:1] in (["NAMES"], ["CHARSET"]) or values[:2] == ["CHARACTER", "SET"]:
        named = tokens[1 if values[0] != "CHARACTER" else 2 :]
        if not named or _is_null(named[0]):
            raise words.refuse()
        name = _text(words, named[0])
        if values[0] != "NAMES":
            return charsets.with_character_set(name)
        has_collation = len(named) == 3 and named[1].value == "COLLATE"
        return charsets.named(name, _text(words, named[2]) if has_collation else "")
    while tokens and (tokens[0].value in ("@", ".") or (tokens[0].value in _SCOPES and len(tokens) > 2)):
        tokens = tokens[1:]
    variable = _text(words, tokens[0]).lower() if tokens else ""
    if variable not in _VARIABLES or len(tokens) < 3 or tokens[1].value not in ("=", ":="):
        return charsets
    value = tokens[2:]
    if len(value) == 1:
        return charsets.with_variable(variable, None if _is_null(value[0]) else _text(words, value[0]))
    name = _text(words, value[-1]).lower()
    if value[0].value != "@":
        return charsets  # an expression
    known: Mapping[str, object] = variables
    if value[1].value == "@":
        known = (ConnectionCharsets() if value[2].value == "GLOBAL" else charsets).variables
    found = known.get(name)
    return charsets.with_variable(variable, None if found is None else str(found))


def _is_null(token: Token) -> bool:
    return token.kind == "word" and token.value == "NULL"


def _text(words: ClientStatement, token: Token) -> str:
    return words.original(token) if token.kind == "word" else token.value
