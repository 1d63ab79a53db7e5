"""Reads definitions of tables and other objects on a MySQL or MariaDB target, before a DDL statement and after a crash.

If a definition differs after the crash, the interrupted DDL statement was executed (design D28). RENAME TABLE and
EXCHANGE PARTITION move unchanged definitions to other tables. The ids that InnoDB assigns to tables and partitions show
such a move. MariaDB changes the order of columns without a new id. The time of the table's last ALTER, in whole
seconds, shows this change.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from rplctl import mysql_errors as er
from rplctl.errors import TargetError
from rplctl.schema.affected import ACCOUNTS, DATABASE, TABLE, ServerObject
from rplctl.schema.statement import TableName
from rplctl.sql_text import Sql, backticked, joined, utf8_literal, word, written
from rplctl.target.base import Definition
from rplctl.target.mysql.session import ServerKind

_ABSENT: Final = frozenset(
    {
        er.NO_SUCH_TABLE, er.BAD_DB_ERROR, er.NO_SUCH_TABLE_IN_ENGINE, er.TRG_DOES_NOT_EXIST, er.SP_DOES_NOT_EXIST,
        er.EVENT_DOES_NOT_EXIST,
    }
)  # fmt: skip
_CHANGES_ALONE: Final = re.compile(r" AUTO_INCREMENT=\d+")  # row changes alter this number
_NAMED: Final = re.compile(r"\A(CREATE (?:\w+ )*?TABLE) `(?:[^`]|``)*`")
_RIGHTS: Final = ("db", "tables_priv", "columns_priv", "procs_priv", "proxies_priv")
_ACCOUNTS: Final = {
    True: ("global_priv", "roles_mapping", *_RIGHTS),
    False: ("user", "role_edges", "default_roles", "global_grants", *_RIGHTS),
}
_ROW_VERSIONS_SINCE: Final = 80029
UNREADABLE: Final = Definition("?")
Ask = Callable[[Sql], Sequence[Sequence[Any]]]


def read_definitions(
    ask: Ask, objects: Iterable[ServerObject], server: ServerKind, *, identity: bool
) -> dict[ServerObject, Definition | None]:
    """Return the current definition of each object, or None for a missing object. `identity`: True to also read ids and
    times. Raises TargetError if the target reports an error.
    """
    return {found: _definition(ask, found, server, identity) for found in objects}


def _definition(ask: Ask, found: ServerObject, server: ServerKind, identity: bool) -> Definition | None:
    try:
        if found.kind == ACCOUNTS:
            rows = [
                sorted(map(repr, ask(written("SELECT * FROM mysql.{}", word(name)))))
                for name in _ACCOUNTS[server.is_mariadb]
            ]
            return Definition(_digest(repr(rows)))
        row = ask(written("SHOW CREATE {} {}", joined(" ", map(word, found.kind.split())), _name(found)))[0]
    except TargetError as error:
        if error.errno in _ABSENT:
            return None
        if error.transient:
            raise
        return UNREADABLE
    if found.kind != TABLE:
        return Definition("" if found.kind == DATABASE else _digest(repr(row)))
    text = Definition(_digest(_NAMED.sub(r"\1", _CHANGES_ALONE.sub("", str(row[1])))))
    if not identity or len(row) != 2:  # the row of a view has more columns
        return text
    numbers, (engine, made, is_past) = _numbers(ask, found, server), _status(ask, found)
    if engine != "InnoDB":
        return text._replace(identity=f"made {made}", altered="")
    return text._replace(identity=numbers, altered=made if is_past or not server.is_mariadb else "")


def _numbers(ask: Ask, found: ServerObject, server: ServerKind) -> str:
    """Return a text with the ids of an InnoDB table and its partitions, or '' if the account may not read the ids.
    MySQL's instant ALTER keeps the id, but increments a version number of the rows. The text contains this number, too.
    """
    tables = written("INNODB_SYS_TABLES") if server.is_mariadb else written("INNODB_TABLES")
    counts = not server.is_mariadb and server.version >= _ROW_VERSIONS_SINCE
    number = written("CONCAT(TABLE_ID, '.', TOTAL_ROW_VERSIONS)") if counts else written("TABLE_ID")
    file = f"{_file_name(found.database)}/{_file_name(found.name)}"
    names = (file, f"{file}#P#%", f"{file}#p#%")
    where = joined(" OR ", (written("CAST(NAME AS BINARY) LIKE {} ESCAPE '|'", utf8_literal(name)) for name in names))
    try:
        rows = ask(written("SELECT NAME, {} FROM information_schema.{} WHERE {}", number, tables, where))
    except TargetError as error:
        if error.errno != er.SPECIFIC_ACCESS_DENIED_ERROR:
            raise
        return ""
    return " ".join(sorted(f"{str(name).partition('#')[2]}={number}" for name, number in rows))


def _status(ask: Ask, found: ServerObject) -> tuple[str, str, bool]:
    """Return the table's engine, the second in which the table was created, and True if this second has passed. InnoDB
    on MariaDB reports the second of the last ALTER or RENAME in place of the creation.
    """
    columns = written("ENGINE, CREATE_TIME, CREATE_TIME < SYSDATE()")
    engine, made, is_past = ask(_of_table(columns, found.database, found.name))[0]
    return str(engine), str(made), bool(is_past)


def read_row_states(ask: Ask, tables: Iterable[TableName]) -> dict[ServerObject, Definition | None]:
    """Return the counts and the last change of each table's rows, for `StatementTarget.row_states`. Only MyISAM reports
    an exact time of the last change, so `altered` is '' for other engines.
    """
    found: dict[ServerObject, Definition | None] = {}
    for database, name in tables:
        columns = written("ENGINE, TABLE_ROWS, DATA_LENGTH, DATA_FREE, UPDATE_TIME, UPDATE_TIME < SYSDATE()")
        for engine, *counts, changed, is_past in ask(_of_table(columns, database, name)):
            is_exact = engine == "MyISAM" and is_past
            found[ServerObject(kind=TABLE, database=database, name=name)] = Definition(
                text=repr(counts), altered=str(changed) if is_exact else ""
            )
    return found


def _of_table(columns: Sql, database: str, name: str) -> Sql:
    where = written("TABLE_SCHEMA = {} AND TABLE_NAME = {}", utf8_literal(database), utf8_literal(name))
    return written("SELECT {} FROM information_schema.TABLES WHERE {}", columns, where)


def _name(found: ServerObject) -> Sql:
    return backticked(*filter(None, (found.database, found.name)))


def _file_name(name: str) -> str:
    """Return a LIKE pattern for the form that a table's or database's name has in InnoDB's file names. In the pattern,
    each non-ASCII character becomes '%', which matches any text.
    """
    return "".join(_in_file(letter) for letter in name)


def _in_file(letter: str) -> str:
    if not letter.isascii():
        return "%"
    if letter == "_":
        return "|_"
    return letter if letter.isalnum() else f"@{ord(letter):04x}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]
