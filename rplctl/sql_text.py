"""SQL text that may be executed, and the only ways to create it (design D27).

Invariant: no word of a peer or of a file becomes SQL unless it is a bound parameter, is quoted here, matches a strict
grammar (`Grammar`), or comes from a model. `Sql` is a separate type: joining it with a plain text by `+`, `%` or an
f-string gives a plain `str` again, which mypy rejects in place of `Sql`.

 written(template, part …)  a template in rplctl's source code, filled with parts that are `Sql` or numbers
 joined(separator, parts)   the same for a list
 backticked, double_quoted names; text_literal, hex_literal, utf8_literal: values
 matched(grammar, text)     a foreign word, number, date, GTID … that matches the grammar; otherwise RplError
 proven_statement(text)     the caller has read every token of a statement with the lexer (`schema.definition`)
 statement_of_source(raw)   the statement of an event, for a target that executes it unchanged (`target.mysql`)

`SqlBytes` is the same for bytes: MySQL's statements contain rows in other character sets. It has no cost while rows are
written, so only mypy checks its parts.

mypy holds the rule: the types of the drivers' own methods accept only `Sql` (`sql_run`, `handshake.connection`,
`target.*.driver`, `target.mysql.connection`). tests/house/test_sql_text.py checks the rest: no other module creates a
`Sql`, templates are constants, the callers of proven_statement are on a list, and no other module calls a driver.
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
    """SQL text that only the functions of this module create."""

    __slots__ = ()


SqlBytes = NewType("SqlBytes", bytes)  # like `Sql`, without a copy of megabytes

NOTHING: Final = Sql()  # an omitted clause
NO_BYTES: Final = SqlBytes(b"")
NULL: Final = Sql("NULL")
PARAMETER: Final = Sql("?")


class Grammar(Enum):
    """Grammars of foreign words, checked character by character.

    No grammar allows a quote, the start of a comment, or a blank, except between a date and its time.
    """

    WORD = r"[A-Za-z0-9_]{1,64}"  # a character set, a collation, a storage engine
    INTEGER = r"-?[0-9]{1,20}"
    TERM = r"[0-9]{1,20}|[-+*()]"  # of a sum or product
    DECIMAL = r"-?(?:[0-9]{1,82}(?:\.[0-9]{0,82})?|\.[0-9]{1,82})"
    DOUBLE = r"-?[0-9]{1,330}(?:\.[0-9]{0,350})?(?:[eE][-+]?[0-9]{1,3})?"
    HEX = r"(?:[0-9A-Fa-f]{2})*"
    MOMENT = r"-?[0-9]{1,4}(?:[-:][0-9]{1,2}){0,2}(?: [0-9]{1,2}(?::[0-9]{1,2}){2})?(?:\.[0-9]{0,6})?"
    ADDRESS = r"[0-9A-Fa-f:.]{1,45}"  # INET4, INET6
    XID = r"[0-9a-z:.-]{1,64}"  # rplctl's names of prepared transactions
    UUID = r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
    MYSQL_GTIDS = r"[0-9A-Fa-f:,a-z_-]*"  # with MySQL's tags; the caller has removed blanks and newlines
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
    Grammar.XID: "rplctl's name of a prepared transaction",
    Grammar.UUID: "a UUID",
    Grammar.MYSQL_GTIDS: "a GTID set",
    Grammar.MARIADB_GTIDS: "a GTID position",
}


def written(template: str, *parts: Sql | int) -> Sql:
    """Return `template` with each `{}` replaced by a part. Raises TypeError for a part of another type."""
    for part in parts:
        if not isinstance(part, Sql) and type(part) is not int:
            raise TypeError(f"a {type(part).__name__} is not SQL")
    return Sql(template.format(*parts) if parts else template)


def joined(separator: str, parts: Iterable[Sql]) -> Sql:
    """Return the parts with the separator between them. Raises TypeError as `written` does."""
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
    """Replace a parameter by `by`, except inside quotes, where its mark is part of a name."""
    pattern = rf"""("[^"]*"|'[^']*')|{re.escape(mark)}(?![0-9])"""
    return Sql(re.sub(pattern, lambda found: found[1] or by, sql))


def percent_doubled(sql: Sql) -> Sql:
    """Return a part of a text with doubled %, for psycopg, in which % begins a parameter."""
    return Sql(sql.replace("%", "%%"))


def as_bytes(sql: Sql) -> SqlBytes:
    return SqlBytes(sql.encode())


def as_text(sql: SqlBytes) -> Sql:
    """Decode a statement without rows: rows may be in any character set."""
    return Sql(sql.decode())


def matched(grammar: Grammar, text: str) -> Sql:
    """Return the text as SQL. Raises RplError unless the text matches the grammar."""
    if not is_matched(grammar, text):
        raise not_executed(text, _NAMES[grammar])
    return Sql(text)


def not_executed(text: str, wanted: str) -> RplError:
    """Return the error for a foreign text that is not the `wanted` kind."""
    return RplError(
        f"cannot execute a text that is not {wanted}: {text[:_LONGEST_SHOWN]!r}",
        errno=er.PARSE_ERROR,
        hint="to check the server and the access to the data directory, run: rplctl doctor",
    )


def is_matched(grammar: Grammar, text: str) -> bool:
    return _PATTERNS[grammar].fullmatch(text) is not None


def word(text: str) -> Sql:
    """Return the name of a character set, collation or engine as SQL. Raises RplError for any other text."""
    return matched(Grammar.WORD, text)


def backticked(*names: str) -> Sql:
    """Return a quoted name for MySQL and MariaDB, with dots between its parts."""
    return Sql(".".join("`" + name.replace("`", "``") + "`" for name in names))


def backticked_bytes(name: str) -> SqlBytes:
    """Return one quoted name for MySQL and MariaDB, fast enough for rows."""
    return SqlBytes(b"`" + name.replace("`", "``").encode() + b"`")


def double_quoted(*names: str) -> Sql:
    """Return a quoted name of standard SQL, with dots between its parts."""
    return Sql(".".join('"' + name.replace('"', '""') + '"' for name in names))


def standard_literal(text: str) -> Sql:
    """Return a literal for PostgreSQL, SQLite and DuckDB, in which a backslash is an ordinary character."""
    return Sql("'" + text.replace("'", "''") + "'")


def text_literal(text: str) -> Sql:
    """Return a literal for MySQL and MariaDB, in a session with utf8mb4 and without NO_BACKSLASH_ESCAPES."""
    return Sql("'" + text.replace("\\", "\\\\").replace("'", "''") + "'")


def hex_literal(raw: bytes) -> Sql:
    return Sql(f"x'{raw.hex()}'")


def utf8_literal(text: str) -> Sql:
    """Return a literal for MySQL and MariaDB that does not depend on the session."""
    return Sql(f"_utf8mb4 x'{text.encode('utf-8', 'surrogateescape').hex()}'")


def utf8_number(text: str) -> Sql:
    """Return a text like `utf8_literal`, but without a quote, so that every session reads it in the same way."""
    return Sql(f"_utf8mb4 0x{text.encode().hex()}" if text else "''")


integer_bytes: Final = cast("Callable[[int], SqlBytes]", b"%d".__mod__)  # for a cell, without a Python call


def hex_bytes(raw: bytes) -> SqlBytes:
    return SqlBytes(b"X'%s'" % raw.hex().encode("ascii"))


def upper_hex_bytes(raw: bytes | memoryview) -> SqlBytes:
    """Return hexadecimal digits as HEX() returns them."""
    return SqlBytes(raw.hex().upper().encode("ascii"))


def quoted_bytes(raw: bytes, introducer: SqlBytes = NO_BYTES) -> SqlBytes:
    """Return a literal for a utf8mb4 statement without NO_BACKSLASH_ESCAPES.

    A byte above 0x7f never hides the quote after it, and a zero byte is an ordinary byte (manual:
    mysql_real_escape_string).
    """
    return SqlBytes(b"".join((introducer, b"'", raw.replace(b"\\", b"\\\\").replace(b"'", b"\\'"), b"'")))


def base64_literal(raw: bytes) -> SqlBytes:
    """Return an event in the form of a BINLOG statement."""
    return SqlBytes(b"'%s'" % base64.b64encode(raw))


def double_bytes(value: float) -> SqlBytes:
    """Return a number that MySQL and MariaDB read as DOUBLE, never as DECIMAL. Raises RplError if it is not finite."""
    text = repr(value)
    if "n" in text:  # inf and nan would be names
        raise not_executed(text, _NAMES[Grammar.DOUBLE])
    return SqlBytes((text if "e" in text else text + "e0").encode("ascii"))


def float_literal(value: float) -> Sql:
    """Return a number as `double_bytes` does."""
    return as_text(double_bytes(float(value)))


def number(value: float) -> Sql:
    """Return a number in Python's format. Raises ValueError if it is not finite, because that would be a name."""
    if not math.isfinite(value):
        raise ValueError(f"{value} is not a number of SQL")
    return Sql(repr(value))


def statement_of_source(raw: bytes) -> SqlBytes:
    """Mark the statement of an event as SQL: the filter and the lexer have read it, and it is sent as one statement."""
    return SqlBytes(raw)


def proven_statement(text: str) -> Sql:
    """Mark a text as SQL: the caller has read every token, and it is one statement (or clause) of the right kind."""
    return Sql(text)
