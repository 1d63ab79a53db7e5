"""Executes SELECT of expressions and of the tables that monitoring tools read.

Each statement is translated to SQLite's syntax, and runs in its own SQLite database in memory. Invariant: an authorizer
of SQLite allows only SELECT and the functions in a list. The number of steps, the time and the memory are limited,
so that no statement uses a core for long, or much memory.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable
from inspect import signature
from itertools import islice
from typing import Any, Final

from rplctl import mysql_errors as er
from rplctl.errors import RplError
from rplctl.front.describe import no_such_table
from rplctl.front.front import ClientSession, Front
from rplctl.front.functions import functions
from rplctl.front.result import Rows, typed
from rplctl.front.statement import ClientStatement, syntax_error
from rplctl.front.tables import columns_of, rows_of, table_names
from rplctl.front.variables import AS_TEXT, SWITCHES, variables
from rplctl.schema.lexer import Token

_STEP: Final = 200  # instructions of SQLite between two checks of the budget; one instruction may take a millisecond
_MOST_STEPS: Final = 10_000
_MOST_CPU_S = 2.0  # CPU time of the thread, which a function that waits does not use
_MOST_MEMORY: Final = 256 << 20  # bytes by which the process may grow during the statement
_LONGEST = 1 << 20  # the largest value in bytes
_MOST_ROWS: Final = 10_000
_PAGE: Final = os.sysconf("SC_PAGESIZE")
_LARGEST_ANSWER: Final = 16 << 20  # bytes of all texts in one answer
_PLAIN: Final = frozenset(
    "abs avg coalesce count group_concat hex ifnull instr length like lower ltrim max min nullif replace round rtrim "
    "substr substring sum total trim upper".split()
)
_HINTS: Final = frozenset({"SQL_NO_CACHE", "SQL_CACHE", "HIGH_PRIORITY", "STRAIGHT_JOIN"})
_DICTIONARY: Final = frozenset(f"information_schema.{name}" for name in ("columns", "schemata", "tables"))
_NO_ALIAS: Final = frozenset({"END"})  # of CASE
_OPERATORS: Final = frozenset(
    "ALL AND BETWEEN BINARY CASE COLLATE DIV ELSE IN INTERVAL IS LIKE MOD NOT OR REGEXP RLIKE THEN WHEN XOR".split()
)
_DISTINCT: Final = ("DISTINCT", "DISTINCTROW")
_ALLOWED: Final = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ)


def select(front: Front, session: ClientSession, words: ClientStatement) -> Rows:
    """Answer a SELECT statement with its rows.

    Raises RplError 1064 if the statement is not understood, 1317 if it needs too much work, and 1301 if the answer is
    too large. Raises 1146, 1193, 1054 or 1305 for an unknown table, variable, column or function.
    """
    sql, values = _translated(front, session, words)
    own = functions(front, session)
    errors: list[Exception] = []
    database = sqlite3.connect(":memory:", check_same_thread=False)
    try:
        database.execute("CREATE TABLE dual (dummy)")
        database.execute("INSERT INTO dual VALUES ('')")
        for table in named_tables(session, words):
            _fill(database, table, rows_of(table, front, session))
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
        for name, function in own.items():
            database.create_function(name, -1, _keeping(errors, name, function))
        database.execute("PRAGMA temp_store = MEMORY")  # so that a sort does not fill the disk
        database.set_progress_handler(_Budget(session).is_spent, _STEP)
        known = _PLAIN | own.keys()
        database.set_authorizer(lambda action, _, name, *rest: _allows(action, name, known))
        found = database.execute(sql, values)
        names = [column[0] for column in found.description or ()]
        return typed(names, _limited(found))
    except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
        raise errors[0] if errors else _as_mysql(front, session, str(error), words) from None
    finally:
        database.close()


class _Budget:
    """The limits of one statement: steps, CPU time and memory.

    SQLite calls `is_spent` between its instructions, and ends the statement if a limit is exceeded or KILL QUERY came.
    """

    def __init__(self, session: ClientSession) -> None:
        self._session = session
        self._steps, self._end, self._memory = 0, time.thread_time() + _MOST_CPU_S, _resident() + _MOST_MEMORY

    def is_spent(self) -> bool:
        self._steps += 1
        if self._session.is_cancelled:
            return True
        return self._steps > _MOST_STEPS or time.thread_time() > self._end or _resident() > self._memory


def _resident() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * _PAGE


def _limited(found: sqlite3.Cursor) -> list[tuple[object, ...]]:
    """Return the rows of the answer, at most _MOST_ROWS. Raises RplError 1301 if they exceed _LARGEST_ANSWER bytes."""
    rows, size = [], 0
    for row in islice(found, _MOST_ROWS):
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
        if size > _LARGEST_ANSWER:
            text = f"Result of SELECT was larger than max_allowed_packet ({_LARGEST_ANSWER}) - truncated"
            raise RplError(text, errno=er.WARN_ALLOWED_PACKET_OVERFLOWED)
        rows.append(row)
    return rows


def _keeping(errors: list[Exception], name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a wrapper of the function that adds each exception to `errors`.

    SQLite itself only reports that a function has failed. `name`: the name in SQL, for the message.
    """

    def call(*given: Any) -> Any:
        try:
            signature(function).bind(*given)
        except TypeError:
            text = f"Incorrect parameter count in the call to native function '{name}'"
            errors.append(RplError(text, errno=er.WRONG_PARAMCOUNT_TO_NATIVE_FCT))
            raise
        try:
            return function(*given)
        except (TypeError, ValueError, OverflowError):
            errors.append(RplError(f"Incorrect arguments to {name}", errno=er.WRONG_ARGUMENTS))
            raise
        except Exception as error:
            errors.append(error)
            raise

    return call


def named_tables(session: ClientSession, words: ClientStatement) -> list[str]:
    """Return the tables whose names occur in the statement, as `database.table` in lower case.

    A name without a database belongs to the database that USE has chosen.
    """
    known = set(table_names())
    texts = [token.value.lower() if token.kind in ("word", "quoted") else token.value for token in words.tokens]
    qualified = {f"{first}.{last}" for first, dot, last in zip(texts, texts[1:], texts[2:], strict=False) if dot == "."}
    bare = {f"{session.database.lower()}.{text}" for text in texts}
    return sorted(known & (qualified | bare))


def _fill(database: sqlite3.Connection, table: str, rows: Iterable[tuple[object, ...]]) -> None:
    """Create the table in the SQLite database, and insert its rows.

    Comparisons of texts in the table ignore letter case, as on a server by default.
    """
    schema, _, name = table.partition(".")
    if not any(row[1] == schema for row in database.execute("PRAGMA database_list")):
        database.execute(f"ATTACH ':memory:' AS {schema}")
    names = columns_of(table)
    database.execute(f"CREATE TABLE {schema}.{name} ({', '.join(f'{column} COLLATE NOCASE' for column in names)})")
    database.executemany(f"INSERT INTO {schema}.{name} VALUES ({', '.join('?' * len(names))})", rows)


def _allows(action: int, name: str | None, known: frozenset[str]) -> int:
    if action in _ALLOWED or (action == sqlite3.SQLITE_FUNCTION and (name or "").lower() in known):
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _as_mysql(front: Front, session: ClientSession, text: str, words: ClientStatement) -> RplError:
    what, _, name = text.partition(": ")
    if what == "no such table":
        return no_such_table(front, session, name)
    if what == "no such column":
        return RplError(f"Unknown column '{name}' in 'field list'", errno=er.BAD_FIELD_ERROR)
    if what == "no such function" or text.startswith("not authorized to use function"):
        return RplError(f"FUNCTION {name} does not exist", errno=er.SP_DOES_NOT_EXIST)
    if text == "interrupted":
        return RplError("Query execution was interrupted", errno=er.QUERY_INTERRUPTED)
    return syntax_error(words.text)


def _translated(front: Front, session: ClientSession, words: ClientStatement) -> tuple[str, list[Any]]:
    """Return the statement in SQLite's syntax, and the values of its parameters.

    Each text literal and each @variable of the statement becomes a parameter.
    """
    out: list[str] = []
    values: list[Any] = []
    words.index = 0
    words.expect("SELECT")
    out.append("SELECT")
    while words.token.value in _HINTS or words.token.value in _DISTINCT:
        if words.next().value in _DISTINCT:
            out.append("DISTINCT")
    begin, depth, is_list = len(out), 0, True
    first, last = words.index, words.token
    standard = _has_standard_names(front, session, words)
    while True:
        token = words.token
        ends = words.at_end or (depth == 0 and token.value in (",", "FROM", "LIMIT", "WHERE", "ORDER", "UNION"))
        if is_list and ends and token.kind in ("symbol", "word", "end"):
            item = words.tokens[first : words.index]
            if item and not (standard and _is_column(item)):
                _name_item(out, begin, _name(front, words, item, last), item)
            is_list, first = token.value == ",", words.index + 1
            begin = len(out) + 1
        if words.at_end:
            return " ".join(out), values
        before = words.tokens[words.index - 1]
        depth += (token.value == "(") - (token.value == ")") if token.kind == "symbol" else 0
        last = words.next()
        if before.value == "AS" and before.kind == "word" and depth == 0 and token.kind in ("word", "quoted", "string"):
            out.append(_quoted(words.original(token) if token.kind == "word" else token.value))
        elif token.kind == "string" and before.kind == "string":
            values[-1] += token.value  # adjacent strings are one string
        elif token.kind == "string":
            out.append("?")
            values.append(token.value)
        elif token.value == "@" and token.kind == "symbol":
            out.append("?")
            values.append(_variable(front, session, words))
            last = words.tokens[words.index - 1]
        elif token.kind == "quoted":
            out.append(_quoted(token.value))
        elif token.kind == "word" and token.value == "IF" and words.token.value == "(":
            out.append("iif_")
        elif token.kind == "word" and token.value == "CURRENT_USER" and words.token.value != "(":
            out.append("current_user()")
        else:
            out.append(words.original(token))


def _has_standard_names(front: Front, session: ClientSession, words: ClientStatement) -> bool:
    """True if all tables of the statement are views of MySQL's data dictionary, such as information_schema.tables.

    For these views, MySQL since 8.0 names the columns of the answer as the view does, not as the statement does.
    """
    tables = [] if front.is_mariadb else named_tables(session, words)
    return bool(tables) and set(tables) <= _DICTIONARY


def _is_column(item: list[Token]) -> bool:
    """True if the item of the SELECT list is `column`, `table.column` or `database.table.column`."""
    are_names = all(token.kind in ("word", "quoted") for token in item[::2])
    return are_names and len(item) in (1, 3, 5) and {token.value for token in item[1::2]} <= {"."}


def _name(front: Front, words: ClientStatement, item: list[Token], last: Token) -> str:
    """Return the name that a server gives to the column of the answer for one item of the SELECT list.

    The name is the name of a column, the value of text literals (in MySQL, only of the first one), or the item's text.
    `last`: the last word of the item.
    """
    if _is_column(item):
        return last.value if last.kind == "quoted" else words.original(last)
    if any(token.kind != "string" for token in item):
        return words.text[item[0].start : last.end]
    return "".join(token.value for token in item[: len(item) if front.is_mariadb else 1])


def _name_item(out: list[str], begin: int, text: str, tokens: list[Token]) -> None:
    """Add an alias, which is `text`, to the last item of the SELECT list in `out`, if the item has no alias.

    The item begins at the index `begin` of `out`. `a b` is an item with the alias b, and becomes `a AS b`.
    """
    item = out[begin:]
    is_named = len(item) > 1 and item[-2].upper() == "AS"
    if not is_named and _ends_with_alias(tokens):
        out[-1:] = ["AS", item[-1] if tokens[-1].kind == "quoted" else _quoted(item[-1])]
        return
    if item and item[-1] != "*" and not is_named and item[-1:] != [";"]:
        out += ["AS", '"' + text.strip().replace('"', '""') + '"']


def _ends_with_alias(tokens: list[Token]) -> bool:
    """True if the last word of the item is an alias without AS, such as `b` in `SELECT a b`."""
    if len(tokens) < 2 or tokens[-1].kind not in ("word", "quoted") or tokens[-1].value in _NO_ALIAS:
        return False
    before = tokens[-2]
    return (before.kind == "symbol" and before.value == ")") or (
        before.kind != "symbol" and not (before.kind == "word" and before.value in _OPERATORS)
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _variable(front: Front, session: ClientSession, words: ClientStatement) -> object:
    if not words.accept("@"):
        return session.variables.get(words.name().lower())
    given, is_global = words.name(), False
    if given.lower() in ("global", "session", "local") and words.accept("."):
        given, is_global = words.name(), given.lower() == "global"
    name = given.lower()
    if name in (own := session.charsets.variables) and not is_global:
        return own[name]
    if name in ("warning_count", "error_count"):
        return len(session.notes) if name == "warning_count" or session.has_failed else 0
    if name == "port":
        return front.port
    found = variables(front.looks.config_of(""), front.looks, front.version, {name})
    if name not in found:
        raise RplError(f"Unknown system variable '{given}'", errno=er.UNKNOWN_SYSTEM_VARIABLE)
    value = found[name]
    return value if name in AS_TEXT or not isinstance(value, str) else SWITCHES.get(value, value)
