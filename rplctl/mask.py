"""Masks secrets in texts that others wrote: statements of the source, errors of a server, URLs (design D14, D21).

Invariant: no text that rplctl prints or stores contains a password or its hash. `masked` processes every error
(RplError), every line of a log (log_file.py), the history and show-relaylog-events. A text may be truncated anywhere,
be quoted in another text, and contain comments. A part that cannot be distinguished from a secret is masked, too.
"""

from __future__ import annotations

import re
from typing import Final

SECRET: Final = "<secret>"  # as in MySQL's logs

# The gap between two words: blanks, comments, and the marks of /*!NNNNN … */. The pattern never backtracks, because a
# hostile text could make backtracking take very long.
_GAP = r"(?>(?:\s|(?>/\*(?!M?!).*?(?:\*/|$))|/\*M?!\d*|\*/|(?:--\s|\#)[^\n]*(?:\n|$))*+)"
# A literal in any quotes. The quotes may be doubled, because another literal contains this one, and the end may be
# missing. The sql_mode decides if a backslash escapes the closing quote, so all text after a backslash counts as part
# of the literal.
_STRING = (
    r"(?:N|_[a-z0-9]+" + _GAP + r")?"
    r"(?:''[^']+(?:''|$)|\"\"[^\"]+(?:\"\"|$)|\\.*$"
    r"|'(?:[^'\\]|'')*(?:'|\\.*$|$)|\"(?:[^\"\\]|\"\")*(?:\"|\\.*$|$)|`(?:[^`]|``)*(?:`|$))"
)
_LITERAL = rf"(?:0x[0-9a-f]+|[xb]'[^']*(?:'|$)|{_STRING})"
_LITERALS = rf"(?P<secret>{_LITERAL}(?:{_GAP}{_LITERAL})*)"
_FLAGS = re.IGNORECASE | re.DOTALL

_MAY_HOLD = re.compile(r"identified|passw|pwd|challenge_response|://|\*[0-9a-f]{40}|\$[0-9a-z]\$", _FLAGS)
_AFTER_PASSWORD = re.compile(
    rf"(?P<before>(?<![\w'\"`])(?<![^*]/)(?<![\"'`]!)\w*passw(?:or)?d\b{_GAP}[=(:]?{_GAP}\(?{_GAP}){_LITERALS}", _FLAGS
)
_ACCOUNT = re.compile(r"\bidentified\b|challenge_response", _FLAGS)
_AFTER_ACCOUNT_WORD = re.compile(
    rf"(?P<before>\b(?:by|as|using|replace)\b{_GAP}(?:\w*{_GAP}\({_GAP})?){_LITERALS}", _FLAGS
)
_SET = re.compile(r"\bset\b", _FLAGS)
_AFTER_SIGN = re.compile(rf"(?P<before>(?:=|\breplace\b){_GAP}(?:\w+{_GAP}\({_GAP})?){_LITERALS}", _FLAGS)
_BARE = re.compile(
    r"(?P<before>(?:passw(?:or)?d|pwd)\s*=\s*)(?P<secret>(?!<secret>|['\"`(]|password\b)[^\s,;)&'\"]+)", _FLAGS
)
_URL = re.compile(r"(?P<before>://[^\s:/@'\"]{0,256}:)(?P<secret>[^\s'\"]{1,1024})(?=@)", _FLAGS)
_HASH = re.compile(r"(?P<before>)(?P<secret>\*[0-9a-f]{40}\b|\$[A-Z0-9]\$[0-9a-z=,$]{1,30}\$[^'\"]{20,})", _FLAGS)
_NEAR = re.compile(r"(?P<before>\bnear ['\"])(?P<secret>.*)(?=['\"] at line \d+)", _FLAGS)
MOST_PIECES = 500  # number of secrets of one statement that are replaced, the longest ones first
_SHORT = 4  # characters; a shorter secret is replaced only where it has its quotes


def masked(text: str, statement: str = "") -> str:
    """Return `text` with SECRET in place of each password and hash.

    `statement`: the SQL statement that the text is about. Its secrets are masked anywhere in the text, for example in a
    server's syntax error that quotes the middle of the statement.
    """
    if statement and (found := _secrets(statement)):
        text = _NEAR.sub(_hidden, text)
        for secret in sorted(found, key=len, reverse=True)[:MOST_PIECES]:
            text = text.replace(secret, SECRET)
    if not _MAY_HOLD.search(text):
        return text
    for pattern in _patterns(text):
        text = pattern.sub(_hidden, text)
    return text


def _patterns(text: str) -> list[re.Pattern[str]]:
    found = [_AFTER_PASSWORD]
    if _ACCOUNT.search(text):
        found.append(_AFTER_ACCOUNT_WORD)
    if _SET.search(text):
        found.append(_AFTER_SIGN)
    return [*found, _BARE, _URL, _HASH]


def _hidden(match: re.Match[str]) -> str:
    return match["before"] + SECRET


def _secrets(statement: str) -> set[str]:
    """Return the secret literals of the statement, each with and without its quotes."""
    found = set()
    if _MAY_HOLD.search(statement):
        for pattern in _patterns(statement):
            for match in pattern.finditer(statement):
                found |= {match["secret"], *re.findall(r"[^'\"`\s]+", match["secret"])}
    return {secret for secret in found if len(secret) >= _SHORT or secret[:1] in "'\"" and len(secret) > 2}
