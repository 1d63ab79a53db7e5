"""Checks whether a channel may execute a statement: REQUIRE_ROW_FORMAT and REQUIRE_TABLE_PRIMARY_KEY_CHECK.

Invariant: a statement that is not permitted stops the applier before any part of its transaction is executed. The rules
are those of the MySQL manual:

* REQUIRE_ROW_FORMAT permits the events of a source with binlog_format=ROW: rows, DDL and transaction control. It
  forbids LOAD DATA, temporary tables, and statements that change rows.
* REQUIRE_TABLE_PRIMARY_KEY_CHECK=ON follows sql_require_primary_key. A new table must have a primary key, and a table
  must not lose its primary key. A table that never had one may be altered.

Statements that filters exclude are not checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from rplctl import mysql_errors as er
from rplctl.config import Config
from rplctl.decode.ddl_context import ddl_context
from rplctl.decode.row_stream import EventRun
from rplctl.errors import IN_ROW_FORMAT, SHOW_TRANSACTION, RplError
from rplctl.event.events import Query, parse_query
from rplctl.event.types import STATEMENT_EVENTS, EventType
from rplctl.info import RelayLogInfo
from rplctl.schema.context import DdlContext
from rplctl.schema.lexer import opened, tokenize
from rplctl.schema.parse import parse_ddl
from rplctl.schema.plan import Catalog, plan_ddl
from rplctl.schema.statement import TableName, tables_of

_FOR_ONE_STATEMENT = re.compile(r"SET\s+STATEMENT\b.*?\bFOR\s+", re.I | re.S)
_PERMITTED = re.compile(
    r"(?:(?:BEGIN|COMMIT|START\s+TRANSACTION|ROLLBACK)(?:\s+WORK)?\s*;?\s*\Z"
    r"|ROLLBACK\s+(?:WORK\s+)?TO\b|(?:SAVEPOINT|RELEASE|XA|CREATE|ALTER|DROP|RENAME|TRUNCATE|GRANT|REVOKE"
    r"|ANALYZE|OPTIMIZE|REPAIR|FLUSH|INSTALL|UNINSTALL|IMPORT|SET\s+(?:PASSWORD|ROLE|DEFAULT))\b)",
    re.I,
)
_TEMPORARY = re.compile(r"(?:CREATE|DROP)\s+(?:OR\s+REPLACE\s+)?TEMPORARY\b", re.I)
_CREATES_ROWS = re.compile(  # VALUES LESS THAN and VALUES IN belong to partitions
    r"CREATE\s+(?:OR\s+REPLACE\s+)?TABLE\b.*\b(?:SELECT|TABLE|VALUES(?!\s+(?:LESS|IN)\b))\b", re.I | re.S
)
_TABLE_DDL = re.compile(r"(?:CREATE|ALTER)\b.*?\b(?:TABLE|INDEX)\b", re.I | re.S)

Know = Callable[[Iterable[TableName]], Catalog]


def check_permitted(run: EventRun, info: RelayLogInfo, config: Config, know: Know) -> None:
    """Check that a channel may execute all statements of a transaction, before any of them is applied.

    `know`: reads the definitions of the given tables from the target, and returns a catalog that has them.

    Raises RplError 13508 for an event that REQUIRE_ROW_FORMAT forbids, and 3750 for a statement after which a table
    would lack a required primary key. The error has the event's position.
    """
    has_policy = info.require_table_primary_key_check == "ON"
    if not (info.require_row_format or has_policy):
        return
    for number, code in enumerate(run.types):
        if info.require_row_format and code in STATEMENT_EVENTS:
            raise _not_row_format(info.channel_name, EventType(int(code)).name, run.end_position(number))
        if code != EventType.QUERY:
            continue
        query = parse_query(run.event(number), run.description)
        context = ddl_context(query, run.description, config.lower_case_table_names)
        try:
            words = _words(query, context)
        except RplError as error:
            error.position = error.position or run.end_position(number)
            raise
        if info.require_row_format and _is_statement(words):
            raise _not_row_format(info.channel_name, _shown(query), run.end_position(number))
        if has_policy and _TABLE_DDL.match(words):
            _check_primary_keys(query, run, config, know, run.end_position(number))


def _words(query: Query, context: DdlContext) -> str:
    """Return the statement that the source executed, without comments, quoted text and SET STATEMENT … FOR."""
    bare = opened(query.sql_bytes.decode("latin-1"), context, charset=query.charset)
    tokens = tokenize(bare, context, query.charset)
    words = " ".join("''" if token.kind in ("string", "quoted") else token.value for token in tokens).strip()
    return words[found.end() :] if (found := _FOR_ONE_STATEMENT.match(words)) else words


def _is_statement(words: str) -> bool:
    """True if a source with binlog_format=ROW would log the changed rows, or nothing, in place of this statement."""
    return not _PERMITTED.match(words) or bool(_TEMPORARY.match(words) or _CREATES_ROWS.match(words))


def _check_primary_keys(query: Query, run: EventRun, config: Config, know: Know, at: str) -> None:
    context = ddl_context(query, run.description, config.lower_case_table_names)
    try:
        names = {name for action in parse_ddl(query.sql, query.database, context) for name in tables_of(action)}
        catalog = know(names)
        changed = plan_ddl(query.sql, query.database, context, catalog).model_changes
    except RplError as error:
        if error.errno != er.PARSE_ERROR:
            return  # the statement does not match the models, and the target will report the error when it executes it
        error.position = error.position or at
        raise
    for name, model in changed.items():
        before = catalog.tables.get(name)
        had_none = before is not None and before.primary_key is None
        if model is None or model.primary_key is not None or not model.holds_rows or had_none:
            continue
        raise RplError(
            f"Unable to create or change a table without a primary key: {model.qualified_name}, and "
            f"REQUIRE_TABLE_PRIMARY_KEY_CHECK = ON. Query: '{_shown(query)}'",
            errno=er.TABLE_WITHOUT_PK,
            position=at,
            hint=f"{SHOW_TRANSACTION}\n"
            "To skip the whole transaction after you have created or changed the table with a primary key and made "
            "all its other changes on the target by hand, run: rplctl skip --yes; rplctl start\n"
            "To accept tables without a primary key, run: rplctl change-master --require-table-primary-key-check off; "
            "rplctl start",
        )


def refuse_generated_keys(info: RelayLogInfo, kind: str) -> None:
    """Raise RplError 1235 if REQUIRE_TABLE_PRIMARY_KEY_CHECK is GENERATE. `kind`: the kind of the target.

    Only a MySQL server can generate keys. On other targets, tables are created from models and have the same keys as
    the source's tables.
    """
    if info.require_table_primary_key_check == "GENERATE":
        raise RplError(
            f"REQUIRE_TABLE_PRIMARY_KEY_CHECK = GENERATE requires a MySQL target, 8.0.30 or later, not {kind}",
            errno=er.NOT_SUPPORTED_YET,
            channel=info.channel_name,
            hint="to use the source's setting, run: rplctl change-master --require-table-primary-key-check stream; "
            "rplctl start",
        )


def _not_row_format(channel: str, what: str, at: str) -> RplError:
    return RplError(
        f"The application of relay events failed for channel '{channel}' as an invalid event according to "
        f"REQUIRE_ROW_FORMAT was found: {what}",
        errno=er.RPL_INVALID_NON_ROW_FORMAT,
        position=at,
        hint=f"{IN_ROW_FORMAT}\nTo permit statements, run: rplctl stop --applier; "
        "rplctl change-master --require-row-format 0; rplctl start",
    )


def _shown(query: Query) -> str:
    return query.sql_bytes[:200].decode("utf-8", "replace")
