"""SHOW …: what the front knows, in the columns of the vendor."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable

from rplctl import mysql_errors as er
from rplctl.command.show_status import SOURCE_COLUMNS, WORKLOG_COLUMNS
from rplctl.front.administer import channel_after, connection_name
from rplctl.front.front import ClientSession, Front
from rplctl.front.result import Answer, Rows, texts
from rplctl.front.statement import Statement
from rplctl.front.status import ALL_COLUMNS, MARIADB_COLUMNS, shown
from rplctl.front.variables import counters, executed, variables

DATABASES = ("information_schema", "mysql", "performance_schema")


def replica_status(front: Front, session: ClientSession, words: Statement) -> Answer:
    words.accept("SHOW")
    as_source = words.next().value == "REPLICA"
    named = connection_name(words, front)
    words.expect("STATUS")
    words.accept("NONBLOCKING|NOLOCK")
    channel = channel_after(words, front, named=named)
    if channel is None and front.is_mariadb:
        channel = "" if "" in front.looks.names() else None
        looks = [front.looks.channel("")] if channel == "" else []
    else:
        looks = front.looks.all() if channel is None else [front.looks.channel(channel)]
    if front.is_mariadb:
        return shown(looks, MARIADB_COLUMNS)
    return shown(looks, SOURCE_COLUMNS if as_source else WORKLOG_COLUMNS, as_source=as_source)


def all_status(front: Front, session: ClientSession, words: Statement) -> Answer:
    if not front.is_mariadb:
        raise words.refuse()
    words.accept("NONBLOCKING|NOLOCK")
    words.expect_end()
    return shown(front.looks.all(), ALL_COLUMNS)


def show_variables(front: Front, session: ClientSession, words: Statement) -> Answer:
    found = variables(front.looks.config_of(""), front.looks, front.version)
    return _pairs(found, words)


def show_counters(front: Front, session: ClientSession, words: Statement) -> Answer:
    return _pairs(counters(front.looks, front.counters), words)


def _pairs(found: dict[str, object], words: Statement) -> Rows:
    names = _chosen(found, words)
    return texts("Variable_name,Value", [(name, str(found[name])) for name in sorted(names)])


def _chosen(names: Iterable[str], words: Statement) -> list[str]:
    """LIKE 'pattern', or WHERE Variable_name = 'x', LIKE 'x' or IN ('x', 'y') with OR between several."""
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
    """MySQL's LIKE, without regard to case."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    made = (".*" if part == "%" else "." if part == "_" else re.escape(part[-1]) for part in parts)
    return re.fullmatch("".join(made), text, re.IGNORECASE | re.DOTALL) is not None


def warnings(front: Front, session: ClientSession, words: Statement) -> Answer:
    level = "Error" if session.has_failed else "Note"
    rows = [(level, note.errno or er.UNKNOWN_ERROR, note.text) for note in session.notes]
    return texts("Level,Code#,Message", rows)


def log_status(front: Front, session: ClientSession, words: Statement) -> Answer:
    """An empty set: positions are each channel's own, and belong to SHOW REPLICA STATUS."""
    words.expect_end()
    if front.is_mariadb:
        return texts("File,Position#,Binlog_Do_DB,Binlog_Ignore_DB")
    return texts(
        "File,Position#,Binlog_Do_DB,Binlog_Ignore_DB,Executed_Gtid_Set", [("", 0, "", "", executed(front.looks))]
    )


def processes(front: Front, session: ClientSession, words: Statement) -> Answer:
    words.expect_end()
    now = time.time()
    rows = [
        (each.number, each.client.account, each.client.host, each.database or None,
         "Query" if each.statement else "Sleep", int(now - each.since), "", each.statement or None)
        for each in list(front.sessions.values())
    ]  # fmt: skip
    return texts("Id#,User,Host,db,Command,Time#,State,Info", rows)


def databases(front: Front, session: ClientSession, words: Statement) -> Answer:
    return texts("Database", [(name,) for name in _chosen(DATABASES, words)])


def tables(front: Front, session: ClientSession, words: Statement) -> Answer:
    database = words.name() if words.accept("FROM|IN") else session.database
    return texts(f"Tables_in_{database}", [])


def nothing(names: str) -> Rows:
    return texts(names)
