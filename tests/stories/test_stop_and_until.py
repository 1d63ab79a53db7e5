"""STOP, UNTIL, the delay, lock waits and skipping on live servers: where exactly the applier stops, and when."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from rplctl.applier.report import READING
from rplctl.command.process.child import stop_running
from rplctl.relay_log.event_list import events_of
from rplctl.relay_log.index import RelayLogIndex
from rplctl.status import read_status
from tests.kit.replica import Replica, slowness, wait_until
from tests.kit.servers import MariadbServer, MysqlServer

pytestmark = pytest.mark.slow
Position = tuple[str, int]
Make = Callable[..., Replica]


@pytest.fixture(scope="module")
def source(mariadb_factory: Callable[..., MariadbServer]) -> MariadbServer:
    return mariadb_factory()


@pytest.fixture(scope="module")
def target(mariadb_factory: Callable[..., MariadbServer]) -> MariadbServer:
    return mariadb_factory("--innodb-lock-wait-timeout=1", "--skip-log-bin", "--skip-log-slave-updates")


@pytest.fixture
def make(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Make]:
    made: list[Replica] = []

    def make_one(source: MariadbServer, target: MariadbServer | None = None, *init: str) -> Replica:
        """A channel from the source's beginning into SQLite, or into `target`."""
        folder = tmp_path / f"r{len(made)}"
        folder.mkdir()
        replica = Replica(folder, spark=request.node.get_closest_marker("spark") is not None)
        made.append(replica)
        if target is not None:
            target.sql("DROP DATABASE IF EXISTS d; DROP DATABASE IF EXISTS rplctl")
            init = (*replica.into(target), *init)
        replica.run("init", *init)
        replica.change_master(source)
        return replica

    yield make_one
    for one in made:
        one.close()


def fresh(source: MariadbServer) -> Position:
    """One table in an otherwise empty log; the position behind it."""
    source.reset_binary_log()
    source.sql("DROP DATABASE IF EXISTS d; CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(60))")
    return source.master_status()


def executed(replica: Replica) -> Position:
    status = replica.status()
    return status["Relay_Master_Log_File"], status["Exec_Master_Log_Pos"]


def ids(replica: Replica) -> list[int]:
    return [row[0] for row in replica.query("SELECT id FROM d__t ORDER BY id")]


def seconds_to_stop(replica: Replica) -> float:
    """From SIGTERM until the lock is free, which is what `rplctl stop` waits for; in seconds of a quiet machine."""
    began = time.monotonic()
    assert stop_running(replica.channel, "applier", 240) is False  # it ran, and ended by itself
    return (time.monotonic() - began) / slowness()


def stops_in_two_seconds(replica: Replica, is_there: Callable[[], object]) -> None:
    """Started anew each time; more attempts where the machine was busy just then."""
    took: list[float] = []
    while min(took, default=9) >= 2 and len(took) < 8:
        replica.run("start", "--applier")
        wait_until(is_there, timeout_s=240, pause_s=0.005)
        took.append(seconds_to_stop(replica))
    assert min(took) < 2, took


def behind_a_large_transaction(source: MariadbServer, replica: Replica, megabytes: int) -> tuple[Position, Position]:
    """The relay log holds it; the position before it and the one behind it."""
    fresh(source)
    source.sql("ALTER TABLE d.t MODIFY v VARCHAR(1000)")
    before = source.master_status()
    source.sql(f"INSERT INTO d.t SELECT seq, REPEAT('x', 1000) FROM seq_1_to_{megabytes * 1000}", "d")
    replica.run("start", "--receiver")
    wait_until(lambda: replica.status()["Read_Master_Log_Pos"] == source.master_status()[1])
    replica.run("stop")
    return before, source.master_status()


def state(replica: Replica) -> str:
    return read_status(replica.channel.status_path("applier")).state


def loads(target: MariadbServer) -> bool:
    """In the middle of one long statement, or of one of many short ones."""
    sql = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'INSERT INTO `d`%' OR"
    return bool(target.sql(f"{sql} TIME_MS > 50 AND INFO LIKE 'LOAD DATA%'")[0][0])


def nothing_was_lost(replica: Replica, before: Position) -> None:
    status = replica.status()
    assert (status["Slave_SQL_Running"], status["Last_SQL_Errno"], status["Seconds_Behind_Master"]) == ("No", 0, None)
    assert executed(replica) == before
    log = replica.channel.log_path("applier").read_text()
    assert "STOP came " in log and "ERROR" not in log and "Traceback" not in log
    wait_until(lambda: not list((replica.channel.run_folder / "spark").glob("*-*")))  # a JVM's last act


SOME = ("Spark starts", "writing")
ALL = ("Spark starts", "Python workers start", "decoding", "decoded", "writing")


@pytest.mark.long("tests/stories/test_target_outage.py stops an applier that waits.")
@pytest.mark.spark
@pytest.mark.parametrize(("megabytes", "phases"), [(120, SOME), pytest.param(300, ALL, marks=pytest.mark.torture)])
def test_stop_takes_at_most_two_seconds_whatever_the_applier_is_doing(
    megabytes: int, phases: Sequence[str], source: MariadbServer, make: Make
) -> None:
    replica = make(source)
    before, end = behind_a_large_transaction(source, replica, megabytes)
    log, run_folder = replica.datadir / "target.db-wal", replica.channel.run_folder
    signs: dict[str, Callable[[], object]] = {
        "Spark starts": (run_folder / "spark").is_dir,  # beside all else: nobody may ever wait for it
        "Python workers start": lambda: list((run_folder / "spark").glob("blockmgr*")),
        "decoding": lambda: executed(replica) == before,  # behind the table's own statements
        "decoded": lambda: state(replica) == READING and list(replica.channel.spool_folder.glob("*.chunks")),
        "writing": lambda: state(replica) == READING and log.exists() and log.stat().st_size > 8 << 20,
    }
    for phase in phases:
        stops_in_two_seconds(replica, signs[phase])
    nothing_was_lost(replica, before)
    replica.run("start", "--until-synced")
    assert executed(replica) == end
    assert replica.query("SELECT COUNT(*), SUM(id) FROM d__t") == source.sql(
        "SELECT COUNT(*), CAST(SUM(id) AS INT) FROM d.t"
    )


@pytest.mark.spark
@pytest.mark.torture  # 200 MB
@pytest.mark.parametrize("local_infile", [1, 0])
def test_stop_takes_at_most_two_seconds_while_mariadb_loads_and_says_what_it_stopped(
    local_infile: int, source: MariadbServer, target: MariadbServer, make: Make
) -> None:
    replica = make(source, target)
    before, end = behind_a_large_transaction(source, replica, 120)
    target.sql(f"SET GLOBAL local_infile={local_infile}")
    stops_in_two_seconds(replica, lambda: loads(target))
    stopped = replica.run("stop", "--json")
    assert '"Stopped": []' in stopped.stdout and "3084" in stopped.stderr
    nothing_was_lost(replica, before)
    assert target.sql("SELECT COUNT(*) FROM d.t") == [(0,)]
    replica.run("start")
    wait_until(lambda: loads(target), timeout_s=240, pause_s=0.005)
    stopped = replica.run("stop", "--json")
    assert '"Stopped": ["receiver", "applier"], "Killed": []' in stopped.stdout
    nothing_was_lost(replica, before)
    replica.run("start", "--until-synced")
    assert executed(replica) == end
    assert target.sql("SELECT COUNT(*), SUM(id) FROM d.t") == source.sql("SELECT COUNT(*), SUM(id) FROM d.t")
    target.sql("SET GLOBAL local_infile=1")


def positions(source: MariadbServer, count: int, every: int = 3) -> list[Position]:
    """`count` transactions of one row, a new log after `every` of them; the position behind each."""
    found = []
    with closing(source.connect("d")) as connection, connection.cursor() as cursor:
        for number in range(1, count + 1):
            cursor.execute(f"INSERT INTO t VALUES ({number}, '')")
            cursor.execute("SHOW BINARY LOG STATUS" if source.kind == "mysql" else "SHOW MASTER STATUS")
            name, at = cursor.fetchone()[:2]
            found.append((str(name), int(at)))
            if number % every == 0:
                cursor.execute("FLUSH BINARY LOGS")
    return found


def until_stopped(replica: Replica, *until: str) -> list[int]:
    replica.run("start", "--applier", *until)
    wait_until(lambda: replica.pid("applier") is None, timeout_s=240)
    assert replica.status()["Last_SQL_Errno"] == 0
    return ids(replica)


@pytest.mark.torture  # eight starts
@pytest.mark.parametrize(("count", "every"), [(400, 1000), (11, 3)], ids=["one batch", "many logs"])
def test_until_stops_exactly_there_in_each_form(count: int, every: int, source: MariadbServer, make: Make) -> None:
    fresh(source)
    replica = make(source, None, "--relay-log-purge", "false")
    at = positions(source, count, every)
    step = count // 6  # each form stops in the middle of what one batch could hold
    replica.run("start", "--receiver")
    wait_until(lambda: replica.status()["Read_Master_Log_Pos"] == source.master_status()[1])
    first, second, third, fourth = (list(range(1, step * n + 1)) for n in (1, 2, 3, 4))
    name, end = at[step - 1]
    assert until_stopped(replica, "--until-master-log-file", name, "--until-master-log-pos", str(end)) == first
    assert executed(replica) == (name, end)
    name, end = at[2 * step - 1]
    inside = ("--until-source-log-file", name, "--until-source-log-pos", str(end - 40))
    assert until_stopped(replica, *inside) == second  # in a transaction: it completes
    assert executed(replica) == (name, end)
    assert until_stopped(replica, *inside) == second  # there already: nothing happens
    behind_third = at[3 * step]
    gtid = str(source.sql(f"SELECT BINLOG_GTID_POS('{behind_third[0]}', {behind_third[1]})")[0][0])
    assert until_stopped(replica, "--until-sql-before-gtids", gtid) == third
    assert until_stopped(replica, "--until-sql-after-gtids", gtid) == [*third, 3 * step + 1]
    assert executed(replica) == behind_third
    assert until_stopped(replica, "--until-sql-before-gtids", gtid) == [*third, 3 * step + 1]  # there is no before
    log = replica.channel.log_path("applier").read_text()
    assert "stopped because it reached its UNTIL position" in log and f"UNTIL SQL_AFTER_GTIDS {gtid}" in log
    name, offset = relay_position(replica, at[4 * step - 1])
    assert until_stopped(replica, "--until-relay-log-file", name, "--until-relay-log-pos", str(offset)) == fourth
    assert executed(replica) == at[4 * step - 1]
    inside = ("--until-relay-log-file", name, "--until-relay-log-pos", str(offset + 1))
    assert until_stopped(replica, *inside) == [*fourth, 4 * step + 1]
    replica.run("start", "--until-synced")
    assert ids(replica) == list(range(1, count + 1))


def relay_position(replica: Replica, source: Position) -> Position:
    """Where the relay logs go on behind the transaction that ends at that position of the source."""
    for name in RelayLogIndex(replica.channel).names():
        for event, following in pairwise(events_of(replica.datadir / name)):
            if event.Event_type == "Xid" and event.End_log_pos == source[1]:
                return name, following.Pos
    raise AssertionError(source)


@pytest.mark.long("tests/applier/test_job.py stops at a transaction, too; this repeats it by GTID on MySQL.")
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
    assert "already executed" in noted.stderr
    assert until_stopped(replica, "--until-sql-after-gtids", f"{uuid}:{number - 2}") == [1, 2, 3, 5]
    status = replica.status()
    assert status["Executed_Gtid_Set"] == f"{uuid}:1-{number - 2}" and status["Skip_Gtids"] == ""
    replica.run("skip", "--count", "1", "--yes")
    replica.run("start", "--until-synced")
    assert ids(replica) == [1, 2, 3, 5, 7]
    assert replica.status()["Executed_Gtid_Set"] == str(mysql.sql("SELECT @@gtid_executed")[0][0])


@pytest.mark.mysql
def test_a_delay_begins_at_the_commit_on_mysql_whatever_timestamp_the_session_sets(
    mysql: MysqlServer, make: Make
) -> None:
    fresh(mysql)
    replica = make(mysql)
    replica.run("start", "--until-synced")
    replica.run("change-master", "--master-delay", "3")
    replica.run("start")
    wait_until(lambda: "has read all relay log" in replica.status()["Slave_SQL_Running_State"])
    for number, moment in ((1, "1"), (2, "UNIX_TIMESTAMP() + 86400")):
        begun = time.time()
        mysql.sql(f"SET TIMESTAMP = {moment}; INSERT INTO d.t VALUES ({number}, 0)")
        wait_until(lambda n=number: n in ids(replica), 60)  # type: ignore[misc]
        assert time.time() - begun >= 3


def test_skipped_transactions_do_not_wait_for_the_delay_and_the_rest_is_shown(
    source: MariadbServer, make: Make
) -> None:
    """Skip_Counter of a running thread is the rest, as on a server; a stop keeps the rest."""
    fresh(source)
    replica = make(source)
    replica.run("start", "--until-synced")
    replica.run("change-master", "--master-delay", "3600")
    source.sql("INSERT INTO d.t VALUES (1, 0)")
    replica.run("skip", "3", "--yes")
    replica.run("start")
    wait_until(lambda: replica.status()["Skip_Counter"] == 2)
    assert "will skip the next 2 transactions" in replica.run("check", expect=None).stdout
    replica.run("stop")
    assert (replica.status()["Skip_Counter"], ids(replica)) == (2, [])
    replica.run("skip", "0")
    assert replica.status()["Skip_Counter"] == 0


def test_temporary_tables_that_a_stop_loses_are_named(source: MariadbServer, target: MariadbServer, make: Make) -> None:
    """The source's later DROP does not stop the channel, as on a server."""
    fresh(source)
    replica = make(source, target)
    with closing(source.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_format=STATEMENT")
        cursor.execute("CREATE TEMPORARY TABLE d.x (a INT)")
        cursor.execute("CREATE TEMPORARY TABLE d.gone (a INT)")
        cursor.execute("INSERT INTO d.x VALUES (1)")
        cursor.execute("INSERT INTO d.t SELECT a, 'x' FROM d.x")
        cursor.execute("DROP TABLE d.gone")
        connection.commit()
        replica.run("start", "--until-synced")
        named = "loses the source's temporary tables at this stop: d.x"
        assert named in replica.run("history").stdout and "d.gone" not in replica.run("history").stdout
        cursor.execute("DROP TEMPORARY TABLE d.x")
        cursor.execute("INSERT INTO d.t VALUES (2, 'y')")
        connection.commit()
    replica.run("start", "--until-synced")
    assert target.sql("SELECT id FROM d.t") == [(1,), (2,)]
    assert replica.run("history").stdout.count("temporary tables") == 1


@pytest.mark.long(
    "tests/applier/feed/test_plan.py::test_a_delay_lets_through_only_what_is_old_enough stays in make test."
)
def test_a_delayed_transaction_becomes_visible_when_its_time_has_come_and_not_before(
    source: MariadbServer, make: Make
) -> None:
    fresh(source)
    replica = make(source)
    replica.run("start", "--until-synced")
    replica.run("change-master", "--master-delay", "4")
    replica.run("start")
    wait_until(lambda: "has read all relay log" in replica.status()["Slave_SQL_Running_State"])
    wait_until(lambda: replica.status()["Seconds_Behind_Master"] == 0)  # once the receiver is connected
    late: list[float] = []
    waiting = 0
    while (waiting < 2 or min(late) >= 2) and len(late) < 12:  # the machine may be busy otherwise
        number = len(late) + 1
        source.sql(f"INSERT INTO d.t VALUES ({number}, UNIX_TIMESTAMP())")  # the event's own timestamp
        due = int(source.sql(f"SELECT v FROM d.t WHERE id = {number}")[0][0]) + 4
        status = replica.status()
        while number not in ids(replica) and not status["SQL_Remaining_Delay"]:
            status = replica.status()
        if status["SQL_Remaining_Delay"]:
            waiting += 1
            said = status["Slave_SQL_Running_State"]
            assert said == "Waiting until MASTER_DELAY seconds after master executed event"
            assert 1 <= status["SQL_Remaining_Delay"] <= 4 and status["SQL_Delay"] == 4
            assert status["Seconds_Behind_Master"] >= 0
        wait_until(lambda n=number: n in ids(replica), pause_s=0.01)  # type: ignore[misc]
        late.append(time.time() - due)
        assert late[-1] >= 0
    assert waiting >= 2 and min(late) < 2, late
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
        wait_until(lambda: replica.pid("applier") is None, timeout_s=240)
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
    be_in_a_deadlock(source, target)
    replica.wait_synced(source)
    log = replica.channel.log_path("applier").read_text()
    assert "Deadlock found" in log and "(1213)" in log
    assert replica.status()["Last_SQL_Errno"] == 0
    assert target.sql("SELECT v FROM d.t ORDER BY id") == [("newer",), ("newer",), ("new",)]


def be_in_a_deadlock(source: MariadbServer, target: MariadbServer) -> None:
    """The applier has row 1 and waits for row 2; a client that changed more has row 2 and asks for row 1."""
    target.sql("CREATE TABLE more SELECT seq FROM seq_1_to_1000", "d")
    waits = "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT'"
    with closing(target.connect("d")) as client, client.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("UPDATE more SET seq = seq + 1")
        cursor.execute("UPDATE t SET v = 'mine' WHERE id = 2")
        source.sql("BEGIN; UPDATE d.t SET v = 'newer' WHERE id = 1; UPDATE d.t SET v = 'newer' WHERE id = 2; COMMIT")
        wait_until(lambda: target.sql(waits)[0][0], pause_s=0.005)
        cursor.execute("UPDATE t SET v = 'mine' WHERE id = 1")
        cursor.execute("ROLLBACK")


def test_synced_means_what_the_source_had_logged_when_the_wait_began(source: MariadbServer, make: Make) -> None:
    fresh(source)
    replica = make(source)
    replica.run("start", "--until-synced")
    source.sql(";".join(f"INSERT INTO d.t VALUES ({number}, 0)" for number in range(5000)))
    replica.run("start")
    replica.run("wait", "--state", "synced")  # a receiver that connects has a stale position for a moment
    assert len(ids(replica)) == 5000
