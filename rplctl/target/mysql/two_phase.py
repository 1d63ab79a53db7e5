"""Two-phase commit (XA) on MySQL and MariaDB: operations on a prepared transaction from other connections (WL#3970).

The module relies on these facts, measured on MariaDB 10.11 and MySQL 9.7. A prepared transaction outlives its
connection and a restart of the server. The owner is the connection that prepared it. On MariaDB, XA COMMIT from another
connection gets error 1397 while the owner exists. XA RECOVER lists the transactions of all accounts. If a prepared
transaction has no changes, it disappears after its owner has disconnected, or XA COMMIT gets error 1402.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine

from rplctl import mysql_errors as er
from rplctl.attempts import attempts
from rplctl.errors import ConfigError, LockBusy, TargetError
from rplctl.sql_run import run
from rplctl.sql_text import Grammar, Sql, is_matched, matched, number, text_literal, word, written
from rplctl.target.mysql.connection import mapped_errors

OWNER_GONE_SECONDS = 30.0
_PAUSE_SECONDS = 0.02
_SQLALCHEMY_FORMAT = 1  # format id of Connection.begin_twophase; rplctl's names are in gtrid, bqual is empty
_OLDEST = {True: (10, 5, 2), False: (5, 7, 7)}  # is MariaDB → first version that keeps prepared transactions


def prepared_xids(engine: Engine, prefix: str) -> list[str]:
    """Return the names of all prepared transactions whose names begin with `prefix`. Their connections may have ended.
    Raises TargetError if the target reports an error.
    """
    with _alone(engine) as connection:
        rows = run(connection, written("XA RECOVER")).all()
    found = []
    for format_id, gtrid_length, bqual_length, data in rows:
        name = data if isinstance(data, str) else bytes(data).decode("latin-1")
        if format_id == _SQLALCHEMY_FORMAT and not bqual_length and gtrid_length == len(name):
            found.append(name)
    # any account can prepare a transaction whose name begins with the prefix, so the rest of the name is checked, too
    return [name for name in found if name.startswith(prefix) and is_matched(Grammar.XID, name)]


def end_prepared(engine: Engine, verb: str, xid: str) -> None:
    """Execute XA COMMIT or XA ROLLBACK (`verb`) for a prepared transaction. Wait until the owner's connection has
    ended. Do nothing if the transaction has already ended. Raises TargetError if the owner's connection does not end in
    time.
    """
    for _ in attempts(OWNER_GONE_SECONDS, _PAUSE_SECONDS):
        try:
            with _alone(engine) as connection:
                run(connection, written("XA {} '{}'", word(verb), matched(Grammar.XID, xid)))
            return
        except TargetError as error:
            if error.errno == er.XA_RBROLLBACK or (
                error.errno == er.XAER_NOTA and xid not in prepared_xids(engine, xid)
            ):
                return
            if error.errno != er.XAER_NOTA:
                raise
            last = error
    raise last


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
            hint=f"use {'MariaDB' if is_mariadb else 'MySQL'} {'.'.join(map(str, _OLDEST[is_mariadb]))} or later as "
            "the target\n"
            f"To see how to do without the option {name}, run: man 5 rplctl.toml",
        )
    try:
        prepared_xids(engine, "")
    except TargetError as error:
        if error.errno not in (er.XAER_RMERR, er.SPECIFIC_ACCESS_DENIED_ERROR):
            raise
        raise ConfigError(
            f"{option}: the target's user may not execute XA RECOVER, which lists prepared transactions",
            errno=error.errno,
            hint=f"to grant this privilege, run on the target: GRANT XA_RECOVER_ADMIN ON *.* TO 'USER'@'HOST'\n"
            f"To see how to do without the option {name}, run: man 5 rplctl.toml",
        ) from error
    weak = (
        []
        if synced == 1 or branches > 1
        else ["innodb_flush_log_at_trx_commit is not 1: a power cut can lose prepared transactions"]
    )
    if has_binlog and is_mariadb:
        weak.append("log_bin is on: MariaDB's binary log may lack a transaction that was prepared before a crash")
    return weak


def wait_at_most(connection: Connection, seconds: int) -> None:
    with mapped_errors():
        run(connection, written("SET SESSION innodb_lock_wait_timeout = {}", seconds))


def claim(connection: Connection, prefix: str) -> None:
    with mapped_errors():
        got = run(connection, written("SELECT GET_LOCK({}, {})", _lock(prefix), number(OWNER_GONE_SECONDS))).scalar()
        connection.rollback()
    if got != 1:
        raise LockBusy("another connection of this channel is still active on the target")


def terminate_sessions(engine: Engine, prefix: str) -> None:
    with _alone(engine) as connection:
        for _ in attempts(OWNER_GONE_SECONDS, _PAUSE_SECONDS):
            owner = run(connection, written("SELECT IS_USED_LOCK({})", _lock(prefix))).scalar()
            if owner is None:
                return
            try:
                with mapped_errors():
                    run(connection, written("KILL {}", int(owner)))
            except TargetError as error:
                if error.errno != er.NO_SUCH_THREAD:  # the connection has already ended
                    raise
    raise LockBusy(f"the channel's old connection {owner} to the target does not end")


def _lock(prefix: str) -> Sql:
    return text_literal(f"{prefix}owner")


@contextmanager
def _alone(engine: Engine) -> Iterator[Connection]:
    """Yield a new connection without an open transaction, because servers refuse XA COMMIT inside of a transaction."""
    with mapped_errors(), engine.connect() as plain:
        connection = plain.execution_options(isolation_level="AUTOCOMMIT")
        run(connection, written("ROLLBACK"))  # the pool's first queries may have begun a transaction
        yield connection
