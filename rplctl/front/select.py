"""SELECT of expressions, by an in-memory SQLite behind an authorizer, one for each statement.

Invariant: the authorizer allows SELECT and the functions of a list, and nothing else; steps, lengths and recursion are
limited, so no statement holds a core or much memory.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from typing import Any, Final

from rplctl import mysql_errors as er
from rplctl.errors import RplError
from rplctl.front.front import ClientSession, Front
from rplctl.front.result import Rows, typed
from rplctl.front.statement import Statement, syntax_error
from rplctl.front.variables import AS_TEXT, SWITCHES, variables

_MOST_STEPS: Final = 200  # times 10,000 instructions of SQLite
_LONGEST = 1 << 20  # bytes of a value
_PLAIN: Final = frozenset("abs coalesce count ifnull length like lower max min nullif round sum upper".split())
_ALLOWED: Final = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ)


def select(front: Front, session: ClientSession, words: Statement) -> Rows:
    """Raises RplError 1064, 1146, 1193, 1054, 1305."""
    sql, values = _translated(front, session, words)
    own = _functions(front, session)
    database = sqlite3.connect(":memory:", check_same_thread=False)
    try:
        database.execute("CREATE TABLE dual (dummy)")
        database.execute("INSERT INTO dual VALUES ('')")
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
        for name, function in own.items():
            database.create_function(name, -1, function)
        steps = iter(range(_MOST_STEPS))
        database.set_progress_handler(lambda: next(steps, None) is None, 10_000)
        known = _PLAIN | own.keys()
        database.set_authorizer(lambda action, _, name, *rest: _allows(action, name, known))
        found = database.execute(sql, values)
        names = [column[0] for column in found.description or ()]
        return typed(names, found.fetchmany(10_000))
    except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
        raise _as_mysql(str(error), words) from None
    finally:
        database.close()


def _allows(action: int, name: str | None, known: frozenset[str]) -> int:
    if action in _ALLOWED or (action == sqlite3.SQLITE_FUNCTION and (name or "").lower() in known):
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _as_mysql(text: str, words: Statement) -> RplError:
    what, _, name = text.partition(": ")
    if what == "no such table":
        return RplError(f"Table '{name}' doesn't exist", errno=er.NO_SUCH_TABLE)
    if what == "no such column":
        return RplError(f"Unknown column '{name}' in 'field list'", errno=er.BAD_FIELD_ERROR)
    if what == "no such function" or text.startswith("not authorized to use function"):
        return RplError(f"FUNCTION {name} does not exist", errno=er.SP_DOES_NOT_EXIST)
    if text == "interrupted":
        return RplError("Query execution was interrupted", errno=er.QUERY_INTERRUPTED)
    return syntax_error(words.text)


def _translated(front: Front, session: ClientSession, words: Statement) -> tuple[str, list[Any]]:
    """The statement in SQLite's words, with a parameter for each literal and each @variable."""
    out: list[str] = []
    values: list[Any] = []
    words.index = 0
    words.expect("SELECT")
    out.append("SELECT")
    begin, depth, is_list = len(out), 0, True
    first, last = words.token, words.token
    while True:
        token = words.token
        ends = words.at_end or (depth == 0 and token.value in (",", "FROM", "LIMIT", "WHERE", "ORDER", "UNION"))
        if is_list and ends and token.kind in ("symbol", "word", "end"):
            _name_item(out, begin, words.text[first.start : last.end], is_variable=first.value == "@")
            is_list = token.value == ","
            first = words.tokens[min(words.index + 1, len(words.tokens) - 1)]
            begin = len(out) + 1
        if words.at_end:
            return " ".join(out), values
        depth += (token.value == "(") - (token.value == ")") if token.kind == "symbol" else 0
        last = words.next()
        if token.kind == "string":
            out.append("?")
            values.append(token.value)
        elif token.value == "@" and token.kind == "symbol":
            out.append("?")
            values.append(_variable(front, session, words))
            last = words.tokens[words.index - 1]
        elif token.kind == "quoted":
            out.append('"' + token.value.replace('"', '""') + '"')
        elif token.kind == "word" and token.value == "IF" and words.token.value == "(":
            out.append("iif_")
        else:
            out.append(words.original(token))


def _name_item(out: list[str], begin: int, text: str, *, is_variable: bool) -> None:
    """An item without a name of its own is called as it is written."""
    item = out[begin:]
    is_named = len(item) > 1 and (item[-2].upper() == "AS" or (is_variable and len(item) == 2))
    if item and item != ["*"] and not is_named and item[-1:] != [";"]:
        out += ["AS", '"' + text.strip().replace('"', '""') + '"']


def _variable(front: Front, session: ClientSession, words: Statement) -> object:
    if not words.accept("@"):
        return session.variables.get(words.name().lower())
    name = words.name().lower()
    if name in ("global", "session", "local") and words.accept("."):
        name = words.name().lower()
    found = variables(front.looks.config_of(""), front.looks, front.version, {name})
    if name not in found:
        raise RplError(f"Unknown system variable '{name}'", errno=er.UNKNOWN_SYSTEM_VARIABLE)
    value = found[name]
    return value if name in AS_TEXT or not isinstance(value, str) else SWITCHES.get(value, value)


def _functions(front: Front, session: ClientSession) -> dict[str, Callable[..., Any]]:
    return {
        "version": lambda: front.version,
        "user": lambda: session.client.name,
        "current_user": lambda: session.client.name,
        "database": lambda: session.database or None,
        "schema": lambda: session.database or None,
        "connection_id": lambda: session.number,
        "unix_timestamp": lambda: int(time.time()),
        "now": lambda: time.strftime("%Y-%m-%d %H:%M:%S"),
        "concat": lambda *parts: None if None in parts else "".join(map(str, parts)),
        "iif_": lambda condition, yes, no: yes if condition else no,
    }
