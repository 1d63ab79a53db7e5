"""MySQL and MariaDB DDL text → actions; what is not understood stops with the statement and a way out (D10, D12).

The grammar is MySQL 9's and MariaDB 11's as their servers write statements to the binary log. Statements that a replica
of tables has no place for (views, routines, users, …) become `Unreplicated`; those that change nothing `NoOperation`.
"""

from __future__ import annotations

from dataclasses import replace

from rplctl import mysql_errors as er
from rplctl.errors import RplError
from rplctl.mask import masked
from rplctl.schema.alter_clause import parse_alter_table
from rplctl.schema.context import ORACLE, DdlContext
from rplctl.schema.cursor import Cursor
from rplctl.schema.data_type import accept_charset, accept_collation, charset_of
from rplctl.schema.model import TableModel
from rplctl.schema.statement import (
    ACCOUNT,
    AlterDatabase,
    AlterTable,
    CreateDatabase,
    CreateTable,
    CreateTableLike,
    DdlAction,
    DropDatabase,
    DropKey,
    DropTable,
    NoOperation,
    RenameTable,
    TruncateTable,
    Unreplicated,
)
from rplctl.schema.structure import build_table, sequence_model
from rplctl.schema.table_definition import (
    accept_key_kind,
    parse_definitions,
    parse_key,
    parse_options,
    parse_partitioning,
)

_NO_EFFECT = {
    "ANALYZE": "statistics", "OPTIMIZE": "storage", "REPAIR": "storage", "CHECK": "storage", "CHECKSUM": "reading",
    "FLUSH": "server state", "SET": "session state", "RESET": "server state", "CACHE": "server state",
    "LOCK": "session state", "UNLOCK": "session state", "USE": "session state", "PURGE": "server state",
    "DO": "no change of rows", "KILL": "server state", "SHOW": "reading", "BINLOG": "server state",
}  # fmt: skip
_USERS = frozenset({"GRANT", "REVOKE"})
_ROW_STATEMENTS = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "CALL", "WITH", "SELECT", "VALUES"})
_OBJECTS = {
    "VIEW": "view", "TRIGGER": "trigger", "PROCEDURE": "routine", "FUNCTION": "routine", "PACKAGE": "routine",
    "EVENT": "event", "USER": ACCOUNT, "ROLE": ACCOUNT, "SERVER": "server", "TABLESPACE": "tablespace",
    "LOGFILE": "tablespace", "UNDO": "tablespace", "INSTANCE": "server", "SPATIAL": "spatial reference system",
    "RESOURCE": "resource group", "LIBRARY": "routine", "CATALOG": "catalog",
}  # fmt: skip


def parse_ddl(sql: str, database: str, context: DdlContext) -> list[DdlAction]:
    """The actions of one statement as a QUERY event carries it; [] for an empty one.

    Raises RplError (errno 1064) with the statement when rplctl does not understand it.
    """
    cursor = Cursor(sql, context)
    if cursor.at_end:
        return []
    if cursor.accept("SET STATEMENT"):  # MariaDB: SET STATEMENT variable=value, … FOR statement
        while not cursor.accept("FOR"):
            cursor.next()
    verb = cursor.next()
    if verb.kind != "word":
        cursor.refuse()
    match verb.value:
        case "CREATE":
            return [_create(cursor, database)]
        case "DROP":
            return [_drop(cursor, database)]
        case "ALTER":
            return [_alter(cursor, database)]
        case "RENAME":
            return [_rename(cursor, database)]
        case "TRUNCATE":
            cursor.accept("TABLE")
            action = TruncateTable(cursor.table_name(database))
            _skip_wait(cursor)
            cursor.expect_end()
            return [action]
        case "INSTALL" | "UNINSTALL":
            return [Unreplicated("plugin", cursor.text.strip())]
        case word if word in _USERS:
            return [Unreplicated(ACCOUNT, cursor.text.strip())]
        case word if word in _NO_EFFECT:
            return [NoOperation(f"{word}: {_NO_EFFECT[word]}")]
        case word if word in _ROW_STATEMENTS:
            raise RplError(
                f"This is a statement, not row events: {cursor.text.strip()[:1000]}",
                errno=er.BINLOG_UNSAFE_STATEMENT,
                hint="set binlog_format=ROW on the source, load the tables again: `rplctl skip` leaves the "
                "whole transaction out",
            )
    cursor.refuse()


def _skip_wait(cursor: Cursor) -> None:
    if cursor.accept("WAIT"):
        cursor.integer()
    cursor.accept("NOWAIT")


def _skip_definer(cursor: Cursor) -> None:
    """`ALGORITHM = … DEFINER = user@host SQL SECURITY … AGGREGATE` before the kind of object."""
    while not cursor.is_word("VIEW", "TRIGGER", "PROCEDURE", "FUNCTION", "PACKAGE", "EVENT"):
        cursor.next()


def _create(cursor: Cursor, database: str) -> DdlAction:
    or_replace = cursor.accept("OR REPLACE")
    if cursor.accept("TEMPORARY"):
        return NoOperation("temporary tables are not in row events")
    if cursor.accept("TABLE"):
        return _create_table(cursor, database, or_replace=or_replace)
    if cursor.accept_any("DATABASE", "SCHEMA"):
        if_not_exists = cursor.accept("IF NOT EXISTS")
        name = cursor.context.fold_name(cursor.identifier())
        return CreateDatabase(name, *_database_options(cursor), if_not_exists, or_replace)
    if cursor.is_word("INDEX", "UNIQUE", "FULLTEXT", "SPATIAL", "ONLINE", "OFFLINE", "VECTOR"):
        if not (cursor.is_word("SPATIAL") and cursor.ahead().value == "REFERENCE"):
            return _create_index(cursor, database, or_replace=or_replace)
    if cursor.accept("SEQUENCE"):
        if_not_exists = cursor.accept("IF NOT EXISTS")
        model = sequence_model(*cursor.table_name(database))
        return CreateTable(model, if_not_exists, or_replace)
    return _other_object(cursor)


def _other_object(cursor: Cursor) -> Unreplicated:
    """Views, routines, users, …: named, not carried out."""
    text = cursor.text.strip()
    if cursor.is_word("ALGORITHM", "DEFINER", "SQL", "AGGREGATE"):
        _skip_definer(cursor)
    kind = _OBJECTS.get(cursor.token.value) if cursor.token.kind == "word" else None
    if kind is None:
        cursor.refuse()
    return Unreplicated(kind, text)


def _create_table(cursor: Cursor, database: str, *, or_replace: bool) -> DdlAction:
    if cursor.context.sql_mode & ORACLE:
        cursor.refuse("rplctl does not read DDL written under sql_mode=ORACLE")
    if_not_exists = cursor.accept("IF NOT EXISTS")
    name = cursor.table_name(database)
    parenthesis = cursor.is_symbol("(") and cursor.ahead().kind == "word" and cursor.ahead().value == "LIKE"
    if parenthesis:
        cursor.next()
    if cursor.accept("LIKE"):
        like = cursor.table_name(database)
        if parenthesis:
            cursor.expect_symbol(")")
        cursor.expect_end()
        return CreateTableLike(name, like, if_not_exists, or_replace)
    if not cursor.is_symbol("(") or cursor.ahead().value == "SELECT":
        _refuse_select(cursor)
    definitions = parse_definitions(cursor, name[0])
    options, versioned = parse_options(cursor)
    partitioning = parse_partitioning(cursor) if cursor.accept("PARTITION BY") else None
    cursor.accept("START TRANSACTION")  # MySQL 8: CREATE TABLE … SELECT, its rows follow as row events
    if not cursor.at_end:
        _refuse_select(cursor)
    model = build_table(name, definitions, options, cursor.context)
    model = replace(model, partitioning=partitioning, system_versioned=versioned or model.system_versioned)
    return CreateTable(model, if_not_exists, or_replace)


def _refuse_select(cursor: Cursor) -> None:
    if cursor.is_word("AS", "SELECT", "IGNORE", "REPLACE", "WITH", "TABLE", "VALUES") or cursor.is_symbol("("):
        raise RplError(
            f"CREATE TABLE … SELECT came as a statement, not as row events: {cursor.text.strip()[:1000]}",
            errno=er.BINLOG_UNSAFE_STATEMENT,
            hint="set binlog_format=ROW on the source; then `rplctl skip`, which leaves the whole transaction "
            "out, and load the table again",
        )
    cursor.refuse()


def _database_options(cursor: Cursor) -> tuple[str | None, str | None]:
    charset = collation = None
    while not cursor.at_end:
        cursor.accept("DEFAULT")
        if (found := accept_charset(cursor)) is not None:
            charset = found
        elif (found := accept_collation(cursor)) is not None:
            collation, charset = found, charset or charset_of(found)
        elif cursor.accept_any("ENCRYPTION", "COMMENT", "READ"):
            cursor.accept("ONLY")
            cursor.accept_symbol("=")
            cursor.next()
        else:
            cursor.refuse()
    return charset, collation


def _create_index(cursor: Cursor, database: str, *, or_replace: bool) -> AlterTable:
    cursor.accept_any("ONLINE", "OFFLINE")
    kind = accept_key_kind(cursor)
    cursor.expect("INDEX")
    if_not_exists = cursor.accept("IF NOT EXISTS")
    name = cursor.identifier()
    if cursor.accept_any("USING", "TYPE"):
        cursor.next()
    cursor.expect("ON")
    table = cursor.table_name(database)
    operation = replace(parse_key(cursor, kind, ""), if_not_exists=if_not_exists)
    operation = replace(operation, key=replace(operation.key, name=name))
    _skip_algorithm(cursor)
    return AlterTable(table, (DropKey(name), operation) if or_replace else (operation,))


def _skip_algorithm(cursor: Cursor) -> None:
    while not cursor.at_end:
        if cursor.accept_any("ALGORITHM", "LOCK"):
            cursor.accept_symbol("=")
            cursor.next()
        elif cursor.is_word("WAIT", "NOWAIT"):
            _skip_wait(cursor)
        else:
            cursor.refuse()


def _drop(cursor: Cursor, database: str) -> DdlAction:
    if cursor.accept("TEMPORARY"):
        return NoOperation("temporary tables are not in row events")
    if cursor.accept_any("TABLE", "TABLES", "SEQUENCE"):
        if_exists = cursor.accept("IF EXISTS")
        names = [cursor.table_name(database)]
        while cursor.accept_symbol(","):
            names.append(cursor.table_name(database))
        _skip_wait(cursor)
        cursor.accept_any("RESTRICT", "CASCADE")
        cursor.expect_end()
        return DropTable(tuple(names), if_exists)
    if cursor.accept_any("DATABASE", "SCHEMA"):
        if_exists = cursor.accept("IF EXISTS")
        return DropDatabase(cursor.context.fold_name(cursor.identifier()), if_exists)
    cursor.accept_any("ONLINE", "OFFLINE")
    if cursor.accept("INDEX"):
        cursor.accept("IF EXISTS")
        name = cursor.identifier()
        cursor.expect("ON")
        table = cursor.table_name(database)
        _skip_algorithm(cursor)
        return AlterTable(table, (DropKey(name),))
    if cursor.accept("PREPARE"):
        return NoOperation("session state")
    return _other_object(cursor)


def _alter(cursor: Cursor, database: str) -> DdlAction:
    if cursor.is_word("ONLINE", "OFFLINE", "IGNORE", "TABLE"):
        ignore = False
        while word := cursor.accept_any("ONLINE", "OFFLINE", "IGNORE"):
            ignore = ignore or word == "IGNORE"
        cursor.expect("TABLE")
        if cursor.context.sql_mode & ORACLE:
            cursor.refuse("rplctl does not read DDL written under sql_mode=ORACLE")
        return replace(parse_alter_table(cursor, database), ignore=ignore)
    if cursor.accept_any("DATABASE", "SCHEMA"):
        named = not cursor.is_word("CHARACTER", "CHARSET", "COLLATE", "DEFAULT", "COMMENT", "ENCRYPTION", "READ")
        name = cursor.context.fold_name(cursor.identifier()) if named else database
        if cursor.accept("UPGRADE DATA DIRECTORY NAME"):
            return NoOperation("storage")
        return AlterDatabase(name, *_database_options(cursor))
    if cursor.is_word("SEQUENCE"):
        return NoOperation("sequences have no rows on this target")
    return _other_object(cursor)


def _rename(cursor: Cursor, database: str) -> DdlAction:
    if cursor.is_word("USER"):
        return _other_object(cursor)
    if cursor.accept_any("TABLE", "TABLES") is None:
        cursor.refuse()
    if_exists = cursor.accept("IF EXISTS")
    pairs = []
    while True:
        old = cursor.table_name(database)
        _skip_wait(cursor)
        cursor.expect("TO")
        pairs.append((old, cursor.table_name(database)))
        if not cursor.accept_symbol(","):
            break
    cursor.expect_end()
    return RenameTable(tuple(pairs), if_exists)


def parse_create_table(sql: str, database: str, context: DdlContext) -> TableModel:
    """The model of a CREATE TABLE text such as SHOW CREATE TABLE gives. Raises RplError for anything else."""
    for action in parse_ddl(sql, database, context):
        if isinstance(action, CreateTable):
            return action.model
    raise RplError(f"This is no CREATE TABLE: {masked(sql.strip())[:200]}")
