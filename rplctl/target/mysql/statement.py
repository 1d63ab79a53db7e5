"""The text of a statement as the target gets it, and what its answer means (design D10, D11).

Bytes stay as the source logged them: literals may be in other charsets than the client's. Only LOAD DATA is rewritten
(the file comes through the connection, as mysqlbinlog does it), START TRANSACTION behind CREATE TABLE is left out, and
a replicated EVENT is made passive, as on any replica.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from rplctl import mysql_errors as er
from rplctl.errors import RplError, TargetError
from rplctl.event.query import ExecuteLoadQuery, Query
from rplctl.mask import masked
from rplctl.schema.context import TIME_ROUND_FRACTIONAL, TIME_TRUNCATE_FRACTIONAL, DdlContext
from rplctl.schema.lexer import WAY_OUT
from rplctl.schema.model import Column, TableModel
from rplctl.schema.parse import parse_ddl
from rplctl.schema.statement import AddColumn, AlterTable, ChangeColumn, TableName
from rplctl.sql_text import Sql, proven_statement
from rplctl.target.ddl_parts import clustered_key
from rplctl.target.mysql.session import ServerKind
from rplctl.target.mysql.values import quote

_COMMENTS = re.compile(rb"(?:\s+|/\*[^!M].*?\*/|#[^\n]*\n|--\s[^\n]*\n)*", re.DOTALL)
_CHANGES_ROWS = re.compile(
    rb"(?:INSERT|UPDATE|DELETE|REPLACE|LOAD|CALL|WITH|SELECT|DO|SET(?!\s+(?:PASSWORD|STATEMENT|ROLE|DEFAULT)))\b", re.I
)
_NAME = rb"(?:`(?:[^`]|``)+`|'(?:[^']|'')*'|[\w$%.()]+)"
_EVENT = re.compile(
    rb"(?:CREATE|ALTER)\s+(?:OR\s+REPLACE\s+)?(?:DEFINER\s*=\s*" + _NAME + rb"(?:\s*@\s*" + _NAME + rb")?\s+)?"
    rb"EVENT\s+(?:IF\s+(?:NOT\s+)?EXISTS\s+)?(?:`(?:[^`]|``)+`|[\w$]+)(?:\s*\.\s*(?:`(?:[^`]|``)+`|[\w$]+))?",
    re.I,
)
# what stands between an event's name and its body; a status or a body in a string, a name or a comment is none
_EVENT_CLAUSE = re.compile(
    rb"""'(?:[^'\\]|''|\\.)*'|"(?:[^"\\]|""|\\.)*"|`(?:[^`]|``)*`|/\*(?!M?!).*?\*/|\#[^\n]*|--\s[^\n]*"""
    rb"""|(?P<status>\b(?:ENABLE|DISABLE(?:\s+ON\s+(?:SLAVE|REPLICA))?)\b)|(?P<body>\b(?:COMMENT|DO)\b)|[\w$@]+|.""",
    re.I | re.S,
)
_EXCHANGE = re.compile(rb"ALTER\s+(?:IGNORE\s+|ONLINE\s+|OFFLINE\s+)*TABLE\b.*\b(?:EXCHANGE|CONVERT)\b", re.I | re.S)
_DATABASE = re.compile(rb"(?:CREATE|DROP)\s+(?:OR\s+REPLACE\s+)?(?:DATABASE|SCHEMA)\b", re.I)
# MySQL logs CREATE TABLE … SELECT as CREATE TABLE … START TRANSACTION and rows; behind it no position could be set
_START_TRANSACTION = re.compile(rb"\)\s*START\s+TRANSACTION\s*\Z", re.I)
# functions of a default (MariaDB takes them all); NOW() and its like follow the source's clock
_BY_CHANCE = re.compile(
    rb"\b(?:(?:NEXTVAL|LASTVAL|SETVAL|RAND|UUID\w*|SYS_GUID|RANDOM_BYTES|SYSDATE|ENCRYPT|DES_ENCRYPT|\w*USER|VERSION"
    rb"|CURRENT_ROLE)\s*\(|(?:NEXT|PREVIOUS)\s+VALUE\s+FOR\b|CURRENT_(?:USER|ROLE)\b)|@",
    re.I,
)
_MAY_BE_INEXACT = re.compile(_BY_CHANCE.pattern + rb"|\b(?:AUTO_INCREMENT|DATE)\b", re.I)
_QUOTED = re.compile(rb"""'(?:[^'\\]|''|\\.)*'|"(?:[^"\\]|""|\\.)*"|`(?:[^`]|``)*`""", re.S)
UNKNOWN_NAMES = frozenset({er.BAD_TABLE_ERROR, er.UNKNOWN_SEQUENCES, er.UNKNOWN_VIEW})  # of tables, sequences, views
_DROP_LIST = re.compile(
    rb"DROP\s+(?:TEMPORARY\s+)?(?P<kind>TABLES?|VIEW|SEQUENCE)\s+(?!\s*IF\s+EXISTS\b)(?!\s*/\*!)", re.I
)
_NEAR_COLLATIONS = (
    (r"utf8mb4_0900_(ai_ci|as_ci|as_cs)", r"utf8mb4_uca1400_nopad_\1"),
    (r"utf8mb4_0900_bin", "utf8mb4_nopad_bin"),
    (r"utf8mb4_uca1400_(?:nopad_)?(ai_ci|as_ci|as_cs)", r"utf8mb4_0900_\1"),
    (r"utf8mb4_nopad_bin", "utf8mb4_0900_bin"),
)
_DROP_HINT = (
    "replica_ddl_exec_mode=IDEMPOTENT (MariaDB source) or replica_skip_errors=1051 drop those tables or sequences of "
    "the list that are there; `rplctl skip` leaves the whole transaction out: drop them on the target first, it would "
    "keep them"
)
_DUPLICATES = {0: b"", 1: b" IGNORE", 2: b" REPLACE"}


def changes_only_rows(sql: bytes) -> bool:
    """True for statements that leave every table's definition as it is."""
    return _CHANGES_ROWS.match(_bare(sql)) is not None


def exchanges(sql: bytes) -> bool:
    """ALTER TABLE … EXCHANGE PARTITION or CONVERT TABLE … TO PARTITION, which look at rows themselves; also when the
    words only stand in a string of another ALTER TABLE.
    """
    return _EXCHANGE.match(_bare(sql)) is not None


def names_a_database(sql: bytes) -> bool:
    """CREATE or DROP DATABASE: its own default database need not exist, or not any more."""
    return _DATABASE.match(_bare(sql)) is not None


def refuse_inexact(
    query: Query,
    context: DdlContext,
    target: ServerKind,
    table_model: Callable[[str, str], TableModel | None],
    ask: Callable[[str], Sequence[object]],
) -> None:
    """Stop before an ALTER TABLE that would give rows other values than the source's.

    It adds a column whose default is another one in each call or on each server (MySQL refuses that), or numbers rows
    without a key; or it makes a DATE of a time that MySQL rounds up to the next day and MariaDB never does.
    """
    others = context.is_mariadb != target.is_mariadb
    for (database, table), operation in _altered(query, context):
        model = table_model(database, table)
        if model is None:
            continue
        rows = f"SELECT 1 FROM {quote(database).decode()}.{quote(table).decode()}"
        why = ""
        match operation:
            case AddColumn(column) if _is_by_chance(column):
                if ask(f"{rows} LIMIT 1"):
                    why = f"existing rows get values that only the source knows: DEFAULT {column.default}"
            case AddColumn(column) if column.auto_increment and not (model.engine == "InnoDB" and clustered_key(model)):
                if len(ask(f"{rows} LIMIT 2")) > 1:
                    why = "existing rows are numbered in an order that only the source knows"
            case ChangeColumn(name, column) if others and column.type == "date" and (old := model.find(name)):
                mode = query.context.sql_mode or 0
                rounds = mode & TIME_ROUND_FRACTIONAL if context.is_mariadb else not mode & TIME_TRUNCATE_FRACTIONAL
                late = f"{rows} WHERE MICROSECOND({quote(name).decode()}) >= 500000 LIMIT 1"
                if rounds and old.type in ("datetime", "timestamp") and old.fraction_digits and ask(late):
                    why = "MySQL rounds the times of rows up to the next day, MariaDB does not"
        if why:
            message = f"ALTER TABLE {database}.{table}, column '{operation.column.name}': {why}"
            raise TargetError(message, errno=er.ALTER_OPERATION_NOT_SUPPORTED_REASON, hint=WAY_OUT)


def _altered(query: Query, context: DdlContext) -> Iterator[tuple[TableName, AddColumn | ChangeColumn]]:
    if not _MAY_BE_INEXACT.search(query.sql_bytes):
        return
    try:
        actions = parse_ddl(query.sql_bytes.decode("utf-8", "replace"), query.database, context)
    except RplError:
        return  # the server will say what it is
    for action in actions:
        if isinstance(action, AlterTable):
            for operation in action.operations:
                if isinstance(operation, AddColumn | ChangeColumn):
                    yield action.name, operation


def _is_by_chance(column: Column) -> bool:
    return _BY_CHANCE.search(_QUOTED.sub(b"", (column.default or "").encode())) is not None


def text_of(statement: Query | ExecuteLoadQuery) -> bytes:
    """What to execute."""
    if isinstance(statement, Query):
        return _passive_event(_START_TRANSACTION.sub(b")", statement.sql_bytes))
    sql = statement.query.sql_bytes
    how = _DUPLICATES.get(statement.duplicate_handling, b"")
    return b"%s LOCAL INFILE 'rplctl'%s INTO%s" % (sql[: statement.name_start], how, sql[statement.name_end :])


def _passive_event(sql: bytes) -> bytes:
    """CREATE or ALTER EVENT with the status that a replica gives it; other statements as they are.

    In the statement itself: between it and an ALTER that follows, the scheduler could run the event, and writes its
    status back when it has.
    """
    start = len(sql) - len(_bare(sql))
    event = _EVENT.match(sql, start)
    if event is None:
        return sql
    depth, head, at = 0, sql[: event.end()], len(sql)
    for token in _EVENT_CLAUSE.finditer(sql, event.end()):
        depth += {b"(": 1, b")": -1}.get(token[0], 0)
        if depth == 0 and token.lastgroup == "body":
            at = token.start()
            break
        head += b" " if depth == 0 and token.lastgroup == "status" else token[0]
    # a line of its own: the head may end in a comment
    return b"%s\nDISABLE ON SLAVE %s" % (head.rstrip(b" \t\n;"), sql[at:])


def drop_of_those_there(query: Query, *, wanted: bool) -> bytes | None:
    """DROP TABLE, VIEW or SEQUENCE as with IF EXISTS, if `wanted` or if the source dropped a part of the list before
    it failed: MySQL drops all of a list or nothing. None for other statements.
    """
    match = _DROP_LIST.match(query.sql_bytes, len(query.sql_bytes) - len(_bare(query.sql_bytes)))
    if match is None or not ((wanted and match["kind"].upper() != b"VIEW") or query.error_code in UNKNOWN_NAMES):
        return None
    return b"%sIF EXISTS %s" % (query.sql_bytes[: match.end()], query.sql_bytes[match.end() :])


def judge(query: Query, error: TargetError | None) -> None:
    """Compare with what happened on the source. Raises the error that was not to be expected."""
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
            hint=_DROP_HINT if error.errno in UNKNOWN_NAMES else error.hint,
            transient=error.transient,
        )
    said = "no error" if error is None else f"'{error.message}' ({error.errno})"
    raise RplError(
        f"Query caused different errors on source and replica. Error on source: {query.error_code}; on the replica: "
        f"{said}. "
        f"Default database: '{query.database}'. Query: '{text}'",
        errno=er.INCONSISTENT_ERROR,
        hint="compare the tables with the source; `rplctl skip` leaves the whole transaction out: its changes "
        "are lost here",
    )


def _bare(sql: bytes) -> bytes:
    match = _COMMENTS.match(sql)
    return sql[match.end() :] if match else sql


def with_near_collation(statement: Sql, failure: str) -> Sql:
    """A statement that was refused for a collation which only the other vendor has, with the one that compares by the
    same rules (UCA 9 and UCA 14, or bytes, without padding); as it was for another failure.
    """
    found = re.search(r"Unknown collation: '(\w+)'", failure)
    name = found[1] if found else ""
    for pattern, near in _NEAR_COLLATIONS:
        if re.fullmatch(pattern, name):
            near = re.sub(pattern, near, name)
            return proven_statement(re.sub(rf"(COLLATE[ =]){name}\b", rf"\g<1>{near}", statement))  # a word for a word
    return statement
