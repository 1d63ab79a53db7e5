"""Collations of one vendor on a server of the other (design D10).

Where both vendors have a collation's number, it names the same rules; a name may not (MySQL's utf8mb4_croatian_ci is
MariaDB's utf8mb4_croatian_mysql561_ci). MySQL's 0900 and MariaDB's uca1400 collations of no language, and the binary
ones without padding, compare alike: tests/target/mysql/test_collations.py asks servers of both vendors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final

from rplctl import mysql_errors as er
from rplctl.errors import TargetError
from rplctl.event.query import Query
from rplctl.schema.context import DdlContext
from rplctl.schema.lexer import WAY_OUT, opened, tokenize

_NEAR: Final = (
    (r"utf8mb4_0900_(ai_ci|as_ci|as_cs)", r"utf8mb4_uca1400_nopad_\1"),
    (r"utf8mb4_0900_bin", "utf8mb4_nopad_bin"),
    (r"utf8mb4_uca1400_(?:nopad_)?(ai_ci|as_ci|as_cs)", r"utf8mb4_0900_\1"),
    (r"utf8mb4_nopad_bin", "utf8mb4_0900_bin"),
)
_CREATES_OR_ALTERS: Final = re.compile(rb"\s*(?:CREATE\b|ALTER\b|/\*|#|--)", re.I)
_GENERAL: Final = 45  # utf8mb4_general_ci: the default of utf8mb4 in MySQL 5.7 and in MariaDB before 11.5
_IN_COLUMN: Final = 2  # parentheses: those of a table's columns, and then those of a type or an expression
_NUMBERS: Final = {
    255: "utf8mb4_0900_ai_ci",
    278: "utf8mb4_0900_as_cs",
    305: "utf8mb4_0900_as_ci",
    309: "utf8mb4_0900_bin",
    1070: "utf8mb4_nopad_bin",
    2304: "utf8mb4_uca1400_ai_ci",
    2306: "utf8mb4_uca1400_as_ci",
    2307: "utf8mb4_uca1400_as_cs",
    2308: "utf8mb4_uca1400_nopad_ai_ci",
    2310: "utf8mb4_uca1400_nopad_as_ci",
    2311: "utf8mb4_uca1400_nopad_as_cs",
}


def near_collation(name: str) -> str:
    """Return the other vendor's collation that compares by the same rules as this one, or an empty text."""
    for pattern, near in _NEAR:
        if re.fullmatch(pattern, name):
            return re.sub(pattern, near, name)
    return ""


class Collations:
    """The collations of the target: `read` returns their numbers and names."""

    def __init__(self, read: Callable[[], Iterable[Sequence[object]]]) -> None:
        self._read = read
        self._names: dict[int, str] = {}

    @property
    def names(self) -> dict[int, str]:
        if not self._names:
            self._names = {int(str(number)): str(name) for number, name in self._read()}
        return self._names

    def name_of(self, number: int) -> str:
        """Return the target's name of a number, or an empty text."""
        return self.names.get(number, "")

    def translated(self, query: Query, context: DdlContext) -> Query:
        """Return a statement of the other vendor with the collations that it means (`with_collations`)."""
        if not _CREATES_OR_ALTERS.match(query.sql_bytes):
            return query
        number = query.context.default_collation_for_utf8mb4 or _GENERAL
        default = "" if context.is_mariadb else collation_of_other_vendor(number, self.name_of)
        names = frozenset(self.names.values())
        return replace(query, sql_bytes=with_collations(query.sql_bytes, context, query.charset, default, names))


def collation_of_other_vendor(number: int, name_on_target: Callable[[int], str]) -> str:
    """Return the target's name of the collation that has this number on a source of the other vendor.

    Raises TargetError 1273 if the target has none that compares by the same rules.
    """
    if found := name_on_target(number):
        return found
    name = _NUMBERS.get(number, "")
    if near := near_collation(name):
        return near
    raise TargetError(
        f"the statement was executed with a collation that this target does not have: {name or f'#{number}'}",
        errno=er.UNKNOWN_COLLATION,
        hint=WAY_OUT,
    )


def with_collations(sql: bytes, context: DdlContext, charset: str, default: str, names: Collection[str]) -> bytes:
    """Return CREATE or ALTER of a table or database with collations that the target has and the source meant.

    A collation that is not among the target's `names` becomes the near one. CHARACTER SET utf8mb4 without a collation
    gets `default`, unless that is empty. Other statements stay as they are.
    """
    text = sql.decode("latin-1")
    tokens = tokenize(opened(text, context, charset=charset), context, charset)
    tokens += tokens[-1:] * 2  # what is asked for behind the end is the end
    if not any(token.value in ("TABLE", "DATABASE", "SCHEMA") for token in tokens[1:5]):
        return sql
    ends = {("(", 0), (")", 1), (",", 1)} | ({(",", 0)} if tokens[0].value == "ALTER" else set())  # of one definition
    changes: list[tuple[int, int, str]] = []
    depth, bare_end, has_collation = 0, 0, False
    for number, token in enumerate(tokens[:-2]):
        mark = token.value if token.kind == "symbol" else ""
        if token.kind == "end" or (mark, depth) in ends:
            if bare_end and default and not has_collation:
                changes.append((bare_end, bare_end, f" COLLATE {default}"))
            bare_end, has_collation = 0, False
        depth += {"(": 1, ")": -1}.get(mark, 0)
        if token.kind != "word" or depth >= _IN_COLUMN:
            continue
        at = number + 1 + (tokens[number + 1].value == "=")
        name = tokens[at]
        if token.value == "COLLATE":
            has_collation = True
            near = near_collation(name.value.lower())
            if near in names and name.value.lower() not in names:
                changes.append((name.start, name.end, near))
        elif token.value == "CHARSET" or (token.value == "SET" and tokens[number - 1].value == "CHARACTER"):
            bare_end = name.end if name.value.lower() == "utf8mb4" else 0
    for start, end, new in sorted(changes, reverse=True):
        text = text[:start] + new + text[end:]
    return text.encode("latin-1")
