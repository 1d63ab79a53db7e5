"""Executes the commands of a signed-in client (COM_…): statements, prepared statements, and a few others.

Invariant: after an error in one statement, even an unexpected one, the connection works as before. A packet that is too
large ends the connection.
"""

from __future__ import annotations

import struct
import time
from typing import Final

from rplctl import mysql_errors as er
from rplctl.command.channel.context import Note
from rplctl.errors import RplError
from rplctl.front import wire
from rplctl.front.binary import binary_row, bound
from rplctl.front.charset import ConnectionCharsets, ResultCharset
from rplctl.front.describe import check_database
from rplctl.front.dump.request import by_gtid_set, by_position
from rplctl.front.dump.serve import dump, register
from rplctl.front.front import ClientSession, Front, PreparedStatement
from rplctl.front.locks import release_locks
from rplctl.front.result import Answer, Done, Rows
from rplctl.front.sign_in import SIGN_IN_S, change_user
from rplctl.front.statement import ClientStatement
from rplctl.front.table import MOST_PREPARED, answer, check_prepared, unknown_handler
from rplctl.front.wire import Closed, PacketReader
from rplctl.history import done_by
from rplctl.mask import masked

LONGEST_STATEMENT: Final = 1 << 20  # bytes
IDLE_S = 8 * 3600.0
LONGEST_SHOWN = 1000  # characters of a statement that SHOW PROCESSLIST shows
_QUIT, _INIT_DB, _QUERY, _STATISTICS, _PING = 1, 2, 3, 9, 14
_PREPARE, _EXECUTE, _LONG_DATA, _CLOSE, _RESET_STATEMENT = 22, 23, 24, 25, 26
_PROCESS_KILL, _CHANGE_USER, _RESET_CONNECTION, _SET_OPTION = 12, 17, 31, 27
_REGISTER, _DUMP, _DUMP_GTID = 21, 18, 30
_OF_PREPARED = frozenset({_PREPARE, _EXECUTE, _LONG_DATA, _CLOSE, _RESET_STATEMENT})
_QUIET = frozenset({_LONG_DATA, _CLOSE})  # commands without an answer


def converse(session: ClientSession, front: Front) -> None:
    """Execute the commands of a client until the client disconnects. Raises Closed if the connection is lost."""
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
            with front.bugs.as_rpl_errors(lambda: session.statement):
                _carry_out(session, front, packet)
        except RplError as error:
            if packet[0] not in _QUIET:
                link.send(_error(session, error))


def _carry_out(session: ClientSession, front: Front, packet: bytes) -> None:
    command, body, link = packet[0], packet[1:], session.link
    if command == _QUERY:
        _send(session, _answered(session, front, session.charsets.text(body)))
    elif command in _OF_PREPARED:
        _carry_out_prepared(session, front, command, body)
    elif command == _INIT_DB:
        _send(session, _answered(session, front, f"USE `{session.charsets.text(body).replace('`', '``')}`"))
    elif command == _PROCESS_KILL:
        _send(session, _answered(session, front, f"KILL {PacketReader(body).integer(4)}"))
    elif command == _REGISTER:
        register(session, PacketReader(body))
        link.send(wire.ok())
    elif command in (_DUMP, _DUMP_GTID):
        read = by_gtid_set if command == _DUMP_GTID else by_position
        with done_by(f"{session.client.name} over SQL"):
            dump(session, front, read(PacketReader(body), session.variables))
    elif command == _STATISTICS:
        link.send(front.statistics().encode())
    elif command == _RESET_CONNECTION:
        _forget(session, front)
        link.send(wire.ok())
    elif command == _CHANGE_USER:
        _change_user(session, front, body)
    elif command == _PING:
        link.send(wire.ok())
    elif command == _SET_OPTION:
        link.send(wire.eof())
    else:
        raise RplError("Unknown command", errno=er.UNKNOWN_COM_ERROR)


def _carry_out_prepared(session: ClientSession, front: Front, command: int, body: bytes) -> None:
    if command == _PREPARE:
        _prepare(session, front, session.charsets.text(body))
    elif command == _EXECUTE:
        _execute(session, front, PacketReader(body))
    elif command == _LONG_DATA:
        _keep_long_data(session, PacketReader(body))
    elif command == _RESET_STATEMENT:
        _prepared(session, PacketReader(body).integer(4), "mysqld_stmt_reset").forget_long_data()
        session.link.send(wire.ok())
    else:
        session.prepared.pop(PacketReader(body).integer(4), None)


def _forget(session: ClientSession, front: Front) -> None:
    """Reset the connection to its state after the sign-in, which removes prepared statements, variables and locks."""
    with done_by(f"{session.client.name} over SQL"):
        release_locks(front, session)
    session.prepared.clear()
    session.named.clear()
    session.variables.clear()
    session.gtid_next = ""
    session.charsets = ConnectionCharsets()
    session.notes = ()
    session.replica = None


def _change_user(session: ClientSession, front: Front, body: bytes) -> None:
    """Reset the connection, and sign in another account (COM_CHANGE_USER).

    Raises Closed, which ends the connection, if the sign-in fails.
    """
    link = session.link
    _forget(session, front)
    link.deadline = time.monotonic() + SIGN_IN_S
    try:
        if front.door is None:
            raise RplError("Unknown command", errno=er.UNKNOWN_COM_ERROR)
        with front.bugs.as_rpl_errors():
            client = change_user(link, front.door, body)
        if client.database:
            check_database(client.database)
    except RplError as error:
        link.send(wire.error(error.errno or er.UNKNOWN_ERROR, error.message))
        raise Closed from error
    link.deadline = None
    session.client, session.database, session.charsets = client, client.database, client.charsets
    link.send(wire.ok())


def _answered(session: ClientSession, front: Front, sql: str) -> Answer:
    front.questions += 1
    session.is_cancelled = False
    session.statement = masked(sql[:LONGEST_SHOWN])
    with done_by(f"{session.client.name} over SQL"):
        found = answer(front, session, sql)
    if not sql.lstrip()[:13].upper().startswith(("SHOW WARNINGS", "SHOW ERRORS", "SHOW COUNT")):
        session.notes, session.has_failed = found.notes, False
    session.last_rows = len(found.rows) if isinstance(found, Rows) else 0
    return found


def _error(session: ClientSession, error: RplError) -> bytes:
    text = f"{error.message}\nHint: {error.hint}" if error.hint else error.message
    session.notes, session.has_failed = (Note(text, error.errno or er.UNKNOWN_ERROR),), True
    return wire.error(error.errno or er.UNKNOWN_ERROR, text, session.charsets.results)


def _send(session: ClientSession, answer: Answer) -> None:
    link, charset = session.link, session.charsets.results
    if isinstance(answer, Done):
        return link.send(wire.ok(len(answer.notes)))
    rows = (wire.text_row(row, charset) for row in answer.rows)
    link.send(*_head(answer, charset), *rows, wire.eof(len(answer.notes)))


def _head(answer: Rows, charset: ResultCharset) -> list[bytes]:
    columns = (wire.column(name, kind, charset) for name, kind in answer.columns)
    return [wire.length_encoded(len(answer.columns)), *columns, wire.eof()]


def _prepare(session: ClientSession, front: Front, sql: str) -> None:
    words = ClientStatement(sql, front.version)
    check_prepared(words)
    count = sum(token.kind == "symbol" and token.value == "?" for token in words.tokens)
    if len(session.prepared) >= MOST_PREPARED:
        raise RplError(f"a connection has at most {MOST_PREPARED} prepared statements")
    session.check_held(len(sql))
    session.last_prepared += 1
    session.prepared[session.last_prepared] = PreparedStatement(sql, count)
    head = b"\0" + struct.pack("<IHHBH", session.last_prepared, 0, count, 0, 0)
    described = [wire.column("?", wire.VAR_STRING, session.charsets.results)] * count
    session.link.send(head, *described, *([wire.eof()] if count else []))


def _prepared(session: ClientSession, number: int, command: str) -> PreparedStatement:
    if number not in session.prepared:
        raise unknown_handler(str(number), command)
    return session.prepared[number]


def _keep_long_data(session: ClientSession, body: PacketReader) -> None:
    """Add data to the value of one parameter (COM_STMT_SEND_LONG_DATA).

    This command has no answer. If it fails, the next execution of the statement reports the error.
    """
    found = session.prepared.get(body.integer(4))
    index, data = body.integer(2), body.rest()
    if found is not None and index < found.count:
        try:
            session.check_held(len(data))
        except RplError as error:
            found.error = error
            return
        found.long_data.setdefault(index, bytearray()).extend(data)


def _execute(session: ClientSession, front: Front, body: PacketReader) -> None:
    number, cursor = body.integer(4), body.integer(1)
    body.integer(4)
    prepared = _prepared(session, number, "mysqld_stmt_execute")
    if cursor:
        raise RplError("This version of rplctl doesn't yet support 'cursors'", errno=er.NOT_SUPPORTED_YET)
    sql = prepared.sql
    try:
        if prepared.error:
            raise prepared.error
        if prepared.count:
            sql = bound(ClientStatement(sql, front.version), body, prepared, session.charsets)
    finally:
        prepared.forget_long_data()
    found = _answered(session, front, sql)
    if isinstance(found, Done):
        return session.link.send(wire.ok(len(found.notes)))
    charset = session.charsets.results
    rows = (binary_row(found.columns, row, charset) for row in found.rows)
    session.link.send(*_head(found, charset), *rows, wire.eof(len(found.notes)))
