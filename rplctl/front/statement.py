"""Splits one statement of a client into words, and reads these words in their order."""

from __future__ import annotations

from rplctl import mysql_errors as er
from rplctl.errors import RplError, UsageError
from rplctl.mask import masked
from rplctl.schema.context import DdlContext
from rplctl.schema.lexer import Token, opened, tokenize


class ClientStatement:
    """One statement, and the position of the word that is read next (`index`).

    `accept` reads the next words if they match a phrase. `expect` also does this, but raises error 1064 if they do not
    match. Methods such as `name` and `number` read one word of this kind, or raise error 1064.
    """

    def __init__(self, sql: str, version: str) -> None:
        context = DdlContext(server_version=version)
        try:
            self.text = opened(sql, context).strip()
            self.tokens = tokenize(self.text, context)
        except RplError:
            raise syntax_error(sql) from None
        while len(self.tokens) > 1 and self.tokens[-2].value == ";" and self.tokens[-2].kind == "symbol":
            del self.tokens[-2]
        self.index = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    @property
    def at_end(self) -> bool:
        return self.token.kind == "end"

    def next(self) -> Token:
        token = self.token
        if self.at_end:
            raise self.refuse()
        self.index += 1
        return token

    def accept(self, phrase: str) -> bool:
        """Read the words of the phrase and return True, if these are the next words of the statement.

        Otherwise, read nothing and return False. `A|B` in the phrase matches the word A or the word B.
        """
        index = self.index
        for word in phrase.split():
            token = self.tokens[index]
            if token.kind not in ("word", "symbol") or token.value not in word.split("|"):
                return False
            index += 1
        self.index = index
        return True

    def expect(self, phrase: str) -> None:
        if not self.accept(phrase):
            raise self.refuse()

    def expect_end(self) -> None:
        if not self.at_end:
            raise self.refuse()

    def string(self) -> str:
        token = self.next()
        if token.kind != "string":
            self.index -= 1
            raise self.refuse()
        return token.value

    def name(self) -> str:
        token = self.next()
        if token.kind not in ("word", "quoted"):
            self.index -= 1
            raise self.refuse()
        return token.value if token.kind == "quoted" else self.original(token)

    def number(self) -> int:
        token = self.next()
        if token.kind != "number" or not token.value.isdecimal() or len(token.value) > 20:
            self.index -= 1
            raise self.refuse()
        return int(token.value)

    def value(self) -> str:
        """Read a string, a number with its sign, or a word."""
        if self.token.kind == "string":
            return self.string()
        sign = "-" if self.accept("-") else ""
        token = self.next()
        if token.kind not in ("word", "quoted", "number"):
            self.index -= 1
            raise self.refuse()
        return sign + (token.value if token.kind == "quoted" else self.original(token))

    def original(self, token: Token) -> str:
        return self.text[token.start : token.end]

    def rest(self) -> str:
        return self.text[self.token.start :]

    def refuse(self) -> RplError:
        """Return error 1064, which quotes the rest of the statement from the next word on."""
        return syntax_error(self.rest(), self.text)


def syntax_error(near: str, statement: str = "") -> UsageError:
    shown = masked(near[:200] if len(near) > 200 else near, statement or near)
    error = UsageError(
        "You have an error in your SQL syntax; check the manual page rplctl(1), section serve, for the right syntax to "
        f"use near '{shown}' at line 1",
        errno=er.PARSE_ERROR,
    )
    error.hide(statement or near)
    return error
