"""Statements that administer a replica, on a real server and on ours: the same ones are taken, with the same numbers.

The server has no source: what is compared is what each statement answers and stores.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pymysql
import pytest

from rplctl.command.channel.context import open_repositories
from rplctl.config import load_config
from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer, MysqlServer

pytestmark = [pytest.mark.slow]
BEGIN = "MASTER_HOST='h', MASTER_PORT=3307, MASTER_CONNECT_RETRY=7, MASTER_LOG_FILE='b.000003', MASTER_LOG_POS=400"
KEPT = ("Master_Port", "Connect_Retry", "Master_Log_File", "Read_Master_Log_Pos")


@contextmanager
def answers(server: MariadbServer) -> Iterator[Callable[[str], Any]]:
    """A statement → its first row by column, or the number of its error."""
    with closing(server.connect()) as connection, connection.cursor() as cursor:

        def ask(statement: str) -> Any:
            if isinstance(server, MysqlServer):
                for old, new in (("MASTER TO", "REPLICATION SOURCE TO"), ("MASTER_", "SOURCE_"), ("SLAVE", "REPLICA")):
                    statement = statement.replace(old, new)
            try:
                cursor.execute(statement)
            except pymysql.Error as error:
                return error.args[0]
            names = [str(column[0]).replace("Source", "Master") for column in cursor.description or ()]
            return dict(zip(names, cursor.fetchone() or (), strict=False))

        yield ask
        ask("RESET SLAVE ALL")


def a_zero_is_not_given(replica: Replica, server: MariadbServer) -> None:
    replica.run("init")
    place = ("--master-log-file", "b.000003", "--master-log-pos", "400")
    replica.run("change-master", "--master-host", "h", "--master-port", "3307", "--master-connect-retry", "7", *place)
    with answers(server) as ask:
        ask(f"CHANGE MASTER TO {BEGIN}")
        for option in ("port", "connect-retry"):
            replica.run("change-master", f"--master-{option}", "0")
            assert ask(f"CHANGE MASTER TO MASTER_{option.replace('-', '_').upper()}=0") == {}
            ours, theirs = replica.status(), ask("SHOW SLAVE STATUS")
            assert [ours[name] for name in KEPT] == [theirs[name] for name in KEPT] == [3307, 7, "b.000003", 400]


def test_a_port_or_a_pause_of_0_is_not_given_as_in_mariadb(replica: Replica, mariadb: MariadbServer) -> None:
    a_zero_is_not_given(replica, mariadb)


@pytest.mark.long("The test before it asks MariaDB; MySQL answers alike.")
def test_a_port_or_a_pause_of_0_is_not_given_as_in_mysql(replica: Replica, mysql: MysqlServer) -> None:
    a_zero_is_not_given(replica, mysql)


def test_two_lists_of_domains_are_refused_as_in_mariadb(replica: Replica, mariadb: MariadbServer) -> None:
    replica.run("init")
    replica.run("change-master", "--master-host", "h", "--do-domain-ids", "1", "--master-use-gtid", "slave_pos")
    with answers(mariadb) as ask:
        ask("CHANGE MASTER TO MASTER_HOST='h', DO_DOMAIN_IDS=(1), MASTER_USE_GTID=slave_pos")
        for options, clause in (
            (("--ignore-domain-ids", "2"), "IGNORE_DOMAIN_IDS=(2)"),
            (("--do-domain-ids", "1", "--ignore-domain-ids", "2"), "DO_DOMAIN_IDS=(1), IGNORE_DOMAIN_IDS=(2)"),
        ):
            number = ask(f"CHANGE MASTER TO {clause}")
            assert f"ERROR {number}:" in replica.run("change-master", *options, expect=2).stderr
        replica.run("change-master", "--do-domain-ids", "", "--ignore-domain-ids", "2")
        assert ask("CHANGE MASTER TO DO_DOMAIN_IDS=(), IGNORE_DOMAIN_IDS=(2)") == {}


def no_channel_is_no_error(replica: Replica, server: MariadbServer) -> None:
    replica.run("init")
    named = " FOR CHANNEL 'nope'" if isinstance(server, MysqlServer) else ""
    with answers(server) as ask:
        ask("RESET SLAVE ALL")
        for verb, statement in (
            (("stop",), "STOP SLAVE"),
            (("reset", "--yes"), "RESET SLAVE"),
            (("reset", "--all", "--yes"), "RESET SLAVE ALL"),
        ):
            assert ask(statement) == {}
            assert "Note " in replica.run(*verb).stderr
            if named:
                assert ask(statement + named) == 3074
                replica.run(*verb, "--channel", "nope", expect=4)
    assert replica.run("show-channels", "--json").stdout.strip() == "[]"


def test_stop_and_reset_without_a_channel_are_no_errors_as_in_mariadb(replica: Replica, mariadb: MariadbServer) -> None:
    no_channel_is_no_error(replica, mariadb)


@pytest.mark.long("The test before it asks MariaDB; MySQL answers alike, also for a channel that it does not know.")
def test_stop_and_reset_without_a_channel_are_no_errors_as_in_mysql(replica: Replica, mysql: MysqlServer) -> None:
    no_channel_is_no_error(replica, mysql)


def test_reset_keeps_settings_and_reset_all_drops_filters_as_in_mysql(replica: Replica, mysql: MysqlServer) -> None:
    settings = {"REQUIRE_ROW_FORMAT": "1", "REQUIRE_TABLE_PRIMARY_KEY_CHECK": "ON", "MASTER_DELAY": "7"}
    options = [part for name, value in settings.items() for part in (f"--{name.lower().replace('_', '-')}", value)]
    replica.run("init")
    replica.run("change-master", "--channel", "c", "--master-host", "h", *options)
    replica.run("change-filter", "--channel", "c", "--replicate-do-db", "a")

    def ours() -> list[str]:
        row = json.loads(replica.run("show-status", "--channel", "c", "--json").stdout)[0]
        relay = open_repositories(load_config(replica.datadir), "c").relay()
        stored = (int(relay.require_row_format), relay.require_table_primary_key_check)
        return [*map(str, stored), str(row["SQL_Delay"]), row["Replicate_Do_DB"]]

    def theirs() -> list[str]:
        status = ask("SHOW SLAVE STATUS FOR CHANNEL 'c'")
        tables = "performance_schema.replication_applier_configuration"
        columns = "IF(require_row_format='YES', 1, 0), require_table_primary_key_check"
        [row] = mysql.sql(f"SELECT {columns} FROM {tables} WHERE channel_name='c'")
        return [*map(str, row), str(status["SQL_Delay"]), status["Replicate_Do_DB"]]

    with answers(mysql) as ask:
        given = ", ".join(f"{name}={value}" for name, value in settings.items())
        ask(f"CHANGE MASTER TO MASTER_HOST='h', {given} FOR CHANNEL 'c'")
        ask("CHANGE REPLICATION FILTER REPLICATE_DO_DB=(a) FOR CHANNEL 'c'")
        assert ours() == theirs() == ["1", "ON", "7", "a"]
        for verb, statement in ((("reset",), "RESET SLAVE"), (("reset", "--all"), "RESET SLAVE ALL")):
            replica.run(*verb, "--channel", "c", "--yes")
            assert ask(f"{statement} FOR CHANNEL 'c'") == {}
            if verb == ("reset",):
                assert ours() == theirs() == ["1", "ON", "0", "a"]
        replica.run("change-master", "--channel", "c", "--master-host", "h")
        ask("CHANGE MASTER TO MASTER_HOST='h' FOR CHANNEL 'c'")
        assert ours() == theirs() == ["0", "STREAM", "0", ""]
        ask("RESET SLAVE ALL FOR CHANNEL 'c'")


def executed_stays(replica: Replica, source: MariadbServer, native: MariadbServer, way: str) -> None:
    """A table without a key has each row once after RESET and START."""
    reset = "RESET REPLICA; START REPLICA" if isinstance(source, MysqlServer) else "RESET SLAVE; START SLAVE"
    replica.set_up(source, change=(f"--master-{way}", "1" if way == "auto-position" else "slave_pos"))
    native.follow(source)
    source.sql("CREATE DATABASE kept; CREATE TABLE kept.bag (n INT); INSERT INTO kept.bag VALUES (1)")
    replica.run("start", "--until-synced")
    wait_until(lambda: has_rows(native, 1))
    executed = replica.status()["Executed_Gtid_Set"]
    assert executed
    assert "Executed_Gtid_Set is kept" in replica.run("reset", "--yes").stderr
    native.sql(reset.replace("RESET", "STOP REPLICA; RESET" if "REPLICA" in reset else "STOP SLAVE; RESET", 1))
    assert replica.status()["Executed_Gtid_Set"] == executed
    source.sql("INSERT INTO kept.bag VALUES (2)")
    replica.run("start", "--until-synced")
    wait_until(lambda: has_rows(native, 2))
    assert replica.query('SELECT COUNT(*) FROM "kept__bag"') == [(2,)]
    replica.run("reset", "--forget-gtids", "--yes")
    assert replica.status()["Executed_Gtid_Set"] == ""
    source.sql("DROP DATABASE kept")


def has_rows(server: MariadbServer, count: int) -> bool:
    there = server.sql("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema='kept'")
    return there == [(1,)] and server.sql("SELECT COUNT(*) FROM kept.bag") == [(count,)]


@pytest.mark.long(
    "tests/command/test_threads.py::test_reset_forgets_the_position_and_reset_all_the_channel stays in make test.",
)
def test_executed_gtids_stay_after_reset_as_in_mariadb(
    replica: Replica, mariadb_factory: Callable[..., MariadbServer]
) -> None:
    executed_stays(replica, mariadb_factory(), mariadb_factory(), "use-gtid")


@pytest.mark.long("The test before it asks MariaDB; MySQL answers alike.")
def test_executed_gtids_stay_after_reset_as_in_mysql(
    replica: Replica, mysql_factory: Callable[..., MysqlServer]
) -> None:
    executed_stays(replica, mysql_factory(), mysql_factory(), "auto-position")
