"""Beside a real MariaDB replica: rplctl stops at the same transaction, with the same number, and passes over the same.

One source, one server that replicates by itself (CHANGE MASTER), rplctl into MariaDB and into SQLite. The same fault
is put on all of them in the middle of a backlog (design D2).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest

from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.torture, pytest.mark.timeout(900)]

SCHEMA = """
DROP DATABASE IF EXISTS d; CREATE DATABASE d; USE d;
CREATE TABLE k (id INT PRIMARY KEY, code INT, v VARCHAR(20), UNIQUE (code));
CREATE TABLE n (a INT, v VARCHAR(20));
INSERT INTO k SELECT seq, seq, 'old' FROM seq_1_to_100;
INSERT INTO n SELECT seq, 'old' FROM seq_1_to_10;
"""
State = tuple[int, str, int]  # Last_SQL_Errno, Relay_Master_Log_File, Exec_Master_Log_Pos


@dataclass
class Replicas:
    source: MariadbServer
    server: MariadbServer  # replicates by itself
    target: MariadbServer
    into_server: Replica
    into_sqlite: Replica

    def fault(self, sql: str) -> None:
        """The same statement on all three copies; tables are written `d.t`."""
        self.server.sql(f"SET sql_log_bin=0; {sql}")
        self.target.sql(sql)
        with closing(sqlite3.connect(self.into_sqlite.datadir / "target.db")) as connection, connection:
            connection.execute(sql.replace("d.", "d__"))

    def go_on(self) -> list[State]:
        """All three until they stop, by themselves or because they have everything."""
        with ThreadPoolExecutor(2) as pool:
            ours = [
                pool.submit(one.run, "start", "--until-synced", expect=None)
                for one in (self.into_server, self.into_sqlite)
            ]
            self.server.sql("START SLAVE")
            wait_until(self._server_is_done, timeout_s=120)
            self.server.sql("STOP SLAVE")
            for one in ours:
                one.result()
        return [self._of_server(), *(_state(one.status()) for one in (self.into_server, self.into_sqlite))]

    def _of_server(self) -> State:
        return _state(_server_status(self.server))

    def _server_is_done(self) -> bool:
        status = _server_status(self.server)
        at = (status["Relay_Master_Log_File"], status["Exec_Master_Log_Pos"])
        return bool(status["Last_SQL_Errno"]) or at == self.source.master_status()

    def contents(self) -> list[dict[str, list[tuple[Any, ...]]]]:
        queries = {t: f"SELECT * FROM d.{t} ORDER BY 1, 2" for t in ("k", "n")}
        found = [{t: server.sql(q) for t, q in queries.items()} for server in (self.server, self.target)]
        return [*found, {t: self.into_sqlite.query(q.replace("d.", "d__")) for t, q in queries.items()}]


def _server_status(server: MariadbServer) -> dict[str, Any]:
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW SLAVE STATUS")
        row = cursor.fetchone()
        assert row is not None and cursor.description is not None
        return dict(zip((column[0] for column in cursor.description), row, strict=True))


def _state(status: dict[str, Any]) -> State:
    return status["Last_SQL_Errno"], status["Relay_Master_Log_File"], status["Exec_Master_Log_Pos"]


def set_up(replica: Replica, source: MariadbServer, *init: str) -> Replica:
    replica.datadir.parent.mkdir()
    replica.run("init", *init)
    replica.change_master(source)
    return replica


@pytest.fixture(scope="module")
def replicas(
    mariadb_factory: Callable[..., MariadbServer], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Replicas]:
    source, server, target = (mariadb_factory() for _ in range(3))
    folder = tmp_path_factory.mktemp("strict")
    password = folder / "password"
    password.write_text("rpl\n")
    password.chmod(0o600)
    where = ("--target", f"mysql://rpl@{target.host}:{target.port}/", "--target-password-file", str(password))
    source.sql("RESET MASTER")
    source.sql(SCHEMA)
    server.sql(
        f"CHANGE MASTER TO MASTER_CONNECT_RETRY=1, "
        f"MASTER_HOST='{source.host}', MASTER_PORT={source.port}, MASTER_USER='rpl',"
        " MASTER_PASSWORD='rpl', MASTER_LOG_FILE='binlog.000001', MASTER_LOG_POS=4"
    )
    into_server, into_sqlite = Replica(folder / "server"), Replica(folder / "sqlite")
    made = Replicas(source, server, target, set_up(into_server, source, *where), set_up(into_sqlite, source))
    assert len({state[1:] for state in made.go_on()}) == 1
    yield made
    into_server.close()
    into_sqlite.close()


def backlog(source: MariadbServer, count: int, *offenders: str) -> None:
    """`count` transactions of changes that fit, and the offenders spread among them, each a transaction of its own."""
    every = count // (len(offenders) + 1)
    with closing(source.connect("d")) as connection, connection.cursor() as cursor:
        for number in range(count):
            cursor.execute(f"UPDATE k SET v = 'n{number}' WHERE id = {number % 50 + 1}")
            if number % every == every - 1 and number // every < len(offenders):
                cursor.execute(offenders[number // every])


def stop_alike(replicas: Replicas, count: int) -> None:
    replicas.fault("DELETE FROM d.k WHERE id = 61")
    replicas.fault("INSERT INTO d.k VALUES (200, 200, 'there')")
    replicas.fault("UPDATE d.k SET v = 'other' WHERE id = 62")  # found by its key: no offender to anybody
    replicas.fault("UPDATE d.n SET v = 'other' WHERE a = 3")  # no key: the whole row must be equal
    backlog(
        replicas.source,
        count,
        "UPDATE k SET v = 'new' WHERE id = 61",
        "INSERT INTO k VALUES (200, 200, 'new')",
        "UPDATE k SET v = 'new' WHERE id = 62",
        "UPDATE n SET v = 'new' WHERE a = 3",
    )
    repairs = [
        (1032, "INSERT INTO d.k VALUES (61, 61, 'old')"),
        (1062, "DELETE FROM d.k WHERE id = 200"),
        (1032, "UPDATE d.n SET v = 'old' WHERE a = 3"),
    ]
    for errno, repair in repairs:
        by_server, *ours = replicas.go_on()
        assert by_server[0] == errno
        assert ours == [by_server] * 2
        theirs, *copies = replicas.contents()
        assert copies == [theirs] * 2
        replicas.fault(repair)
    assert [state[0] for state in replicas.go_on()] == [0, 0, 0]
    assert [state[1:] for state in replicas.go_on()] == [replicas.source.master_status()] * 3
    assert (
        replicas.contents() == [{t: replicas.source.sql(f"SELECT * FROM d.{t} ORDER BY 1, 2") for t in ("k", "n")}] * 3
    )


def test_faults_in_a_backlog_stop_rplctl_where_they_stop_a_mariadb_replica(replicas: Replicas) -> None:
    stop_alike(replicas, 3_000)


OFFENDERS = (  # each has one row that does not fit
    "UPDATE k SET v = 'new' WHERE id = 71",  # missing
    "INSERT INTO k VALUES (300, 300, 'new'), (301, 301, 'new'), (302, 302, 'new')",  # the one in the middle is there
    "INSERT INTO k VALUES (310, 310, 'new')",  # another row has its code
    "INSERT INTO k VALUES (320, 322, 'new')",  # one row has its id, another its code
    "DELETE FROM k WHERE id IN (72, 73)",  # the first is missing
    "UPDATE k SET v = 'new' WHERE id BETWEEN 74 AND 76",  # the one in the middle is missing
    "BEGIN; UPDATE k SET v = 'more' WHERE id = 75; UPDATE k SET v = 'new' WHERE id = 77; COMMIT",  # the first event
    "DELETE FROM n WHERE a IN (7, 8)",  # no key, and the first is another one
)


def disturb(replicas: Replicas) -> None:
    replicas.fault("DELETE FROM d.k WHERE id IN (71, 72, 75) OR id >= 300")
    replicas.fault("INSERT INTO d.k VALUES (301, 301, 'there')")
    replicas.fault("INSERT INTO d.k VALUES (309, 310, 'there')")
    replicas.fault("INSERT INTO d.k VALUES (320, 320, 'there')")
    replicas.fault("INSERT INTO d.k VALUES (321, 322, 'there')")
    replicas.fault("UPDATE d.n SET v = 'other' WHERE a = 7")


def prepared_source(replicas: Replicas) -> None:
    """All rows are there and as they were, everywhere, whatever was passed over before."""
    for table in ("k WHERE id > 60", "n"):
        replicas.source.sql(f"SET sql_log_bin=0; DELETE FROM d.{table}")
        replicas.fault(f"DELETE FROM d.{table}")
    rows = "INSERT INTO k SELECT seq, seq, 'old' FROM seq_61_to_80; INSERT INTO n SELECT seq, 'old' FROM seq_1_to_10"
    replicas.source.sql(rows, "d")


@pytest.mark.parametrize("mode", ["idempotent", "skip_errors"])
def test_what_is_passed_over_leaves_what_it_leaves_on_a_mariadb_replica(replicas: Replicas, mode: str) -> None:
    if mode == "idempotent":
        replicas.server.sql("SET GLOBAL slave_exec_mode='IDEMPOTENT'")
        options = ["--slave-exec-mode", "IDEMPOTENT", "--slave-skip-errors", "off"]
    else:
        replicas.server.restart(["--slave-skip-errors=1032,1062"])
        options = ["--replica-exec-mode", "strict", "--replica-skip-errors", "1032,1062"]
    for one in (replicas.into_server, replicas.into_sqlite):
        one.run("init", *options)
    prepared_source(replicas)
    replicas.go_on()
    disturb(replicas)
    backlog(replicas.source, 200, *OFFENDERS)
    assert replicas.go_on() == [(0, *replicas.source.master_status())] * 3
    theirs, *ours = replicas.contents()
    assert ours == [theirs] * 2
    # the server itself: a listed error passes over the rest of its event, IDEMPOTENT over one row
    found = {row[0]: row[2] for row in theirs["k"]}
    rest_is_applied = mode == "idempotent"
    assert (302 in found, 73 not in found, found[76] == "new") == (rest_is_applied,) * 3
    assert (300 in found, found[74], found[77]) == (True, "new", "new")  # the rows before, the event behind
    for one in (replicas.into_server, replicas.into_sqlite):
        assert one.status()["Passed_Over_Errors"] == len(OFFENDERS)
        log = one.channel.log_path("applier").read_text()
        assert "ignored at " in log and "errors ignored in this batch (1032: " in log


@pytest.mark.timeout(3600)
def test_faults_in_a_backlog_of_100_000_stop_where_they_stop_a_mariadb_replica(replicas: Replicas) -> None:
    replicas.server.restart([])  # nothing is passed over any more
    for one in (replicas.into_server, replicas.into_sqlite):
        one.run("init", "--replica-exec-mode", "strict", "--replica-skip-errors", "off")
    prepared_source(replicas)
    replicas.go_on()
    stop_alike(replicas, 100_000)
