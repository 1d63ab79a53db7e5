"""Reads a definition that a server printed for a table or a sequence, and proves that it is safe to execute.

A definition is safe if its text is exactly one CREATE TABLE or CREATE SEQUENCE. The lexer of this package reads every
token. Invariant: every server, of either vendor and any version, reads the same single statement, with or without the
text in its versioned comments (`/*!nnnnn…*/`). So a versioned comment ends at its first `*/` and contains no other
comment. A safe definition has no `;`, no comment without a version, no text in double quotes, and no query. It is split
at tokens, never at lines.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from rplctl.schema.context import DdlContext
from rplctl.schema.lexer import scan
from rplctl.schema.model import Key
from rplctl.schema.plan import DatabaseModel
from rplctl.sql_text import NOTHING, Sql, backticked, joined, not_executed, proven_statement, word, written

_CONTEXT: Final = DdlContext(sql_mode=0)
_SYMBOLS: Final = frozenset("( ) , = . - + * / % < > ! & | ^ ~ <= >= <> != <=> && || << >> -> ->>".split())
_WORD: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")  # no digit first, because servers read 1e0SELECT as two tokens
_OF_QUERIES: Final = frozenset({"SELECT", "INTO"})
_FOLLOWED_BY: Final = {"VALUES": ("LESS", "IN"), "WITH": ("SYSTEM", "PARSER")}  # before other words, they begin a query
_OF_SEQUENCES: Final = frozenset(
    "CREATE SEQUENCE AS TINYINT SMALLINT MEDIUMINT INT BIGINT UNSIGNED SIGNED START WITH MINVALUE MAXVALUE INCREMENT BY"
    " CACHE NOCACHE CYCLE NOCYCLE ENGINE COMMENT".split()
)
# These engines store the rows of a table themselves. Other engines use rows that are elsewhere.
_ENGINES: Final = frozenset({"INNODB", "MYISAM", "ARIA", "MEMORY"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lexeme:
    """A token of a definition. `kind`: word, quoted, symbol, value (a number, a string, bits), open or close.

    The kinds open and close are the marks of a versioned comment. `value`: the upper-case word, the name without its
    quotes, or the text of the token.
    """

    kind: str
    value: str
    start: int
    end: int

    def is_symbol(self, value: str) -> bool:
        return self.kind == "symbol" and self.value == value


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """A column, key or constraint in the parentheses of a CREATE TABLE, as the server prints it.

    `key`: the name of an index that a CREATE can omit and add later, else ''. `column`: the name of a column, else ''.
    """

    text: Sql
    key: str = ""
    column: str = ""


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """The parts of a CREATE TABLE statement that a server printed. `tail`: the options after the closing
    parenthesis.
    """

    name: str
    elements: tuple[Element, ...]
    tail: Sql

    def create(self, without: Collection[Key] = (), *, database: str = "") -> Sql:
        """Return the CREATE TABLE statement for this table, without the indexes `without`.

        `database`: the database in which the table is created, or '' to write no database into the statement.
        """
        names = {key.name for key in without}
        kept = [element.text for element in self.elements if not element.key or element.key not in names]
        name = backticked(database, self.name) if database else backticked(self.name)
        return written("CREATE TABLE {} (\n  {}\n){}", name, joined(",\n  ", kept), self.tail)

    def keys(self, wanted: Collection[Key]) -> dict[str, Sql]:
        """Return the text for ALTER TABLE … ADD of each wanted index, by the name of the index.

        Indexes that are not in this definition are missing in the result.
        """
        names = {key.name for key in wanted}
        return {element.key: element.text for element in self.elements if element.key and element.key in names}


def table_definition(text: str, table: str) -> TableDefinition:
    """Split the text that SHOW CREATE TABLE prints for this table. Raises RplError if the text is anything else."""
    tokens = _tokens(text, f"CREATE TABLE {table}")
    words = [token.value for token in tokens[:2]]
    if words != ["CREATE", "TABLE"] or not _is_named(tokens[2:], table) or not tokens[3].is_symbol("("):
        _refuse(f"CREATE TABLE {table}", text)
    if any(token.kind == "word" and token.value == "TABLE" for token in tokens[3:]):
        _refuse(f"CREATE TABLE {table}", text)
    begin, depth, elements = 4, 0, list[Element]()
    for number in range(3, len(tokens)):
        token = tokens[number]
        depth += token.is_symbol("(") - token.is_symbol(")")
        if depth == 0 or (depth == 1 and token.is_symbol(",")):
            elements.append(_element(text, tokens[begin:number], table))
            begin = number + 1
        if depth == 0:
            return TableDefinition(table, tuple(elements), proven_statement(text[token.end :]))
    _refuse(f"CREATE TABLE {table}", text)


def copied_definition(text: str, table: str) -> TableDefinition:
    """Split the text of SHOW CREATE TABLE as `table_definition` does, if the table's engine stores the rows itself.

    Raises RplError for other engines.
    """
    tokens = _tokens(text, f"CREATE TABLE {table}")
    for number, token in enumerate(tokens):
        if token.kind == "word" and token.value == "ENGINE":
            named = tokens[number + 1 + tokens[number + 1].is_symbol("=") :]
            if not named or named[0].value.upper() not in _ENGINES:
                _refuse(f"CREATE TABLE {table}", text[token.start :])
    return table_definition(text, table)


def create_database(found: DatabaseModel) -> Sql:
    """Return the CREATE DATABASE statement for the database.

    Raises RplError if the charset or collation is not a word.
    """
    collate = written(" COLLATE {}", word(found.collation)) if found.collation else NOTHING
    return written(
        "CREATE DATABASE IF NOT EXISTS {} CHARACTER SET {}{}", backticked(found.name), word(found.charset), collate
    )


def sequence_definition(text: str, name: str) -> Sql:
    """Return CREATE SEQUENCE IF NOT EXISTS for the sequence `name`.

    `text`: the result of SHOW CREATE SEQUENCE. Raises RplError if the text is anything but one CREATE SEQUENCE of this
    name.
    """
    tokens = _tokens(text, f"CREATE SEQUENCE {name}", has_queries=True)
    words = [token.value for token in tokens[:2]]
    if words != ["CREATE", "SEQUENCE"] or not _is_named(tokens[2:], name):
        _refuse(f"CREATE SEQUENCE {name}", text)
    for before, token in zip(tokens[2:], tokens[3:], strict=False):
        is_engine = before.is_symbol("=") and token.value in _ENGINES
        is_known = token.kind == "value" or token.value in _OF_SEQUENCES or token.value in ("-", "=", "(", ")")
        if not (is_engine or is_known) or token.kind in ("open", "close", "quoted"):
            _refuse(f"CREATE SEQUENCE {name}", text)
    return written("CREATE SEQUENCE IF NOT EXISTS {}", proven_statement(text[tokens[2].start :]))


def _is_named(tokens: Sequence[_Lexeme], name: str) -> bool:
    return len(tokens) > 1 and tokens[0].kind == "quoted" and tokens[0].value == name


def _element(text: str, tokens: Sequence[_Lexeme], table: str) -> Element:
    if not tokens:
        _refuse(f"CREATE TABLE {table}", text)
    part = proven_statement(text[tokens[0].start : tokens[-1].end])
    if tokens[0].kind == "quoted":
        return Element(text=part, column=tokens[0].value)
    at = 1 if tokens[0].value == "UNIQUE" else 0
    is_key = len(tokens) > at + 1 and tokens[at].value == "KEY" and tokens[at + 1].kind == "quoted"
    return Element(text=part, key=tokens[at + 1].value if is_key else "")


def _tokens(text: str, what: str, *, has_queries: bool = False) -> list[_Lexeme]:
    """Return all tokens of the definition except blanks. Raises RplError for everything that is not safe to execute.

    `what`: the expected statement, for the error. `has_queries`: True if the caller itself checks each word, so that
    words of queries are allowed here.
    """
    found: list[_Lexeme] = []
    depth, opened, comment_end = 0, 0, -1  # -1: no comment is open
    for kind, start, end in scan(text, _CONTEXT):
        part = text[start:end]
        token = _Lexeme(kind="value", value=part, start=start, end=end)
        if kind == "space" and part.isascii() and "\0" not in part:
            continue
        if kind == "open" and comment_end < 0:
            opened, comment_end = depth, text.find("*/", end)
            token = _Lexeme(kind="open", value=part, start=start, end=end)
            if comment_end < 0 or "/*" in text[end:comment_end]:
                _refuse(what, text[start:])
        elif kind == "close" and start == comment_end and depth == opened:
            comment_end = -1
            token = _Lexeme(kind="close", value=part, start=start, end=end)
        elif kind == "quoted":
            token = _Lexeme(kind="quoted", value=part[1:-1].replace("``", "`"), start=start, end=end)
        elif kind == "word" and _WORD.fullmatch(part):
            token = _Lexeme(kind="word", value=part.upper(), start=start, end=end)
        elif kind == "symbol" and part in _SYMBOLS:
            depth += (part == "(") - (part == ")")
            token = _Lexeme(kind="symbol", value=part, start=start, end=end)
            if depth < (opened if comment_end >= 0 else 0) or (
                part == "," and comment_end >= 0 and depth == opened == 1
            ):
                _refuse(what, text[start:])
        elif kind not in ("number", "string", "bits"):
            _refuse(what, text[start:])
        if 0 <= comment_end < end:  # a string or name contains the end of the comment around it
            _refuse(what, text[start:])
        found.append(token)
    if depth or comment_end >= 0 or len(found) < 4:
        _refuse(what, text)
    if not has_queries:
        _refuse_queries(found, what, text)
    return found


def _refuse_queries(tokens: Sequence[_Lexeme], what: str, text: str) -> None:
    words = [token.value if token.kind == "word" else "" for token in tokens] + [""]
    for token, this, following in zip(tokens, words, words[1:], strict=False):
        if this in _OF_QUERIES or following not in _FOLLOWED_BY.get(this, (following,)):
            _refuse(what, text[token.start :])


def _refuse(what: str, near: str) -> NoReturn:
    raise not_executed(near, f"one {what}")
