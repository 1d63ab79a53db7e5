"""One source, a server of its vendor that replicates by itself, and our appliers beside it, in this process.

`Beside.run(statements)` puts statements on the source, lets the native replica have them, and applies the same log to
each of our targets; the ends are compared table by table (`differences`). The native replica is the judge: where it
differs from the source (an unsafe statement), ours must do as it does.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pymysql

from rplctl.applier.feed.plan import Batch, plan_batches
from rplctl.errors import RplError
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.kit.postgresql_state import new_database
from tests.kit.replica import wait_until
from tests.kit.servers import MariadbServer, PostgresqlServer

STRICTEST = (  # refuses most, and reads quotes and backslashes otherwise
    "'TRADITIONAL,ONLY_FULL_GROUP_BY,ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH,"
    "HIGH_NOT_PRECEDENCE,IGNORE_SPACE,NO_UNSIGNED_SUBTRACTION,REAL_AS_FLOAT'"
)
SYSTEM = ("information_schema", "mysql", "performance_schema", "sys", "rplctl")
Step = str | Callable[[], None]  # SQL, or what is done between two statements
Tables = dict[str, list[tuple[Any, ...]]]


def run_each(server: MariadbServer, statements: Sequence[Step], expected: Collection[int] = ()) -> list[int]:
    """One session, one statement after another; errors in `expected` are what the script wants. Returns the errors."""
    errors: list[int] = []
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        for statement in statements:
            if callable(statement):
                statement()
                continue
            if not statement.strip():
                continue
            try:
                cursor.execute(statement.encode())
                while cursor.nextset():
                    pass
            except pymysql.Error as error:
                if error.args[0] not in expected:
                    raise AssertionError(f"{statement}: {error}") from error
                errors.append(error.args[0])
    return errors


def server_state(server: MariadbServer, *, definitions: bool = True) -> Tables:
    """Every table of the user's databases: its rows as the server prints them, and its definition."""
    found: Tables = {}
    names = server.sql(
        "SELECT table_schema, table_name, table_type FROM information_schema.tables"
        f" WHERE table_schema NOT IN {SYSTEM} ORDER BY 1, 2"
    )
    for database, table, kind in names:
        name = f"`{database}`.`{table}`"
        if kind != "VIEW":
            rows = server.sql(f"SELECT {_columns(server, database, table)} FROM {name}")
            found[f"{database}.{table}"] = sorted(rows, key=repr)
        if definitions:
            text = re.sub(r" AUTO_INCREMENT=\d+", "", str(server.sql(f"SHOW CREATE TABLE {name}")[0][1]))
            found[f"{database}.{table}: definition"] = [(text,)]
    if definitions:
        for table, columns in (
            ("triggers", "trigger_schema, trigger_name, action_statement, sql_mode"),
            ("routines", "routine_schema, routine_name, routine_definition, sql_mode"),
            ("events", "event_schema, event_name, event_definition, sql_mode, time_zone"),
            ("schemata", "schema_name, default_collation_name"),
        ):
            where = columns.split(",")[0]
            rows = server.sql(f"SELECT {columns} FROM information_schema.{table} WHERE {where} NOT IN {SYSTEM}")
            found[table] = sorted(rows, key=repr)
    return found


def _columns(server: MariadbServer, database: str, table: str) -> str:
    rows = server.sql(
        "SELECT column_name, data_type FROM information_schema.columns"
        f" WHERE table_schema='{database}' AND table_name='{table}' ORDER BY ordinal_position"
    )
    return ", ".join(_shown(*row) for row in rows) or "1"


def _shown(name: str, kind: str) -> str:
    quoted = "`" + name.replace("`", "``") + "`"
    if "blob" in kind or "binary" in kind or kind in ("point", "geometry", "bit", "linestring", "polygon"):
        return f"HEX({quoted})"
    return f"CAST({quoted} AS CHAR)"


def rows_only(state: Tables) -> Tables:
    return {name: rows for name, rows in state.items() if "." in name and ": definition" not in name}


def _text(value: Any) -> str | None:
    if isinstance(value, bytes):
        return value.hex().upper()
    return None if value is None else str(value)


@dataclass
class Outcome:
    """How one of ours ended."""

    error: RplError | None
    state: Tables = field(default_factory=dict)

    @property
    def errno(self) -> int:
        return self.error.errno if self.error else 0


class Beside:
    """`native`: of the source's vendor. `server`: our MySQL-like target; with `postgresql` one more."""

    def __init__(
        self,
        folder: Path,
        source: MariadbServer,
        native: MariadbServer,
        server: MariadbServer | None = None,
        postgresql: PostgresqlServer | None = None,
    ) -> None:
        self.folder, self.source, self.native, self.server, self.postgresql = folder, source, native, server, postgresql
        self._number = 0
        self.log = ""

    @contextmanager
    def into(self, server: MariadbServer) -> Iterator[None]:
        """Another server takes the place of ours."""
        before, self.server = self.server, server
        try:
            yield
        finally:
            self.server = before

    def run(self, statements: Sequence[Step], expected: Collection[int] = ()) -> Tables:
        """On the source and by the native replica; that one's state at the end."""
        for server in filter(None, (self.source, self.native, self.server)):
            self.clean(server)
        self.source.sql("FLUSH BINARY LOGS")
        run_each(self.source, statements, expected)
        self.log = self.source.master_status()[0]
        self.replicate()
        return server_state(self.native)

    @staticmethod
    def clean(server: MariadbServer) -> None:
        names = server.sql(f"SELECT schema_name FROM information_schema.schemata WHERE schema_name NOT IN {SYSTEM}")
        drops = "".join(f"DROP DATABASE `{name[0]}`;" for name in names)
        server.sql(f"SET sql_log_bin=0; SET foreign_key_checks=0; {drops} DROP DATABASE IF EXISTS rplctl")

    def replicate(self) -> None:
        """MariaDB by file and position. MySQL too, with GTIDs as they are."""
        native, source, log = self.native, self.source, self.log
        if native.kind == "mysql":
            native.sql("STOP REPLICA; RESET REPLICA ALL; RESET BINARY LOGS AND GTIDS")
            native.sql(
                f"CHANGE REPLICATION SOURCE TO SOURCE_CONNECT_RETRY=1, "
                f"SOURCE_HOST='{source.host}', SOURCE_PORT={source.port},"
                " SOURCE_USER='rpl', SOURCE_PASSWORD='rpl',"
                f" SOURCE_LOG_FILE='{log}', SOURCE_LOG_POS=4, GET_SOURCE_PUBLIC_KEY=1"
            )
            native.sql("START REPLICA")
        else:
            native.sql("STOP SLAVE; RESET SLAVE ALL")
            native.sql(
                f"CHANGE MASTER TO MASTER_CONNECT_RETRY=1, "
                f"MASTER_HOST='{source.host}', MASTER_PORT={source.port}, MASTER_USER='rpl',"
                f" MASTER_PASSWORD='rpl', MASTER_LOG_FILE='{log}', MASTER_LOG_POS=4, MASTER_USE_GTID=no,"
                " MASTER_SSL=0, MASTER_SSL_VERIFY_SERVER_CERT=0"
            )
            native.sql("START SLAVE")
        wait_until(self._is_done, timeout_s=60)
        native.sql("STOP REPLICA" if native.kind == "mysql" else "STOP SLAVE")

    def native_status(self) -> dict[str, Any]:
        with closing(self.native.connect()) as connection, connection.cursor() as cursor:
            cursor.execute("SHOW REPLICA STATUS" if self.native.kind == "mysql" else "SHOW SLAVE STATUS")
            row = cursor.fetchone()
            assert row is not None and cursor.description is not None
            names = (column[0].replace("Source", "Master") for column in cursor.description)
            return dict(zip(names, row, strict=True))

    def _is_done(self) -> bool:
        status = self.native_status()
        assert not status["Last_SQL_Errno"], f"the native replica stopped: {status['Last_SQL_Error']}"
        name = "Relay_Master_Log_File" if "Relay_Master_Log_File" in status else "Relay_Source_Log_File"
        return (status[name], status["Exec_Master_Log_Pos"]) == self.source.master_status()

    @contextmanager
    def ours(
        self, kind: str, *, strictest: bool = False, **options: Any
    ) -> Iterator[tuple[Instance, Callable[[], Tables]]]:
        """An instance on an empty target of that kind, and what reads its state."""
        self._number += 1
        folder = self.folder / f"{kind}-{self._number}"
        log = groups_of(self.source.data / self.log)
        if kind == "server":
            assert self.server is not None
            self.clean(self.server)
            self.server.sql(f"CREATE DATABASE rplctl; SET GLOBAL sql_mode={STRICTEST if strictest else 'DEFAULT'}")
            options["target"] = self.server.url()
        elif kind == "postgresql":
            assert self.postgresql is not None
            options["target"] = new_database(self.postgresql)
        instance = Instance(folder, log, **options)
        try:
            yield instance, lambda: self._state(kind, instance)
        finally:
            instance.applier.close()
            instance.target.close()
            shutil.rmtree(folder, ignore_errors=True)

    def batches(self, instance: Instance) -> Iterator[Batch]:
        """The log as an applier cuts it, one batch after another."""
        groups = groups_of(self.source.data / self.log)
        return plan_batches(groups, len(groups.scan), has_rollbacks=instance.applier.executes_statements)

    def apply(self, kind: str, *, strictest: bool = False, **options: Any) -> Outcome:
        """The whole log. `strictest`: into a server of that sql_mode; it is read in its usual one."""
        with self.ours(kind, strictest=strictest, **options) as (instance, state):
            error = self._applied(instance)
            return Outcome(error, state())

    def _applied(self, instance: Instance) -> RplError | None:
        try:
            for batch in self.batches(instance):
                instance.applier.apply(batch)
        except RplError as raised:
            return raised
        return None

    def _state(self, kind: str, instance: Instance) -> Tables:
        if kind == "server":
            assert self.server is not None
            self.server.sql("SET GLOBAL sql_mode=DEFAULT")
            return server_state(self.server)
        return sqlite_state(instance) if kind == "sqlite" else postgresql_state(instance)


def sqlite_state(instance: Instance) -> Tables:
    names = instance.query("SELECT name FROM sqlite_master WHERE type='table' AND name LIKE '%@_@_%' ESCAPE '@'")
    return {
        name.replace("__", ".", 1): _printed(instance.query(f'SELECT * FROM "{name}"'))
        for (name,) in names
        if not name.startswith(("rplctl", "_rplctl"))
    }


def postgresql_state(instance: Instance) -> Tables:
    own = "'pg_catalog', 'information_schema', 'rplctl', 'public'"
    names = instance.query(f"SELECT schemaname, tablename FROM pg_tables WHERE schemaname NOT IN ({own})")
    return {
        f"{schema}.{table}": _printed(instance.query(f'SELECT * FROM "{schema}"."{table}"')) for schema, table in names
    }


def _printed(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted((tuple(map(_text, row)) for row in rows), key=repr)


def differences(expected: Tables, found: Tables) -> list[str]:
    """What one has and the other has not, with up to three rows of each."""
    lines = []
    for name in sorted(expected.keys() | found.keys()):
        wanted, have = expected.get(name), found.get(name)
        if wanted != have:
            only = "no such" if wanted is None else [row for row in wanted if row not in (have or ())][:3]
            more = "no such" if have is None else [row for row in have if row not in (wanted or ())][:3]
            lines.append(f"{name}: the native replica has {only}, ours {more}")
    return lines
