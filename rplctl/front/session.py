"""Carry out the commands of a signed-in client (COM_…): statements, prepared statements, and a few of old clients.

Invariant: after an error of one statement the connection works as before. An invalid packet ends the connection.
"""

from __future__ import annotations

import struct
import time
from typing import Final

from rplctl import mysql_errors as er
from rplctl.command.channel.context import Note
from rplctl.errors import RplError, as_rpl_error
from rplctl.front import wire
from rplctl.front.binary import binary_row, bound
from rplctl.front.dump.request import by_gtid_set, by_position
from rplctl.front.dump.serve import dump, register
from rplctl.front.front import ClientSession, Front
from rplctl.front.result import Answer, Done, Rows
from rplctl.front.statement import Statement
from rplctl.front.table import answer
from rplctl.front.wire import Link, Reader
from rplctl.history import done_by
from rplctl.mask import masked

LONGEST_STATEMENT: Final = 1 << 20  # bytes
IDLE_S = 8 * 3600.0
MOST_PREPARED = 128
LONGEST_SHOWN = 1000  # the most characters of a statement in SHOW PROCESSLIST
_QUIT, _INIT_DB, _QUERY, _STATISTICS, _PING = 1, 2, 3, 9, 14
_PREPARE, _EXECUTE, _LONG_DATA, _CLOSE, _RESET_STATEMENT = 22, 23, 24, 25, 26
_PROCESS_KILL, _RESET_CONNECTION, _SET_OPTION = 12, 31, 27
_REGISTER, _DUMP, _DUMP_GTID = 21, 18, 30
_QUIET = frozenset({_LONG_DATA, _CLOSE})  # commands without an answer


def converse(session: ClientSession, front: Front) -> None:
    """Answer the client until it disconnects. Raises Closed."""
    link = session.link
    while True:
        session.since, session.statement = time.time(), ""
        try:
            packet = link.read(LONGEST_STATEMENT, IDLE_S)
        except RplError as error:
            link.send(wire.error(error.errno, error.message))
            return
        if not packet or packet[0] == _QUIT:
            return
        session.since = time.time()
        try:
            _carry_out(session, front, packet)
        except (RplError, OSError) as error:
            if packet[0] not in _QUIET:
                link.send(_error(session, as_rpl_error(error)))


def _carry_out(session: ClientSession, front: Front, packet: bytes) -> None:
    command, body, link = packet[0], packet[1:], session.link
    if command == _QUERY:
        _send(link, _answered(session, front, _text(body)))
    elif command == _PREPARE:
        _prepare(session, front, _text(body))
    elif command == _EXECUTE:
        _execute(session, front, Reader(body))
    elif command == _CLOSE:
        session.prepared.pop(Reader(body).integer(4), None)
    elif command == _INIT_DB:
        session.database = _text(body)
        link.send(wire.ok())
    elif command == _PROCESS_KILL:
        _send(link, _answered(session, front, f"KILL {Reader(body).integer(4)}"))
    elif command == _REGISTER:
        register(session, Reader(body))
        link.send(wire.ok())
    elif command in (_DUMP, _DUMP_GTID):
        read = by_gtid_set if command == _DUMP_GTID else by_position
        with done_by(f"{session.client.name} over SQL"):
            dump(session, front, read(Reader(body), session.variables))
    elif command == _STATISTICS:
        link.send(front.statistics().encode())
    elif command == _RESET_CONNECTION:
        session.prepared.clear()
        session.variables.clear()
        session.gtid_next = ""
        session.notes = ()
        link.send(wire.ok())
    elif command in (_PING, _RESET_STATEMENT):
        link.send(wire.ok())
    elif command == _SET_OPTION:
        link.send(wire.eof())
    elif command != _LONG_DATA:
        raise RplError("Unknown command", errno=er.UNKNOWN_COM_ERROR)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _answered(session: ClientSession, front: Front, sql: str) -> Answer:
    front.questions += 1
    session.statement = masked(sql[:LONGEST_SHOWN])
    with done_by(f"{session.client.name} over SQL"):
        found = answer(front, session, sql)
    if not sql.lstrip()[:13].upper().startswith(("SHOW WARNINGS", "SHOW ERRORS")):
        session.notes, session.has_failed = found.notes, False
    return found


def _error(session: ClientSession, error: RplError) -> bytes:
    text = f"{error.message}\nHint: {error.hint}" if error.hint else error.message
    session.notes, session.has_failed = (Note(text, error.errno or er.UNKNOWN_ERROR),), True
    return wire.error(error.errno or er.UNKNOWN_ERROR, text)


def _send(link: Link, answer: Answer) -> None:
    if isinstance(answer, Done):
        return link.send(wire.ok(len(answer.notes)))
    link.send(*_head(answer), *(wire.text_row(row) for row in answer.rows), wire.eof(len(answer.notes)))


def _head(answer: Rows) -> list[bytes]:
    columns = (wire.column(name, kind) for name, kind in answer.columns)
    return [wire.length_encoded(len(answer.columns)), *columns, wire.eof()]


def _prepare(session: ClientSession, front: Front, sql: str) -> None:
    words = Statement(sql, front.version)
    if words.accept("PREPARE|EXECUTE|DEALLOCATE"):
        text = "This command is not supported in the prepared statement protocol yet"
        raise RplError(text, errno=er.UNSUPPORTED_PS)
    count = sum(token.kind == "symbol" and token.value == "?" for token in words.tokens)
    if len(session.prepared) >= MOST_PREPARED:
        raise RplError(f"a connection has at most {MOST_PREPARED} prepared statements")
    session.last_prepared += 1
    session.prepared[session.last_prepared] = sql, count
    head = b"\0" + struct.pack("<IHHBH", session.last_prepared, 0, count, 0, 0)
    described = [wire.column("?", wire.VAR_STRING)] * count
    session.link.send(head, *described, *([wire.eof()] if count else []))


def _execute(session: ClientSession, front: Front, body: Reader) -> None:
    number, cursor = body.integer(4), body.integer(1)
    body.integer(4)
    if number not in session.prepared:
        raise RplError(f"Unknown prepared statement handler ({number}) given to EXECUTE", errno=er.WRONG_ARGUMENTS)
    if cursor:
        raise RplError("This version of rplctl doesn't yet support 'cursors'", errno=er.NOT_SUPPORTED_YET)
    sql, count = session.prepared[number]
    found = _answered(session, front, bound(Statement(sql, front.version), body, count) if count else sql)
    if isinstance(found, Done):
        return session.link.send(wire.ok(len(found.notes)))
    rows = (binary_row(found.columns, row) for row in found.rows)
    session.link.send(*_head(found), *rows, wire.eof(len(found.notes)))
