"""The table of supported statements, with the role that a client needs and the function that returns the answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from rplctl import mysql_errors as er
from rplctl.accounts import ADMIN, READER, REPLICATION
from rplctl.errors import RplError
from rplctl.front import administer, describe, locks, show
from rplctl.front.binary import quoted, with_literals
from rplctl.front.binlog_events import binlog_events
from rplctl.front.describe import check_database
from rplctl.front.front import ClientSession, Front, denied, not_yet
from rplctl.front.result import Answer, Done
from rplctl.front.select import named_tables, select
from rplctl.front.set_charset import changed_charsets
from rplctl.front.statement import ClientStatement
from rplctl.front.variables import SWITCHES, variables
from rplctl.front.vendor import as_mariadb, notes_as_mariadb

# On a server, these settings choose a transaction or a channel. rplctl refuses them, because a script that relies on
# their effect would do something else.
_HAS_EFFECT: Final = ("GTID_NEXT", "GTID_SEQ_NO", "GTID_DOMAIN_ID", "DEFAULT_MASTER_CONNECTION")
_VALUE_OF_VARIABLE: Final = re.compile(r"(?<=[\w`]=)@@GLOBAL\.\w+")
_EXPRESSION: Final = "SET @variable = expression"
_LONGEST_VALUE: Final = 1 << 16  # characters of a variable; enough for the GTIDs of some thousand domains
MOST_PREPARED: Final = 128  # prepared statements of one connection
_CHARSETS: Final = "character_set_client,collation_connection,Database Collation"  # for triggers, events and routines
_EVENT: Final = "Db,Name,Definer,Time zone,Type,Execute at,Interval value,Interval field,Starts,Ends,Status,Originator#"
_ROUTINE: Final = "Db,Name,Type,Definer,Modified,Created,Security_type,Comment"
Answerer = Callable[[Front, ClientSession, ClientStatement], Answer]


def done(front: Front, session: ClientSession, words: ClientStatement) -> Answer:
    """Answer OK to a statement that has no effect in rplctl, for example BEGIN."""
    return Done()


def _empty(names: str) -> Answerer:
    return lambda front, session, words: show.nothing(names)


def _engine_status(front: Front, session: ClientSession, words: ClientStatement) -> Answer:
    """Answer SHOW ENGINE name STATUS with an empty set, because rplctl has no storage engine."""
    return show.nothing("Type,Name,Status")


def use(front: Front, session: ClientSession, words: ClientStatement) -> Answer:
    name = words.name()
    words.expect_end()
    check_database(name)
    session.database = name
    return Done()


def flush_tables(front: Front, session: ClientSession, words: ClientStatement) -> Answer:
    """Answer FLUSH TABLES with OK, because rplctl has no open tables.

    Raises RplError 1235 if the statement names tables, or has FOR EXPORT.
    """
    if not words.at_end:
        raise not_yet("FLUSH TABLES of a list")
    return Done()


def kill(front: Front, session: ClientSession, words: ClientStatement) -> Answer:
    words.accept("HARD|SOFT")
    is_query = words.accept("QUERY")
    if not is_query:
        words.accept("CONNECTION")
    number = words.number()
    words.expect_end()
    front.kill(number, session.client, is_query=is_query)
    return Done()


def set_global(front: Front, session: ClientSession, words: ClientStatement) -> Answer:
    """Answer SET GLOBAL with OK if the variable already has this value.

    Raises RplError 1235 for another value, because only `rplctl init` and `rplctl change-filter` change options. Raises
    RplError 1193 for an unknown variable.
    """
    name = words.name().lower()
    found = variables(front.looks.config_of(""), front.looks, front.version, {name})
    if name not in found:
        raise RplError(f"Unknown system variable '{name}'", errno=er.UNKNOWN_SYSTEM_VARIABLE)
    words.expect("=|:=")
    value = words.value()
    if words.at_end and _setting(value) == _setting(found[name]):
        return Done()
    raise not_yet(f"SET GLOBAL {name}")


def _setting(value: object) -> str:
    """Return a value in a form for comparisons, in which ON, TRUE and 1 are equal. OFF, FALSE and 0 are also equal."""
    text = str(value).upper()
    return str(SWITCHES.get({"TRUE": "ON", "FALSE": "OFF"}.get(text, text), text))


def set_session(front: Front, session: ClientSession, words: ClientStatement) -> Answer:
    """Answer SET for the character sets and the user variables (@x) of the session.

    Other settings of a session have no effect in rplctl, and get the answer OK. Raises RplError 1235 for SET
    @@global.x, for SET PASSWORD, for a setting that chooses a transaction or a channel, and if the value of a user
    variable is an expression.
    """
    text = _VALUE_OF_VARIABLE.sub("", words.text.upper().replace(" ", ""))
    if "GLOBAL" in text or "PERSIST" in text or text.startswith("SETPASSWORD"):
        raise not_yet("SET GLOBAL among other settings")
    if found := next((name for name in _HAS_EFFECT if name in text), ""):
        raise not_yet(f"SET {found}")
    session.charsets = changed_charsets(session.charsets, words, session.variables)
    while words.accept("@") and words.token.kind in ("word", "quoted"):
        name = words.name().lower()
        words.expect("=|:=")
        if words.accept("@ @"):
            words.accept("GLOBAL|SESSION .")
            wanted = words.name().lower()
            known = variables(front.looks.config_of(""), front.looks, front.version, {wanted})
            session.variables[name] = {**known, **session.charsets.variables}.get(wanted)
        elif words.accept("NULL"):
            session.variables.pop(name, None)
        elif len(session.variables) < 64:
            session.variables[name] = _short(name, _constant(words))
        if not words.accept(","):
            if not words.at_end:
                raise not_yet(_EXPRESSION)
            break
    return Done()


def _constant(words: ClientStatement) -> str:
    """Read a text, a number, TRUE or FALSE. Raises RplError 1235 for the beginning of another expression."""
    if words.token.kind == "word":
        known = {"TRUE": "1", "FALSE": "0"}.get(words.next().value)
        if known is None:
            raise not_yet(_EXPRESSION)
        return known
    return words.value()


def _short(name: str, value: str) -> str:
    if len(value) > _LONGEST_VALUE:
        raise RplError(f"@{name} has {len(value)} characters, more than {_LONGEST_VALUE}", errno=er.WRONG_ARGUMENTS)
    return value


def refuse_writing(front: Front, session: ClientSession, words: ClientStatement) -> Answer:
    text = "The MySQL server is running with the --super-read-only option so it cannot execute this statement"
    raise RplError(text, errno=er.OPTION_PREVENTS_STATEMENT)


def refuse_yet(front: Front, session: ClientSession, words: ClientStatement) -> Answer:
    raise not_yet(" ".join(words.text.split()[:3]))


def prepare(front: Front, session: ClientSession, words: ClientStatement) -> Answer:
    """Answer PREPARE name FROM 'text', or PREPARE name FROM @variable: keep the text as a prepared statement.

    Raises the errors of `check_prepared`.
    """
    name = words.name().lower()
    words.expect("FROM")
    text = str(session.variables.get(words.name().lower(), "")) if words.accept("@") else words.string()
    words.expect_end()
    inner = ClientStatement(text, front.version)
    check_prepared(inner)
    if name not in session.named and len(session.named) >= MOST_PREPARED:
        raise RplError(f"a connection has at most {MOST_PREPARED} prepared statements")
    session.check_held(len(text))
    session.named[name] = text
    return Done()


def check_prepared(words: ClientStatement) -> None:
    """Raise RplError if the statement cannot be prepared.

    The error is 1295 for PREPARE, EXECUTE and DEALLOCATE, 1065 for an empty statement, 1064 for an unknown one.
    """
    if words.accept("PREPARE|EXECUTE|DEALLOCATE"):
        text = "This command is not supported in the prepared statement protocol yet"
        raise RplError(text, errno=er.UNSUPPORTED_PS)
    if words.at_end:
        raise RplError("Query was empty", errno=er.EMPTY_QUERY)
    if not _is_replica_status(words) and not any(words.accept(phrase) for phrase, _, _ in STATEMENTS):
        raise words.refuse()
    words.index = 0


def execute(front: Front, session: ClientSession, words: ClientStatement) -> Answer:
    """Answer EXECUTE name [USING @a, …] with the answer to the prepared statement.

    Raises RplError 1227 if the client's role must not use the prepared statement. Raises RplError 1243 if there is no
    such prepared statement, and 1210 if the number of variables is wrong.
    """
    name = words.name()
    literals: list[str] = []
    while words.accept("USING @" if not literals else ", @"):
        value = session.variables.get(words.name().lower())
        literals.append("NULL" if value is None else quoted(str(value)))
    words.expect_end()
    if name.lower() not in session.named:
        raise unknown_handler(name, "EXECUTE")
    inner = ClientStatement(session.named[name.lower()], front.version)
    if len(literals) != sum(token.kind == "symbol" and token.value == "?" for token in inner.tokens):
        raise RplError("Incorrect arguments to EXECUTE", errno=er.WRONG_ARGUMENTS)
    return answer(front, session, with_literals(inner, literals))


def deallocate(front: Front, session: ClientSession, words: ClientStatement) -> Answer:
    name = words.name()
    words.expect_end()
    if session.named.pop(name.lower(), None) is None:
        raise unknown_handler(name, "DEALLOCATE PREPARE")
    return Done()


def unknown_handler(name: str, verb: str) -> RplError:
    return RplError(f"Unknown prepared statement handler ({name[:80]}) given to {verb}", errno=er.UNKNOWN_STMT_HANDLER)


# The first row whose words are the first words of the statement answers the statement. `A|B` matches the word A or B.
STATEMENTS: Final[tuple[tuple[str, str, Answerer], ...]] = (
    ("SHOW ALL SLAVES|REPLICAS STATUS", READER, show.all_status),
    ("SHOW GLOBAL|SESSION|LOCAL VARIABLES", READER, show.show_variables),
    ("SHOW VARIABLES", READER, show.show_variables),
    ("SHOW GLOBAL|SESSION|LOCAL STATUS", READER, show.show_counters),
    ("SHOW STATUS", READER, show.show_counters),
    ("SHOW WARNINGS", READER, show.warnings),
    ("SHOW COUNT ( * ) WARNINGS|ERRORS", READER, show.count_of_warnings),
    ("SHOW ERRORS", READER, show.warnings),
    ("SHOW BINARY|MASTER LOGS", READER, show.binary_logs),
    ("SHOW BINLOG EVENTS", READER, binlog_events),
    ("SHOW RELAYLOG", READER, show.relay_log_events),
    ("SHOW GRANTS", READER, show.grants),
    ("SHOW MASTER STATUS", READER, show.log_status),
    ("SHOW BINARY LOG STATUS", READER, show.log_status),
    ("SHOW BINLOG STATUS", READER, show.log_status),
    ("SHOW FULL PROCESSLIST", READER, show.processes),
    ("SHOW PROCESSLIST", READER, show.processes),
    ("SHOW DATABASES|SCHEMAS", READER, show.databases),
    ("SHOW FULL TABLES", READER, show.tables),
    ("SHOW OPEN TABLES", READER, _empty("Database,Table,In_use#,Name_locked#")),
    ("SHOW TABLE STATUS", READER, describe.show_table_status),
    ("SHOW COLUMNS|FIELDS", READER, describe.show_columns),
    ("SHOW FULL COLUMNS|FIELDS", READER, describe.show_columns),
    ("SHOW INDEX|INDEXES|KEYS", READER, describe.show_index),
    ("SHOW CREATE TABLE", READER, describe.show_create_table),
    ("DESCRIBE|DESC|EXPLAIN", READER, describe.describe),
    ("SHOW TABLES", READER, show.tables),
    ("SHOW ENGINE", READER, _engine_status),
    ("SHOW ENGINES", READER, _empty("Engine,Support,Comment,Transactions,XA,Savepoints")),
    ("SHOW PLUGINS", READER, _empty("Name,Status,Type,Library,License")),
    ("SHOW COLLATION", READER, show.collations),
    ("SHOW CHARACTER SET", READER, show.character_sets),
    ("SHOW CHARSET", READER, show.character_sets),
    ("SHOW PRIVILEGES", READER, _empty("Privilege,Context,Comment")),
    ("SHOW PROFILES", READER, _empty("Query_ID#,Duration,Query")),
    ("SHOW TRIGGERS", READER, _empty(f"Trigger,Event,Table,Statement,Timing,Created,sql_mode,Definer,{_CHARSETS}")),
    ("SHOW EVENTS", READER, _empty(f"{_EVENT},{_CHARSETS}")),
    ("SHOW FUNCTION|PROCEDURE STATUS", READER, _empty(f"{_ROUTINE},{_CHARSETS}")),
    ("XA RECOVER", READER, _empty("formatID#,gtrid_length#,bqual_length#,data")),
    ("SHOW SLAVE|REPLICA HOSTS", READER, show.replica_hosts),
    ("SHOW REPLICAS", READER, show.replica_hosts),
    ("SELECT", READER, select),
    ("USE", READER, use),
    ("DO", READER, done),
    ("BEGIN", READER, done),
    ("COMMIT", READER, administer.commit),
    ("ROLLBACK", READER, done),
    ("SAVEPOINT", READER, done),
    ("RELEASE SAVEPOINT", READER, done),
    ("PREPARE", READER, prepare),
    ("EXECUTE", READER, execute),
    ("DEALLOCATE|DROP PREPARE", READER, deallocate),
    ("START TRANSACTION", READER, done),
    ("SET GLOBAL SQL_SLAVE_SKIP_COUNTER|SQL_REPLICA_SKIP_COUNTER", ADMIN, administer.skip_count),
    ("SET GLOBAL", ADMIN, set_global),
    ("SET GTID_NEXT", ADMIN, administer.skip_gtid),
    ("SET SESSION GTID_NEXT", ADMIN, administer.skip_gtid),
    ("SET @ @ GTID_NEXT", ADMIN, administer.skip_gtid),
    ("SET @ @ SESSION . GTID_NEXT", ADMIN, administer.skip_gtid),
    ("SET", READER, set_session),
    ("KILL", READER, kill),
    ("CHANGE MASTER", ADMIN, administer.change_source),
    ("CHANGE REPLICATION SOURCE", ADMIN, administer.change_source),
    ("START", ADMIN, administer.start_replica),
    ("STOP", ADMIN, administer.stop_replica),
    ("RESET SLAVE|REPLICA", ADMIN, administer.reset_replica),
    ("FLUSH RELAY LOGS", ADMIN, administer.flush_logs),
    ("CHANGE REPLICATION FILTER", ADMIN, administer.change_filter),
    ("RESET MASTER|QUERY|PERSIST", ADMIN, refuse_yet),
    ("RESET BINARY LOGS", ADMIN, refuse_yet),
    ("PURGE BINARY|MASTER LOGS", ADMIN, administer.purge_logs),
    ("FLUSH TABLES|TABLE WITH READ LOCK", ADMIN, locks.lock_tables),
    ("FLUSH LOCAL|NO_WRITE_TO_BINLOG TABLES|TABLE WITH READ LOCK", ADMIN, locks.lock_tables),
    ("FLUSH PRIVILEGES|STATUS|HOSTS", ADMIN, done),
    ("FLUSH TABLES|TABLE", ADMIN, flush_tables),
    ("FLUSH", ADMIN, refuse_yet),
    ("LOCK INSTANCE FOR BACKUP", ADMIN, locks.lock_instance),
    ("UNLOCK INSTANCE", ADMIN, locks.unlock_instance),
    ("UNLOCK TABLES|TABLE", READER, locks.unlock_tables),
    ("LOCK TABLES|TABLE", ADMIN, refuse_yet),
    ("BACKUP STAGE|LOCK|UNLOCK", ADMIN, refuse_yet),
    ("CREATE USER", ADMIN, refuse_yet),
    ("GRANT|REVOKE", ADMIN, refuse_yet),
    ("INSTALL|UNINSTALL|SHUTDOWN|LOAD|CALL", ADMIN, refuse_yet),
    ("INSERT|UPDATE|DELETE|REPLACE|CREATE|ALTER|DROP|TRUNCATE|RENAME", READER, refuse_writing),
)

# The role `replication` may use these statements: a replica sends some of them before its dump, and the privilege
# REPLICATION SLAVE permits the others.
_OF_REPLICAS: Final = frozenset(
    {"SELECT", "SET", "SHOW VARIABLES", "SHOW GLOBAL|SESSION|LOCAL VARIABLES", "SHOW WARNINGS", "SHOW GRANTS"}
    | {"SHOW BINARY|MASTER LOGS", "SHOW MASTER STATUS", "SHOW BINARY LOG STATUS", "SHOW BINLOG STATUS"}
    | {"SHOW SLAVE|REPLICA HOSTS", "SHOW REPLICAS", "SHOW BINLOG EVENTS"}
)


def answer(front: Front, session: ClientSession, sql: str) -> Answer:
    """Return the answer to the statement `sql`.

    Raises RplError if the statement fails. The error has the number of MySQL or MariaDB, as the flavor of `front`
    requires. The number is 1227 if the client's role must not use the statement.
    """
    if not front.is_mariadb:
        return _answer(front, session, sql)
    try:
        found = _answer(front, session, sql)
    except RplError as error:
        raise as_mariadb(error) from error
    return replace(found, notes=notes_as_mariadb(found.notes))


def _answer(front: Front, session: ClientSession, sql: str) -> Answer:
    words = ClientStatement(sql, front.version)
    if words.at_end:
        raise RplError("Query was empty", errno=er.EMPTY_QUERY)
    if _is_replica_status(words):
        if session.client.role == REPLICATION:
            raise denied("REPLICATION CLIENT")
        return show.replica_status(front, session, words)
    for phrase, role, answerer in STATEMENTS:
        words.index = 0
        if words.accept(phrase):
            if role == ADMIN and session.client.role != ADMIN:
                raise denied()
            if session.client.role == REPLICATION and (phrase not in _OF_REPLICAS or named_tables(session, words)):
                raise denied("REPLICATION CLIENT")
            try:
                return answerer(front, session, words)
            finally:
                if role == ADMIN:
                    front.looks.forget()
    words.index = 0
    raise words.refuse()


def _is_replica_status(words: ClientStatement) -> bool:
    """True if the statement is SHOW SLAVE ['c'] STATUS or SHOW REPLICA ['c'] STATUS."""
    first, *ahead = [token.value for token in words.tokens[:4]]
    return first == "SHOW" and ahead[:1] in (["SLAVE"], ["REPLICA"]) and "STATUS" in ahead[1:]
