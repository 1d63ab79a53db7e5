"""Which tables a statement updates, in the order it names them: all that replication filters need to know of it.

Only names are read, so a statement that `parse.py` does not understand can still be left out. The tables are those that
MySQL's grammar marks as updating: `CREATE TABLE a LIKE b` updates a; `RENAME TABLE a TO b` both; GRANT ON t the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rplctl.schema.context import DdlContext
from rplctl.schema.statement import TableName
from rplctl.schema.token_stream import TokenStream

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
    tokens = TokenStream(sql, context)
    if tokens.at_end:
        return UpdatedNames()
    if tokens.accept("SET STATEMENT"):
        while not tokens.accept("FOR"):
            tokens.next()
    verb = tokens.next().value
    if verb in ("CREATE", "DROP", "ALTER"):
        return _of_object(tokens, verb, database)
    if verb == "RENAME":
        return _renamed(tokens, database)
    if verb in ("INSERT", "REPLACE", "DELETE", "UPDATE", "LOAD", "TRUNCATE", "WITH", "CALL", "SELECT"):
        return _of_rows(tokens, verb, database)
    if verb in ("GRANT", "REVOKE"):
        return _granted(tokens, database)
    if verb in _TABLE_UPKEEP:
        tokens.accept_any("LOCAL", "NO_WRITE_TO_BINLOG")
        return _table_list(tokens, database) if tokens.accept_any("TABLE", "TABLES") else UpdatedNames()
    return UpdatedNames()


def named_tables(sql: str, database: str, context: DdlContext) -> tuple[tuple[TableName, ...], tuple[TableName, ...]]:
    """Of CREATE, DROP, ALTER and RENAME TABLE: the tables that it updates, ALTER's new name among them, and those that
    it refers to (LIKE, REFERENCES). Raises as `updated_names`.
    """
    tokens = TokenStream(sql, context)
    verb = "" if tokens.at_end else tokens.next().value
    if verb not in ("CREATE", "DROP", "ALTER", "RENAME"):
        return (), ()
    updated, referred = list(updated_names(sql, database, context).tables or ()), []
    is_alter = verb == "ALTER"
    while not tokens.at_end:
        if tokens.accept_any("LIKE", "REFERENCES"):
            if tokens.token.kind in ("word", "quoted"):
                referred.append(tokens.table_name(database))
        elif is_alter and tokens.accept("RENAME") and not tokens.is_word("COLUMN", "INDEX", "KEY"):
            tokens.accept_any("TO", "AS")
            tokens.accept_symbol("=")
            updated.append(tokens.table_name(database))
        elif not tokens.at_end:
            tokens.next()
    return tuple(updated), tuple(referred)


def _of_object(tokens: TokenStream, verb: str, database: str) -> UpdatedNames:
    """CREATE, DROP, ALTER: behind options like OR REPLACE or DEFINER the kind of object, then its name."""
    is_temporary = tokens.is_word("TEMPORARY")
    while not tokens.is_word("TABLE", "TABLES", "SEQUENCE", "VIEW", "DATABASE", "SCHEMA", "INDEX", "TRIGGER"):
        if tokens.at_end or tokens.is_word(*_OBJECTS_WITHOUT_TABLE):
            return UpdatedNames()
        tokens.next()
    kind = tokens.next().value
    if kind == "TRIGGER":
        return UpdatedNames(None) if verb == "DROP" else _behind_on(tokens, database)
    if kind == "INDEX":
        return _behind_on(tokens, database)
    if_exists = tokens.accept("IF EXISTS")
    tokens.accept("IF NOT EXISTS")
    if verb == "DROP" and is_temporary and if_exists:
        return UpdatedNames()  # always carried out: a temporary table may outlive a change of filters
    if kind in ("DATABASE", "SCHEMA"):
        unnamed = tokens.is_word("CHARACTER", "CHARSET", "COLLATE", "DEFAULT", "COMMENT", "ENCRYPTION", "READ")
        return UpdatedNames((), database if unnamed else tokens.context.fold_name(tokens.identifier()))
    if verb == "DROP":
        return _table_list(tokens, database)
    name = tokens.table_name(database)
    return UpdatedNames((name, *_exchanged(tokens, database)) if verb == "ALTER" else (name,))


def _exchanged(tokens: TokenStream, database: str) -> Iterator[TableName]:
    """EXCHANGE PARTITION updates the other table too; MariaDB's CONVERT asks filters for the first alone."""
    while not tokens.at_end:
        if tokens.accept("EXCHANGE PARTITION"):
            tokens.next()
            if tokens.accept("WITH TABLE"):
                yield tokens.table_name(database)
        else:
            tokens.next()


def _behind_on(tokens: TokenStream, database: str) -> UpdatedNames:
    while not tokens.accept("ON"):
        tokens.next()
    return UpdatedNames((tokens.table_name(database),))


def _table_list(tokens: TokenStream, database: str) -> UpdatedNames:
    return UpdatedNames(tokens.each(lambda: tokens.table_name(database)))


def _renamed(tokens: TokenStream, database: str) -> UpdatedNames:
    if tokens.accept_any("TABLE", "TABLES") is None:
        return UpdatedNames()
    tokens.accept("IF EXISTS")
    names: list[TableName] = []
    while True:
        names.append(tokens.table_name(database))
        while not tokens.accept("TO"):  # WAIT n, NOWAIT
            tokens.next()
        names.append(tokens.table_name(database))
        if not tokens.accept_symbol(","):
            return UpdatedNames(tuple(names))


def _of_rows(tokens: TokenStream, verb: str, database: str) -> UpdatedNames:
    """Statements that change rows. Those with several tables name aliases or tables they only read: not told apart."""
    if verb in ("WITH", "CALL", "SELECT"):
        return UpdatedNames(None)
    while tokens.accept_any(*_MODIFIERS):
        pass
    if verb == "LOAD":
        while not tokens.accept("INTO TABLE"):
            tokens.next()
    elif verb == "DELETE":
        if not tokens.accept("FROM"):
            return UpdatedNames(None)
    elif verb == "TRUNCATE":
        tokens.accept("TABLE")
    else:
        tokens.accept("INTO")
    name = tokens.table_name(database)
    tokens.accept("AS")
    if verb == "UPDATE" and not (tokens.is_word("SET") or (tokens.ahead().value == "SET")):
        return UpdatedNames(None)
    several = verb == "DELETE" and (tokens.is_symbol(",") or tokens.is_word("USING"))
    return UpdatedNames(None) if several else UpdatedNames((name,))


def _granted(tokens: TokenStream, database: str) -> UpdatedNames:
    while not tokens.accept("ON"):
        if tokens.at_end:
            return UpdatedNames()  # roles
        tokens.skip_group() if tokens.is_symbol("(") else tokens.next()
    if tokens.accept_any("FUNCTION", "PROCEDURE", "PACKAGE") or tokens.is_symbol("*"):
        return UpdatedNames()
    tokens.accept("TABLE")
    if tokens.ahead().value == "." and tokens.ahead(2).value == "*":
        return UpdatedNames()
    return UpdatedNames((tokens.table_name(database),))
