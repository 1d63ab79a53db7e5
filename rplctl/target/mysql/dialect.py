"""The dialect of MySQL and MariaDB targets, which can execute the source's statements. DDL commits a transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from sqlalchemy import Connection, Engine
from sqlalchemy.dialects import mysql

from rplctl.errors import LockBusy
from rplctl.sql_run import ask, run
from rplctl.sql_text import NOTHING, Sql, backticked, joined, word, written
from rplctl.system_zone import SystemZone
from rplctl.target.base import Target
from rplctl.target.dialect import OWN_SCHEMA, Dialect
from rplctl.target.engine_log import open_server_log
from rplctl.target.mysql import two_phase
from rplctl.target.mysql.connection import mapped_errors, open_engine, protection
from rplctl.target.mysql.doctor import power_cut, rights
from rplctl.target.mysql.engine_log import log_of_server
from rplctl.target.own_types import OwnTypes

_MEMORY: Final = "MEMORY"  # this engine has no TEXT, so texts are VARCHAR columns that are long enough for settings
_UTF8: Final[dict[str, Any]] = {"charset": "utf8mb4", "collation": "utf8mb4_bin"}

# MariaDB ≥ 10.8 counts the fsyncs of the log and of the data files together. A short run syncs only the log.
_LOG_SYNCS = written(
    "SHOW GLOBAL STATUS WHERE Variable_name IN"
    " ('Innodb_os_log_fsyncs', 'Innodb_data_fsyncs', 'Aria_transaction_log_syncs')"
)


_PUBLIC_SINCE: Final = (10, 11)
_ROLE: Final = written("rplctl_reader")
_PUBLIC: Final = written("PUBLIC")
_FOR_EVERYBODY: Final = (
    written("SET PERSIST mandatory_roles = CONCAT_WS(',', NULLIF(@@GLOBAL.mandatory_roles, ''), '{}')", _ROLE),
    written("SET PERSIST activate_all_roles_on_login = ON"),
)
_GRANTABLE: Final = written(
    "SELECT COUNT(*) FROM (SELECT GRANTEE, IS_GRANTABLE, PRIVILEGE_TYPE FROM information_schema.USER_PRIVILEGES"
    " UNION ALL SELECT GRANTEE, IS_GRANTABLE, PRIVILEGE_TYPE FROM information_schema.SCHEMA_PRIVILEGES"
    " WHERE :schema LIKE TABLE_SCHEMA) g WHERE REPLACE(GRANTEE, CHAR(39), '') = CURRENT_USER()"
    " AND PRIVILEGE_TYPE = 'SELECT' AND IS_GRANTABLE = 'YES'"
)


class MysqlDialect(Dialect):
    name = "mysql"
    title = "MySQL or MariaDB"
    two_phase = two_phase
    ddl_commits = True
    executes_statements = True
    to_crash_safe = "ALTER TABLE {table} ENGINE=InnoDB"
    schema_word = written("DATABASE")
    verified_by = "ssl_ca=FILE"
    view_security = written("SQL SECURITY INVOKER ")

    open_engine = staticmethod(open_engine)
    mapped_errors = staticmethod(mapped_errors)
    open_log = staticmethod(partial(open_server_log, errors=mapped_errors, make=log_of_server))
    protection = staticmethod(protection)
    rights = staticmethod(rights)
    power_cut = staticmethod(power_cut)

    def time_zone(self, connection: Connection, zone: SystemZone) -> str:
        from rplctl.target.mysql.time_zone import TimeZones  # imported late because it loads Numba

        def rows(sql: Sql) -> Sequence[Any]:
            with mapped_errors():
                return run(connection, sql).all()

        return TimeZones(rows).word_for(zone)

    def open_target(self, engine: Engine) -> Target:
        from rplctl.target.mysql.target import MysqlTarget  # imported late because it loads Numba

        return MysqlTarget(engine)

    def log_syncs(self, target: Target) -> int:
        with target.engine.connect() as connection:
            rows = {str(name).lower(): int(value) for name, value in ask(connection, _LOG_SYNCS)}
        if not rows:
            return super().log_syncs(target)
        engine = rows.get("innodb_os_log_fsyncs", rows.get("innodb_data_fsyncs", 0))
        return engine + rows.get("aria_transaction_log_syncs", 0)

    def own_types(self, rep_engine: str = "") -> OwnTypes:
        is_memory = rep_engine.upper() == _MEMORY
        return OwnTypes(
            text=mysql.VARCHAR(512, **_UTF8) if is_memory else mysql.TEXT(**_UTF8),
            long_text=mysql.VARCHAR(8000, **_UTF8) if is_memory else mysql.LONGTEXT(**_UTF8),
            large_binary=mysql.LONGBLOB(),
            unsigned=mysql.INTEGER(unsigned=True),
            position=mysql.BIGINT(unsigned=True),
            seconds=mysql.DOUBLE(),
            short_seconds=mysql.FLOAT(),
            options=_in_both({"engine": "InnoDB", "default_charset": "utf8mb4", "collate": "utf8mb4_bin"}),
            name_of=lambda length, collation: mysql.VARCHAR(
                length, charset="utf8mb4", collation=collation or "utf8mb4_bin"
            ),
            choice_of=lambda words: mysql.ENUM(*words),
        )

    def quoted(self, name: str) -> Sql:
        return word(name)

    def table_options(self, rep_engine: str) -> dict[str, Any]:
        engine = rep_engine or "InnoDB"
        options = {"engine": engine, "default_charset": "utf8mb4"}
        if engine.lower() == "innodb":
            options["stats_persistent"] = "0"
        return _in_both(options)

    def engine_of(self, connection: Connection, table: str) -> str:
        query = written(
            "SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = :schema AND TABLE_NAME = :name"
        )
        return str(ask(connection, query, {"schema": OWN_SCHEMA, "name": table}).scalar() or "")

    def is_crash_safe(self, connection: Connection, table: str) -> bool:
        query = written(
            "SELECT e.TRANSACTIONS FROM information_schema.TABLES t JOIN information_schema.ENGINES e"
            " ON e.ENGINE = t.ENGINE WHERE t.TABLE_SCHEMA = :schema AND t.TABLE_NAME = :table"
        )
        return str(ask(connection, query, {"schema": OWN_SCHEMA, "table": table}).scalar()) == "YES"

    def bytewise(self, column: Sql) -> Sql:
        return written("CONVERT({} USING utf8mb4) COLLATE utf8mb4_bin", column)

    def let_everyone_read(self, connection: Connection, table: Sql, columns: Sequence[str] = ()) -> None:
        if _has_public(connection) and _may_grant(connection):
            ask(connection, _grant(table, columns, _PUBLIC))

    def statements_for_readers(self, connection: Connection, tables: Mapping[Sql, Sequence[str]]) -> list[str]:
        if not _has_public(connection):  # a server without PUBLIC can give a mandatory role to every user
            grants = [_grant(table, columns, _ROLE) for table, columns in tables.items()]
            return [written("CREATE ROLE IF NOT EXISTS {}", _ROLE), *grants, *_FOR_EVERYBODY]
        if _may_grant(connection):
            return []
        return [_grant(table, columns, _PUBLIC) for table, columns in tables.items()]

    def lock_installation(self, connection: Connection) -> None:
        connection.detach()  # do not return it to the pool: the lock and env.py's sql_mode must end with the session
        if ask(connection, written("SELECT GET_LOCK(:name, 60)"), {"name": f"{OWN_SCHEMA}.install"}).scalar() != 1:
            raise LockBusy("another process is creating the repository tables", hint="run the command again")

    def add_key_column(self, connection: Connection, table: Sql) -> bool:
        key = written("DROP PRIMARY KEY, ADD PRIMARY KEY (Channel_name, Xid, Piece)")
        ask(connection, written("ALTER TABLE {} ADD COLUMN Piece INT NOT NULL AFTER Xid, {}", table, key))
        return True

    def make_own_schema(self, connection: Connection) -> None:
        ask(connection, written("CREATE DATABASE IF NOT EXISTS {} CHARACTER SET utf8mb4", word(OWN_SCHEMA)))
        # a storage engine that the server lacks must be an error; the server must not use another engine instead
        ask(connection, written("SET SESSION sql_mode = CONCAT(@@SESSION.sql_mode, ',NO_ENGINE_SUBSTITUTION')"))


def _has_public(connection: Connection) -> bool:
    """True if the server is MariaDB 10.11 or later, which can grant a privilege to PUBLIC."""
    version = str(ask(connection, written("SELECT VERSION()")).scalar())
    return "MariaDB" in version and tuple(map(int, version.split("-")[0].split(".")[:2])) >= _PUBLIC_SINCE


def _may_grant(connection: Connection) -> bool:
    """True if the target's account may grant SELECT on rplctl's own tables to other users."""
    found = ask(connection, _GRANTABLE, {"schema": OWN_SCHEMA}).scalar()
    return bool(found)


def _grant(table: Sql, columns: Sequence[str], whom: Sql) -> Sql:
    some = written(" ({})", joined(", ", map(backticked, columns))) if columns else NOTHING
    return written("GRANT SELECT{} ON {} TO {}", some, table, whom)


def _in_both(options: dict[str, str]) -> dict[str, str]:
    """Return the options twice, with each prefix that SQLAlchemy requires: `mysql_` and `mariadb_`."""
    return {f"{name}_{option}": value for name in ("mysql", "mariadb") for option, value in options.items()}


DIALECT = MysqlDialect()
