"""A channel that stops at a row: the commands of its hint, typed as they are, lead back to a copy that is verified."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest

from tests.kit.replica import Replica, new_log, purge_logs, wait_until
from tests.kit.servers import MariadbServer, MysqlServer

pytestmark = [pytest.mark.slow, pytest.mark.mariadb]
SCHEMA = """DROP DATABASE IF EXISTS shop; CREATE DATABASE shop; USE shop; CREATE TABLE t (id INT PRIMARY KEY, v INT);
INSERT INTO t SELECT seq, seq FROM seq_1_to_100"""
SYSTEM = ("mysql", "sys", "information_schema", "performance_schema")
STOPS = {  # what is wrong in the target, and two changes of the source that meet it
    1032: ("DELETE FROM shop__t WHERE id IN (7, 8)", "UPDATE t SET v = 0 WHERE id = 7; DELETE FROM t WHERE id = 8"),
    1062: (
        "INSERT INTO shop__t VALUES (201, -1), (202, -1), (203, -1)",
        "INSERT INTO t VALUES (201, 1); INSERT INTO t VALUES (202, 2)",
    ),
}


TABLE_STOPS = {  # a table, what is wrong with it in the target, and a change of the source that meets it
    1146: ("shop.t", "DROP TABLE shop__t", "UPDATE t SET v = -1 WHERE id = 1"),
    1677: ("shop.t", "ALTER TABLE shop__t DROP COLUMN v", "UPDATE t SET v = -2 WHERE id = 2"),
    1050: ("shop.n", "CREATE TABLE shop__n (a)", "CREATE TABLE n (id INT PRIMARY KEY); INSERT INTO n VALUES (1), (2)"),
    1235: (
        "shop.t",
        "SELECT 1",
        "CREATE TRIGGER g BEFORE INSERT ON n FOR EACH ROW SET NEW.id = 9; INSERT INTO n VALUES (3)",
    ),
}


PAST_THE_LOG = {  # a change of the source that the applier refuses, and the rest of the hint's way on the source
    1592: (
        "SET SESSION binlog_format=STATEMENT; CREATE TABLE n SELECT * FROM t; SET SESSION binlog_format=ROW; "
        "DELETE FROM n WHERE id > 50",
        "INSERT INTO n VALUES (101, 1)",
    ),
}


def type_in(replica: Replica, commands: str) -> list[int | None]:
    """Their exit codes."""
    codes: list[int | None] = []
    for command in commands.split("; "):
        words = command.split()
        variables = dict(word.split("=", 1) for word in words[: words.index("rplctl")])
        arguments = words[words.index("rplctl") + 1 :]
        codes.append(replica.run(*arguments, expect=None, environment=variables or None).returncode)
    return codes


def begun(replica: Replica, source: MariadbServer, *change: str) -> None:
    """The channel has all that the source has."""
    replica.run("init")
    options = replica.datadir / "rplctl.toml"
    options.write_text(f'replicate_do_db = "shop"\n{options.read_text()}')
    replica.change_master(source, *change)
    replica.run("start")
    replica.wait_synced(source)


def test_the_hint_of_a_stop_at_a_row_leads_to_a_verified_copy(replica: Replica, source: MariadbServer) -> None:
    begun(replica, source)
    for errno, (fault, changes) in STOPS.items():
        with closing(sqlite3.connect(replica.datadir / "target.db", timeout=30)) as connection, connection:
            connection.execute(fault)
        source.sql(changes, "shop")
        wait_until(lambda: replica.pid("applier") is None)
        status = replica.status()
        assert status["Last_SQL_Errno"] == errno, replica.logs()
        hint = status["Last_SQL_Hint"].partition("run: ")[2]
        codes = type_in(replica, hint)
        assert codes[0] == codes[-2] == codes[-1] == 0, (errno, hint, codes, replica.logs())
        replica.wait_synced(source)
        replica.run("verify")
    assert replica.query("SELECT v FROM shop__t WHERE id IN (7, 8, 201, 202, 203) ORDER BY id") == [(0,), (1,), (2,)]


@pytest.mark.parametrize("errno", PAST_THE_LOG)
def test_the_hint_leads_past_an_event_that_stays_in_the_log(
    replica: Replica, source: MariadbServer, errno: int
) -> None:
    begun(replica, source)
    refused, repaired = PAST_THE_LOG[errno]
    source.sql(refused, "shop")
    wait_until(lambda: replica.pid("applier") is None)
    status = replica.status()
    assert status["Last_SQL_Errno"] == errno, replica.logs()
    source.sql(repaired, "shop")
    way = next(line for line in status["Last_SQL_Hint"].splitlines() if "To skip the whole transaction" in line)
    hint = way.partition("run: ")[2].replace("DB.TABLE", "shop.n")
    assert {*type_in(replica, hint)} == {0}, (hint, replica.logs())
    replica.wait_synced(source)
    replica.run("wait", "--state", "synced")
    replica.run("verify")
    assert replica.query("SELECT count(*) FROM shop__n") == source.sql("SELECT count(*) FROM shop.n")


@pytest.mark.long(
    "tests/stories/test_recopy.py::test_the_hint_of_the_stop_leads_to_a_verified_copy copies a table again.",
)
def test_the_hint_of_a_stop_at_a_table_leads_to_a_verified_copy(replica: Replica, source: MariadbServer) -> None:
    """The table is missing, has other columns, or is there before its CREATE TABLE; or the statement has no meaning."""
    begun(replica, source)
    replica.run("stop")
    replica.run("init", "--on-unsupported-ddl", "stop_all")
    replica.run("start")
    for errno, (table, fault, changes) in TABLE_STOPS.items():
        with closing(sqlite3.connect(replica.datadir / "target.db", timeout=30)) as connection, connection:
            connection.execute(fault)
        source.sql(changes, "shop")
        wait_until(lambda: replica.pid("applier") is None)
        status = replica.status()
        assert status["Last_SQL_Errno"] == errno, replica.logs()
        hint = status["Last_SQL_Hint"].partition("run: ")[2].partition("\n")[0]
        assert (f"--tables {table} " in hint) is (errno != 1235)
        codes = type_in(replica, hint)
        assert {*codes} == {0}, (errno, hint, codes, replica.logs())
        replica.wait_synced(source)
        replica.run("verify")
    for name in ("t", "n"):
        assert replica.query(f"SELECT count(*) FROM shop__{name}") == source.sql(f"SELECT count(*) FROM shop.{name}")


@pytest.mark.long("test_the_hint_of_a_stop_at_a_row_leads_to_a_verified_copy types a hint in make test.")
@pytest.mark.parametrize("change", [(), ("--master-use-gtid", "slave_pos")], ids=["position", "gtid"])
def test_the_hint_after_a_purge_leads_to_a_verified_copy(
    replica: Replica, source: MariadbServer, change: tuple[str, ...]
) -> None:
    """Rows that were never received are copied; `check --online` names the same commands."""
    begun(replica, source, *change)
    replica.run("stop")
    source.sql("INSERT INTO t VALUES (300, 300)", "shop")
    new_log(source)
    purge_logs(source, new_log(source))
    assert "source_purged" in replica.run("check", "--online", "-v", expect=2).stdout
    replica.run("start", expect=None)
    wait_until(lambda: replica.status()["Last_IO_Errno"] == 1236)
    hint = replica.status()["Last_IO_Hint"].partition("run: ")[2]
    assert hint in replica.run("check", "--online", "-v", expect=2).stdout
    without_names = replica.run("clone", "--replace", "--yes", expect=2).stderr
    assert "--replace requires --tables or --databases" in without_names
    refused = replica.run("clone", "--replace", "--databases", "shop", "--yes", expect=6).stderr
    assert hint in refused, "a copy would wait for what the source has purged"
    assert type_in(replica, hint) == [0, 0, 0, 0]
    wait_until(lambda: "done" in replica.run("show-clone").stdout and replica.status()["Clone_Tables"] == 0)
    replica.run("verify")
    assert replica.query("SELECT count(*) FROM shop__t") == source.sql("SELECT count(*) FROM shop.t")


@pytest.mark.long(
    "tests/cli/test_show.py::test_seconds_behind_follows_mysqls_rule holds the rule; this asks a native replica."
)
def test_the_lag_of_a_receiver_that_an_error_stopped_is_unknown_as_on_a_native_replica(
    replica: Replica, source: MariadbServer, mariadb_factory: Callable[..., MariadbServer]
) -> None:
    begun(replica, source, "--master-use-gtid", "slave_pos")
    native = mariadb_factory("--server-id=77")
    native.follow(source)
    assert native.sql(f"SELECT MASTER_GTID_WAIT('{source.sql('SELECT @@gtid_binlog_pos')[0][0]}', 60)") == [(0,)]
    replica.run("stop")
    native.sql("STOP SLAVE")
    new_log(source)
    source.sql("INSERT INTO t VALUES (300, 300)", "shop")
    purge_logs(source, new_log(source))
    native.sql("START SLAVE")
    replica.run("start", expect=None)
    wait_until(lambda: replica.status()["Last_IO_Errno"] == 1236 and native_status(native)["Last_IO_Errno"] == 1236)
    wait_until(lambda: replica.status()["Slave_SQL_Running"] == native_status(native)["Slave_SQL_Running"] == "Yes")
    assert replica.status()["Seconds_Behind_Master"] is native_status(native)["Seconds_Behind_Master"] is None
    assert "lag" not in replica.run("check", expect=2).stdout
    assert "seconds_behind_master{" not in replica.run("metrics").stdout


def native_status(server: MariadbServer) -> dict[str, object]:
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW SLAVE STATUS")
        assert cursor.description is not None
        return dict(zip((column[0] for column in cursor.description), cursor.fetchone() or (), strict=True))


@pytest.mark.long("test_the_hint_of_a_stop_at_a_row_leads_to_a_verified_copy types a hint in make test.")
def test_a_channel_that_never_began_is_copied_where_the_first_log_is_purged(
    replica: Replica, source: MariadbServer
) -> None:
    new_log(source)
    purge_logs(source, new_log(source))
    replica.run("init")
    options = replica.datadir / "rplctl.toml"
    options.write_text(f'replicate_do_db = "shop"\n{options.read_text()}')
    replica.run("change-master", "--channel", "east", "--master-host", source.host, "--master-port", str(source.port),
                "--master-user", "rpl", "--password-stdin", password="rpl\n")  # fmt: skip
    found = replica.run("check", "--online", "-v", "--channel", "east", expect=2).stdout
    ways = {line.partition(": ")[0].split()[-1]: line.partition("; repair: ")[2] for line in found.splitlines()}
    assert ways["never_started"] == ways["source_purged"] == "rplctl clone --channel east"
    assert type_in(replica, ways["never_started"]) == [0]
    replica.run("wait", "--state", "synced", "--channel", "east")
    replica.run("verify", "--channel", "east")


@pytest.mark.long("test_the_hint_of_a_stop_at_a_row_leads_to_a_verified_copy types a hint in make test.")
@pytest.mark.mysql
def test_the_hint_after_an_account_of_mysql_leads_to_a_verified_copy(
    replica: Replica, mysql: MysqlServer, mariadb: MariadbServer
) -> None:
    """MariaDB lacks the plugin, as a native replica does; an account that was made by hand gets its rights."""
    for server in (mysql, mariadb):  # another test's tables, which a comparison would miss, and positions
        server.sql("DROP USER IF EXISTS app")
        for (other,) in server.sql(
            f"SELECT schema_name FROM information_schema.schemata WHERE schema_name NOT IN {SYSTEM}"
        ):
            server.sql(f"DROP DATABASE `{other}`")
    log_name, log_pos = new_log(mysql), "4"
    replica.datadir.parent.mkdir(exist_ok=True)
    replica.run("init", *replica.into(mariadb))
    replica.change_master(mysql, "--master-log-file", log_name, "--master-log-pos", log_pos)
    mysql.sql("CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY); CREATE USER app IDENTIFIED BY 'x'")
    mysql.sql("GRANT SELECT ON shop.* TO app; INSERT INTO shop.t VALUES (1)")
    assert "ERROR 1524" in replica.run("start", "--until-synced", expect=7).stderr
    hint = replica.status()["Last_SQL_Hint"].partition("run: ")[2]
    mariadb.sql("CREATE USER app IDENTIFIED BY 'y'")
    assert type_in(replica, hint) == [0, 0, 0, 0], (hint, replica.logs())
    assert mariadb.sql("SELECT * FROM shop.t") == [(1,)]
    assert "SELECT ON `shop`" in str(mariadb.sql("SHOW GRANTS FOR app"))
