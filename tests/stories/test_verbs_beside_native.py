"""Statements that administer a replica, on a real server and on ours: the same ones are taken, with the same numbers.

The server has no source: what is compared is what each statement answers and stores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pymysql
import pytest

from tests.kit.replica import Replica
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
