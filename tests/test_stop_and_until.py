"""STOP, UNTIL, the delay, lock waits and skipping on live servers: where exactly the applier stops, and when."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.replica import Replica, wait_until
from tests.servers import MariadbServer, MysqlServer

pytestmark = [pytest.mark.spark, pytest.mark.slow]
ROWS = 400_000
Position = tuple[str, int]
Make = Callable[..., Replica]


@pytest.fixture(scope="module")
def source(mariadb_factory: Callable[..., MariadbServer]) -> MariadbServer:
    return mariadb_factory()


@pytest.fixture(scope="module")
def target(mariadb_factory: Callable[..., MariadbServer]) -> MariadbServer:
    return mariadb_factory("--innodb-lock-wait-timeout=1", "--skip-log-bin", "--skip-log-slave-updates")


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Replica] = []

    def make_one(source: MariadbServer, target: MariadbServer | None = None, *init: str) -> Replica:
        """A channel from the source's beginning into SQLite, or into `target`."""
        folder = tmp_path / f"r{len(made)}"
        folder.mkdir()
        replica = Replica(folder)
        made.append(replica)
        if target is not None:
            password = folder / "password"
            password.write_text("rpl\n")
            password.chmod(0o600)
            where = ("--target", f"mysql://rpl@{target.host}:{target.port}/", "--target-password-file", str(password))
            target.sql("DROP DATABASE IF EXISTS d; DROP DATABASE IF EXISTS rplctl")
            init = (*where, *init)
        replica.run("init", *init)
        replica.change_master(source)
        return replica

    yield make_one
    for one in made:
        one.close()


def fresh(source: MariadbServer) -> Position:
    """One table in an otherwise empty log; the position behind it."""
    source.sql("RESET BINARY LOGS AND GTIDS" if source.kind == "mysql" else "RESET MASTER")
    source.sql("DROP DATABASE IF EXISTS d; CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(60))")
    return source.master_status()


def executed(replica: Replica) -> Position:
    status = replica.status()
    return status["Relay_Master_Log_File"], status["Exec_Master_Log_Pos"]


def ids(replica: Replica) -> list[int]:
    return [row[0] for row in replica.query("SELECT id FROM d__t ORDER BY id")]


@pytest.mark.torture  # how long it takes hangs on the machine
@pytest.mark.parametrize("kind", ["sqlite", "mariadb"])
def test_stop_takes_moments_in_the_middle_of_a_large_transaction_and_loses_nothing(
    kind: str, source: MariadbServer, target: MariadbServer, make: Make
) -> None:
    before = fresh(source)
    replica = make(source, target if kind == "mariadb" else None)
    replica.run("start", "--until-synced")
    source.sql(f"INSERT INTO d.t SELECT seq, REPEAT('x', 50) FROM seq_1_to_{ROWS}", "d")
    replica.run("start")
    wait_until(lambda: replica.status()["Slave_SQL_Running_State"].startswith("Reading event"), timeout_s=60)
    assert replica.status()["Seconds_Behind_Master"] is not None
    began = time.monotonic()
    stopped = replica.run("stop")
    assert time.monotonic() - began < 6  # measured: about one second; the test machine is shared
    assert "was killed" not in stopped.stderr
    status = replica.status()
    assert (status["Slave_SQL_Running"], status["Last_SQL_Errno"], status["Seconds_Behind_Master"]) == ("No", 0, None)
    assert executed(replica) == before
    log = replica.channel.log_path("applier").read_text()
    assert "STOP came in the middle of a batch" in log and "ERROR" not in log
    replica.run("start", "--until-synced")
    assert executed(replica) == source.master_status()
    count = "SELECT COUNT(*), SUM(id) FROM "
    assert (target.sql(f"{count}d.t") if kind == "mariadb" else replica.query(f"{count}d__t")) == source.sql(
        f"{count}d.t"
    )


def positions(source: MariadbServer, count: int) -> list[Position]:
    """`count` transactions of one row, a new log after every third; the position behind each."""
    found = []
    with closing(source.connect("d")) as connection, connection.cursor() as cursor:
        for number in range(1, count + 1):
            cursor.execute(f"INSERT INTO t VALUES ({number}, '')")
            cursor.execute("SHOW BINARY LOG STATUS" if source.kind == "mysql" else "SHOW MASTER STATUS")
            name, at = cursor.fetchone()[:2]
            found.append((str(name), int(at)))
            if number % 3 == 0:
                cursor.execute("FLUSH BINARY LOGS")
    return found


def until_stopped(replica: Replica, *until: str) -> list[int]:
    replica.run("start", "--applier", *until)
    wait_until(lambda: replica.pid("applier") is None, timeout_s=120)
    assert replica.status()["Last_SQL_Errno"] == 0
    return ids(replica)


@pytest.mark.torture
def test_until_stops_exactly_there_in_each_form_across_logs(source: MariadbServer, make: Make) -> None:
    fresh(source)
    replica = make(source, None, "--relay-log-purge", "false")
    at = positions(source, 11)
    replica.run("start", "--receiver")
    wait_until(lambda: replica.status()["Read_Master_Log_Pos"] == source.master_status()[1])
    name, end = at[1]
    assert until_stopped(replica, "--until-master-log-file", name, "--until-master-log-pos", str(end)) == [1, 2]
    assert executed(replica) == (name, end)
    name, end = at[3]
    inside = ("--until-source-log-file", name, "--until-source-log-pos", str(end - 40))
    assert until_stopped(replica, *inside) == [1, 2, 3, 4]  # in a transaction: it completes
    assert until_stopped(replica, *inside) == [1, 2, 3, 4]  # there already: nothing happens
    gtid = str(source.sql(f"SELECT BINLOG_GTID_POS('{at[6][0]}', {at[6][1]})")[0][0])
    assert until_stopped(replica, "--until-sql-before-gtids", gtid) == [1, 2, 3, 4, 5, 6]
    assert until_stopped(replica, "--until-sql-after-gtids", gtid) == [1, 2, 3, 4, 5, 6, 7]
    assert executed(replica) == at[6]
    log = replica.channel.log_path("applier").read_text()
    assert "stopped because it reached its UNTIL position" in log and f"UNTIL SQL_AFTER_GTIDS {gtid}" in log
    status = replica.status()
    relay = (status["Relay_Log_File"], status["Relay_Log_Pos"])
    assert until_stopped(replica, "--until-relay-log-file", relay[0], "--until-relay-log-pos", str(relay[1] + 1)) == [
        *range(1, 9)
    ]
    replica.run("start", "--until-synced")
    assert ids(replica) == list(range(1, 12))


def test_until_gtids_of_mysql_and_a_skipped_gtid_become_part_of_the_executed_set(
    mysql: MysqlServer, make: Make
) -> None:
    fresh(mysql)
    replica = make(mysql, None)
    positions(mysql, 7)
    uuid, last = str(mysql.sql("SELECT @@gtid_executed")[0][0]).split(":")
    number = int(last.rpartition("-")[2])  # of the last transaction, row 7
    replica.run("start", "--receiver")
    wait_until(lambda: replica.status()["Read_Master_Log_Pos"] == mysql.master_status()[1])
    assert until_stopped(replica, "--until-sql-before-gtids", f"{uuid}:{number - 4}:{number}") == [1, 2]
    planned = replica.run("skip", "--gtid", f"{uuid}:{number - 3}", "--dry-run")
    assert "would skip" in planned.stdout and not replica.status()["Skip_Gtids"]
    replica.run("skip", "--gtid", f"{uuid}:{number - 3}", "--yes")
    noted = replica.run("skip", "--gtid", f"{uuid}:1", "--yes")
    assert "executed already" in noted.stderr
    assert until_stopped(replica, "--until-sql-after-gtids", f"{uuid}:{number - 2}") == [1, 2, 3, 5]
    status = replica.status()
    assert status["Executed_Gtid_Set"] == f"{uuid}:1-{number - 2}" and status["Skip_Gtids"] == ""
    replica.run("skip", "--count", "1", "--yes")
    replica.run("start", "--until-synced")
    assert ids(replica) == [1, 2, 3, 5, 7]
    assert replica.status()["Executed_Gtid_Set"] == str(mysql.sql("SELECT @@gtid_executed")[0][0])


def test_a_delayed_transaction_becomes_visible_when_its_time_has_come_and_not_before(
    source: MariadbServer, make: Make
) -> None:
    fresh(source)
    replica = make(source)
    replica.run("start", "--until-synced")
    replica.run("change-master", "--master-delay", "4")
    replica.run("start")
    wait_until(lambda: "has read all relay log" in replica.status()["Slave_SQL_Running_State"])
    assert replica.status()["Seconds_Behind_Master"] == 0
    for number in (1, 2):
        source.sql(f"INSERT INTO d.t VALUES ({number}, 'late')")
        second = int(time.time())  # the second of its timestamp, or the next one
        wait_until(lambda: replica.status()["SQL_Remaining_Delay"])
        status = replica.status()
        assert status["Slave_SQL_Running_State"] == "Waiting until MASTER_DELAY seconds after master executed event"
        assert 1 <= status["SQL_Remaining_Delay"] <= 4 and status["SQL_Delay"] == 4
        assert 0 <= status["Seconds_Behind_Master"] <= 4
        wait_until(lambda n=number: n in ids(replica), pause_s=0.01)  # type: ignore[misc]
        assert second - 1 + 4 <= time.time() < second + 1 + 4 + 1
    wait_until(lambda: replica.status()["Seconds_Behind_Master"] == 0)
    assert replica.status()["SQL_Remaining_Delay"] is None


@pytest.mark.torture
def test_lock_waits_are_tried_again_and_counted_and_then_stop_at_the_one_that_waits(
    source: MariadbServer, target: MariadbServer, make: Make
) -> None:
    fresh(source)
    replica = make(source, target, "--slave-transaction-retries", "2")
    source.sql("INSERT INTO d.t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    replica.run("start", "--until-synced")
    with closing(target.connect("d")) as client, client.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("UPDATE t SET v = 'mine' WHERE id = 2")
        source.sql("UPDATE d.t SET v = 'new' WHERE id = 1")
        before_it = source.master_status()
        source.sql("UPDATE d.t SET v = 'new' WHERE id = 2")
        source.sql("UPDATE d.t SET v = 'new' WHERE id = 3")
        replica.run("start")
        wait_until(lambda: replica.pid("applier") is None, timeout_s=120)
        status = replica.status()
        assert (status["Last_SQL_Errno"], status["Retried_transactions"]) == (1205, 2)
        assert executed(replica) == before_it
        assert target.sql("SELECT v FROM d.t ORDER BY id") == [("new",), ("b",), ("c",)]
        replica.run("start")
        wait_until(lambda: replica.status()["Retried_transactions"])
        cursor.execute("ROLLBACK")
    replica.wait_synced(source)
    status = replica.status()
    assert status["Last_SQL_Errno"] == 0 and status["Retried_transactions"] >= 1
    assert target.sql("SELECT v FROM d.t") == [("new",)] * 3
