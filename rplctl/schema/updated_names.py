"""Finds the tables that a statement updates, in the order of the statement, for the replication filters.

Only names are parsed. So the filters can exclude a statement that `parse.py` does not understand. MySQL's grammar
determines which tables are updated. For example, `CREATE TABLE a LIKE b` updates a, `RENAME TABLE a TO b` updates both,
and GRANT ON t updates t.

Invariant: a statement that may contain another statement is rejected, because a filter cannot see the names in the
inner statement. The rejected statements begin with BEGIN NOT ATOMIC, IF, EXECUTE IMMEDIATE, CALL, BINLOG or an unknown
word. Servers do not log them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rplctl.schema.context import DdlContext
from rplctl.schema.statement import TableName
from rplctl.schema.token_stream import TokenStream

_OBJECTS_WITHOUT_TABLE = ("PROCEDURE", "FUNCTION", "PACKAGE", "EVENT", "USER", "ROLE", "SERVER", "TABLESPACE")
_TABLE_UPKEEP = ("ANALYZE", "OPTIMIZE", "REPAIR", "CHECK")
_WITHOUT_TABLES = frozenset(
    "BEGIN COMMIT ROLLBACK START SAVEPOINT RELEASE XA SET DO FLUSH INSTALL UNINSTALL IMPORT LOCK UNLOCK CACHE KILL"
    " RESET PURGE CHANGE USE STOP SHUTDOWN RESTART CHECKSUM BACKUP".split()
)
_MODIFIERS = ("LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "QUICK", "IGNORE")


@dataclass(frozen=True, slots=True)
class UpdatedNames:
    """The names of the tables and of the database that a statement updates.

    `tables`: None if the text does not show which tables are updated. `some_of`: the tables of a join, of which at
    least one is updated. `database`: the database of CREATE, ALTER or DROP DATABASE.
    """

    tables: tuple[TableName, ...] | None = ()
    database: str | None = None
    some_of: tuple[TableName, ...] = ()


def updated_names(sql: str, database: str, context: DdlContext, charset: str = "") -> UpdatedNames:
    """Return the names of the tables and of the database that a statement updates.

    `database`: the default database. `charset`: the true charset of `sql` if its bytes were decoded as latin-1, else
    ''. Raises RplError 1064 if the text is not a statement (a string without an end, a missing name), or if the names
    cannot be known.
    """
    tokens = TokenStream(sql, context, charset)
    if tokens.at_end:
        return UpdatedNames()
    if tokens.accept("SET STATEMENT"):
        while not tokens.accept("FOR"):
            tokens.next()
    first = tokens.next()
    verb = first.value if first.kind == "word" else ""
    if verb in ("CREATE", "DROP", "ALTER"):
        return _of_object(tokens, verb, database)
    if verb == "RENAME":
        return _renamed(tokens, database)
    if verb in ("INSERT", "REPLACE", "DELETE", "UPDATE", "LOAD", "TRUNCATE", "WITH", "SELECT"):
        return _of_rows(tokens, verb, database)
    if verb in ("GRANT", "REVOKE"):
        return _granted(tokens, database)
    if verb in _TABLE_UPKEEP:
        tokens.accept_any("LOCAL", "NO_WRITE_TO_BINLOG")
        return _table_list(tokens, database) if tokens.accept_any("TABLE", "TABLES") else _analyzed(tokens, database)
    if verb not in _WITHOUT_TABLES or (verb == "BEGIN" and not (tokens.accept("WORK") or tokens.at_end)):
        tokens.refuse("cannot apply the channel's filters: the tables that the statement changes are unknown")
    return UpdatedNames()


def named_tables(sql: str, database: str, context: DdlContext) -> tuple[tuple[TableName, ...], tuple[TableName, ...]]:
    """Return (updated tables, referenced tables) of a CREATE, DROP, ALTER or RENAME TABLE statement.

    The updated tables include the new name after ALTER … RENAME, and the other table of MariaDB's ALTER TABLE … CONVERT
    PARTITION … TO TABLE and CONVERT TABLE … TO PARTITION. The referenced tables are those after LIKE and
    REFERENCES. Other statements give two empty tuples. Raises the errors of `updated_names`.
    """
    tokens = TokenStream(sql, context)
    if tokens.accept("SET STATEMENT"):
        while not tokens.accept("FOR"):
            tokens.next()
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
        elif is_alter and tokens.accept("CONVERT PARTITION"):
            tokens.identifier()
            if tokens.accept("TO TABLE"):
                updated.append(tokens.table_name(database))
        elif is_alter and tokens.accept("CONVERT TABLE"):
            updated.append(tokens.table_name(database))
        elif not tokens.at_end:
            tokens.next()
    return tuple(updated), tuple(referred)


def _of_object(tokens: TokenStream, verb: str, database: str) -> UpdatedNames:
    """Parse the rest of CREATE, DROP or ALTER, and return the names that the statement updates.

    Words such as OR REPLACE or DEFINER come before the kind of the object, and the name comes after the kind.
    """
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
        return UpdatedNames()  # this is never filtered, because a temporary table may outlive a change of filters
    if kind in ("DATABASE", "SCHEMA"):
        unnamed = tokens.is_word("CHARACTER", "CHARSET", "COLLATE", "DEFAULT", "COMMENT", "ENCRYPTION", "READ")
        return UpdatedNames((), database if unnamed else tokens.context.fold_name(tokens.identifier()))
    if verb == "DROP":
        return _table_list(tokens, database)
    name = tokens.table_name(database)
    return UpdatedNames((name, *_exchanged(tokens, database)) if verb == "ALTER" else (name,))


def _exchanged(tokens: TokenStream, database: str) -> Iterator[TableName]:
    """Yield the second table of EXCHANGE PARTITION. For CONVERT, MariaDB's filters only check the first table."""
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


def _analyzed(tokens: TokenStream, database: str) -> UpdatedNames:
    """Parse MariaDB's ANALYZE FORMAT=JSON UPDATE …, which also executes the statement after ANALYZE."""
    if tokens.accept("FORMAT"):
        tokens.skip_value()
    verb = tokens.next().value
    return UpdatedNames() if verb == "SELECT" else _of_rows(tokens, verb, database)


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
    """Parse a statement that changes rows, and return the tables that it updates.

    If there are several tables, the text does not show which of them are only read.
    """
    if verb == "WITH":
        verb = _behind_with(tokens)
    if verb == "SELECT":
        return UpdatedNames(None)
    while tokens.accept_any(*_MODIFIERS):
        pass
    if verb == "LOAD":
        while not tokens.accept("INTO TABLE"):
            tokens.next()
    elif verb == "DELETE":
        if not tokens.accept("FROM"):
            while not tokens.accept("FROM"):
                tokens.next()
            return _joined(tokens, database)
    elif verb == "TRUNCATE":
        tokens.accept("TABLE")
    else:
        tokens.accept("INTO")
    if verb == "UPDATE":
        found = _joined(tokens, database)
        return UpdatedNames(found.some_of) if len(found.some_of) == 1 else found
    name = tokens.table_name(database)
    tokens.accept("AS")
    if verb == "DELETE" and (tokens.is_symbol(",") or tokens.is_word("USING")):
        while not tokens.accept("USING"):
            tokens.next()
        return _joined(tokens, database)
    return UpdatedNames((name,))


def _behind_with(tokens: TokenStream) -> str:
    """Skip a clause `WITH RECURSIVE a (x) AS (…), b AS (…)`, and return the verb after the clause."""
    tokens.accept("RECURSIVE")
    while True:
        tokens.identifier()
        if tokens.is_symbol("("):
            tokens.skip_group()
        tokens.expect("AS")
        tokens.skip_group()
        if not tokens.accept_symbol(","):
            return tokens.next().value


def _joined(tokens: TokenStream, database: str) -> UpdatedNames:
    """Return the tables in a join such as `a, b AS c LEFT JOIN (d, e) ON …`, up to SET, WHERE or the end."""
    names: list[TableName] = []
    is_next = True
    while not tokens.at_end and not tokens.is_word("SET", "WHERE", "ORDER", "LIMIT", "RETURNING"):
        if is_next and tokens.is_symbol("("):
            if tokens.ahead().value in ("SELECT", "WITH", "VALUES", "TABLE"):
                tokens.skip_group()
                is_next = False
            else:
                tokens.next()
        elif is_next and not tokens.is_word("LATERAL"):
            names.append(tokens.table_name(database))
            is_next = False
        elif not is_next and tokens.is_symbol("("):
            tokens.skip_group()
        else:
            is_next |= tokens.next().value in (",", "JOIN", "STRAIGHT_JOIN")
    return UpdatedNames(None, some_of=tuple(names))


def _granted(tokens: TokenStream, database: str) -> UpdatedNames:
    if tokens.is_word("PROXY"):
        return UpdatedNames()  # an account follows ON, not a table
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
