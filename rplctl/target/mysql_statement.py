"""The text of a statement as the target gets it, and what its answer means (design D10, D11).

Bytes stay as the source logged them: literals may be in other charsets than the client's. Only LOAD DATA is rewritten
(the file comes through the connection, as mysqlbinlog does it), START TRANSACTION behind CREATE TABLE is left out, and
a replicated EVENT is made passive, as on any replica.
"""

from __future__ import annotations

import re

from rplctl.binlog.format_description import FormatDescription
from rplctl.binlog.query import ExecuteLoadQuery, Query
from rplctl.errors import RplError, TargetError

_COMMENTS = re.compile(rb"(?:\s+|/\*[^!M].*?\*/|#[^\n]*\n|--\s[^\n]*\n)*", re.DOTALL)
_CHANGES_ROWS = re.compile(
    rb"(?:INSERT|UPDATE|DELETE|REPLACE|LOAD|CALL|WITH|SELECT|DO|SET(?!\s+(?:PASSWORD|STATEMENT|ROLE|DEFAULT)))\b", re.I
)
_NAME = rb"(?:`(?:[^`]|``)+`|'(?:[^']|'')*'|[\w$%.()]+)"
_EVENT = re.compile(
    rb"(?:CREATE|ALTER)\s+(?:OR\s+REPLACE\s+)?(?:DEFINER\s*=\s*" + _NAME + rb"(?:\s*@\s*" + _NAME + rb")?\s+)?"
    rb"EVENT\s+(?:IF\s+NOT\s+EXISTS\s+)?((?:`(?:[^`]|``)+`|[\w$]+)(?:\s*\.\s*(?:`(?:[^`]|``)+`|[\w$]+))?)",
    re.I,
)
_DATABASE = re.compile(rb"(?:CREATE|DROP)\s+(?:OR\s+REPLACE\s+)?(?:DATABASE|SCHEMA)\b", re.I)
# MySQL logs CREATE TABLE … SELECT as CREATE TABLE … START TRANSACTION and rows; behind it no position could be set
_START_TRANSACTION = re.compile(rb"\)\s*START\s+TRANSACTION\s*\Z", re.I)
_DUPLICATES = {0: b"", 1: b" IGNORE", 2: b" REPLACE"}


def changes_only_rows(sql: bytes) -> bool:
    """True for statements that leave every table's definition as it is."""
    return _CHANGES_ROWS.match(_bare(sql)) is not None


def names_a_database(sql: bytes) -> bool:
    """CREATE or DROP DATABASE: its own default database need not exist, or not any more."""
    return _DATABASE.match(_bare(sql)) is not None


def text_of(statement: Query | ExecuteLoadQuery) -> bytes:
    """What to execute."""
    if isinstance(statement, Query):
        return _START_TRANSACTION.sub(b")", statement.sql_bytes)
    sql = statement.query.sql_bytes
    how = _DUPLICATES.get(statement.duplicate_handling, b"")
    return b"%s LOCAL INFILE 'rplctl'%s INTO%s" % (sql[: statement.name_start], how, sql[statement.name_end :])


def after_event_ddl(sql: bytes) -> bytes | None:
    """What makes the EVENT that this statement made or changed passive; None for all other statements."""
    match = _EVENT.match(_bare(sql))
    return b"ALTER EVENT %s DISABLE ON SLAVE" % match[1] if match else None


def judge(query: Query, error: TargetError | None) -> None:
    """Compare with what happened on the source. Raises the error that was not to be expected."""
    found = 0 if error is None else error.errno
    if found == query.error_code:
        return
    text = query.sql_bytes[:200].decode("utf-8", "replace")
    if query.error_code == 0 and error is not None:
        raise TargetError(
            f"Error '{error.message}' on query. Default database: '{query.database}'. Query: '{text}'",
            errno=error.errno,
            hint=error.hint or "rplctl skip passes over the transaction",
            transient=error.transient,
        )
    said = "no error" if error is None else f"'{error.message}' ({error.errno})"
    raise RplError(
        f"Query caused different errors on source and replica. Error on source: {query.error_code}; on the replica: "
        f"{said}. "
        f"Default database: '{query.database}'. Query: '{text}'",
        errno=3002,
        hint="compare the tables, then rplctl skip",
    )


def _bare(sql: bytes) -> bytes:
    match = _COMMENTS.match(sql)
    return sql[match.end() :] if match else sql


def stripped(event: bytes, description: FormatDescription) -> bytes:
    """An event as the BINLOG statement takes it: without its checksum."""
    length = len(event) - description.checksum_length
    return event[:9] + length.to_bytes(4, "little") + event[13:length]
