"""Finds and ends prepared transactions on PostgreSQL, over another connection than the one that prepared them.

The functions implement `target.base.TwoPhaseVerbs` (WL#3970). They rely on these facts: A prepared transaction does not
belong to a connection, and keeps its locks after a crash. COMMIT PREPARED must run outside of a transaction, in the
same database, under the role that prepared the transaction. `max_prepared_transactions` is 0 by default.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from rplctl.attempts import attempts
from rplctl.errors import ConfigError, LockBusy
from rplctl.sql_run import run
from rplctl.sql_text import Grammar, is_matched, matched, word, written
from rplctl.target.postgresql.connection import mapped_errors

OWNER_GONE_SECONDS = 30.0
_PAUSE_SECONDS = 0.02
_LOCK = 0x72706C63  # the class of advisory locks, "rplc"; the object id is the checksum of the prefix
_NO_SUCH_GID = "42704"


def prepared_xids(engine: Engine, prefix: str) -> list[str]:
    """Return the names of this database's prepared transactions that begin with `prefix`.

    Raises TargetError if the target reports an error.
    """
    with _alone(engine) as connection:
        rows = run(connection, written("SELECT gid FROM pg_prepared_xacts WHERE database = current_database()"))
        # any account of the server can prepare a transaction whose name begins with the prefix
        return [gid for gid in rows.scalars() if gid.startswith(prefix) and is_matched(Grammar.XID, gid)]


def end_prepared(engine: Engine, verb: str, xid: str) -> None:
    with _alone(engine) as connection:
        try:
            run(connection, written("{} PREPARED '{}'", word(verb), matched(Grammar.XID, xid)))
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", "") != _NO_SUCH_GID:
                raise


def check(engine: Engine, option: str, branches: int = 1) -> list[str]:
    with _alone(engine) as connection:
        slots = int(str(run(connection, written("SHOW max_prepared_transactions")).scalar()))
        fsync, commit = (
            run(connection, written("SHOW {}", name)).scalar() for name in (word("fsync"), word("synchronous_commit"))
        )
    if slots < branches:
        found = (
            "prepared transactions are disabled on"
            if slots == 0
            else f"{branches} prepared transactions are too many for"
        )
        raise ConfigError(
            f"{option}: {found} the target (max_prepared_transactions is {slots})",
            hint="to allow prepared transactions, run on the target: ALTER SYSTEM SET max_prepared_transactions = "
            f"{10 * branches}\n"
            "To continue after a restart of PostgreSQL, run: rplctl start\n"
            f"To see how to do without the option {option.partition('=')[0]}, run: man 5 rplctl.toml",
        )
    weak = {"fsync is off": fsync == "off", "synchronous_commit is off": commit == "off" and branches == 1}
    return [f"{what}: a power cut can lose prepared transactions" for what, is_so in weak.items() if is_so]


def wait_at_most(connection: Connection, seconds: int) -> None:
    with mapped_errors():
        run(connection, written("SET LOCAL lock_timeout = '{}s'", seconds))


def claim(connection: Connection, prefix: str) -> None:
    for _ in attempts(OWNER_GONE_SECONDS, _PAUSE_SECONDS):
        with mapped_errors():
            got = run(connection, written("SELECT pg_try_advisory_lock({}, {})", _LOCK, _object(prefix))).scalar()
            connection.commit()
        if got:
            return
    raise LockBusy("another connection of this channel is still active on the target")


def terminate_sessions(engine: Engine, prefix: str) -> None:
    sql = written(
        "SELECT pid, pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND "
        "granted AND classid = {} AND objid::bigint = {} AND database = (SELECT oid FROM "
        "pg_database WHERE datname = current_database())",
        _LOCK,
        _object(prefix) & 4294967295,
    )
    with _alone(engine) as connection:
        for _ in attempts(OWNER_GONE_SECONDS, _PAUSE_SECONDS):
            backends = run(connection, sql).all()
            if not backends:
                return
    raise LockBusy(f"the channel's old backend {backends[0][0]} on the target does not end")


def _object(prefix: str) -> int:
    number = zlib.crc32(prefix.encode())
    return number - (1 << 32) if number >> 31 else number


@contextmanager
def _alone(engine: Engine) -> Iterator[Connection]:
    """Yield a new connection in autocommit mode, because PostgreSQL refuses COMMIT PREPARED inside a transaction."""
    with mapped_errors(), engine.connect() as plain:
        yield plain.execution_options(isolation_level="AUTOCOMMIT")
