"""Prepares the text of a statement of the source for the target, and checks the target's answer (design D10, D11, D27).

The target receives the bytes that the source logged, because literals may have another character set than the client.
Only these parts are rewritten:

* The text in an executable comment becomes plain text, because another vendor or version could ignore the comment.
* LOAD DATA reads its file through the connection, as in the output of mysqlbinlog.
* CREATE TABLE … START TRANSACTION loses its last two words, because the position is stored in the same transaction.
* CREATE EVENT and ALTER EVENT disable the event, as on any replica.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from rplctl import mysql_errors as er
from rplctl.errors import BY_HAND, OR_SKIP, SHOW_TRANSACTION, DifferentErrors, RplError, TargetError
from rplctl.event.query import ExecuteLoadQuery, Query
from rplctl.mask import masked
from rplctl.schema.context import TIME_ROUND_FRACTIONAL, TIME_TRUNCATE_FRACTIONAL, DdlContext
from rplctl.schema.lexer import Token, opened, tokenize
from rplctl.schema.model import Column, TableModel
from rplctl.schema.parse import parse_ddl
from rplctl.schema.statement import AddColumn, AlterTable, ChangeColumn, TableName
from rplctl.sql_text import Sql, SqlBytes, backticked, proven_statement, statement_of_source, written
from rplctl.target.conversion import keeps_default
from rplctl.target.ddl_parts import clustered_key
from rplctl.target.mysql.between_vendors import converts_alike
from rplctl.target.mysql.collations import near_collation
from rplctl.target.mysql.session import ServerKind
from rplctl.target.mysql.translation import in_words_of
from rplctl.target.mysql.values import VALUE_ERRORS

_MAY_BE_EXECUTED = re.compile(rb"/\*(?:M?!|\+)")
_HINT_WITH_VARIABLES = re.compile(rb"/\*\+[^*]*\bSET_VAR\b", re.I)
_COMMENTS = re.compile(rb"(?:\s+|/\*(?!M?!).*?\*/|#[^\n]*|--(?=[\s\x00-\x1f\x7f]|\Z)[^\n]*)*", re.S)
_CHANGES_ROWS = re.compile(
    rb"(?:INSERT|UPDATE|DELETE|REPLACE|LOAD|CALL|WITH|SELECT|DO|SET(?!\s+(?:PASSWORD|STATEMENT|ROLE|DEFAULT)))\b", re.I
)
_FOR_ONE_STATEMENT = re.compile(rb"SET\s+STATEMENT\b.*?\bFOR\s+", re.I | re.S)
_CREATES_OR_ALTERS, _NAMES_EVENT = re.compile(rb"(?:CREATE|ALTER)\b", re.I), re.compile(rb"\bEVENT\b", re.I)
_BEFORE_EVENT = frozenset({"OR", "REPLACE", "DEFINER"})
_EXCHANGE = re.compile(rb"ALTER\s+(?:IGNORE\s+|ONLINE\s+|OFFLINE\s+)*TABLE\b.*\b(?:EXCHANGE|CONVERT)\b", re.I | re.S)
_VERSIONS = re.compile(rb"(?:ALTER|CREATE)\b.*\bSYSTEM\s+VERSIONING\b", re.I | re.S)
# MySQL logs CREATE TABLE … SELECT as CREATE TABLE … START TRANSACTION and rows. In such a transaction, the server
# would refuse the statement that stores the position.
_START_TRANSACTION = re.compile(rb"\)\s*START\s+TRANSACTION\s*\Z", re.I)
# Functions whose value differs between calls or servers. MariaDB allows all of them in a default. NOW() is missing,
# because the session has the source's time.
_RANDOM = re.compile(
    rb"\b(?:(?:NEXTVAL|LASTVAL|SETVAL|RAND|UUID\w*|SYS_GUID|RANDOM_BYTES|SYSDATE|ENCRYPT|DES_ENCRYPT|\w*USER|VERSION"
    rb"|CURRENT_ROLE)\s*\(|(?:NEXT|PREVIOUS)\s+VALUE\s+FOR\b|CURRENT_(?:USER|ROLE)\b)|@",
    re.I,
)
_MAY_BE_INEXACT = re.compile(_RANDOM.pattern + rb"|\b(?:AUTO_INCREMENT|MODIFY|CHANGE)\b", re.I)
_QUOTED = re.compile(rb"""'(?:[^'\\]|''|\\.)*'|"(?:[^"\\]|""|\\.)*"|`(?:[^`]|``)*`""", re.S)
UNKNOWN_NAMES = frozenset({er.BAD_TABLE_ERROR, er.UNKNOWN_SEQUENCES, er.UNKNOWN_VIEW})  # errors of DROP
_DROP_LIST = re.compile(
    rb"DROP\s+(?P<temporary>TEMPORARY\s+)?(?P<kind>TABLES?|VIEW|SEQUENCE)\s+(?!\s*IF\s+EXISTS\b)(?!\s*/\*!)", re.I
)
# hints for errors of a statement; for row events, the same errors have other reasons and other hints
_HINTS = dict.fromkeys(
    (er.DUP_ENTRY, *VALUE_ERRORS),
    "to continue after you have corrected the target's rows that the error names, as they are on the source, run: "
    f"rplctl start{OR_SKIP}",
)
# for errors after which the target would refuse the same text again
_OTHER_WORDS_HINT = (
    f"{SHOW_TRANSACTION}\n"
    "To skip the whole transaction after you have executed an equivalent statement and made all its other changes on "
    "the target by hand, run: rplctl skip --yes; rplctl start"
)
_HINTS |= dict.fromkeys(
    (
        er.PARSE_ERROR,
        er.UNKNOWN_COLLATION,
        er.UNKNOWN_CHARACTER_SET,
        er.UNKNOWN_STORAGE_ENGINE,
        er.FUNCTION_NOT_DEFINED,
        er.SP_DOES_NOT_EXIST,
        er.NOT_SUPPORTED_YET,
    ),
    _OTHER_WORDS_HINT,
)
_DROP_HINT = (
    "to ignore error 1051 from now on (init changes only this setting), run: rplctl init --replica-skip-errors 1051; "
    "rplctl start\nTo skip the whole transaction, which then drops none of its tables, run: rplctl skip --yes; "
    "rplctl start"
)
_DUPLICATES = {0: b"", 1: b" IGNORE", 2: b" REPLACE"}


def as_executed(query: Query, context: DdlContext, target: ServerKind) -> Query:
    """Return the statement in a form that the target reads like the source. Text in executable comments becomes plain
    text if the source executed it. Optimizer hints of the other vendor are removed. The length does not change.

    Raises RplError 1064 if the text is not complete, and 1235 if it has MySQL's hint SET_VAR and the target is MariaDB.
    """
    sql = query.sql_bytes
    if not _MAY_BE_EXECUTED.search(sql):
        return query
    is_same = context.is_mariadb == target.is_mariadb
    if not is_same and not context.is_mariadb and _HINT_WITH_VARIABLES.search(sql):
        raise RplError(
            "the statement has the optimizer hint SET_VAR, which this target does not support",
            errno=er.NOT_SUPPORTED_YET,
            hint=BY_HAND,
        )
    text = opened(sql.decode("latin-1"), context, charset=query.charset, keeps="/*M!" if is_same else "/*+")
    return replace(query, sql_bytes=text.encode("latin-1"))


def text_executed(query: Query, context: DdlContext) -> bytes:
    """Return the text that the source executed, with executable comments as plain text. If the statement cannot be
    parsed, return the logged text.
    """
    if not _MAY_BE_EXECUTED.search(query.sql_bytes):
        return query.sql_bytes
    with suppress(RplError):  # `as_executed` reports this error
        return opened(query.sql_bytes.decode("latin-1"), context, charset=query.charset).encode("latin-1")
    return query.sql_bytes


def changes_only_rows(sql: bytes) -> bool:
    """True if the statement can change only rows, and no definition of a table. The first word decides this."""
    words = _bare(sql)
    if words[:3].upper() == b"SET":  # SET STATEMENT a='…' FOR …: the statement after FOR counts
        words = _FOR_ONE_STATEMENT.sub(b"", _QUOTED.sub(b"''", words), count=1)
    return _CHANGES_ROWS.match(words) is not None


def needs_autocommit(sql: bytes) -> bool:
    """True if MariaDB can execute the statement only with autocommit=1, which MariaDB's own replicas have.

    Such statements are EXCHANGE PARTITION and CONVERT TABLE … TO PARTITION, which check rows, and SYSTEM VERSIONING
    with transaction precision, which writes to mysql.transaction_registry. None of these statements changes a temporary
    table, so they always commit the transaction. Words inside of strings are ignored.
    """
    words = _QUOTED.sub(b"''", _bare(sql))
    return _EXCHANGE.match(words) is not None or _VERSIONS.match(words) is not None


def refuse_inexact(
    query: Query,
    context: DdlContext,
    target: ServerKind,
    table_model: Callable[[str, str], TableModel | None],
    ask: Callable[[Sql], Sequence[object]],
) -> None:
    """Raise TargetError 1846 for an ALTER TABLE that could give existing rows other values than on the source.

    Three kinds of statements can give other values:

    * A statement adds a column whose default differs between calls or servers (MySQL refuses such a statement).
    * A statement numbers the rows of a table without a clustered key.
    * A statement converts values between types, and MySQL and MariaDB convert these values differently.
    """
    others = context.is_mariadb != target.is_mariadb
    for (database, table), operation in _altered(query, context):
        model = table_model(database, table)
        if model is None:
            continue
        rows = written("SELECT 1 FROM {}", backticked(database, table))
        why = ""
        match operation:
            case AddColumn(column) if _is_random(column):
                if ask(written("{} LIMIT 1", rows)):
                    why = f"existing rows get values that only the source knows: DEFAULT {column.default}"
            case AddColumn(column) if column.auto_increment and not (model.engine == "InnoDB" and clustered_key(model)):
                if len(ask(written("{} LIMIT 2", rows))) > 1:
                    why = "existing rows are numbered in an order that only the source knows"
            case ChangeColumn(name, column) if others and column.type == "date" and (old := model.find(name)):
                mode = query.context.sql_mode or 0
                rounds = mode & TIME_ROUND_FRACTIONAL if context.is_mariadb else not mode & TIME_TRUNCATE_FRACTIONAL
                late = written("{} WHERE MICROSECOND({}) >= 500000 LIMIT 1", rows, backticked(name))
                if rounds and old.type in ("datetime", "timestamp") and old.fraction_digits and ask(late):
                    why = "MySQL rounds the times of rows up to the next day, MariaDB does not"
            case ChangeColumn(name, column) if others and (old := model.find(name)):
                held = written("{} WHERE {} IS NOT NULL LIMIT 1", rows, backticked(name))
                if not converts_alike(old, column, is_strict=context.is_strict) and ask(held):
                    why = f"MariaDB and MySQL convert some values of {old.type} to {column.type} differently"
        if others and not why and isinstance(operation, ChangeColumn) and _null_may_differ(model, operation, context):
            if ask(written("{} WHERE {} IS NULL LIMIT 1", rows, backticked(operation.name))):
                why = "MariaDB may replace NULL by the old default of the column, MySQL does not"
        if why:
            message = f"ALTER TABLE {database}.{table}, column '{operation.column.name}': {why}"
            raise TargetError(message, errno=er.ALTER_OPERATION_NOT_SUPPORTED_REASON, hint=BY_HAND)


def _null_may_differ(model: TableModel, operation: ChangeColumn, context: DdlContext) -> bool:
    """True if MariaDB may store another value than MySQL for a NULL in a column that becomes NOT NULL."""
    if operation.column.nullable or context.is_strict:
        return False
    old = model.find(operation.name)
    return (
        old is not None and old.nullable and keeps_default(old, operation.column, replace(context, server_version=""))
    )


def _altered(query: Query, context: DdlContext) -> Iterator[tuple[TableName, AddColumn | ChangeColumn]]:
    if not _MAY_BE_INEXACT.search(query.sql_bytes):
        return
    try:
        actions = parse_ddl(query.sql_bytes.decode("latin-1"), query.database, context, query.charset)
    except RplError:
        return  # the server will report the error
    for action in actions:
        if isinstance(action, AlterTable):
            for operation in action.operations:
                if isinstance(operation, AddColumn | ChangeColumn):
                    yield action.name, operation


def _is_random(column: Column) -> bool:
    return _RANDOM.search(_QUOTED.sub(b"", (column.default or "").encode())) is not None


def text_of(statement: Query | ExecuteLoadQuery) -> SqlBytes:
    """Return the SQL that the target executes for the statement. Only LOAD DATA, CREATE TABLE … START TRANSACTION and
    statements about events differ from the logged text.
    """
    if isinstance(statement, Query):
        sql = _START_TRANSACTION.sub(b")", statement.sql_bytes)
        may_be_event = _CREATES_OR_ALTERS.match(_bare(sql)) and _NAMES_EVENT.search(sql)
        return statement_of_source(_passive_event(sql, statement) if may_be_event else sql)
    sql = statement.query.sql_bytes
    how = _DUPLICATES.get(statement.duplicate_handling, b"")
    before, after = sql[: statement.name_start], sql[statement.name_end :]
    return statement_of_source(b"%s LOCAL INFILE 'rplctl'%s INTO%s" % (before, how, after))


def _passive_event(sql: bytes, query: Query) -> bytes:
    """Return CREATE EVENT or ALTER EVENT with the status DISABLE ON SLAVE, as on a replica. Return other statements
    unchanged.

    The statement itself must set the status. Before a separate ALTER EVENT, the scheduler could run the event, which
    could also overwrite the status.
    """
    context, charset = DdlContext(sql_mode=query.context.sql_mode or 0), query.charset
    bare = opened(sql.decode("latin-1"), context, charset=charset)
    tokens = tokenize(bare, context, charset)
    tokens += tokens[-1:] * 2  # the code below may read two tokens after the end
    number = _behind_event_name(tokens)
    if number is None:
        return sql
    depth, head, at, start = 0, "", len(sql), 0
    while (token := tokens[number]).kind != "end":
        depth += {"(": 1, ")": -1}.get(token.value, 0) if token.kind == "symbol" else 0
        word = token.value if token.kind == "word" and not depth else ""
        if word in ("COMMENT", "DO"):
            at = token.start
            break
        number += 1
        if word in ("ENABLE", "DISABLE"):
            if tokens[number].value == "ON" and tokens[number + 1].value in ("SLAVE", "REPLICA"):
                number += 2
            head, start = head + bare[start : token.start], tokens[number - 1].end
    head += bare[start:at]
    return b"%s\nDISABLE ON SLAVE %s" % (head.rstrip(" \t\n;").encode("latin-1"), sql[at:])


def _behind_event_name(tokens: Sequence[Token]) -> int | None:
    """Return the index of the token after the event's name (`d.e` in `CREATE DEFINER=a@b EVENT IF NOT EXISTS d.e`).
    Return None if the statement is not CREATE EVENT or ALTER EVENT.
    """
    number = 1
    if tokens[0].value not in ("CREATE", "ALTER"):
        return None
    while (token := tokens[number]).value != "EVENT":
        if token.kind == "end" or (token.kind == "word" and token.value not in _BEFORE_EVENT):
            return None
        number += 2 if token.value in ("=", "@") else 1  # an account's name may be any word
    number += 1
    while tokens[number].kind == "word" and tokens[number].value in ("IF", "NOT", "EXISTS"):
        number += 1
    if tokens[number].kind == "end":
        return None
    return number + (3 if tokens[number + 1].value == "." else 1)


def drop_with_if_exists(query: Query, *, wanted: bool) -> SqlBytes | None:
    """Return DROP TABLE, VIEW or SEQUENCE with IF EXISTS, so that the target drops all existing objects of the list.
    Return None if the statement needs no change.

    A DROP TABLE or DROP SEQUENCE gets IF EXISTS if `wanted`, and a DROP TEMPORARY TABLE always, because temporary
    tables do not survive a stop of the applier. Every DROP gets IF EXISTS if it failed on the source after it had
    dropped a part of the list. (MySQL drops the complete list or nothing, MariaDB may drop a part.)
    """
    match = _DROP_LIST.match(query.sql_bytes, len(query.sql_bytes) - len(_bare(query.sql_bytes)))
    if match is None or (match["kind"].upper() == b"VIEW" and query.error_code not in UNKNOWN_NAMES):
        return None
    if not (wanted or match["temporary"] or query.error_code in UNKNOWN_NAMES):
        return None
    return statement_of_source(b"%sIF EXISTS %s" % (query.sql_bytes[: match.end()], query.sql_bytes[match.end() :]))


def judge(query: Query, error: TargetError | None) -> None:
    """Compare the target's error (None: success) with the error that the source logged. Raises TargetError if only the
    target failed. Raises DifferentErrors if the source logged an error, and the target's result is not the same error.
    """
    found = 0 if error is None else error.errno
    if found == query.error_code:
        return
    statement = query.sql_bytes.decode("utf-8", "replace")
    text = masked(statement)[:200]
    if error is not None:
        error.hide(statement)
    if query.error_code == 0 and error is not None:
        raise TargetError(
            f"Error '{error.message}' on query. Default database: '{query.database}'. Query: '{text}'",
            errno=error.errno,
            hint=_DROP_HINT if error.errno in UNKNOWN_NAMES else error.hint or _HINTS.get(error.errno, ""),
            transient=error.transient,
        )
    said = "no error" if error is None else f"'{error.message}' ({error.errno})"
    different = DifferentErrors(
        f"Query caused different errors on source and replica. Error on source: {query.error_code}; on the "
        f"replica: {said}. Default database: '{query.database}'. Query: '{text}'",
        errno=er.INCONSISTENT_ERROR,
        hint="to continue after you have changed the target so that the statement has the same result as on the "
        f"source, run: rplctl start{OR_SKIP}",
    )
    different.numbers = frozenset({query.error_code, found} - {0})
    raise different


def _bare(sql: bytes) -> bytes:
    match = _COMMENTS.match(sql)
    return sql[match.end() :] if match else sql


def printed_by_other_vendor(definition: Sql, failure: str, target: ServerKind) -> tuple[Sql, tuple[str, ...]]:
    """Translate a definition that a server of the other vendor printed, after the target has refused it. `failure`: the
    text of the target's error. Return the new definition and notes on omitted parts. The definition is unchanged if
    the error has another reason.
    """
    found, notes = in_words_of(definition, target)
    if found == definition:
        return with_near_collation(definition, failure), ()
    return proven_statement(found), notes


def with_near_collation(statement: Sql, failure: str) -> Sql:
    """Return the statement with the nearest collation of the target, after the target has refused an unknown collation.
    `failure`: the text of the target's error. Return the statement unchanged if the error has another reason.
    """
    found = re.search(r"Unknown collation: '(\w+)'", failure)
    name = found[1] if found else ""
    near = near_collation(name)
    if near == name:
        return statement
    return proven_statement(re.sub(rf"(COLLATE[ =]){name}\b", rf"\g<1>{near}", statement))  # both names are plain words
