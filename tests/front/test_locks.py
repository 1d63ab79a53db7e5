"""The locks of a backup belong to the connection that took them, and end with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pymysql
import pytest

from rplctl.front import locks
from rplctl.history import read_history
from rplctl.locks import InstanceLock, RwLock, read_lock
from tests.front.test_front import connect, datadir, errno_of, served
from tests.kit.replica import wait_until

__all__ = ["datadir"]
LOCKS = {
    "LOCK INSTANCE FOR BACKUP": "UNLOCK INSTANCE",
    "FLUSH TABLES WITH READ LOCK": "UNLOCK TABLES",
    "FLUSH LOCAL TABLES WITH READ LOCK": "UNLOCK TABLES",
}


def is_locked(datadir: Path, statement: str) -> bool:
    """True if a command that the statement's lock holds up would wait."""
    with closing(_lock(datadir, statement)) as lock:
        return not (lock.acquire_verb(0) if isinstance(lock, InstanceLock) else lock.acquire_shared(0))


def _lock(datadir: Path, statement: str) -> InstanceLock | RwLock:
    return InstanceLock(datadir) if "INSTANCE" in statement else read_lock(datadir)


def run(connection: Any, statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.fixture(params=LOCKS)
def statement(request: pytest.FixtureRequest) -> Iterator[str]:
    yield request.param


def test_a_lock_is_held_until_it_is_released(datadir: Path, statement: str) -> None:
    with served(datadir) as server, connect(server, "dba") as connection:
        run(connection, statement)
        run(connection, statement)  # once more changes nothing
        assert is_locked(datadir, statement)
        run(connection, "FLUSH TABLES")
        assert is_locked(datadir, statement)
        run(connection, LOCKS[statement])
        assert not is_locked(datadir, statement)
        run(connection, LOCKS[statement])
    events = [(event.Event, event.Done_By) for event in read_history(datadir)]
    assert events[-2:] == [("lock", "dba@127.0.0.1 over SQL"), ("unlock", "dba@127.0.0.1 over SQL")]


def test_the_end_of_the_connection_releases_its_locks(datadir: Path, statement: str) -> None:
    with served(datadir) as server:
        leaving, staying = connect(server, "dba"), connect(server, "dba")
        run(leaving, statement)
        if "INSTANCE" in statement:
            run(staying, statement)
        leaving._force_close()
        wait_until(lambda: len(server.front.sessions) == 1)
        assert is_locked(datadir, statement) == ("INSTANCE" in statement), "any number of backups may hold it"
        staying._execute_command(31, b"")  # COM_RESET_CONNECTION
        staying._read_ok_packet()
        assert not is_locked(datadir, statement)
        staying.close()


def test_a_reader_takes_no_lock(datadir: Path, statement: str) -> None:
    with served(datadir) as server:
        assert errno_of(server, "monitor", statement) == 1227
        assert errno_of(server, "monitor", "UNLOCK TABLES") == 0
        assert not is_locked(datadir, statement)


def test_a_lock_that_is_not_free_in_time_is_1205(
    datadir: Path, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "LOCK_WAIT_S", 0.1)
    with served(datadir) as server, closing(_lock(datadir, statement)) as busy:
        assert busy.acquire_verb(0) if isinstance(busy, InstanceLock) else busy.acquire_shared(0)
        with connect(server, "dba") as connection:
            with pytest.raises(pymysql.MySQLError, match="Lock wait timeout") as refused:
                run(connection, statement)
            assert refused.value.args[0] == 1205
            busy.close()
            run(connection, statement)
            assert is_locked(datadir, statement)


def test_a_command_is_refused_under_the_lock_of_a_connection(datadir: Path) -> None:
    with served(datadir) as server, connect(server, "dba") as connection:
        run(connection, "LOCK INSTANCE FOR BACKUP")
        assert errno_of(server, "dba", "RESET REPLICA ALL") == 1205
        run(connection, "UNLOCK INSTANCE")
        assert errno_of(server, "dba", "RESET REPLICA ALL") == 0
