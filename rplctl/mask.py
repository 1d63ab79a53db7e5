"""Secrets in text that somebody else wrote: statements of the source, words of a server, URLs (design D14, D21).

Invariant: no text that leaves the process holds a password or its hash: every error (RplError), every line of a log
(log_file.py), the history and show-relaylog-events pass through `masked`. The text may be cut anywhere, quoted in
another, and full of comments; what cannot be told apart from a secret is masked with it.
"""

from __future__ import annotations

import re
from typing import Final

SECRET: Final = "<secret>"  # MySQL's own word for it in its logs

# Between two words: blanks, comments, and the brackets of /*!NNNNN … */. Never tried twice: the text may be hostile.
_GAP = r"(?>(?:\s|(?>/\*(?!M?!).*?(?:\*/|$))|/\*M?!\d*|\*/|(?:--\s|\#)[^\n]*(?:\n|$))*+)"
# A literal in any quotes, also in quotes that are doubled in another text, or cut off at its end. Whether a backslash
# escapes the end of a literal depends on sql_mode: all that follows one goes with the literal.
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
MOST_PIECES = 500  # of a statement's secrets, the longest
_SHORT = 4  # characters: so short a secret is looked for with its quotes only


def masked(text: str, statement: str = "") -> str:
    """`text` with SECRET in the place of each password and hash.

    `statement`: what the text is about. Its secrets are masked in the text wherever they stand, as when a server's
    syntax error quotes the middle of it.
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
    """The literals that are masked in the statement, as they stand there and without their quotes."""
    found = set()
    if _MAY_HOLD.search(statement):
        for pattern in _patterns(statement):
            for match in pattern.finditer(statement):
                found |= {match["secret"], *re.findall(r"[^'\"`\s]+", match["secret"])}
    return {secret for secret in found if len(secret) >= _SHORT or secret[:1] in "'\"" and len(secret) > 2}
