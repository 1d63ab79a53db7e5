"""Which tables a statement updates, in the order it names them: all that replication filters need to know of it.

Only names are read, so a statement that `parse.py` does not understand can still be left out. The tables are those that
MySQL's grammar marks as updating: `CREATE TABLE a LIKE b` updates a; `RENAME TABLE a TO b` both; GRANT ON t the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rplctl.schema.context import DdlContext
from rplctl.schema.cursor import Cursor
from rplctl.schema.statement import TableName

_OBJECTS_WITHOUT_TABLE = ("PROCEDURE", "FUNCTION", "PACKAGE", "EVENT", "USER", "ROLE", "SERVER", "TABLESPACE")
_TABLE_UPKEEP = ("ANALYZE", "OPTIMIZE", "REPAIR", "CHECK")
_MODIFIERS = ("LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "QUICK", "IGNORE")


@dataclass(frozen=True, slots=True)
class UpdatedNames:
    """`tables`: None when they cannot be told from the text. `database`: of CREATE, ALTER and DROP DATABASE."""

    tables: tuple[TableName, ...] | None = ()
    database: str | None = None


def updated_names(sql: str, database: str, context: DdlContext) -> UpdatedNames:
    """Raises RplError 1064 for a text that is no statement (a string that does not end, a name that is missing)."""
    cursor = Cursor(sql, context)
    if cursor.at_end:
        return UpdatedNames()
    if cursor.accept("SET STATEMENT"):
        while not cursor.accept("FOR"):
            cursor.next()
    verb = cursor.next().value
    if verb in ("CREATE", "DROP", "ALTER"):
        return _of_object(cursor, verb, database)
    if verb == "RENAME":
        return _renamed(cursor, database)
    if verb in ("INSERT", "REPLACE", "DELETE", "UPDATE", "LOAD", "TRUNCATE", "WITH", "CALL", "SELECT"):
        return _of_rows(cursor, verb, database)
    if verb in ("GRANT", "REVOKE"):
        return _granted(cursor, database)
    if verb in _TABLE_UPKEEP:
        cursor.accept_any("LOCAL", "NO_WRITE_TO_BINLOG")
        return _table_list(cursor, database) if cursor.accept_any("TABLE", "TABLES") else UpdatedNames()
    return UpdatedNames()


def _of_object(cursor: Cursor, verb: str, database: str) -> UpdatedNames:
    """CREATE, DROP, ALTER: behind options like OR REPLACE or DEFINER the kind of object, then its name."""
    is_temporary = cursor.is_word("TEMPORARY")
    while not cursor.is_word("TABLE", "TABLES", "SEQUENCE", "VIEW", "DATABASE", "SCHEMA", "INDEX", "TRIGGER"):
        if cursor.at_end or cursor.is_word(*_OBJECTS_WITHOUT_TABLE):
            return UpdatedNames()
        cursor.next()
    kind = cursor.next().value
    if kind == "TRIGGER":
        return UpdatedNames(None) if verb == "DROP" else _behind_on(cursor, database)
    if kind == "INDEX":
        return _behind_on(cursor, database)
    if_exists = cursor.accept("IF EXISTS")
    cursor.accept("IF NOT EXISTS")
    if verb == "DROP" and is_temporary and if_exists:
        return UpdatedNames()  # always carried out: a temporary table may outlive a change of filters
    if kind in ("DATABASE", "SCHEMA"):
        unnamed = cursor.is_word("CHARACTER", "CHARSET", "COLLATE", "DEFAULT", "COMMENT", "ENCRYPTION", "READ")
        return UpdatedNames((), database if unnamed else cursor.context.fold_name(cursor.identifier()))
    if verb == "DROP":
        return _table_list(cursor, database)
    name = cursor.table_name(database)
    return UpdatedNames((name, *_exchanged(cursor, database)) if verb == "ALTER" else (name,))


def _exchanged(cursor: Cursor, database: str) -> Iterator[TableName]:
    """EXCHANGE PARTITION updates the other table too; MariaDB's CONVERT asks filters for the first alone."""
    while not cursor.at_end:
        if cursor.accept("EXCHANGE PARTITION"):
            cursor.next()
            if cursor.accept("WITH TABLE"):
                yield cursor.table_name(database)
        else:
            cursor.next()


def _behind_on(cursor: Cursor, database: str) -> UpdatedNames:
    while not cursor.accept("ON"):
        cursor.next()
    return UpdatedNames((cursor.table_name(database),))


def _table_list(cursor: Cursor, database: str) -> UpdatedNames:
    names = [cursor.table_name(database)]
    while cursor.accept_symbol(","):
        names.append(cursor.table_name(database))
    return UpdatedNames(tuple(names))


def _renamed(cursor: Cursor, database: str) -> UpdatedNames:
    if cursor.accept_any("TABLE", "TABLES") is None:
        return UpdatedNames()
    cursor.accept("IF EXISTS")
    names: list[TableName] = []
    while True:
        names.append(cursor.table_name(database))
        while not cursor.accept("TO"):  # WAIT n, NOWAIT
            cursor.next()
        names.append(cursor.table_name(database))
        if not cursor.accept_symbol(","):
            return UpdatedNames(tuple(names))


def _of_rows(cursor: Cursor, verb: str, database: str) -> UpdatedNames:
    """Statements that change rows. Those with several tables name aliases or tables they only read: not told apart."""
    if verb in ("WITH", "CALL", "SELECT"):
        return UpdatedNames(None)
    while cursor.accept_any(*_MODIFIERS):
        pass
    if verb == "LOAD":
        while not cursor.accept("INTO TABLE"):
            cursor.next()
    elif verb == "DELETE":
        if not cursor.accept("FROM"):
            return UpdatedNames(None)
    elif verb == "TRUNCATE":
        cursor.accept("TABLE")
    else:
        cursor.accept("INTO")
    name = cursor.table_name(database)
    cursor.accept("AS")
    if verb == "UPDATE" and not (cursor.is_word("SET") or (cursor.ahead().value == "SET")):
        return UpdatedNames(None)
    several = verb == "DELETE" and (cursor.is_symbol(",") or cursor.is_word("USING"))
    return UpdatedNames(None) if several else UpdatedNames((name,))


def _granted(cursor: Cursor, database: str) -> UpdatedNames:
    while not cursor.accept("ON"):
        if cursor.at_end:
            return UpdatedNames()  # roles
        cursor.skip_group() if cursor.is_symbol("(") else cursor.next()
    if cursor.accept_any("FUNCTION", "PROCEDURE", "PACKAGE") or cursor.is_symbol("*"):
        return UpdatedNames()
    cursor.accept("TABLE")
    if cursor.ahead().value == "." and cursor.ahead(2).value == "*":
        return UpdatedNames()
    return UpdatedNames((cursor.table_name(database),))
