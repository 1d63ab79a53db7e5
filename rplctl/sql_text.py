"""SQL text that may be executed, and the only ways to make it (design D27).

Invariant: no word of a peer or of a file becomes SQL unless it is a bound parameter, is quoted here, matches a strict
grammar (`Grammar`), or is made from a model. `Sql` is a type of its own, and joining it with a plain text by `+`, `%`
or an f-string gives a plain `str` again, which mypy refuses wherever `Sql` is asked for.

    written(template, part …)  a template of our source code, filled with parts that are `Sql` or numbers
    joined(separator, parts)   the same for a list
    backticked, double_quoted names; text_literal, hex_literal, utf8_literal: values
    matched(grammar, text)    a word, number, date, GTID … of a peer or a file that is exactly that; else RplError
    proven_statement(text)    the caller has read all of a statement by our lexer (`schema.definition`)
    statement_of_source(raw)  the statement of an event, for a target that executes it as it is (`target.mysql`)

`SqlBytes` is the same for bytes: MySQL's statements hold rows in character sets of their own. It costs nothing where
rows are written, so its parts are checked by mypy alone.

Held by mypy: the drivers' own methods are behind types that take nothing else (`sql_run`, `handshake.connection`,
`target.*.driver`, `target.mysql.connection`). Held by tests/house/test_sql_text.py: nobody else makes a `Sql`,
templates are constants, who proves a statement is on a list, and no other place speaks to a driver.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Final, NewType, cast

from rplctl import mysql_errors as er
from rplctl.errors import RplError

_LONGEST_SHOWN: Final = 80


class Sql(str):
    """Text that only the functions of this module make."""

    __slots__ = ()


SqlBytes = NewType("SqlBytes", bytes)  # as `Sql`, and no copy of megabytes

NOTHING: Final = Sql()  # where a clause may stand
NO_BYTES: Final = SqlBytes(b"")
NULL: Final = Sql("NULL")
PARAMETER: Final = Sql("?")


class Grammar(Enum):
    """Grammars of foreign words, character by character. None of them lets a quote, a blank but the one between a
    date and its time, or the beginning of a comment through.
    """

    WORD = r"[A-Za-z0-9_]{1,64}"  # a character set, a collation, a storage engine
    INTEGER = r"-?[0-9]{1,20}"
    TERM = r"[0-9]{1,20}|[-+*()]"  # of a sum or product
    DECIMAL = r"-?(?:[0-9]{1,82}(?:\.[0-9]{0,82})?|\.[0-9]{1,82})"
    DOUBLE = r"-?[0-9]{1,330}(?:\.[0-9]{0,350})?(?:[eE][-+]?[0-9]{1,3})?"
    HEX = r"(?:[0-9A-Fa-f]{2})*"
    MOMENT = r"-?[0-9]{1,4}(?:[-:][0-9]{1,2}){0,2}(?: [0-9]{1,2}(?::[0-9]{1,2}){2})?(?:\.[0-9]{0,6})?"
    ADDRESS = r"[0-9A-Fa-f:.]{1,45}"  # INET4, INET6
    XID = r"[0-9a-z:.-]{1,64}"  # names that we gave to prepared transactions
    UUID = r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
    MYSQL_GTIDS = r"[0-9A-Fa-f:,a-z_-]*"  # with MySQL's tags; blanks and newlines are taken out before
    MARIADB_GTIDS = r"[0-9,-]*"


_PATTERNS: Final = {grammar: re.compile(grammar.value) for grammar in Grammar}
_NAMES: Final = {
    Grammar.WORD: "the name of a character set, collation or engine",
    Grammar.INTEGER: "a whole number",
    Grammar.TERM: "a part of a sum",
    Grammar.DECIMAL: "a DECIMAL",
    Grammar.DOUBLE: "a DOUBLE",
    Grammar.HEX: "hexadecimal digits",
    Grammar.MOMENT: "a date or time",
    Grammar.ADDRESS: "an IP address",
    Grammar.XID: "the name of a prepared transaction of ours",
    Grammar.UUID: "a UUID",
    Grammar.MYSQL_GTIDS: "a GTID set",
    Grammar.MARIADB_GTIDS: "a GTID position",
}


def written(template: str, *parts: Sql | int) -> Sql:
    """Return `template` with each `{}` replaced by a part. Raises TypeError for a part that may be any text."""
    for part in parts:
        if not isinstance(part, Sql) and type(part) is not int:
            raise TypeError(f"a {type(part).__name__} is not SQL")
    return Sql(template.format(*parts) if parts else template)


def joined(separator: str, parts: Iterable[Sql]) -> Sql:
    """Return the parts with the separator between them. Raises TypeError as `written`."""
    found = list(parts)
    for part in found:
        if not isinstance(part, Sql):
            raise TypeError(f"a {type(part).__name__} is not SQL")
    return Sql(separator.join(found))


def written_bytes(template: bytes, *parts: SqlBytes | int) -> SqlBytes:
    """Return `template` with each `%s` and `%d` replaced by a part."""
    return SqlBytes(template % parts)


def joined_bytes(separator: bytes, parts: Iterable[SqlBytes]) -> SqlBytes:
    return SqlBytes(separator.join(parts))


def row_bytes(cells: list[SqlBytes]) -> SqlBytes:
    """Return one row of VALUES."""
    return SqlBytes(b"(%s)" % b",".join(cells))


def with_parameter(sql: Sql, mark: str, by: Sql) -> Sql:
    """Put `by` in the place of a parameter; what looks like its mark inside quotes is a part of a name."""
    pattern = rf"""("[^"]*"|'[^']*')|{re.escape(mark)}(?![0-9])"""
    return Sql(re.sub(pattern, lambda found: found[1] or by, sql))


def percent_doubled(sql: Sql) -> Sql:
    """Return a part of a text with parameters of psycopg, to which % begins one."""
    return Sql(sql.replace("%", "%%"))


def as_bytes(sql: Sql) -> SqlBytes:
    return SqlBytes(sql.encode())


def as_text(sql: SqlBytes) -> Sql:
    """Decode a statement that has no rows in it: rows may be in any character set."""
    return Sql(sql.decode())


def matched(grammar: Grammar, text: str) -> Sql:
    """Return the text if it matches the grammar. Raises RplError for anything else."""
    if not is_matched(grammar, text):
        raise not_executed(text, _NAMES[grammar])
    return Sql(text)


def not_executed(text: str, wanted: str) -> RplError:
    """Return the error for a text of a peer or a file that is not what is `wanted`."""
    return RplError(
        f"{text[:_LONGEST_SHOWN]!r} is not {wanted}, and is not executed",
        errno=er.PARSE_ERROR,
        hint="check which server answers, and that nobody else writes into the data directory: rplctl doctor",
    )


def is_matched(grammar: Grammar, text: str) -> bool:
    return _PATTERNS[grammar].fullmatch(text) is not None


def word(text: str) -> Sql:
    """Return the name of a character set, collation or engine as SQL. Raises RplError."""
    return matched(Grammar.WORD, text)


def backticked(*names: str) -> Sql:
    """Return a name of MySQL and MariaDB, with dots between its parts."""
    return Sql(".".join("`" + name.replace("`", "``") + "`" for name in names))


def backticked_bytes(name: str) -> SqlBytes:
    """Return one name of MySQL and MariaDB, as fast as rows need it."""
    return SqlBytes(b"`" + name.replace("`", "``").encode() + b"`")


def double_quoted(*names: str) -> Sql:
    """Return a name of standard SQL, with dots between its parts."""
    return Sql(".".join('"' + name.replace('"', '""') + '"' for name in names))


def standard_literal(text: str) -> Sql:
    """Return a literal for PostgreSQL, SQLite and DuckDB, where a backslash is a character like others."""
    return Sql("'" + text.replace("'", "''") + "'")


def text_literal(text: str) -> Sql:
    """Return a literal for MySQL and MariaDB, in a session with utf8mb4 and without NO_BACKSLASH_ESCAPES."""
    return Sql("'" + text.replace("\\", "\\\\").replace("'", "''") + "'")


def hex_literal(raw: bytes) -> Sql:
    return Sql(f"x'{raw.hex()}'")


def utf8_literal(text: str) -> Sql:
    """Return a literal for MySQL and MariaDB, whatever the session is set to."""
    return Sql(f"_utf8mb4 x'{text.encode('utf-8', 'surrogateescape').hex()}'")


def utf8_number(text: str) -> Sql:
    """Return a text like `utf8_literal`, without a quote: every session reads it alike."""
    return Sql(f"_utf8mb4 0x{text.encode().hex()}" if text else "''")


integer_bytes: Final = cast("Callable[[int], SqlBytes]", b"%d".__mod__)  # of a cell, without a call of Python


def hex_bytes(raw: bytes) -> SqlBytes:
    return SqlBytes(b"X'%s'" % raw.hex().encode("ascii"))


def upper_hex_bytes(raw: bytes | memoryview) -> SqlBytes:
    """Return digits alone, as HEX() gives them."""
    return SqlBytes(raw.hex().upper().encode("ascii"))


def quoted_bytes(raw: bytes, introducer: SqlBytes = NO_BYTES) -> SqlBytes:
    """Return a literal for a utf8mb4 statement without NO_BACKSLASH_ESCAPES. A byte above 0x7f never hides the quote
    after it, and a zero byte is like any other (manual: mysql_real_escape_string).
    """
    return SqlBytes(b"".join((introducer, b"'", raw.replace(b"\\", b"\\\\").replace(b"'", b"\\'"), b"'")))


def base64_literal(raw: bytes) -> SqlBytes:
    """Return an event as BINLOG takes it."""
    return SqlBytes(b"'%s'" % base64.b64encode(raw))


def double_bytes(value: float) -> SqlBytes:
    """Return a number that MySQL and MariaDB read as DOUBLE, never as DECIMAL. Raises RplError if it is not finite."""
    text = repr(value)
    if "n" in text:  # inf, nan: those are names
        raise not_executed(text, _NAMES[Grammar.DOUBLE])
    return SqlBytes((text if "e" in text else text + "e0").encode("ascii"))


def float_literal(value: float) -> Sql:
    """Return a number like `double_bytes`."""
    return as_text(double_bytes(float(value)))


def number(value: float) -> Sql:
    """Return a number as Python writes it. Raises ValueError for one that is not finite: that would be a name."""
    if not math.isfinite(value):
        raise ValueError(f"{value} is not a number of SQL")
    return Sql(repr(value))


def statement_of_source(raw: bytes) -> SqlBytes:
    """Mark the statement of an event as SQL: the filter and the lexer have read it, and it is sent as one statement."""
    return SqlBytes(raw)


def proven_statement(text: str) -> Sql:
    """Mark a text as SQL: the caller has read every token, and it is one statement (or clause) of the right kind."""
    return Sql(text)
