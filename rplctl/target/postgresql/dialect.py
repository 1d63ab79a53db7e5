"""Defines the properties of the target kind PostgreSQL, such as its name, its settings and its internal tables.

PostgreSQL folds unquoted names to lower case, and an error aborts the transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, Final

from sqlalchemy import Connection

from rplctl.errors import RplError
from rplctl.sql_run import ask, run
from rplctl.sql_text import NOTHING, Sql, double_quoted, joined, written
from rplctl.target.base import Target
from rplctl.target.dialect import OWN_SCHEMA, Dialect
from rplctl.target.engine_log import open_server_log
from rplctl.target.own_types import OwnTypes
from rplctl.target.postgresql import two_phase
from rplctl.target.postgresql.connection import mapped_errors, open_engine, protection
from rplctl.target.postgresql.ddl import DDL
from rplctl.target.postgresql.doctor import foreign_key_grant, power_cut, rights
from rplctl.target.postgresql.engine_log import PostgresqlLog
from rplctl.target.postgresql.target import PostgresqlTarget

_UNLOGGED: Final = "UNLOGGED"  # value of `rep_engine`: the table's rows do not survive a crash
_LOCK_NUMBER: Final = 0x72706C63  # 'rplc'


class PostgresqlDialect(Dialect):
    name = "postgresql"
    title = "PostgreSQL"
    two_phase = two_phase
    error_ends_transaction = True
    to_crash_safe = "ALTER TABLE {table} SET LOGGED"
    ddl = DDL
    cascade = written(" CASCADE")
    verified_by = "sslmode=verify-full"
    makes_primary_keys_late = True

    open_engine = staticmethod(open_engine)
    mapped_errors = staticmethod(mapped_errors)
    open_target = staticmethod(PostgresqlTarget)
    open_log = staticmethod(partial(open_server_log, errors=nullcontext, make=PostgresqlLog))
    protection = staticmethod(protection)
    rights = staticmethod(rights)
    foreign_key_grant = staticmethod(foreign_key_grant)
    power_cut = staticmethod(power_cut)

    def log_syncs(self, target: Target) -> int:
        """Return how often the server has synced its write-ahead log, for a report about fsyncs.

        PostgreSQL publishes the syncs of a connection late, so pg_stat_force_next_flush() is called first. Raises
        RplError if the server cannot count the syncs.
        """

        def asked(sql: Sql) -> str:
            answer = str(run(target.connection, sql).scalar())
            target.rollback()  # statistics do not change within a transaction
            return answer

        version = int(asked(written("SHOW server_version_num")))
        if version < 150000:
            raise RplError("not counted: PostgreSQL has a counter of its log's fsyncs since version 15")
        if asked(written("SHOW fsync")) != "on":
            raise RplError("not counted: fsync is off on the target")
        asked(written("SELECT pg_stat_force_next_flush()"))
        in_io = written("SELECT sum(fsyncs)::bigint FROM pg_stat_io WHERE object = 'wal'")
        return int(asked(in_io if version >= 180000 else written("SELECT wal_sync FROM pg_stat_wal")))

    def own_types(self, rep_engine: str = "") -> OwnTypes:
        return OwnTypes(off=written("false"))

    def stored_name(self, name: str) -> str:
        return name.lower()

    def table_options(self, rep_engine: str) -> dict[str, Any]:
        return {"prefixes": [_UNLOGGED]} if rep_engine.upper() == _UNLOGGED else {}

    def engine_of(self, connection: Connection, table: str) -> str:
        query = written("SELECT relpersistence FROM pg_class WHERE oid = to_regclass(:schema || '.' || :name)")
        found = ask(connection, query, {"schema": OWN_SCHEMA, "name": table}).scalar()
        return _UNLOGGED if found in ("u", b"u") else ""

    def is_crash_safe(self, connection: Connection, table: str) -> bool:
        query = written(
            "SELECT c.relpersistence FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE n.nspname = :schema AND c.relname = :table"
        )
        return ask(connection, query, {"schema": OWN_SCHEMA, "table": table}).scalar() in ("p", b"p")

    def let_everyone_read(self, connection: Connection, table: Sql, columns: Sequence[str] = ()) -> None:
        some = written(" ({})", joined(", ", map(double_quoted, columns))) if columns else NOTHING
        ask(connection, written("GRANT USAGE ON SCHEMA {} TO PUBLIC", double_quoted(OWN_SCHEMA)))
        ask(connection, written("GRANT SELECT{} ON {} TO PUBLIC", some, table))

    def lock_installation(self, connection: Connection) -> None:
        ask(connection, written("SELECT pg_advisory_xact_lock(:number)"), {"number": _LOCK_NUMBER})

    def make_own_schema(self, connection: Connection) -> None:
        ask(connection, written("CREATE SCHEMA IF NOT EXISTS {}", double_quoted(OWN_SCHEMA)))


DIALECT = PostgresqlDialect()
