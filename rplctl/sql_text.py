"""The type of SQL text that may be executed, and the only functions that create it (design D27).

Invariant: a text from a server or a file becomes a part of SQL in only four ways. It is a bound parameter, it is quoted
in this module, it matches a strict grammar (`Grammar`), or it comes from a table definition. `Sql` is a separate type.
If `Sql` is joined with a plain text by `+`, `%` or an f-string, the result is a plain `str`, which mypy rejects.

These functions return `Sql`:

 written(template, part …)  a template of rplctl's source code, with `Sql` or numbers in place of each {}
 joined(separator, parts)   several `Sql` with a separator between them
 backticked(name …)         a name in MySQL's quotes; double_quoted(name …): in the quotes of standard SQL
 text_literal(text)         a text as a literal; also hex_literal, utf8_literal and others
 matched(grammar, text)     a text that matches the grammar, for example a number or a GTID; otherwise RplError
 proven_statement(text)     a statement whose tokens the caller has read with the lexer (`schema.definition`)
 statement_of_source(raw)   the statement of an event, for a target that executes it unchanged (`target.mysql`)

`SqlBytes` is the same type for bytes, because MySQL's statements contain rows in other character sets. Only mypy checks
the parts of such bytes: a check at run time would slow down the writing of rows.

mypy checks that only `Sql` is executed, because the methods that call a driver accept only `Sql` (`sql_run`,
`handshake.connection`, `target.*.driver`, `target.mysql.connection`). tests/house/test_sql_text.py checks four more
rules:

 No other module creates a `Sql`. Templates are constants. Only the modules on a list call proven_statement. No other
 module calls a driver.
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


SqlBytes = NewType("SqlBytes", bytes)  # not a class of its own, because creating an object would copy megabytes

NOTHING: Final = Sql()  # an omitted clause
NO_BYTES: Final = SqlBytes(b"")
NULL: Final = Sql("NULL")
PARAMETER: Final = Sql("?")


class Grammar(Enum):
    """The grammars of texts that come from a server or a file, as regular expressions for the whole text.

    No grammar allows a quote or the start of a comment. Only MOMENT allows a blank, between a date and its time.
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
    MYSQL_GTIDS = r"[0-9A-Fa-f:,a-z_-]*"  # also with tags; the caller has removed blanks and newlines
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
    """Return `template` with each `{}` replaced by a part. Raises TypeError if a part is neither `Sql` nor an int."""
    for part in parts:
        if not isinstance(part, Sql) and type(part) is not int:
            raise TypeError(f"a {type(part).__name__} is not SQL")
    return Sql(template.format(*parts) if parts else template)


def joined(separator: str, parts: Iterable[Sql]) -> Sql:
    """Return the parts with the separator between them. Raises TypeError if a part is not `Sql`."""
    found = list(parts)
    for part in found:
        if not isinstance(part, Sql):
            raise TypeError(f"a {type(part).__name__} is not SQL")
    return Sql(separator.join(found))


def written_bytes(template: bytes, *parts: SqlBytes | int) -> SqlBytes:
    """Return `template` with each `%s` replaced by `SqlBytes`, and each `%d` by an int."""
    return SqlBytes(template % parts)


def joined_bytes(separator: bytes, parts: Iterable[SqlBytes]) -> SqlBytes:
    return SqlBytes(separator.join(parts))


def row_bytes(cells: list[SqlBytes]) -> SqlBytes:
    """Return one row for VALUES: the cells in parentheses, with commas between them."""
    return SqlBytes(b"(%s)" % b",".join(cells))


def with_parameter(sql: Sql, mark: str, by: Sql) -> Sql:
    """Return `sql` with the parameter `mark`, for example `?1`, replaced by `by`.

    Text in quotes is unchanged, because `mark` is a part of a name or a literal there.
    """
    pattern = rf"""("[^"]*"|'[^']*')|{re.escape(mark)}(?![0-9])"""
    return Sql(re.sub(pattern, lambda found: found[1] or by, sql))


def percent_doubled(sql: Sql) -> Sql:
    """Return `sql` with each % doubled, because psycopg reads a single % as the start of a parameter."""
    return Sql(sql.replace("%", "%%"))


def as_bytes(sql: Sql) -> SqlBytes:
    return SqlBytes(sql.encode())


def as_text(sql: SqlBytes) -> Sql:
    """Decode SQL from UTF-8. The statement must not contain rows, which may be in any character set."""
    return Sql(sql.decode())


def matched(grammar: Grammar, text: str) -> Sql:
    """Return the text as SQL. Raises RplError if the text does not match the grammar."""
    if not is_matched(grammar, text):
        raise not_executed(text, _NAMES[grammar])
    return Sql(text)


def not_executed(text: str, wanted: str) -> RplError:
    """Return the error for a text from a server or a file that is not `wanted`, for example `a whole number`."""
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
    """Return a name in MySQL's quotes, with a dot between its parts: `db`.`t` for ("db", "t")."""
    return Sql(".".join("`" + name.replace("`", "``") + "`" for name in names))


def backticked_bytes(name: str) -> SqlBytes:
    """Return one name in MySQL's quotes as bytes. The function is fast enough to be called for each row."""
    return SqlBytes(b"`" + name.replace("`", "``").encode() + b"`")


def double_quoted(*names: str) -> Sql:
    """Return a name in the quotes of standard SQL, with a dot between its parts: "s"."t" for ("s", "t")."""
    return Sql(".".join('"' + name.replace('"', '""') + '"' for name in names))


def standard_literal(text: str) -> Sql:
    """Return a text literal for PostgreSQL, SQLite and DuckDB, where a backslash is an ordinary character."""
    return Sql("'" + text.replace("'", "''") + "'")


def text_literal(text: str) -> Sql:
    """Return a text literal for MySQL and MariaDB.

    The session must have the character set utf8mb4, and must not have the sql_mode NO_BACKSLASH_ESCAPES.
    """
    return Sql("'" + text.replace("\\", "\\\\").replace("'", "''") + "'")


def hex_literal(raw: bytes) -> Sql:
    return Sql(f"x'{raw.hex()}'")


def utf8_literal(text: str) -> Sql:
    """Return a text literal for MySQL and MariaDB that has the same meaning in every session."""
    return Sql(f"_utf8mb4 x'{text.encode('utf-8', 'surrogateescape').hex()}'")


def charset_literal(raw: bytes, charset: str) -> Sql:
    """Return a text literal for MySQL and MariaDB from the codes of the text in this charset."""
    return written("_{} {}", word(charset), hex_literal(raw))


def utf8_number(text: str) -> Sql:
    """Return a text literal like `utf8_literal`, but in hexadecimal form without quotes: `_utf8mb4 0x6162`.

    An empty text becomes two single quotes.
    """
    return Sql(f"_utf8mb4 0x{text.encode().hex()}" if text else "''")


integer_bytes: Final = cast("Callable[[int], SqlBytes]", b"%d".__mod__)  # faster than a Python function


def hex_bytes(raw: bytes) -> SqlBytes:
    return SqlBytes(b"X'%s'" % raw.hex().encode("ascii"))


def upper_hex_bytes(raw: bytes | memoryview) -> SqlBytes:
    """Return the bytes as hexadecimal digits in upper case, without quotes, like MySQL's function HEX()."""
    return SqlBytes(raw.hex().upper().encode("ascii"))


def quoted_bytes(raw: bytes, introducer: SqlBytes = NO_BYTES) -> SqlBytes:
    """Return a text literal in quotes, with the `introducer` of a character set before it.

    The statement must be in utf8mb4, in a session without the sql_mode NO_BACKSLASH_ESCAPES. In utf8mb4, a character of
    several bytes never contains the byte of a quote or backslash. A zero byte needs no escape (MySQL manual:
    mysql_real_escape_string).
    """
    return SqlBytes(b"".join((introducer, b"'", raw.replace(b"\\", b"\\\\").replace(b"'", b"\\'"), b"'")))


def base64_literal(raw: bytes) -> SqlBytes:
    """Return the bytes of an event as the base64 literal that a BINLOG statement contains."""
    return SqlBytes(b"'%s'" % base64.b64encode(raw))


def double_bytes(value: float) -> SqlBytes:
    """Return a number literal that MySQL and MariaDB read as DOUBLE, never as DECIMAL: it has an exponent.

    Raises RplError if the number is not finite.
    """
    text = repr(value)
    if "n" in text:  # a server would read inf and nan as names
        raise not_executed(text, _NAMES[Grammar.DOUBLE])
    return SqlBytes((text if "e" in text else text + "e0").encode("ascii"))


def float_literal(value: float) -> Sql:
    """Return the literal that `double_bytes` returns, as text. Raises RplError if the number is not finite."""
    return as_text(double_bytes(float(value)))


def number(value: float) -> Sql:
    """Return a number literal in Python's format.

    Raises ValueError if the number is not finite, because a server would read `inf` and `nan` as names.
    """
    if not math.isfinite(value):
        raise ValueError(f"{value} is not a number of SQL")
    return Sql(repr(value))


def statement_of_source(raw: bytes) -> SqlBytes:
    """Declare the statement of a source's event to be SQL, for a target that executes the same statement.

    The filter and the lexer have read the statement before, and rplctl sends it as one statement.
    """
    return SqlBytes(raw)


def proven_statement(text: str) -> Sql:
    """Declare a text to be SQL, after the caller has checked all its tokens.

    The text is one statement or clause of the right kind.
    """
    return Sql(text)
