"""The text and tokens of a DDL statement, and the edits that translate the statement for another server (design D33).

Invariant: a name in an edit is the source's text in its original quotes, or is quoted by `backticked`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rplctl.event.charset import decode_text
from rplctl.event.query import Query
from rplctl.schema.context import DdlContext
from rplctl.schema.lexer import Token
from rplctl.schema.model import TableModel
from rplctl.target.mysql.session import ServerKind


class Gone(Exception):
    """Raised if a clause or a statement must be omitted, because the target does not support it or need it."""


@dataclass(slots=True, kw_only=True)
class EditedStatement:
    """A statement and its edits. An edit is a tuple (start offset, end offset, new text), and edits do not overlap. In
    the methods, numbers such as `at`, `first` and `end` (exclusive) are indexes of tokens.
    """

    query: Query
    context: DdlContext
    target: ServerKind
    text: str
    tokens: list[Token]
    table_model: Callable[[str, str], TableModel | None]
    collations: Callable[[], Mapping[int, str]]
    edits: list[tuple[int, int, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    name: str = ""  # the table's name in the spelling of the statement
    table_token: int = 0  # index of the token with the table's name, without the database
    model: TableModel | None = None  # the definition of the target's table
    is_new: bool = False  # the statement creates the table
    added: list[str] = field(default_factory=list)  # CHECKs that move from a column to the table
    checks: int = 0  # the highest number in a generated name of a CHECK

    @property
    def to_mariadb(self) -> bool:
        return self.target.is_mariadb

    def is_word(self, at: int, *words: str) -> bool:
        token = self.tokens[min(at, len(self.tokens) - 1)]
        return token.kind == "word" and token.value in words

    def is_symbol(self, at: int, symbol: str) -> bool:
        token = self.tokens[min(at, len(self.tokens) - 1)]
        return token.kind == "symbol" and token.value == symbol

    def reads(self, at: int, phrase: str) -> bool:
        return all(self.is_word(at + number, word) for number, word in enumerate(phrase.split()))

    def decoded(self, at: int) -> str:
        token = self.tokens[at]
        raw = token.value if token.kind == "quoted" else self.text[token.start : token.end]
        return decode_text(raw.encode("latin-1"), self.query.charset)

    def behind(self, at: int) -> int:
        """Return the index of the next token after `at`. If `at` is an opening parenthesis, skip the whole group."""
        if not self.is_symbol(at, "("):
            return at + 1
        depth = 0
        while at < len(self.tokens) - 1:
            depth += self.is_symbol(at, "(") - self.is_symbol(at, ")")
            at += 1
            if not depth:
                break
        return at

    def outline(self, first: int, end: int) -> list[int]:
        """Return the indexes of the tokens from `first` to `end` that are not inside of parentheses."""
        found = []
        while first < end:
            found.append(first)
            first = self.behind(first)
        return found

    def parts(self, first: int, end: int) -> list[tuple[int, int]]:
        """Split the tokens from `first` to `end` at commas that are not inside of parentheses. Return each part as a
        pair (first token, end token), with an exclusive end.
        """
        found, begin = [], first
        for at in self.outline(first, end):
            if self.is_symbol(at, ","):
                found.append((begin, at))
                begin = at + 1
        return [*found, (begin, end)]

    def end(self) -> int:
        last = len(self.tokens) - 1
        return last - (last > 0 and self.tokens[last - 1].value == ";")

    def named_after_table(self, suffix: str) -> str:
        """Return the table's name with the suffix appended. The name keeps the quotes that it has in the statement."""
        token = self.tokens[self.table_token]
        end = token.end - (token.kind == "quoted")
        return f"{self.text[token.start : end]}{suffix}{self.text[end : token.end]}"

    # edits

    def cut(self, first: int, end: int) -> None:
        self.put(first, end, "")

    def put(self, first: int, end: int, text: str) -> None:
        self.edits.append((self.tokens[first].start, self.tokens[end - 1].end, text))

    def edited(self, start: int, end: int) -> str:
        """Return the statement's text between two offsets, with the edits applied."""
        out, at = [], start
        for first, last, text in sorted(self.edits):
            if at <= first and last <= end:
                out += [self.text[at:first], text]
                at = last
        return "".join((*out, self.text[at:end]))

    def shown(self, first: int, end: int) -> str:
        raw = self.text[self.tokens[first].start : self.tokens[end - 1].end]
        return decode_text(raw.encode("latin-1"), self.query.charset)[:200]

    def note(self, what: str) -> None:
        name = decode_text(self.name.encode("latin-1"), self.query.charset)
        self.notes.append(f"Table {name} on the target lacks this part, on which no row depends: {what}")

    def known_names(self, *, columns: bool = True) -> set[str]:
        """Return the case-folded names of the columns, keys and constraints of the target's table."""
        if self.model is None:
            return set()
        names = [column.name for column in self.model.columns] if columns else []
        names += [key.name for key in self.model.keys] + [key.name for key in self.model.foreign_keys]
        return {name.casefold() for name in (*names, *(check.name for check in self.model.checks))}

    def _condition(self, at: int, name: int) -> int:
        """Remove the condition IF [NOT] EXISTS at `at` for MySQL, which has no such condition in ALTER TABLE. Return
        `name`, the index of the token after the condition. If the condition is false on the target, raise Gone, so that
        the caller omits the clause.
        """
        if self.to_mariadb:
            return name
        self.cut(at, name)
        has_not = self.is_word(at + 1, "NOT")
        if self.model is not None and has_not is (self.decoded(name).casefold() in self.known_names()):
            raise Gone
        return name
