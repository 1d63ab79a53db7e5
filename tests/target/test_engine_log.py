"""Where a target's own log stands, asked of real servers, and who may ask (WL#9452 F-1.1, Step-5)."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rplctl.errors import TargetError
from rplctl.target import open_engine, open_engine_log
from rplctl.target.engine_log import (
    EngineLog,
    access_denied,
)
from rplctl.target.mysql.engine_log import innodb_status_figures
from tests.kit.private_server import PrivateServer

LONG = pytest.mark.long(
    "The cases of the other kinds hold the promise; those of MySQL repeat it.", keeps=r"^(?!.*mysql)"
)

DENIED = "Access denied; you need (at least one of) the BACKUP_ADMIN privilege(s) for this operation"
KINDS = [pytest.param(kind, marks=getattr(pytest.mark, kind)) for kind in ("mariadb", "mysql", "postgresql")]
SOME_USER = {
    "mariadb": "CREATE OR REPLACE USER nobackup@'%' IDENTIFIED BY 'pw'; GRANT SELECT ON *.* TO nobackup@'%'",
    "mysql": "CREATE USER IF NOT EXISTS nobackup@'%' IDENTIFIED BY 'pw'; GRANT SELECT ON *.* TO nobackup@'%'",
    "postgresql": "DROP ROLE IF EXISTS nobackup; CREATE ROLE nobackup LOGIN PASSWORD 'pw'",
}


@contextmanager
def log_of(url: str) -> Iterator[EngineLog]:
    engine = open_engine(url)
    try:
        log = open_engine_log(engine)
        assert log is not None
        yield log
        log.close()
    finally:
        engine.dispose()


def figures(log: EngineLog) -> dict[str, Any]:
    log.lock()
    try:
        return log.collect()
    finally:
        log.unlock()


def as_bytes(lsn: int | str) -> int:
    """0/16B3748 of PostgreSQL → bytes."""
    if isinstance(lsn, int):
        return lsn
    high, _, low = lsn.partition("/")
    return (int(high, 16) << 32) | int(low, 16)


@LONG
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_target_says_where_its_log_is(request: pytest.FixtureRequest, kind: str) -> None:
    server: Any = request.getfixturevalue(kind)
    table = "public.lsn_probe" if kind == "postgresql" else "mysql.lsn_probe"
    with log_of(server.url()) as log:
        assert log.name == {"postgresql": "PostgreSQL"}.get(kind, "InnoDB")
        before = figures(log)
        assert list(before) == ["LSN", "LSN_checkpoint"]
        server.sql(f"CREATE TABLE IF NOT EXISTS {table} (a INT)")
        server.sql(f"INSERT INTO {table} VALUES (1)")
        after = figures(log)
        assert as_bytes(before["LSN"]) < as_bytes(after["LSN"])
        assert 0 < as_bytes(after["LSN_checkpoint"]) <= as_bytes(after["LSN"])
        assert not log.copy_to(Path("/nowhere"))


@pytest.mark.long("The cases of the other kinds hold the promise; those of MySQL repeat it.")
def test_mysqls_own_row_has_the_same_engines(mysql: PrivateServer) -> None:
    server: Any = mysql
    own = json.loads(server.sql("SELECT STORAGE_ENGINES FROM performance_schema.log_status")[0][0])
    with log_of(server.url()) as log:
        assert {log.name: set(figures(log))} == {name: set(keys) for name, keys in own.items()}


@LONG
@pytest.mark.parametrize("kind", KINDS)
def test_a_server_that_does_not_grant_backups_is_1227_with_mysqls_words(
    request: pytest.FixtureRequest, kind: str
) -> None:
    server: Any = request.getfixturevalue(kind)
    for statement in SOME_USER[kind].split("; "):
        server.sql(statement)
    url = re.sub(r"//[^@]*@", "//nobackup:pw@", server.url()) + ("?ssl_mode=REQUIRED" if kind == "mysql" else "")
    with pytest.raises(TargetError) as raised, log_of(url):
        pass
    assert (raised.value.errno, raised.value.message) == (1227, DENIED)


def test_sqlite_counts_the_frames_of_its_log_and_keeps_a_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    engine = open_engine(f"sqlite:///{path}")
    path.unlink(missing_ok=True)
    assert open_engine_log(engine) is None
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("PRAGMA journal_mode=WAL")
    writer.execute("CREATE TABLE t (a INT)")
    log = open_engine_log(engine)
    assert log is not None
    log.lock()
    before = log.collect()
    for number in range(10):
        writer.execute(f"INSERT INTO t VALUES ({number})")
    after = log.collect()
    assert int(after["LSN"]) > int(before["LSN"]) > 0 and before["WAL_salt"] == after["WAL_salt"]
    writer.execute("PRAGMA wal_checkpoint(PASSIVE)")
    assert log.collect()["LSN_checkpoint"] == before["LSN"]  # our snapshot needs what came later to stay in the log
    assert log.copy_to(tmp_path / "copy.db")
    log.unlock()
    copy = sqlite3.connect(tmp_path / "copy.db")
    assert copy.execute("SELECT count(*) FROM t").fetchall() == [(0,)]
    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600
    writer.execute("PRAGMA wal_checkpoint(PASSIVE)")
    found = log.collect()
    assert found["LSN"] == found["LSN_checkpoint"] == after["LSN"]
    for connection in (copy, writer):
        connection.close()
    log.close()


def test_a_process_keeps_its_own_locks_on_a_database_that_it_opens_again_and_reads(tmp_path: Path) -> None:
    """fcntl locks go with any close of the file: a snapshot would lose the write-ahead log that it stands in."""
    path = tmp_path / "t.db"
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("PRAGMA journal_mode=WAL")
    writer.execute("CREATE TABLE t (a BLOB)")
    log = open_engine_log(open_engine(f"sqlite:///{path}"))
    assert log is not None
    log.lock()
    before = locks_on(path), locks_on(tmp_path / "t.db-shm")
    assert all(before), "the connections hold no locks"
    log.collect()
    open_engine(f"sqlite:///{path}")
    assert (locks_on(path), locks_on(tmp_path / "t.db-shm")) == before
    log.unlock()
    log.close()
    writer.close()


def locks_on(path: Path) -> list[list[str]]:
    """What the kernel says of them, without the numbers of lines and holders."""
    mine = f":{path.stat().st_ino} "
    lines = Path("/proc/locks").read_text().splitlines()
    return sorted(line.split()[1:4] + line.split()[6:] for line in lines if mine in line)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "LOG\n---\nLog sequence number 2612345\nLog flushed up to   2612340\nLast checkpoint at  2612000\n",
            (2612345, 2612000),
        ),
        ("Log sequence number          19419998\nLast checkpoint at           19090444\n", (19419998, 19090444)),
    ],
)
def test_innodb_status_is_read(text: str, expected: tuple[int, int]) -> None:
    assert tuple(innodb_status_figures(text).values()) == expected


def test_an_innodb_status_without_numbers_is_an_error() -> None:
    with pytest.raises(TargetError):
        innodb_status_figures("BACKGROUND THREAD\n")


def test_the_words_are_the_worklogs() -> None:
    error: Callable[[str], TargetError] = access_denied
    assert error("x").message == DENIED and error("x").errno == 1227
