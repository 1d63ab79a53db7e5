"""KILL and the functions that wait: the same answers as a real server, and locks that stay."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pymysql
import pytest

from rplctl.command.user import add_user
from rplctl.config import load_config
from rplctl.front.server import MOST_CONNECTIONS
from tests.front.test_front import PASSWORD, ask, connect, datadir, errno_of, served
from tests.kit.replica import wait_until
from tests.kit.servers import MariadbServer

__all__ = ["datadir"]
pytestmark = pytest.mark.slow
WAITS = ("'9-9-9', 0", "NULL, 1", "'9-9-9', 0.2", "'', 0")


def outcome(connection: Any, sql: str) -> Any:
    """The first value, or the number of the error."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql)
            row = cursor.fetchone()
            return row and row[0]
    except pymysql.MySQLError as error:
        return f"error {error.args[0]}"


def killed(victim: Any, killer: Any, sql: str) -> tuple[Any, Any]:
    """What the statement answers if KILL QUERY comes while it runs, and what the connection answers then."""
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(outcome, victim, sql)
        deadline = time.monotonic() + 60
        while not answer.done() and time.monotonic() < deadline:
            time.sleep(0.3)
            outcome(killer, f"KILL QUERY {victim.thread_id()}")
        return answer.result(60), outcome(victim, "SELECT 7")


@pytest.mark.mariadb
def test_kill_query_and_waits_answer_as_a_server_answers(datadir: Path, mariadb: MariadbServer) -> None:
    waits = [
        f"SELECT MASTER_GTID_WAIT({arguments})" for arguments in ("'9-9-9', 0", "NULL, 1", "'9-9-9', 0.2", "'', 0")
    ]
    with served(datadir, flavor="mariadb") as server, connect(server, "dba") as one, connect(server, "dba") as other:
        ours = [outcome(one, sql) for sql in waits]
        ours_killed = killed(one, other, "SELECT MASTER_GTID_WAIT('9-9-9', -1)")
        ours_unknown = outcome(one, "KILL QUERY 99999999")
    with mariadb.connect() as one, mariadb.connect() as other:
        assert ours == [outcome(one, sql) for sql in waits]
        assert ours_killed == killed(one, other, "SELECT MASTER_GTID_WAIT('9-9-9', -1)")
        assert ours_unknown == outcome(one, "KILL QUERY 99999999")


def test_kill_query_leaves_the_connection_and_its_locks(datadir: Path) -> None:
    with served(datadir) as server, connect(server, "dba") as one, connect(server, "dba") as other:
        assert outcome(one, "FLUSH TABLES WITH READ LOCK") is None
        assert killed(one, other, "SELECT SLEEP(600)") == (1, 7)
        assert outcome(other, f"KILL QUERY {one.thread_id()}") is None  # idle: nothing happens
        assert outcome(one, "UNLOCK TABLES") is None
        assert any(session.number == one.thread_id() for session in server.front.sessions.values())
        assert outcome(other, f"KILL {one.thread_id()}") is None
        assert str(outcome(one, "SELECT 7")).startswith("error 2")


def test_a_reader_ends_only_statements_of_its_own_account(datadir: Path) -> None:
    add_user(load_config(datadir, ""), "other", "reader", PASSWORD)
    with served(datadir) as server, connect(server, "monitor") as one, connect(server, "monitor") as same:
        assert errno_of(server, "other", f"KILL QUERY {one.thread_id()}") == 1095
        assert errno_of(server, "other", f"KILL {one.thread_id()}") == 1095
        assert killed(one, same, "SELECT SLEEP(600)") == (1, 7)
        assert ask(server, "dba", f"KILL {one.thread_id()}")[1] == []


def test_an_administrator_signs_in_when_readers_hold_all_connections(datadir: Path) -> None:
    with served(datadir) as server, ExitStack() as opened:
        first, *_ = [opened.enter_context(connect(server, "monitor")) for _ in range(MOST_CONNECTIONS)]
        assert errno_of(server, "monitor", "SELECT 1") == 1040
        assert ask(server, "dba", f"KILL {first.thread_id()}")[1] == []
        wait_until(lambda: errno_of(server, "monitor", "SELECT 1") == 0, 30)
