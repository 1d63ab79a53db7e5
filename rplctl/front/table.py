"""The table of statements: the role that each statement needs, and the function that answers it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from rplctl import mysql_errors as er
from rplctl.accounts import ADMIN, READER, REPLICATION
from rplctl.errors import RplError
from rplctl.front import administer, show
from rplctl.front.front import ClientSession, Front, denied
from rplctl.front.result import Answer, Done
from rplctl.front.select import named_tables, select
from rplctl.front.statement import Statement
from rplctl.front.variables import variables

# settings that choose a transaction or a channel on a server: without their effect they would mislead a script
_HAS_EFFECT: Final = ("GTID_NEXT", "GTID_SEQ_NO", "GTID_DOMAIN_ID", "DEFAULT_MASTER_CONNECTION")
_VALUE_OF_VARIABLE: Final = re.compile(r"(?<=[\w`]=)@@GLOBAL\.\w+")
_LONGEST_VALUE: Final = 1 << 16  # characters of @x, enough for the GTIDs of some thousand domains
Answerer = Callable[[Front, ClientSession, Statement], Answer]


def done(front: Front, session: ClientSession, words: Statement) -> Answer:
    """Answer OK to a statement that changes nothing here."""
    return Done()


def _empty(names: str) -> Answerer:
    return lambda front, session, words: show.nothing(names)


def _engine_status(front: Front, session: ClientSession, words: Statement) -> Answer:
    """Answer SHOW ENGINE name STATUS with an empty set, because rplctl has no storage engine."""
    return show.nothing("Type,Name,Status")


def use(front: Front, session: ClientSession, words: Statement) -> Answer:
    session.database = words.name()
    words.expect_end()
    return Done()


def kill(front: Front, session: ClientSession, words: Statement) -> Answer:
    words.accept("HARD|SOFT")
    words.accept("CONNECTION|QUERY")
    number = words.number()
    words.expect_end()
    front.kill(number)
    return Done()


def set_global(front: Front, session: ClientSession, words: Statement) -> Answer:
    """Refuse SET GLOBAL: `rplctl init` sets options, `rplctl change-filter` sets filters."""
    name = words.name().lower()
    if name not in variables(front.looks.config_of(""), front.looks, front.version, {name}):
        raise RplError(f"Unknown system variable '{name}'", errno=er.UNKNOWN_SYSTEM_VARIABLE)
    raise not_yet(f"SET GLOBAL {name}")


def set_session(front: Front, session: ClientSession, words: Statement) -> Answer:
    """Accept settings of the session, which have no effect here, and store user variables (@x).

    SET @@global.x, PASSWORD and settings that choose a transaction or a channel are refused.
    """
    text = _VALUE_OF_VARIABLE.sub("", words.text.upper().replace(" ", ""))
    if "GLOBAL" in text or "PERSIST" in text or text.startswith("SETPASSWORD"):
        raise not_yet("SET GLOBAL among other settings")
    if found := next((name for name in _HAS_EFFECT if name in text), ""):
        raise not_yet(f"SET {found}")
    while words.accept("@") and words.token.kind in ("word", "quoted"):
        name = words.name().lower()
        words.expect("=|:=")
        if words.accept("@ @"):
            words.accept("GLOBAL|SESSION .")
            wanted = words.name().lower()
            known = variables(front.looks.config_of(""), front.looks, front.version, {wanted})
            session.variables[name] = known.get(wanted)
        elif words.accept("NULL"):
            session.variables.pop(name, None)
        elif len(session.variables) < 64:
            session.variables[name] = _short(name, words.value())
        if not words.accept(","):
            break
    return Done()


def _short(name: str, value: str) -> str:
    if len(value) > _LONGEST_VALUE:
        raise RplError(f"@{name} has {len(value)} characters, more than {_LONGEST_VALUE}", errno=er.WRONG_ARGUMENTS)
    return value


def refuse_writing(front: Front, session: ClientSession, words: Statement) -> Answer:
    text = "The MySQL server is running with the --super-read-only option so it cannot execute this statement"
    raise RplError(text, errno=er.OPTION_PREVENTS_STATEMENT)


def refuse_yet(front: Front, session: ClientSession, words: Statement) -> Answer:
    raise not_yet(" ".join(words.text.split()[:3]))


def not_yet(what: str) -> RplError:
    return RplError(f"This version of rplctl doesn't yet support '{what}'", errno=er.NOT_SUPPORTED_YET)


# the first row whose words begin the statement answers it; `A|B` matches either word
STATEMENTS: Final[tuple[tuple[str, str, Answerer], ...]] = (
    ("SHOW ALL SLAVES|REPLICAS STATUS", READER, show.all_status),
    ("SHOW GLOBAL|SESSION|LOCAL VARIABLES", READER, show.show_variables),
    ("SHOW VARIABLES", READER, show.show_variables),
    ("SHOW GLOBAL|SESSION|LOCAL STATUS", READER, show.show_counters),
    ("SHOW STATUS", READER, show.show_counters),
    ("SHOW WARNINGS", READER, show.warnings),
    ("SHOW ERRORS", READER, show.warnings),
    ("SHOW BINARY|MASTER LOGS", READER, show.binary_logs),
    ("SHOW RELAYLOG", READER, show.relay_log_events),
    ("SHOW GRANTS", READER, show.grants),
    ("SHOW MASTER STATUS", READER, show.log_status),
    ("SHOW BINARY LOG STATUS", READER, show.log_status),
    ("SHOW BINLOG STATUS", READER, show.log_status),
    ("SHOW FULL PROCESSLIST", READER, show.processes),
    ("SHOW PROCESSLIST", READER, show.processes),
    ("SHOW DATABASES|SCHEMAS", READER, show.databases),
    ("SHOW FULL TABLES", READER, show.tables),
    ("SHOW TABLES", READER, show.tables),
    ("SHOW ENGINE", READER, _engine_status),
    ("SHOW ENGINES", READER, _empty("Engine,Support,Comment,Transactions,XA,Savepoints")),
    ("SHOW PLUGINS", READER, _empty("Name,Status,Type,Library,License")),
    ("SHOW COLLATION", READER, _empty("Collation,Charset,Id#,Default,Compiled,Sortlen#")),
    ("SHOW SLAVE|REPLICA HOSTS", READER, show.replica_hosts),
    ("SHOW REPLICAS", READER, show.replica_hosts),
    ("SELECT", READER, select),
    ("USE", READER, use),
    ("DO", READER, done),
    ("BEGIN", READER, done),
    ("COMMIT", READER, administer.commit),
    ("ROLLBACK", READER, done),
    ("START TRANSACTION", READER, done),
    ("SET GLOBAL SQL_SLAVE_SKIP_COUNTER|SQL_REPLICA_SKIP_COUNTER", ADMIN, administer.skip_count),
    ("SET GLOBAL", ADMIN, set_global),
    ("SET GTID_NEXT", ADMIN, administer.skip_gtid),
    ("SET SESSION GTID_NEXT", ADMIN, administer.skip_gtid),
    ("SET @ @ GTID_NEXT", ADMIN, administer.skip_gtid),
    ("SET @ @ SESSION . GTID_NEXT", ADMIN, administer.skip_gtid),
    ("SET", READER, set_session),
    ("KILL", ADMIN, kill),
    ("CHANGE MASTER", ADMIN, administer.change_source),
    ("CHANGE REPLICATION SOURCE", ADMIN, administer.change_source),
    ("START", ADMIN, administer.start_replica),
    ("STOP", ADMIN, administer.stop_replica),
    ("RESET SLAVE|REPLICA", ADMIN, administer.reset_replica),
    ("FLUSH RELAY LOGS", ADMIN, administer.flush_logs),
    ("CHANGE REPLICATION FILTER", ADMIN, administer.change_filter),
    ("RESET", ADMIN, refuse_yet),
    ("PURGE BINARY|MASTER LOGS", ADMIN, administer.purge_logs),
    ("FLUSH", ADMIN, refuse_yet),
    ("LOCK|UNLOCK", ADMIN, refuse_yet),
    ("CREATE USER", ADMIN, refuse_yet),
    ("GRANT|REVOKE", ADMIN, refuse_yet),
    ("INSTALL|UNINSTALL|SHUTDOWN|LOAD|CALL", ADMIN, refuse_yet),
    ("INSERT|UPDATE|DELETE|REPLACE|CREATE|ALTER|DROP|TRUNCATE|RENAME", READER, refuse_writing),
)

# statements that the role replication may use: those of a replica before its dump, and those of REPLICATION SLAVE
_OF_REPLICAS: Final = frozenset(
    {"SELECT", "SET", "SHOW VARIABLES", "SHOW GLOBAL|SESSION|LOCAL VARIABLES", "SHOW WARNINGS", "SHOW GRANTS"}
    | {"SHOW BINARY|MASTER LOGS", "SHOW MASTER STATUS", "SHOW BINARY LOG STATUS", "SHOW BINLOG STATUS"}
    | {"SHOW SLAVE|REPLICA HOSTS", "SHOW REPLICAS"}
)


def answer(front: Front, session: ClientSession, sql: str) -> Answer:
    """Return the answer to a statement. Raises RplError with MySQL's number, 1227 if the role may not use the
    statement.
    """
    words = Statement(sql, front.version)
    if words.text.upper().startswith("SHOW") and _is_replica_status(words):
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


def _is_replica_status(words: Statement) -> bool:
    """True for SHOW SLAVE ['c'] STATUS and SHOW REPLICA ['c'] STATUS."""
    ahead = [token.value for token in words.tokens[1:4]]
    return ahead[:1] in (["SLAVE"], ["REPLICA"]) and "STATUS" in ahead[1:]
