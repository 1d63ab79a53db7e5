"""Reads a statement's tokens one after another, with the operations that a parser needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeVar

from rplctl.event.charset import decode_text
from rplctl.schema.context import DdlContext
from rplctl.schema.lexer import Token, opened, refuse, tokenize

T = TypeVar("T")


class TokenStream:
    """A reader of the tokens of a statement.

    `accept…` reads the next tokens if they match. `expect…` also reads them, but rejects the statement if they do not
    match.
    """

    def __init__(self, sql: str, context: DdlContext, charset: str = "") -> None:
        """Split a statement into tokens. `charset`: the true charset of `sql` if its bytes were decoded as latin-1,
        else ''.

        The true charset is used only for names, because literals may be in another charset.
        """
        self.context = context
        self.text = opened(sql, context, charset=charset)
        self._tokens = tokenize(self.text, context, charset)
        self._charset = charset
        self._index = 0

    @property
    def token(self) -> Token:
        return self._tokens[self._index]

    @property
    def at_end(self) -> bool:
        return self.token.kind == "end" or (self.token.value == ";" and self._tokens[self._index + 1].kind == "end")

    def ahead(self, distance: int = 1) -> Token:
        return self._tokens[min(self._index + distance, len(self._tokens) - 1)]

    def refuse(self, what: str = "") -> NoReturn:
        near = self.text[self.token.start : self.token.start + 60] or "end of statement"
        refuse(what or f"rplctl does not understand this DDL near '{near}'", self.text, self._charset)

    def next(self) -> Token:
        token = self.token
        if token.kind == "end":
            self.refuse()
        self._index += 1
        return token

    def is_word(self, *words: str) -> bool:
        return self.token.kind == "word" and self.token.value in words

    def is_symbol(self, symbol: str) -> bool:
        return self.token.kind == "symbol" and self.token.value == symbol

    def accept(self, phrase: str) -> bool:
        """Read the words of `phrase` (for example `IF NOT EXISTS`) if all of them come next, and return True.

        Otherwise return False and read nothing.
        """
        index = self._index
        for word in phrase.split():
            token = self._tokens[index]  # the last token is never a word
            if token.value != word or token.kind != "word":
                return False
            index += 1
        self._index = index
        return True

    def accept_any(self, *words: str) -> str | None:
        return self.next().value if self.is_word(*words) else None

    def accept_symbol(self, symbol: str) -> bool:
        if self.is_symbol(symbol):
            self._index += 1
            return True
        return False

    def expect(self, phrase: str) -> None:
        if not self.accept(phrase):
            self.refuse()

    def expect_symbol(self, symbol: str) -> None:
        if not self.accept_symbol(symbol):
            self.refuse()

    def expect_end(self) -> None:
        if not self.at_end:
            self.refuse()

    def original(self, token: Token) -> str:
        return self.text[token.start : token.end]

    def identifier(self) -> str:
        """Read a name, quoted or not, and return it in its original case. Raises RplError if no name comes next."""
        token = self.next()
        if token.kind in ("quoted", "word"):
            name = token.value if token.kind == "quoted" else self.original(token)
            return decode_text(name.encode("latin-1"), self._charset) if self._charset else name
        self._index -= 1
        self.refuse()

    def table_name(self, database: str) -> tuple[str, str]:
        """Read `t`, `db.t` or `.t`, and return (database, table), in the case in which the source stores names.

        `database`: the default database, for a name without a database.
        """
        self.accept_symbol(".")
        name = self.identifier()
        if self.accept_symbol("."):
            database, name = name, self.identifier()
        if not database:
            self.refuse("No database selected")
        return self.context.fold_name(database), self.context.fold_name(name)

    def string(self) -> str:
        """Read a string literal and return its value. A charset introducer may come before the literal.

        Adjacent literals are joined, as in MySQL.
        """
        if self.token.kind == "word" and self.token.value.startswith("_") and self.ahead().kind == "string":
            self.next()
        first = self.next()
        if first.kind != "string":
            self._index -= 1
            self.refuse()
        parts = [first.value]
        while self.ahead(0).kind == "string":
            parts.append(self.next().value)
        return "".join(parts)

    def integer(self) -> int:
        token = self.next()
        if token.kind != "number" or not token.value.isdecimal():
            self._index -= 1
            self.refuse()
        return int(token.value)

    def skip_group(self) -> str:
        """Read `( … )` with all nested parentheses, and return the text between the outer ones."""
        first = self.token
        self.expect_symbol("(")
        depth = 1
        while depth:
            token = self.next()
            if token.kind == "symbol":
                depth += (token.value == "(") - (token.value == ")")
        return self.text[first.end : token.start].strip()

    def skip_clause(self) -> str:
        """Read up to the next comma or closing parenthesis outside of nested parentheses, and return the text."""
        start = end = self.token.start
        while not self.at_end and not self.is_symbol(",") and not self.is_symbol(")"):
            end = self.token.end
            if self.is_symbol("("):
                self.skip_group()
                end = self._tokens[self._index - 1].end
            else:
                self.next()
        return self.text[start:end]

    def rest(self) -> str:
        """Read all remaining tokens, and return their text."""
        text = self.text[self.token.start :].strip()
        self._index = len(self._tokens) - 1
        return text

    def skip_value(self) -> None:
        """Read a value, which may have an equals sign before it."""
        self.accept_symbol("=")
        self.next()

    def each(self, read: Callable[[], T]) -> tuple[T, ...]:
        """Call `read` for each item of a list with commas, and return the results."""
        found = [read()]
        while self.accept_symbol(","):
            found.append(read())
        return tuple(found)

    def in_parentheses(self, read: Callable[[], T]) -> tuple[T, ...]:
        """Read a list such as `( a, b )`: call `read` for each item, and return the results."""
        self.expect_symbol("(")
        found = self.each(read)
        self.expect_symbol(")")
        return found
