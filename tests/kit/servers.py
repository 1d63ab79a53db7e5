"""MariaDB, MySQL 9 and PostgreSQL as private servers for tests: how each is made, run and asked.

`rpl`/`rpl` may do everything, over TCP and the socket. A kind that is not on the machine raises ServerUnavailable,
whose text says what to install.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import psycopg
import pymysql
from pymysql.constants import CLIENT, FIELD_TYPE
from pymysql.converters import conversions

from tests.kit.private_server import (
    CACHE,
    HOST,
    PASSWORD,
    USER,
    PrivateServer,
    Row,
    ServerUnavailable,
    find_program,
    run_quietly,
)

PRINTED_BY_SERVER = {
    *(FIELD_TYPE.DATE, FIELD_TYPE.NEWDATE, FIELD_TYPE.TIME, FIELD_TYPE.DATETIME, FIELD_TYPE.TIMESTAMP),
    *(FIELD_TYPE.DECIMAL, FIELD_TYPE.NEWDECIMAL),
}
EMPTY_LOG_BYTES = 1000  # the first events of a binary log have less than 500
CHECKPOINT_TIMEOUT_S = 30
FLUSH_REDO = (
    "SET @before = @@GLOBAL.innodb_flush_log_at_trx_commit; SET GLOBAL innodb_flush_log_at_trx_commit = 1; "
    "FLUSH LOCAL ENGINE LOGS; SET GLOBAL innodb_flush_log_at_trx_commit = @before"
)
EVENTS_BEFORE_CHECKPOINT = 100  # after so many the checkpoint is no longer waited for
POSTGRESQL_TEXT = ("numeric", "date", "time", "timetz", "timestamp", "timestamptz", "interval", "json", "jsonb", "uuid")


class MariadbServer(PrivateServer):
    """The installed MariaDB; row format, full metadata, and only as durable as a killed process needs."""

    kind = "mariadb"
    errors = (pymysql.Error, OSError)
    no_such_table = pymysql.err.ProgrammingError
    base_options: ClassVar[tuple[str, ...]] = (
        "--bind-address=127.0.0.1",
        "--log-bin=binlog",
        "--relay-log=relay-bin",
        "--binlog-format=ROW",
        "--binlog-row-metadata=FULL",
        "--sync-binlog=0",
        "--innodb-flush-log-at-trx-commit=2",
        "--secure-file-priv=",
        "--local-infile=1",
        "--user=root",
    )
    own_options: ClassVar[tuple[str, ...]] = ("--skip-slave-start", "--log-slave-updates", "--innodb-log-file-size=16M")

    def __init__(self, options: Sequence[str] = ()) -> None:
        self.programs = self._find_programs()
        super().__init__(options)
        self.server_id = self.port

    @staticmethod
    def _find_programs() -> dict[str, list[str]]:
        found = {name: find_program(name) for name in ("mariadbd", "mariadb-install-db")}
        if not all(found.values()):
            raise ServerUnavailable("MariaDB is not installed (apt-get install mariadb-server)")
        return {"server": [found["mariadbd"]], "install": [found["mariadb-install-db"]]}

    @property
    def version(self) -> str:
        command = [*self.programs["server"], "--no-defaults", "--version"]
        text = subprocess.run(command, capture_output=True, text=True).stdout
        return text.split("Ver ", 1)[1].split()[0]

    @property
    def binlog_files(self) -> list[Path]:
        """The binary logs in order, without the index and MariaDB's `.idx` companions."""
        return sorted(path for path in self.data.glob("binlog.*") if path.suffix[1:].isdecimal())

    def _initialise(self, data: Path) -> None:
        small = ["--no-defaults", f"--datadir={data}", "--user=root", "--innodb-log-file-size=16M", "--skip-log-bin"]
        install = [*self.programs["install"], *small, "--auth-root-authentication-method=normal", "--skip-test-db"]
        run_quietly(install)
        run_quietly([*self.programs["server"], *small, "--bootstrap"], stdin="FLUSH PRIVILEGES;\n" + self._users_sql())

    @staticmethod
    def _users_sql() -> str:
        return (
            f"CREATE USER {USER}@'%' IDENTIFIED BY '{PASSWORD}';\nGRANT ALL ON *.* TO {USER}@'%' WITH GRANT OPTION;\n"
        )

    def _location_options(self) -> list[str]:
        return ["--no-defaults"]

    def _command(self) -> list[str]:
        own = [
            f"--datadir={self.data}",
            f"--socket={self.socket}",
            f"--port={self.port}",
            f"--server-id={self.server_id}",
        ]
        own.append(f"--pid-file={self.folder / 'pid'}")
        temporary = self.folder / "tmp"  # a server that starts removes all `#sql*` files in its tmpdir: not another's
        temporary.mkdir(exist_ok=True)
        self._own(temporary)
        own.append(f"--tmpdir={temporary}")
        options = [*self.base_options, *self.own_options, *own, *self.options]
        return [*self.programs["server"], *self._location_options(), *options]

    def connect(self, database: str | None = None) -> pymysql.connections.Connection[Any]:
        """Its own auto-commit session, time zone +00:00; temporals and decimals come as the server prints them."""
        decoders = {key: value for key, value in conversions.items() if key not in PRINTED_BY_SERVER}
        decoders[FIELD_TYPE.BIT] = lambda data: int.from_bytes(data, "big")
        return pymysql.connect(
            unix_socket=str(self.socket),
            user=USER,
            password=PASSWORD,
            database=database,
            charset="utf8mb4",
            autocommit=True,
            client_flag=CLIENT.MULTI_STATEMENTS,
            conv=decoders,
            init_command="SET time_zone='+00:00'",
            connect_timeout=180,
            read_timeout=600,
            ssl_disabled=True,  # a socket needs none, and to load the system's certificates takes 40 ms each time
        )

    def sql(self, text: str, database: str | None = None) -> list[Row]:
        with contextlib.closing(self.connect(database)) as connection, connection.cursor() as cursor:
            cursor.execute(text)
            rows: list[Row] = []
            while True:
                rows = list(cursor.fetchall()) if cursor.description else rows
                if not cursor.nextset():
                    return rows

    def _connect_housekeeper(self) -> pymysql.connections.Connection[Any]:
        connection = self.connect()
        connection.query("SET sql_log_bin = 0")  # the server is a source: no event
        return connection

    def url(self, database: str = "") -> str:
        return f"mysql+pymysql://{USER}:{PASSWORD}@{self.host}:{self.port}/{database}"

    def tables(self, database: str) -> list[str]:
        found = self.sql(
            "SELECT table_name FROM information_schema.tables WHERE table_type='BASE TABLE'"
            f" AND table_schema='{database}'"
        )
        return sorted(row[0] for row in found)

    def rows(self, database: str, table: str) -> list[Row]:
        return self.sql(f"SELECT * FROM `{database}`.`{table}`")

    def master_status(self) -> tuple[str, int]:
        """Return file and position of the end of its binary log, at which it stays while nobody writes.

        MariaDB writes the BINLOG_CHECKPOINT of a new file up to a second after the rotation, after whatever came first.
        """
        deadline = time.monotonic() + CHECKPOINT_TIMEOUT_S
        while True:
            name = self._log_end()[0]
            try:
                events = self.sql(f"SHOW BINLOG EVENTS IN '{name}' LIMIT {EVENTS_BEFORE_CHECKPOINT}")
            except pymysql.err.OperationalError:  # an event is larger than a packet may be: the log is not new
                return self._log_end()
            is_settled = len(events) == EVENTS_BEFORE_CHECKPOINT or any(
                (kind, info) == ("Binlog_checkpoint", name) for _, _, kind, _, _, info in events
            )
            end = self._log_end()
            if is_settled and end[0] == name:
                return end
            assert time.monotonic() < deadline, f"no Binlog_checkpoint in {name}"
            self.sql(FLUSH_REDO)  # which the checkpoint waits for

    def _log_end(self) -> tuple[str, int]:
        row = self.sql("SHOW MASTER STATUS")[0]
        return row[0], int(row[1])

    def is_log_new(self) -> bool:
        """Return True if its binary log is one file with nothing but the first events of an empty one."""
        files = self.binlog_files
        return [file.suffix for file in files] == [".000001"] and files[0].stat().st_size < EMPTY_LOG_BYTES

    def reset_binary_log(self) -> None:
        """Begin its binary log, and the GTIDs of it, anew."""
        self.sql("RESET MASTER")

    def follow(self, source: MariadbServer, port: int = 0) -> None:
        """Replicate it by GTID from the start of its history; `port`: of a proxy."""
        self.sql(
            f"CHANGE MASTER TO MASTER_HOST='{source.host}', MASTER_PORT={port or source.port}, MASTER_USER='{USER}', "
            f"MASTER_PASSWORD='{PASSWORD}', MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1; START SLAVE"
        )


class Mariadb118Server(MariadbServer):
    """MariaDB 11.8, unpacked beside the system from Debian trixie (tests/kit/fetch_mariadb.py)."""

    own_options = (*MariadbServer.own_options, "--ssl=OFF")
    release = "11.8"
    family = "mariadb"  # how its folder and system tables are called

    @classmethod
    def _find_programs(cls) -> dict[str, list[str]]:
        from tests.kit.fetch_mariadb import mariadb_programs

        return mariadb_programs(CACHE, cls.release)

    def _location_options(self) -> list[str]:
        root = Path(self.programs["root"][0])
        share = root / "usr/share" / self.family
        return [
            "--no-defaults",
            f"--basedir={root / 'usr'}",
            f"--lc-messages-dir={share}",
            f"--character-sets-dir={share / 'charsets'}",
            f"--plugin-dir={root / 'usr/lib/mysql/plugin'}",
        ]

    def _initialise(self, data: Path) -> None:
        share = Path(self.programs["root"][0]) / "usr/share" / self.family
        data.mkdir(parents=True)
        names = ("system_tables", "performance_tables", "system_tables_data")
        tables = "".join((share / f"{self.family}_{name}.sql").read_text() for name in names)
        text = f"CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n{tables}\nFLUSH PRIVILEGES;\n"
        small = [f"--datadir={data}", "--user=root", "--innodb-log-file-size=16M", "--skip-log-bin"]
        start = [*self.programs["server"], *self._location_options(), *small, "--bootstrap"]
        run_quietly(start, stdin=text + self._users_sql())


class Mariadb105Server(Mariadb118Server):
    """MariaDB 10.5, the oldest that is looked after, from Debian bullseye."""

    release = "10.5"
    family = "mysql"


class MysqlServer(MariadbServer):
    """MySQL 9, unpacked beside the system from Debian sid (tests/kit/fetch_mysql.py), run through its own loader."""

    kind = "mysql"
    release = "9"
    own_options = ("--skip-replica-start", "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--mysqlx=OFF")

    @classmethod
    def _find_programs(cls) -> dict[str, list[str]]:
        from tests.kit.fetch_mysql import mysql_programs

        return mysql_programs(CACHE, cls.release)

    def _location_options(self) -> list[str]:
        root = Path(self.programs["root"][0])
        share = root / "usr/share/mysql"
        return [
            "--no-defaults",
            f"--basedir={root / 'usr'}",
            f"--lc-messages-dir={share}",
            f"--character-sets-dir={share / 'charsets'}",
            f"--plugin-dir={root / 'usr/lib/mysql/plugin'}",
        ]

    def _initialise(self, data: Path) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".sql") as users:
            users.write(self._users_sql())
            users.flush()
            new = [
                "--initialize-insecure",
                f"--init-file={users.name}",
                f"--datadir={data}",
                "--skip-log-bin",
                "--user=root",
            ]
            run_quietly([*self.programs["server"], *self._location_options(), *new])
        (data / "auto.cnf").unlink(missing_ok=True)  # each copy is a server of its own: a new server_uuid

    def master_status(self) -> tuple[str, int]:
        row = self.sql("SHOW BINARY LOG STATUS")[0]
        return row[0], int(row[1])

    def reset_binary_log(self) -> None:
        self.sql("RESET BINARY LOGS AND GTIDS")

    def follow(self, source: MariadbServer, port: int = 0) -> None:
        self.sql(
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='{source.host}', SOURCE_PORT={port or source.port}, "
            f"SOURCE_USER='{USER}', SOURCE_PASSWORD='{PASSWORD}', SOURCE_AUTO_POSITION=1, SOURCE_CONNECT_RETRY=1, "
            "GET_SOURCE_PUBLIC_KEY=1; START REPLICA"
        )


class Mysql84Server(MysqlServer):
    """MySQL 8.4, from Ubuntu questing."""

    release = "8.4"


class Mysql80Server(MysqlServer):
    """MySQL 8.0, from Ubuntu jammy."""

    release = "8.0"

    def reset_binary_log(self) -> None:
        self.sql("RESET MASTER")

    def master_status(self) -> tuple[str, int]:
        return self._log_end()


class Mysql57Server(Mysql80Server):
    """MySQL 5.7, from Ubuntu bionic: the oldest whose log is read."""

    release = "5.7"
    base_options = tuple(option for option in MysqlServer.base_options if "metadata" not in option)
    own_options = ("--skip-slave-start", "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--ssl=OFF")


class PostgresqlServer(PrivateServer):
    """The installed PostgreSQL (newest version). It refuses to run as root, so it then runs as `postgres`."""

    kind = "postgresql"
    errors = (psycopg.Error, OSError)
    no_such_table = psycopg.errors.UndefinedTable

    def __init__(self, options: Sequence[str] = ()) -> None:
        folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
        if not folders:
            raise ServerUnavailable("PostgreSQL is not installed (apt-get install postgresql)")
        self.programs = folders[-1]
        self.account = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
        super().__init__(options)
        self.folder.chmod(0o755)
        self._own(self.folder)
        self.socket = self.folder / f".s.PGSQL.{self.port}"

    @property
    def version(self) -> str:
        return self.programs.parent.name

    def _as_account(self) -> list[str]:
        if self.account is None:
            return []
        return ["setpriv", f"--reuid={self.account.pw_uid}", f"--regid={self.account.pw_gid}", "--clear-groups"]

    def _initialise(self, data: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="rpl-po-", dir="/tmp") as work:  # `postgres` cannot see our home
            folder = Path(work)
            folder.chmod(0o755)
            password = folder / "password"
            password.write_text(PASSWORD)
            self._own(folder)
            options = [f"--pwfile={password}", f"--username={USER}", "--auth=scram-sha-256", "--encoding=UTF8"]
            command = [*self._as_account(), self.programs / "initdb", "-D", folder / "data", *options, "--no-sync"]
            run_quietly([str(word) for word in [*command, "--locale=C.UTF-8"]])
            shutil.copytree(folder / "data", data)

    def _own(self, folder: Path) -> None:
        if self.account is None:
            return
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, self.account.pw_uid, self.account.pw_gid)

    def _command(self) -> list[str]:
        settings = {
            "listen_addresses": HOST,
            "port": self.port,
            "unix_socket_directories": self.folder,
            "max_prepared_transactions": 64,  # two-phase commit is off by default
            "dynamic_shared_memory_type": "mmap",  # in its folder: a killed server leaves nothing in /dev/shm
            "fsync": "off",  # a killed server loses nothing by it; only a power cut would
            "timezone": "UTC",
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return [*self._as_account(), str(self.programs / "postgres"), "-D", str(self.data), *options, *self.options]

    def connect(self, database: str | None = None) -> psycopg.Connection[Row]:
        """A session of its own, auto-commit; numerics, temporals, JSON and UUIDs come as the server prints them."""
        connection = psycopg.connect(
            host=self.host, port=self.port, user=USER, password=PASSWORD, dbname=database or "postgres", autocommit=True
        )
        for name in POSTGRESQL_TEXT:
            connection.adapters.register_loader(name, psycopg.types.string.TextLoader)
        return connection

    def sql(self, text: str, database: str | None = None) -> list[Row]:
        with contextlib.closing(self.connect(database)) as connection:
            cursor = connection.execute(text.encode())
            rows: list[Row] = []
            while True:
                rows = cursor.fetchall() if cursor.description else rows
                if not cursor.nextset():
                    return rows

    def url(self, database: str = "postgres") -> str:
        return f"postgresql+psycopg://{USER}:{PASSWORD}@{self.host}:{self.port}/{database or 'postgres'}"

    def tables(self, database: str) -> list[str]:
        """`database` is a schema here, as the target maps it (design D10)."""
        return [row[0] for row in self.sql(f"SELECT tablename FROM pg_tables WHERE schemaname='{database}' ORDER BY 1")]

    def rows(self, database: str, table: str) -> list[Row]:
        return self.sql(f'SELECT * FROM "{database}"."{table}"')
