"""Splits a statement into tokens by the servers' lexical rules, and opens or removes its executable comments.

A text has the meaning with which its *source* executed it (design D27). Another vendor or version may read the text
differently. So `opened` converts it before rplctl filters, translates or executes it. A server finds the end of a
skipped comment without regard to strings. Only in an executed comment do strings, names and line comments hide a `*/`.
(Observed on MySQL 5.7, 8.0 and 9.7 and on MariaDB 10.5, 10.11 and 11.8; tests/schema/test_lexer_servers.py checks the
servers again.)

rplctl does not use sqlglot here. sqlglot returns `/*!50100 … */` as a comment, and frequent statements of dumps
(FULLTEXT keys, partitions, functional keys) as text without a structure. A text that neither this module nor the parser
understands must stop the channel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple, NoReturn

from rplctl import mysql_errors as er
from rplctl.errors import BY_HAND, RplError
from rplctl.mask import masked
from rplctl.schema.context import ANSI_QUOTES, NO_BACKSLASH_ESCAPES, DdlContext

TokenKind = Literal["word", "quoted", "string", "number", "bits", "symbol", "end"]

WAY_OUT_OF_ALTER = (
    "alter the table on the target by hand, and give its rows the source's values. To load its new definition and to "
    "skip the whole transaction, run: rplctl load-schema FILE; rplctl skip --yes; rplctl start"
)

_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


class Token(NamedTuple):
    """A token of a statement, with its offsets in the text.

    `value`: the decoded text of a string or name, the upper-case text of a word, or the original text of other tokens.
    """

    kind: TokenKind
    value: str
    start: int
    end: int


def refuse(what: str, sql: str, charset: str = "") -> NoReturn:
    """Raise the error for a statement that rplctl cannot execute on this target.

    `what`: the reason. `sql`: the statement, of which the error shows the first 1,000 characters. `charset`: the true
    charset of `sql` if its bytes were decoded as latin-1, else ''.
    """
    if charset:
        what, sql = (text.encode("latin-1", "replace").decode("utf-8", "replace") for text in (what, sql))
    text = masked(sql.strip())
    shown = text if len(text) <= 1000 else text[:1000] + " …"
    raise RplError(
        f"cannot execute a statement on this target: {masked(what, sql)}; statement: {shown}",
        errno=er.PARSE_ERROR,
        hint=BY_HAND,
    )


# In these charsets, the second byte of a character may look like a quote or a backslash. The patterns match such
# characters in latin-1 text. In all other charsets, no byte of a multi-byte character equals an ASCII delimiter.
_SJIS = r"[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]"
_GBK = r"[\x81-\xfe][\x40-\x7e\x80-\xfe]"
_MULTIBYTE = {
    "sjis": _SJIS,
    "cp932": _SJIS,
    "big5": r"[\xa1-\xf9][\x40-\x7e\xa1-\xfe]",
    "gbk": _GBK,
    "gb18030": rf"[\x81-\xfe][0-9][\x81-\xfe][0-9]|{_GBK}",
}
_LEAD = r"\x81-\xfe"
_MARIADB_MARK = re.compile(r"/\*M?!([0-9]{5,6})?")
_MYSQL_MARK = re.compile(r"/\*!([0-9]{6}(?=\s)|[0-9]{5})?", re.ASCII)
_OLD_MYSQL_MARK = re.compile(r"/\*!([0-9]{5})?")
_SIX_DIGITS_SINCE = 80100  # MySQL
_ANY_COMMENT = re.compile(r"(?P<comment>/\*(?!M?!).*?\*/)|(?P<open>/\*M?!(?:[0-9]{5,6})?)|(?P<close>\*/)", re.DOTALL)
_ENDS = re.compile(r"/\*|\*/")
_VISIBLE = re.compile(r"[^\n]")
_MAY_BE_BLANK = re.compile(r"(?:--|/\*!\d{6})[\x80-\xff]")  # this byte is a no-break space in some charsets


_COMMENT = r"(?P<comment>\#[^\n]*|--(?=[\s\x00-\x1f\x7f]|\Z)[^\n]*)"
_FLAGS = re.VERBOSE | re.DOTALL | re.ASCII


def _quotes(ansi_quotes: bool, backslash: bool, charset: str) -> tuple[str, str, str]:
    """Return three patterns: a string in single quotes, a text in double quotes, and a name in backticks.

    `ansi_quotes`: True if double quotes contain a name. `backslash`: True if a backslash escapes the next character.
    """
    whole, lead = (f"{_MULTIBYTE[charset]}|", _LEAD) if charset in _MULTIBYTE else ("", "")
    alone = f"|[{lead}]" if lead else ""  # in a string, any byte may follow the first byte of a character
    other, escape = (r"\\", r"|\\.") if backslash else ("", "")
    single = f"'(?>{whole}[^'{other}{lead}]+{alone}|''{escape})*'"
    as_string = f'(?P<dstring>"(?>{whole}[^"{other}{lead}]+{alone}|""{escape})*")'
    as_name = f'(?P<dquoted>"(?>{whole}[^"{lead}]+|"")*")'
    return single, as_name if ansi_quotes else as_string, f"(?P<quoted>`(?>{whole}[^`{lead}]+|``)*`)"


@lru_cache(maxsize=16)
def _outline(ansi_quotes: bool, backslash: bool, charset: str) -> re.Pattern[str]:
    """Return the pattern of the next comment, string, name or other text of a statement, to find its comments."""
    whole, lead = (f"{_MULTIBYTE[charset]}|", _LEAD) if charset in _MULTIBYTE else ("", "")
    alone = f"|[{lead}]" if lead else ""
    code = rf"(?>{whole}[^'\"`/*\#\-{lead}]+{alone})+"
    return re.compile("|".join((_COMMENT, *_quotes(ansi_quotes, backslash, charset), code, ".")), _FLAGS)


@lru_cache(maxsize=16)
def _pattern(ansi_quotes: bool, backslash: bool, charset: str = "") -> re.Pattern[str]:
    single, double, name = _quotes(ansi_quotes, backslash, charset)
    whole = f"{_MULTIBYTE[charset]}|" if charset in _MULTIBYTE else ""
    letter = r"\w$\u0080-\U0010ffff"
    return re.compile(
        rf"""(?P<space>[\s\x00]+)
        |{_COMMENT}
        |(?P<bits>[xX]'[0-9a-fA-F]*'|[bB]'[01]*'|0x[0-9a-fA-F]+(?![{letter}])|0b[01]+(?![{letter}]))
        |(?P<string>[nN]?{single})
        |{double}
        |{name}
        |(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![{letter}]))
        |(?P<word>(?:{whole}[{letter}])+)
        |(?P<symbol>->>|->|:=|<=>|<=|>=|<>|!=|&&|\|\||<<|>>|.)""",
        _FLAGS,
    )


def _modes(context: DdlContext) -> tuple[bool, bool]:
    return bool(context.sql_mode & ANSI_QUOTES), not context.sql_mode & NO_BACKSLASH_ESCAPES


def _mark(context: DdlContext) -> re.Pattern[str]:
    """Return the pattern for the start of an executable comment, with its version, on the server of the context."""
    if context.is_mariadb:
        return _MARIADB_MARK
    return _MYSQL_MARK if context.version_number >= _SIX_DIGITS_SINCE else _OLD_MYSQL_MARK


def _is_executed(mark: re.Match[str], context: DdlContext) -> bool:
    """True if the source executed the text in this comment `/*!NNNNN … */` or `/*M!NNNNNN … */`."""
    if mark[1] is None:
        return True
    number = int(mark[1])
    if context.is_mariadb and not mark[0].startswith("/*M!") and 50700 <= number <= 99999:
        return False  # MariaDB skips comments for MySQL 5.7 and later
    return number <= context.version_number


def opened(sql: str, context: DdlContext, *, charset: str = "", keeps: str | None = None) -> str:
    """Return the statement that the source executed, with every character at its old offset.

    Blanks replace the marks of an executed comment, and the whole of a skipped comment. `charset`: the true charset of
    `sql` if its bytes were decoded as latin-1, else ''. `keeps`: None to replace plain comments by blanks, too; with a
    text, only plain comments that begin with this text are replaced. Raises RplError 1064 for a text that no server
    executes, because a comment, string or name has no end.
    """
    pattern, mark_of, out = _outline(*_modes(context), charset), _mark(context), list[str]()
    at, is_inside = 0, False
    while at < len(sql):
        start, is_code = at, False
        if _MAY_BE_BLANK.match(sql, at) and not charset.startswith("utf8"):
            refuse("The start of a comment depends on the character set", sql, charset)
        if sql.startswith("/*", at):
            mark = mark_of.match(sql, at)
            if mark is None:
                at = sql.find("*/", at + 2) + 2
                # /*M! begins a comment that MySQL skips and MariaDB executes, so it is never kept as a plain comment
                is_code = keeps is not None and not sql.startswith(("/*M!", keeps), start)
            elif _is_executed(mark, context):
                at, is_inside = mark.end(), True
            else:
                at = _end_of_skipped(sql, at + 2)
            if at < start + 2:
                refuse("A comment does not end", sql, charset)
        elif is_inside and sql.startswith("*/", at):
            at, is_inside = at + 2, False
        else:
            match = pattern.match(sql, at)
            assert match is not None  # any character is a symbol
            at = match.end()
            is_code = keeps is not None or match.lastgroup != "comment"
            if match[0] in ("'", '"', "`"):
                refuse("A string or name does not end", sql, charset)
        if not is_code and out and out[-1] == "-" and out[-2:-1] == ["-"]:
            refuse("Two dashes directly before a comment are ambiguous", sql, charset)
        out.append(sql[start:at] if is_code else _VISIBLE.sub(" ", sql[start:at]))
    if is_inside:
        refuse("A comment does not end", sql, charset)
    return "".join(out)


def _end_of_skipped(sql: str, at: int) -> int:
    """Return the offset after the end of a comment that the source skipped, or a number below 2 if the comment has no
    end.

    The comment may contain other comments, but these do not contain comments themselves.
    """
    while (found := _ENDS.search(sql, at)) is not None:
        if found[0] == "*/":
            return found.end()
        at = sql.find("*/", found.end()) + 2
        if at < 2:
            break
    return 0


def expand(sql: str, context: DdlContext) -> str:
    """Return the statement that the source executed, without its comments."""
    return opened(sql, context)


def tokenize(expanded: str, context: DdlContext, charset: str = "") -> list[Token]:
    """Return the tokens of a statement from `expand`. The last token has the kind `end`.

    `charset`: the true charset of the text if its bytes were decoded as latin-1, else ''.
    """
    ansi_quotes, backslash = _modes(context)
    pattern, tokens = _pattern(ansi_quotes, backslash, charset), []
    for match in pattern.finditer(expanded):
        found, text = match.lastgroup, match[0]
        kind: TokenKind
        match found:
            case "string" | "dstring":
                kind, value = "string", _unquote(text.lstrip("nN"), backslash=backslash)
            case "quoted" | "dquoted":
                kind, value = "quoted", text[1:-1].replace(text[0] * 2, text[0])
            case "word":
                kind, value = "word", text.upper()
            case "number" | "bits" as kind:
                value = text
            case "space" | "comment":
                continue
            case _:
                if text in "'\"`":
                    refuse("A string or name does not end", expanded)
                kind, value = "symbol", text
        tokens.append(Token(kind=kind, value=value, start=match.start(), end=match.end()))
    tokens.append(Token(kind="end", value="", start=len(expanded), end=len(expanded)))
    return tokens


def scan(sql: str, context: DdlContext) -> Iterator[tuple[str, int, int]]:
    """Yield every part of a text as (kind, start, end). The text may have comments.

    The kind is that of a token, or one of space, comment, open and close. The last two are the marks of a versioned
    comment. A quote without an end is a symbol.
    """
    pattern, at = _pattern(*_modes(context)), 0
    while at < len(sql):
        match = _ANY_COMMENT.match(sql, at) or pattern.match(sql, at)
        assert match is not None  # any character is a symbol
        yield str(match.lastgroup), *match.span()
        at = match.end()


def _unquote(text: str, *, backslash: bool) -> str:
    """Return the value of a string literal in quotes. `\\%` and `\\_` keep their backslash, as on the server."""
    quote, body = text[0], text[1:-1]
    if not backslash:
        return body.replace(quote * 2, quote)

    def decode(match: re.Match[str]) -> str:
        found = match[0]
        if found == quote * 2:
            return quote
        return found if found[1] in "%_" else _ESCAPES.get(found[1], found[1])

    return re.sub(rf"\\.|{quote}{quote}", decode, body, flags=re.DOTALL)
