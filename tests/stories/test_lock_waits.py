"""A lock of another session in the target: the status names it while the applier waits, and forgets it after that."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pymysql
import pytest

from tests.kit.postgresql_state import connect, new_database
from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer, PostgresqlServer

pytestmark = [pytest.mark.slow, pytest.mark.mariadb, pytest.mark.timeout(300)]
DATABASE = "locked"
ROW_LOCK = f"UPDATE {DATABASE}.t SET b = b WHERE a = 1"
IN_MYSQL = pytest.mark.long("The questions are the same for MariaDB, whose cases are in make test.")


def state(replica: Replica) -> str:
    return str(replica.status()["Slave_SQL_Running_State"])


@contextmanager
def on_server(session: Any, sql: str) -> Iterator[None]:
    with closing(session), session.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(sql)
        yield


@contextmanager
def on_sqlite(replica: Replica) -> Iterator[None]:
    with closing(sqlite3.connect(replica.datadir / "target.db", isolation_level=None)) as session:
        session.execute("BEGIN IMMEDIATE")
        yield


def follow_and_meet(
    replica: Replica, source: MariadbServer, options: tuple[str, ...], lock: Callable[[], Any], words: str, sql: str
) -> None:
    source.sql(f"DROP DATABASE IF EXISTS {DATABASE}; FLUSH BINARY LOGS")
    name, position = source.master_status()
    replica.set_up(source, *options, change=("--master-log-file", name, "--master-log-pos", str(position)))
    source.sql(f"CREATE DATABASE {DATABASE}; CREATE TABLE {DATABASE}.t (a INT PRIMARY KEY, b INT)")
    source.sql(f"INSERT INTO {DATABASE}.t VALUES (1, 1)")
    replica.run("start")
    replica.wait_synced(source)
    with lock():
        source.sql(sql.format(d=DATABASE))
        wait_until(lambda: state(replica).startswith(words), 60)
        assert replica.status()["Slave_SQL_Running"] == "Yes"
    replica.wait_synced(source)
    wait_until(lambda: not state(replica).startswith("Waiting for"), 60)


@pytest.fixture(params=["mariadb", pytest.param("mysql", marks=[pytest.mark.mysql, IN_MYSQL])])
def target(request: pytest.FixtureRequest) -> MariadbServer:
    factory: Callable[..., MariadbServer] = request.getfixturevalue(f"{request.param}_factory")
    return factory()


def test_a_row_lock_of_another_session_is_named(
    mariadb: MariadbServer, target: MariadbServer, replica: Replica
) -> None:
    follow_and_meet(
        replica, mariadb, replica.into(target), lambda: on_server(target.connect(), ROW_LOCK),
        "Waiting for a row lock of another session", "UPDATE {d}.t SET b = 2",
    )  # fmt: skip


def without_process(replica: Replica, target: MariadbServer) -> tuple[str, ...]:
    """The options of `init` for an account that may write its databases, and sees no other account's threads."""
    target.sql("CREATE USER low IDENTIFIED BY 'rpl'; GRANT ALL ON rplctl.* TO low")
    target.sql(f"GRANT ALL ON {DATABASE}.* TO low")
    replays = "REPLICATION_APPLIER, SESSION_VARIABLES_ADMIN" if target.kind == "mysql" else "BINLOG REPLAY"
    target.sql(f"GRANT {replays} ON *.* TO low")
    pymysql.connect(unix_socket=str(target.socket), user="low", password="rpl").close()  # MySQL remembers who signed in
    return tuple(word.replace("rpl@", "low@") for word in replica.into(target))


def test_a_metadata_lock_is_named_in_the_servers_words_without_process(
    mariadb: MariadbServer, target: MariadbServer, replica: Replica
) -> None:
    follow_and_meet(
        replica, mariadb, without_process(replica, target),
        lambda: on_server(target.connect(), f"SELECT * FROM {DATABASE}.t"),
        "Waiting for table metadata lock", "ALTER TABLE {d}.t ADD c INT",
    )  # fmt: skip


def test_without_process_a_row_lock_is_not_named_and_the_channel_goes_on(
    mariadb: MariadbServer, target: MariadbServer, replica: Replica
) -> None:
    """The server refuses the question; the applier meets no error by it."""

    def blocked() -> Any:
        return target.sql(
            "SELECT 1 FROM information_schema.processlist WHERE user = 'low' AND time >= 3 AND info <> ''"
        )

    def look(lock: Any) -> Any:
        @contextmanager
        def held() -> Iterator[None]:
            with lock:
                yield
                wait_until(blocked, 60)
                assert state(replica) == "Reading event from the relay log"

        return held()

    follow_and_meet(
        replica, mariadb, without_process(replica, target), lambda: look(on_server(target.connect(), ROW_LOCK)),
        "Reading event", "UPDATE {d}.t SET b = 2",
    )  # fmt: skip
    assert replica.status()["Last_SQL_Errno"] == 0


def test_a_lock_on_postgresql_is_named(mariadb: MariadbServer, postgresql: PostgresqlServer, replica: Replica) -> None:
    url = new_database(postgresql)
    password = replica.datadir.parent / "target-password"
    password.write_text("rpl\n")
    password.chmod(0o600)
    into = ("--target", url.replace("rpl:rpl@", "rpl@"), "--target-password-file", str(password))
    follow_and_meet(
        replica, mariadb, into, lambda: on_server(connect(url), ROW_LOCK),
        "Waiting for a lock of another session (transactionid)", "UPDATE {d}.t SET b = 2",
    )  # fmt: skip


def test_the_write_lock_of_a_sqlite_file_is_named(mariadb: MariadbServer, replica: Replica) -> None:
    follow_and_meet(
        replica, mariadb, (), lambda: on_sqlite(replica),
        "Waiting for the write lock of the database file", "UPDATE {d}.t SET b = 2",
    )  # fmt: skip
