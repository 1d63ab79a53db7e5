"""MySQL's lexical rules: versioned comments expanded, plain comments gone, tokens with their place in the text.

sqlglot is not used for this: it hands `/*!50100 … */` back as a comment, and statements that every dump holds (FULLTEXT
keys, partitions, functional keys) as opaque text. What is not understood here or by the parser must stop the channel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple, NoReturn

from rplctl import mysql_errors as er
from rplctl.errors import RplError
from rplctl.mask import masked
from rplctl.schema.context import ANSI_QUOTES, NO_BACKSLASH_ESCAPES, DdlContext

TokenKind = Literal["word", "quoted", "string", "number", "bits", "symbol", "end"]

WAY_OUT = (
    "do on the target by hand what the statement does to the rows, then `rplctl skip`, which leaves the "
    "whole transaction out"
)
WAY_OUT_OF_ALTER = (
    "alter the table on the target by hand and give its rows the source's values, then `rplctl load-schema FILE` with "
    "the table's new definition and `rplctl skip`, which leaves the whole transaction out"
)

_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


class Token(NamedTuple):
    """`value` is the decoded text of a string or name, the upper-case text of a word, else the text itself."""

    kind: TokenKind
    value: str
    start: int
    end: int


def refuse(what: str, sql: str) -> NoReturn:
    """Raise the error of a statement that cannot be carried out on this target; shows its first 1,000 characters."""
    text = masked(sql.strip())
    shown = text if len(text) <= 1000 else text[:1000] + " …"
    raise RplError(f"{masked(what, sql)}; statement: {shown}", errno=er.PARSE_ERROR, hint=WAY_OUT)


@lru_cache(maxsize=8)
def _pattern(ansi_quotes: bool, backslash: bool) -> re.Pattern[str]:
    escape = r"|\\." if backslash else ""
    plain = r"[^'\\]" if backslash else r"[^']"
    plain_double = r'[^"\\]' if backslash else r'[^"]'
    double = r'(?P<dquoted>"(?:[^"]|"")*")' if ansi_quotes else rf'(?P<dstring>"(?:{plain_double}|""{escape})*")'
    return re.compile(
        rf"""(?P<space>[\s\x00]+)
        |(?P<comment>\#[^\n]*|--(?=[\s\x00]|$)[^\n]*|/\*(?!M?!).*?\*/)
        |(?P<open>/\*M?!(?P<version>\d{{5,6}})?)
        |(?P<close>\*/)
        |(?P<bits>[xX]'[0-9a-fA-F]*'|[bB]'[01]*'|0x[0-9a-fA-F]+(?![\w$])|0b[01]+(?![\w$]))
        |(?P<string>[nN]?'(?:{plain}|''{escape})*')
        |{double}
        |(?P<quoted>`(?:[^`]|``)*`)
        |(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w$]))
        |(?P<word>[\w$\u0080-\U0010ffff]+)
        |(?P<symbol>->>|->|:=|<=>|<=|>=|<>|!=|&&|\|\||<<|>>|.)""",
        re.VERBOSE | re.DOTALL,
    )


def _modes(context: DdlContext) -> tuple[bool, bool]:
    return bool(context.sql_mode & ANSI_QUOTES), not context.sql_mode & NO_BACKSLASH_ESCAPES


def _is_executed(comment_start: str, version: str | None, context: DdlContext) -> bool:
    """Whether the source ran what stands in `/*!NNNNN … */` or `/*M!NNNNNN … */`."""
    if comment_start.startswith("/*M!") and not context.is_mariadb:
        return False
    if version is None:
        return True
    number = int(version)
    if context.is_mariadb and not comment_start.startswith("/*M!") and 50700 <= number <= 99999:
        return False  # MariaDB reads past what is MySQL 5.7's and later
    return number <= context.version_number


def expand(sql: str, context: DdlContext) -> str:
    """The statement the source executed: versioned comments opened or dropped, plain comments as blanks."""
    pattern, out, position, dropped_depth, depth = _pattern(*_modes(context)), [], 0, 0, 0
    while position < len(sql):
        match = pattern.match(sql, position)
        if match is None:
            refuse("A string or comment does not end", sql)
        position = match.end()
        kind, text = match.lastgroup, match[0]
        if match["open"] is not None:
            depth += 1
            if dropped_depth or not _is_executed(text, match["version"], context):
                dropped_depth += 1
            text = " "
        elif kind == "close":
            depth -= 1
            dropped_depth -= bool(dropped_depth)
            text = " "
        elif kind == "comment":
            text = " "
        if not dropped_depth:
            out.append(text)
    if depth > 0:
        refuse("A comment does not end", sql)
    return "".join(out)


def tokenize(expanded: str, context: DdlContext) -> list[Token]:
    """Tokens of a statement that `expand` made, ending in one of kind `end`."""
    ansi_quotes, backslash = _modes(context)
    pattern, tokens = _pattern(ansi_quotes, backslash), []
    for match in pattern.finditer(expanded):
        kind, text = match.lastgroup, match[0]
        if kind == "string" or kind == "dstring":
            tokens.append(Token("string", _unquote(text.lstrip("nN"), backslash=backslash), *match.span()))
        elif kind == "quoted" or kind == "dquoted":
            tokens.append(Token("quoted", text[1:-1].replace(text[0] * 2, text[0]), *match.span()))
        elif kind == "word":
            tokens.append(Token("word", text.upper(), *match.span()))
        elif kind == "number":
            tokens.append(Token("number", text, *match.span()))
        elif kind == "bits":
            tokens.append(Token("bits", text, *match.span()))
        elif kind not in ("space", "comment"):
            if text in "'\"`":
                refuse("A string or name does not end", expanded)
            tokens.append(Token("symbol", text, *match.span()))
    tokens.append(Token("end", "", len(expanded), len(expanded)))
    return tokens


def scan(sql: str, context: DdlContext) -> Iterator[tuple[str, int, int]]:
    """Every piece of a text that nobody has expanded, as (kind, start, end): a token's kind, or space, comment, open or
    close of a versioned comment. A quote that nothing ends is a symbol.
    """
    for match in _pattern(*_modes(context)).finditer(sql):
        kind = "open" if match["open"] is not None else str(match.lastgroup or "symbol")
        yield kind, *match.span()


def _unquote(text: str, *, backslash: bool) -> str:
    """The value of a string literal in its quotes; `\\%` and `\\_` keep their backslash, as on the server."""
    quote, body = text[0], text[1:-1]
    if not backslash:
        return body.replace(quote * 2, quote)

    def decode(match: re.Match[str]) -> str:
        found = match[0]
        if found == quote * 2:
            return quote
        return found if found[1] in "%_" else _ESCAPES.get(found[1], found[1])

    return re.sub(rf"\\.|{quote}{quote}", decode, body, flags=re.DOTALL)
