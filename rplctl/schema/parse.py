"""Parses DDL text of MySQL and MariaDB into actions. Text that is not understood raises an error with a remedy (D10,
D12).

The grammar is that of MySQL 9 and MariaDB 11, in the form in which the servers write statements to the binary log. A
statement about an object that targets may lack (views, routines, users, …) becomes `Unreplicated`. A statement that
changes nothing becomes `NoOperation`.
"""

from __future__ import annotations

from dataclasses import replace

from rplctl import mysql_errors as er
from rplctl.errors import IN_ROW_FORMAT, RplError
from rplctl.mask import masked
from rplctl.schema import statement as ddl
from rplctl.schema.alter_clause import parse_alter_table
from rplctl.schema.context import ORACLE, DdlContext
from rplctl.schema.data_type import accept_charset, accept_collation, charset_of
from rplctl.schema.model import TableModel
from rplctl.schema.statement import ObjectKind
from rplctl.schema.structure import build_table, sequence_model
from rplctl.schema.table_definition import (
    accept_key_kind,
    parse_definitions,
    parse_key,
    parse_options,
    parse_partitioning,
)
from rplctl.schema.token_stream import TokenStream

_NO_EFFECT = {
    "ANALYZE": "statistics", "OPTIMIZE": "storage", "REPAIR": "storage", "CHECK": "storage", "CHECKSUM": "reading",
    "FLUSH": "server state", "SET": "session state", "RESET": "server state", "CACHE": "server state",
    "LOCK": "session state", "UNLOCK": "session state", "USE": "session state", "PURGE": "server state",
    "DO": "no change of rows", "KILL": "server state", "SHOW": "reading", "BINLOG": "server state",
}  # fmt: skip
_USERS = frozenset({"GRANT", "REVOKE"})
_ROW_STATEMENTS = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "CALL", "WITH", "SELECT", "VALUES"})
_OF_A_DATABASE = {
    "VIEW": ObjectKind.VIEW, "TRIGGER": ObjectKind.TRIGGER, "PROCEDURE": ObjectKind.PROCEDURE,
    "FUNCTION": ObjectKind.FUNCTION, "PACKAGE": ObjectKind.PACKAGE, "EVENT": ObjectKind.EVENT,
    "LIBRARY": ObjectKind.LIBRARY,
}  # fmt: skip
_OBJECTS = _OF_A_DATABASE | {
    "USER": ObjectKind.ACCOUNT, "ROLE": ObjectKind.ACCOUNT, "SERVER": ObjectKind.SERVER,
    "TABLESPACE": ObjectKind.TABLESPACE, "LOGFILE": ObjectKind.TABLESPACE, "UNDO": ObjectKind.TABLESPACE,
    "INSTANCE": ObjectKind.SERVER, "SPATIAL": ObjectKind.SPATIAL_REFERENCE_SYSTEM,
    "RESOURCE": ObjectKind.RESOURCE_GROUP, "CATALOG": ObjectKind.CATALOG,
}  # fmt: skip


def parse_ddl(sql: str, database: str, context: DdlContext, charset: str = "") -> list[ddl.DdlAction]:
    """Return the actions of one statement of a QUERY event, or [] for an empty statement.

    `database`: the default database. `charset`: the true charset of `sql` if its bytes were decoded as latin-1, else
    ''. Raises RplError 1064, with the statement's text, if rplctl does not understand the statement.
    """
    tokens = TokenStream(sql, context, charset)
    if tokens.at_end:
        return []
    if tokens.accept("SET STATEMENT"):  # MariaDB: SET STATEMENT variable=value, … FOR statement
        while not tokens.accept("FOR"):
            tokens.next()
    verb = tokens.next()
    if verb.kind != "word":
        tokens.refuse()
    match verb.value:
        case "CREATE":
            return [_create(tokens, database)]
        case "DROP":
            return [_drop(tokens, database)]
        case "ALTER":
            return [_alter(tokens, database)]
        case "RENAME":
            return [_rename(tokens, database)]
        case "TRUNCATE":
            tokens.accept("TABLE")
            action = ddl.TruncateTable(tokens.table_name(database))
            _skip_wait(tokens)
            tokens.expect_end()
            return [action]
        case "INSTALL" | "UNINSTALL":
            return [_of_server(ObjectKind.PLUGIN, f"{verb.value} PLUGIN", tokens)]
        case word if word in _USERS:
            return [_of_server(ObjectKind.ACCOUNT, word, tokens)]
        case word if word in _NO_EFFECT:
            return [ddl.NoOperation(f"{word}: {_NO_EFFECT[word]}")]
        case word if word in _ROW_STATEMENTS:
            raise RplError(
                f"the source logged a statement instead of row events: {tokens.text.strip()[:1000]}",
                errno=er.BINLOG_UNSAFE_STATEMENT,
                hint=f"{IN_ROW_FORMAT}\nTo exclude the table of a tool (pt-table-checksum), run: "
                "rplctl change-filter --replicate-wild-ignore-table DB.TABLE; rplctl start",
            )
    tokens.refuse()


def _skip_wait(tokens: TokenStream) -> None:
    if tokens.accept("WAIT"):
        tokens.integer()
    tokens.accept("NOWAIT")


def _skip_definer(tokens: TokenStream) -> None:
    """Skip the words `ALGORITHM = … DEFINER = user@host SQL SECURITY … AGGREGATE` before the kind of the object."""
    while not tokens.is_word(*_OF_A_DATABASE):
        tokens.next()


def _create(tokens: TokenStream, database: str) -> ddl.DdlAction:
    or_replace = tokens.accept("OR REPLACE")
    if tokens.accept("TEMPORARY"):
        return ddl.NoOperation("temporary tables are not in row events")
    if tokens.accept("TABLE"):
        return _create_table(tokens, database, or_replace=or_replace)
    if tokens.accept_any("DATABASE", "SCHEMA"):
        if_not_exists = tokens.accept("IF NOT EXISTS")
        name = tokens.context.fold_name(tokens.identifier())
        charset, collation = _database_options(tokens)
        return ddl.CreateDatabase(
            name=name, charset=charset, collation=collation, if_not_exists=if_not_exists, or_replace=or_replace
        )
    if tokens.is_word("INDEX", "UNIQUE", "FULLTEXT", "SPATIAL", "ONLINE", "OFFLINE", "VECTOR"):
        if not (tokens.is_word("SPATIAL") and tokens.ahead().value == "REFERENCE"):
            return _create_index(tokens, database, or_replace=or_replace)
    if tokens.accept("SEQUENCE"):
        if_not_exists = tokens.accept("IF NOT EXISTS")
        model = sequence_model(*tokens.table_name(database))
        return ddl.CreateTable(model=model, if_not_exists=if_not_exists, or_replace=or_replace)
    return _other_object(tokens, "CREATE", database)


def _other_object(tokens: TokenStream, verb: str, database: str, *, is_drop: bool = False) -> ddl.Unreplicated:
    """Parse the kind and the names of views, routines, users and other objects. The rest of the text is ignored."""
    text = tokens.text.strip()
    if tokens.is_word("ALGORITHM", "DEFINER", "SQL", "AGGREGATE"):
        _skip_definer(tokens)
    word = tokens.token.value
    kind = _OBJECTS.get(word) if tokens.token.kind == "word" else None
    if kind is None:
        tokens.refuse()
    names: tuple[ddl.TableName, ...] = ()
    if word in _OF_A_DATABASE:
        tokens.next()
        tokens.accept("BODY")
        tokens.accept("IF NOT EXISTS")
        tokens.accept("IF EXISTS")
        names = tokens.each(lambda: _object_name(tokens, database))
    return ddl.Unreplicated(kind=kind, title=f"{verb} {kind.upper()}", text=text, names=names, is_drop=is_drop)


def _of_server(kind: ObjectKind, title: str, tokens: TokenStream) -> ddl.Unreplicated:
    """Return the action for a statement about an object that belongs to no database, for example a user or a plugin."""
    return ddl.Unreplicated(kind=kind, title=title, text=tokens.text.strip())


def _object_name(tokens: TokenStream, database: str) -> ddl.TableName:
    """Parse the name of an object, with or without a database. `database`: the default database."""
    name = tokens.identifier()
    return (name, tokens.identifier()) if tokens.accept_symbol(".") else (database, name)


def _create_table(tokens: TokenStream, database: str, *, or_replace: bool) -> ddl.DdlAction:
    if tokens.context.sql_mode & ORACLE:
        tokens.refuse("rplctl cannot parse DDL of sql_mode=ORACLE")
    if_not_exists = tokens.accept("IF NOT EXISTS")
    name = tokens.table_name(database)
    parenthesis = tokens.is_symbol("(") and tokens.ahead().kind == "word" and tokens.ahead().value == "LIKE"
    if parenthesis:
        tokens.next()
    if tokens.accept("LIKE"):
        like = tokens.table_name(database)
        if parenthesis:
            tokens.expect_symbol(")")
        tokens.expect_end()
        return ddl.CreateTableLike(name=name, like=like, if_not_exists=if_not_exists, or_replace=or_replace)
    if not tokens.is_symbol("(") or tokens.ahead().value == "SELECT":
        _refuse_select(tokens)
    definitions = parse_definitions(tokens, name[0])
    options, versioned = parse_options(tokens)
    partitioning = parse_partitioning(tokens) if tokens.accept("PARTITION BY") else None
    tokens.accept("START TRANSACTION")  # MySQL 8 logs CREATE TABLE … SELECT in this way, followed by row events
    if not tokens.at_end:
        _refuse_select(tokens)
    model = build_table(name, definitions, options, tokens.context)
    model = replace(model, partitioning=partitioning, system_versioned=versioned or model.system_versioned)
    return ddl.CreateTable(model=model, if_not_exists=if_not_exists, or_replace=or_replace)


def _refuse_select(tokens: TokenStream) -> None:
    if tokens.is_word("AS", "SELECT", "IGNORE", "REPLACE", "WITH", "TABLE", "VALUES") or tokens.is_symbol("("):
        raise RplError(
            f"the source logged CREATE TABLE … SELECT as a statement, not as row events: {tokens.text.strip()[:1000]}",
            errno=er.BINLOG_UNSAFE_STATEMENT,
            hint=IN_ROW_FORMAT,
        )
    tokens.refuse()


def _database_options(tokens: TokenStream) -> tuple[str | None, str | None]:
    charset = collation = None
    while not tokens.at_end:
        tokens.accept("DEFAULT")
        if (found := accept_charset(tokens)) is not None:
            charset = found
        elif (found := accept_collation(tokens)) is not None:
            collation, charset = found, charset or charset_of(found)
        elif tokens.accept_any("ENCRYPTION", "COMMENT", "READ"):
            tokens.accept("ONLY")
            tokens.skip_value()
        else:
            tokens.refuse()
    return charset, collation


def _create_index(tokens: TokenStream, database: str, *, or_replace: bool) -> ddl.AlterTable:
    tokens.accept_any("ONLINE", "OFFLINE")
    kind = accept_key_kind(tokens)
    tokens.expect("INDEX")
    if_not_exists = tokens.accept("IF NOT EXISTS")
    name = tokens.identifier()
    if tokens.accept_any("USING", "TYPE"):
        tokens.next()
    tokens.expect("ON")
    table = tokens.table_name(database)
    operation = replace(parse_key(tokens, kind, ""), if_not_exists=if_not_exists)
    operation = replace(operation, key=replace(operation.key, name=name))
    _skip_algorithm(tokens)
    return ddl.AlterTable(name=table, operations=(ddl.DropConstraint(name), operation) if or_replace else (operation,))


def _skip_algorithm(tokens: TokenStream) -> None:
    while not tokens.at_end:
        if tokens.accept_any("ALGORITHM", "LOCK"):
            tokens.skip_value()
        elif tokens.is_word("WAIT", "NOWAIT"):
            _skip_wait(tokens)
        else:
            tokens.refuse()


def _drop(tokens: TokenStream, database: str) -> ddl.DdlAction:
    if tokens.accept("TEMPORARY"):
        return ddl.NoOperation("temporary tables are not in row events")
    if tokens.accept_any("TABLE", "TABLES", "SEQUENCE"):
        if_exists = tokens.accept("IF EXISTS")
        names = tokens.each(lambda: tokens.table_name(database))
        _skip_wait(tokens)
        tokens.accept_any("RESTRICT", "CASCADE")
        tokens.expect_end()
        return ddl.DropTable(names, if_exists)
    if tokens.accept_any("DATABASE", "SCHEMA"):
        if_exists = tokens.accept("IF EXISTS")
        return ddl.DropDatabase(tokens.context.fold_name(tokens.identifier()), if_exists)
    tokens.accept_any("ONLINE", "OFFLINE")
    if tokens.accept("INDEX"):
        tokens.accept("IF EXISTS")
        name = tokens.identifier()
        tokens.expect("ON")
        table = tokens.table_name(database)
        _skip_algorithm(tokens)
        return ddl.AlterTable(name=table, operations=(ddl.DropConstraint(name),))
    if tokens.accept("PREPARE"):
        return ddl.NoOperation("session state")
    return _other_object(tokens, "DROP", database, is_drop=True)


def _alter(tokens: TokenStream, database: str) -> ddl.DdlAction:
    if tokens.is_word("ONLINE", "OFFLINE", "IGNORE", "TABLE"):
        ignore = False
        while word := tokens.accept_any("ONLINE", "OFFLINE", "IGNORE"):
            ignore = ignore or word == "IGNORE"
        tokens.expect("TABLE")
        if tokens.context.sql_mode & ORACLE:
            tokens.refuse("rplctl cannot parse DDL of sql_mode=ORACLE")
        return replace(parse_alter_table(tokens, database), ignore=ignore)
    if tokens.accept_any("DATABASE", "SCHEMA"):
        named = not tokens.is_word("CHARACTER", "CHARSET", "COLLATE", "DEFAULT", "COMMENT", "ENCRYPTION", "READ")
        name = tokens.context.fold_name(tokens.identifier()) if named else database
        if tokens.accept("UPGRADE DATA DIRECTORY NAME"):
            return ddl.NoOperation("storage")
        return ddl.AlterDatabase(name, *_database_options(tokens))
    if tokens.is_word("SEQUENCE"):
        return ddl.NoOperation("sequences have no rows on this target")
    return _other_object(tokens, "ALTER", database)


def _rename(tokens: TokenStream, database: str) -> ddl.DdlAction:
    if tokens.is_word("USER"):
        return _other_object(tokens, "RENAME", database)
    if tokens.accept_any("TABLE", "TABLES") is None:
        tokens.refuse()
    if_exists = tokens.accept("IF EXISTS")

    def pair() -> tuple[ddl.TableName, ddl.TableName]:
        old = tokens.table_name(database)
        _skip_wait(tokens)
        tokens.expect("TO")
        return old, tokens.table_name(database)

    pairs = tokens.each(pair)
    tokens.expect_end()
    return ddl.RenameTable(pairs, if_exists)


def parse_create_table(sql: str, database: str, context: DdlContext) -> TableModel:
    """Return the model for the text of a CREATE TABLE or CREATE SEQUENCE. Raises RplError for any other text."""
    for action in parse_ddl(sql, database, context):
        if isinstance(action, ddl.CreateTable):
            return action.model
    raise RplError(f"not a CREATE TABLE statement: {masked(sql.strip())[:200]}")
