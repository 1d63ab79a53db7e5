"""Answers the SHOW statements, with the columns of MySQL or MariaDB (`--mysql-flavor`)."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import astuple, replace
from itertools import islice
from typing import Final

from rplctl import mysql_errors as er
from rplctl.accounts import ADMIN, READER, REPLICATION, read_accounts
from rplctl.applied_log.files import existing_names
from rplctl.command.channel.context import Note
from rplctl.command.show_relaylog_events import show_relaylog_events
from rplctl.command.show_status import SOURCE_COLUMNS, WORKLOG_COLUMNS
from rplctl.errors import RplError, UsageError
from rplctl.front.administer import channel_after, connection_name, one_channel
from rplctl.front.binlog_events import MOST_EVENTS, limit_of
from rplctl.front.charset import default_collation
from rplctl.front.describe import check_database
from rplctl.front.dump.serve import replicas
from rplctl.front.front import ClientSession, Front
from rplctl.front.looks import Look
from rplctl.front.result import Answer, Rows, texts
from rplctl.front.select import select
from rplctl.front.statement import ClientStatement
from rplctl.front.status import ALL_COLUMNS, MARIADB_COLUMNS, shown
from rplctl.front.table_columns import DATABASES
from rplctl.front.tables import process_list, table_names, table_type
from rplctl.front.variables import counters, executed, live_names, variables
from rplctl.front.wire import LONGLONG
from rplctl.position import FIRST_EVENT_POSITION
from rplctl.relay_log.index import RelayLogIndex

_CHARACTER_SETS: Final = {  # of the most common ones, the description and the bytes of a character
    "ascii": ("US ASCII", 1),
    "binary": ("Binary pseudo charset", 1),
    "latin1": ("cp1252 West European", 1),
    "utf8mb3": ("UTF-8 Unicode", 3),
    "utf8mb4": ("UTF-8 Unicode", 4),
}
_LEVEL: Final = {er.WARN_PURGE_LOG_IN_USE: "Warning"}
_PRIVILEGE: Final = {
    ADMIN: "PROCESS, SUPER, REPLICATION CLIENT, REPLICATION SLAVE",
    READER: "PROCESS, REPLICATION CLIENT",
    REPLICATION: "REPLICATION SLAVE",
}


def replica_status(front: Front, session: ClientSession, words: ClientStatement) -> Answer:
    words.accept("SHOW")
    as_source = words.next().value == "REPLICA"
    named = connection_name(words, front)
    words.expect("STATUS")
    words.accept("NONBLOCKING|NOLOCK")
    channel = channel_after(words, front, named=named)
    if channel is None and front.is_mariadb:
        return shown([front.looks.channel("")] if "" in front.looks.names() else [], MARIADB_COLUMNS)
    if front.is_mariadb:
        return shown([front.looks.channel(str(channel))], MARIADB_COLUMNS)
    looks, notes = _readable(front) if channel is None else ([front.looks.channel(channel)], ())
    rows = shown(looks, SOURCE_COLUMNS if as_source else WORKLOG_COLUMNS, as_source=as_source)
    return replace(rows, notes=notes)


def _readable(front: Front) -> tuple[list[Look], tuple[Note, ...]]:
    """Return the states of all channels that can be read, and a note for each other channel.

    Raises the error of a channel if no channel can be read.
    """
    looks, errors = front.looks.readable()
    if errors and not looks:
        raise errors[0]
    return looks, tuple(Note(f"channel '{error.channel}': {error.message}", error.errno) for error in errors)


def all_status(front: Front, session: ClientSession, words: ClientStatement) -> Answer:
    if not front.is_mariadb:
        raise words.refuse()
    words.accept("NONBLOCKING|NOLOCK")
    words.expect_end()
    looks, notes = _readable(front)
    return replace(shown(looks, ALL_COLUMNS), notes=notes)


def show_variables(front: Front, session: ClientSession, words: ClientStatement) -> Answer:
    if rows := _matching(front, session, words, "performance_schema.global_variables"):
        return rows
    config = front.looks.config_of("")
    known = variables(config, front.looks, front.version, set())
    live = live_names(front.version)
    names = _chosen([*known, *live], words)
    if not set(live).isdisjoint(names) and not set(live).issuperset(names) and front.looks.readable()[1]:
        names = [name for name in names if name not in live]  # a part of the GTIDs would be untrue
    found = variables(config, front.looks, front.version, set(names))
    if words.tokens[1].value != "GLOBAL":
        found |= {name: value or "" for name, value in session.charsets.variables.items()}
    return texts("Variable_name,Value", [(name, str(found[name])) for name in sorted(names)])


def show_counters(front: Front, session: ClientSession, words: ClientStatement) -> Answer:
    if rows := _matching(front, session, words, "performance_schema.global_status"):
        return rows
    found = counters(front.looks, front.counters, front.version)
    names = _chosen(found, words)
    return texts("Variable_name,Value", [(name, str(found[name])) for name in sorted(names)])


def _matching(front: Front, session: ClientSession, words: ClientStatement, table: str) -> Rows | None:
    """Return the answer to a SHOW statement with a WHERE that needs a SELECT.

    Return None if `_chosen` understands the condition. The caller then uses `_chosen`, which is faster. `table`: the
    table that the SELECT reads.
    """
    begin = words.index
    try:
        _chosen((), words)
    except RplError:
        words.index = begin
        if not words.accept("WHERE"):
            raise
        sql = f"SELECT variable_name AS Variable_name, variable_value AS Value FROM {table} WHERE {words.rest()}"
        return select(front, session, ClientStatement(sql, front.version))
    words.index = begin
    return None


def _chosen(names: Iterable[str], words: ClientStatement) -> list[str]:
    """Return the names that match the condition at the end of a SHOW statement.

    Without a condition, return all names. The condition is LIKE 'pattern' or WHERE. After WHERE, one or more of these
    forms are joined by OR: Variable_name = 'x', Variable_name LIKE 'x', Variable_name IN ('x', 'y'). Raises RplError
    1064 for another condition.
    """
    patterns: list[str] = []
    if words.accept("LIKE"):
        patterns.append(words.string())
    elif words.accept("WHERE"):
        while True:
            words.accept("`")
            if words.name().lower() != "variable_name":
                raise words.refuse()
            if words.accept("IN ("):
                while not words.accept(")"):
                    patterns.append(_exactly(words.string()))
                    words.accept(",")
            elif words.accept("="):
                patterns.append(_exactly(words.string()))
            else:
                words.expect("LIKE")
                patterns.append(words.string())
            if not words.accept("OR"):
                break
    else:
        words.expect_end()
        return list(names)
    words.expect_end()
    return [name for name in names if any(is_like(name, pattern) for pattern in patterns)]


def _exactly(text: str) -> str:
    return text.replace("\\", "\\\\").replace("_", "\\_").replace("%", "\\%")


def is_like(text: str, pattern: str) -> bool:
    """True if the text matches the pattern in the way of MySQL's LIKE, where upper and lower case are equal."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    made = (".*" if part == "%" else "." if part == "_" else re.escape(part[-1]) for part in parts)
    return re.fullmatch("".join(made), text, re.IGNORECASE | re.DOTALL) is not None


def warnings(front: Front, session: ClientSession, words: ClientStatement) -> Answer:
    notes = session.notes if session.has_failed or words.tokens[1].value != "ERRORS" else ()
    other = "Error" if session.has_failed else "Note"
    levels = [_LEVEL.get(note.errno, other) for note in notes]
    rows = [(level, note.errno or er.UNKNOWN_ERROR, note.text) for level, note in zip(levels, notes, strict=True)]
    return texts("Level,Code#,Message", rows)


def count_of_warnings(front: Front, session: ClientSession, words: ClientStatement) -> Answer:
    is_errors = words.tokens[words.index - 1].value == "ERRORS"
    words.expect_end()
    count = len(session.notes) if session.has_failed or not is_errors else 0
    return Rows(((f"@@session.{'error' if is_errors else 'warning'}_count", LONGLONG),), ((count,),))


def log_status(front: Front, session: ClientSession, words: ClientStatement) -> Answer:
    """Answer SHOW MASTER STATUS, and its newer forms, with the position up to which replicas can read the binary log.

    If log_bin is not set, the answer is a row with an empty file name (MySQL), or no row (MariaDB).
    """
    words.expect_end()
    names = front.logs.log().names() if front.logs.files() else []
    name, end = (names[-1], front.logs.log().look(names[-1]).end) if names else ("", 0)
    if front.is_mariadb:
        return texts("File,Position#,Binlog_Do_DB,Binlog_Ignore_DB", [(name, end, "", "")] if names else [])
    row = (name, end, "", "", executed(front.looks))
    return texts("File,Position#,Binlog_Do_DB,Binlog_Ignore_DB,Executed_Gtid_Set", [row])


def replica_hosts(front: Front, session: ClientSession, words: ClientStatement) -> Answer:
    """Answer SHOW SLAVE HOSTS and SHOW REPLICAS with the replicas that have registered."""
    is_old = words.tokens[1].value == "SLAVE"
    words.expect_end()
    rows = list(replicas(front))
    if front.is_mariadb:
        return texts("Server_id#,Host,Port#,Master_id#", [row[:4] for row in rows])
    names = "Server_id#,Host,Port#,Master_id#,Slave_UUID" if is_old else "Server_Id#,Host,Port#,Source_Id#,Replica_UUID"
    return texts(names, rows)


def processes(front: Front, session: ClientSession, words: ClientStatement) -> Answer:
    words.expect_end()
    names = "Id#,User,Host,db,Command,Time#,State,Info"
    columns = [name.rstrip("#").upper() for name in names.split(",")]
    rows = [tuple(row[name] for name in columns) for row in process_list(front)]
    if front.is_mariadb:
        return texts(f"{names},Progress", [(*row, "0.000") for row in rows])
    return texts(names, rows)


def relay_log_events(front: Front, session: ClientSession, words: ClientStatement) -> Answer:
    named = connection_name(words, front)
    words.expect("EVENTS")
    log_name = words.string() if words.accept("IN") else ""
    position = words.number() if words.accept("FROM") else FIRST_EVENT_POSITION
    offset, limit = limit_of(words)
    count = MOST_EVENTS if limit is None else limit
    channel = one_channel(front, channel_after(words, front, named=named))
    offset = min(offset, sys.maxsize - MOST_EVENTS)
    last = offset + min(count, MOST_EVENTS)
    events = show_relaylog_events(front.looks.config_of(channel), channel, log_name, position, last)
    rows = (astuple(each) for each in islice(events, offset, None))
    return texts("Log_name,Pos#,Event_type,Server_id#,End_log_pos#,Info", rows)


def binary_logs(front: Front, session: ClientSession, words: ClientStatement) -> Answer:
    """Answer SHOW BINARY LOGS with the files of the binary log and their sizes in bytes.

    Raises UsageError 1381 if log_bin is not set.
    """
    words.expect_end()
    files = front.logs.files()
    if files is None:
        raise UsageError("You are not using binary logging", errno=er.NO_BINARY_LOGGING)
    index = RelayLogIndex(files)
    rows = [(name, index.path(name).stat().st_size, "No") for name in existing_names(files)]
    if front.is_mariadb:
        return texts("Log_name,File_size#", [row[:2] for row in rows])
    return texts("Log_name,File_size#,Encrypted", rows)


def grants(front: Front, session: ClientSession, words: ClientStatement) -> Answer:
    """Answer SHOW GRANTS with the privileges of a server that correspond to the role of an account.

    Only an administrator can see another account. Raises RplError 1141 if the client may not see the account, or if
    there is no such account.
    """
    account, role = session.client.account, session.client.role
    if words.accept("FOR") and not words.accept("CURRENT_USER ( )") and not words.accept("CURRENT_USER"):
        account, host = words.value(), words.value() if words.accept("@") else "%"
        if account != session.client.account:
            known = read_accounts(front.looks.config_of("").datadir) if role == ADMIN else {}
            if account not in known:
                text = f"There is no such grant defined for user '{account}' on host '{host}'"
                raise RplError(text, errno=er.NONEXISTING_GRANT)
            role = known[account].role
    words.expect_end()
    return texts(f"Grants for {account}@%", [(f"GRANT {_PRIVILEGE[role]} ON *.* TO '{account}'@'%'",)])


def databases(front: Front, session: ClientSession, words: ClientStatement) -> Answer:
    title = f"Database{_pattern(words)}"
    return texts(title, [(name,) for name in _chosen(DATABASES, words)])


def tables(front: Front, session: ClientSession, words: ClientStatement) -> Answer:
    is_full = words.tokens[1].value == "FULL"
    database = words.name() if words.accept("FROM|IN") else session.database
    check_database(database)
    found = [name.partition(".")[2] for name in table_names() if name.startswith(f"{database.lower()}.")]
    title = f"Tables_in_{database}{_pattern(words)}"
    names = _chosen(found, words)
    if is_full:
        return texts(f"{title},Table_type", [(name, table_type(database.lower())) for name in names])
    return texts(title, [(name,) for name in names])


def _pattern(words: ClientStatement) -> str:
    """Return the text that MySQL appends to the name of the first column: ` (pattern)` for LIKE 'pattern', else ''."""
    ahead = words.tokens[words.index : words.index + 2]
    return f" ({ahead[1].value})" if ahead[0].value == "LIKE" and ahead[1].kind == "string" else ""


def character_sets(front: Front, session: ClientSession, words: ClientStatement) -> Answer:
    found = {name: _CHARACTER_SETS[name] for name in _chosen(_CHARACTER_SETS, words)}
    rows = [(name, text, default_collation(name), bytes_) for name, (text, bytes_) in found.items()]
    return texts("Charset,Description,Default collation,Maxlen#", rows)


def collations(front: Front, session: ClientSession, words: ClientStatement) -> Answer:
    names = "Collation,Charset,Id#,Default,Compiled,Sortlen#"
    return texts(names if front.is_mariadb else f"{names},Pad_attribute")


def nothing(names: str) -> Rows:
    return texts(names)
