"""XA on MySQL and MariaDB: what two-phase commit needs besides the transaction's own connection (WL#3970).

Facts that it relies on, measured on MariaDB 10.11 and MySQL 9.7: a prepared transaction outlives its connection and its
server; MariaDB answers 1397 to XA COMMIT of another connection while the owner's is there; XA RECOVER shows
everybody's transactions; a prepared transaction that changed nothing is gone, or answers 1402, once its owner left.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine

from rplctl import mysql_errors as er
from rplctl.errors import ConfigError, LockBusy, TargetError
from rplctl.sql_run import run
from rplctl.sql_text import Grammar, Sql, is_matched, matched, number, text_literal, word, written
from rplctl.target.mysql.connection import mapped_errors

OWNER_GONE_SECONDS = 30.0
_PAUSE_SECONDS = 0.02
_SQLALCHEMY_FORMAT = 1  # format id of Connection.begin_twophase; our names stand in gtrid alone
_OLDEST = {True: (10, 5, 2), False: (5, 7, 7)}  # is MariaDB → prepared transactions outlive the connection


def prepared_xids(engine: Engine, prefix: str) -> list[str]:
    """Prepared transactions whose name begins with `prefix`, of all connections and none. Raises TargetError."""
    with _alone(engine) as connection:
        rows = run(connection, written("XA RECOVER")).all()
    found = []
    for format_id, gtrid_length, bqual_length, data in rows:
        name = data if isinstance(data, str) else bytes(data).decode("latin-1")
        if format_id == _SQLALCHEMY_FORMAT and not bqual_length and gtrid_length == len(name):
            found.append(name)
    # whoever signs in there may give a name that begins like ours
    return [name for name in found if name.startswith(prefix) and is_matched(Grammar.XID, name)]


def end_prepared(engine: Engine, verb: str, xid: str) -> None:
    """Execute XA COMMIT or XA ROLLBACK. Raises TargetError when the owner does not leave."""
    deadline = time.monotonic() + OWNER_GONE_SECONDS
    while True:
        try:
            with _alone(engine) as connection:
                run(connection, written("XA {} '{}'", word(verb), matched(Grammar.XID, xid)))
            return
        except TargetError as error:
            if error.errno == er.XA_RBROLLBACK or (
                error.errno == er.XAER_NOTA and xid not in prepared_xids(engine, xid)
            ):
                return
            if error.errno != er.XAER_NOTA or time.monotonic() > deadline:
                raise
        time.sleep(_PAUSE_SECONDS)


def check(engine: Engine, option: str, branches: int = 1) -> list[str]:
    with _alone(engine) as connection:
        version = str(run(connection, written("SELECT @@version")).scalar())
        synced = run(connection, written("SELECT @@innodb_flush_log_at_trx_commit")).scalar()
        has_binlog = run(connection, written("SELECT @@log_bin")).scalar()
    is_mariadb, name = "mariadb" in version.lower(), option.partition("=")[0]
    numbers = tuple(int(part) for part in version.split("-")[0].split(".")[:3])
    if numbers < _OLDEST[is_mariadb]:
        raise ConfigError(
            f"{option}: a prepared transaction does not outlive its connection on {version}",
            hint=f"leave {name} out, or use a newer server",
        )
    try:
        prepared_xids(engine, "")
    except TargetError as error:
        if error.errno not in (er.XAER_RMERR, er.SPECIFIC_ACCESS_DENIED_ERROR):
            raise
        raise ConfigError(
            f"{option}: the target's user may not see prepared transactions (XA RECOVER)",
            errno=error.errno,
            hint=f"GRANT XA_RECOVER_ADMIN ON *.* to the target's user, or leave {name} out",
        ) from error
    weak = (
        []
        if synced == 1 or branches > 1
        else ["innodb_flush_log_at_trx_commit is not 1: a power cut may take prepared data away"]
    )
    if has_binlog and is_mariadb:
        weak.append("log_bin is on: MariaDB's binary log may lack a transaction that a crash caught between its phases")
    return weak


def wait_at_most(connection: Connection, seconds: int) -> None:
    with mapped_errors():
        run(connection, written("SET SESSION innodb_lock_wait_timeout = {}", seconds))


def claim(connection: Connection, prefix: str) -> None:
    with mapped_errors():
        got = run(connection, written("SELECT GET_LOCK({}, {})", _lock(prefix), number(OWNER_GONE_SECONDS))).scalar()
        connection.rollback()
    if got != 1:
        raise LockBusy("another connection of this instance's channel is still at work on the target")


def terminate_sessions(engine: Engine, prefix: str) -> None:
    deadline = time.monotonic() + OWNER_GONE_SECONDS
    with _alone(engine) as connection:
        while True:
            owner = run(connection, written("SELECT IS_USED_LOCK({})", _lock(prefix))).scalar()
            if owner is None:
                return
            if time.monotonic() > deadline:
                raise LockBusy(f"the target's connection {owner} is this channel's old one and does not end")
            try:
                with mapped_errors():
                    run(connection, written("KILL {}", int(owner)))
            except TargetError as error:
                if error.errno != er.NO_SUCH_THREAD:  # gone by itself
                    raise
            time.sleep(_PAUSE_SECONDS)


def _lock(prefix: str) -> Sql:
    return text_literal(f"{prefix}owner")


@contextmanager
def _alone(engine: Engine) -> Iterator[Connection]:
    """A connection without a transaction: XA COMMIT is refused in one."""
    with mapped_errors(), engine.connect() as plain:
        connection = plain.execution_options(isolation_level="AUTOCOMMIT")
        run(connection, written("ROLLBACK"))  # the pool's first questions may have begun one
        yield connection
