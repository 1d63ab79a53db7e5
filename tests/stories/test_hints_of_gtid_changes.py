"""A change between positions and GTIDs that change-master refuses: its hint, typed as it is, leads to the change."""

from __future__ import annotations

import shlex
import subprocess
import sys

import pytest

from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer, MysqlServer

pytestmark = [pytest.mark.slow, pytest.mark.mariadb]
SCHEMA = """DROP DATABASE IF EXISTS shop; CREATE DATABASE shop; USE shop; CREATE TABLE t (id INT PRIMARY KEY);
INSERT INTO t VALUES (1), (2)"""


def refused_hint(replica: Replica, *change: str) -> str:
    done = replica.run("change-master", *change, expect=2)
    assert "ERROR 1776" in done.stderr, done
    return done.stderr.partition("hint: ")[2]


def typed(replica: Replica, commands: str) -> None:
    """Run the commands in a shell in which `rplctl` is that of the replica."""
    program = shlex.join([sys.executable, "-m", "rplctl", "--datadir", str(replica.datadir)])
    subprocess.run(["bash", "-euc", f'rplctl() {{ {program} "$@"; }}\n{commands}'], check=True)


def test_the_hint_of_unknown_gtids_leads_to_gtids_that_repeat_no_transaction(
    replica: Replica, mariadb: MariadbServer
) -> None:
    mariadb.sql(SCHEMA)
    name, position = mariadb.master_status()
    replica.run("init")
    replica.change_master(mariadb, "--master-log-file", name, "--master-log-pos", str(position))
    replica.run("start", "--until-synced")
    mariadb.sql("CREATE TABLE n (id INT PRIMARY KEY); INSERT INTO n VALUES (1), (2)", "shop")

    hint = refused_hint(replica, "--master-use-gtid", "slave_pos")
    query = hint.partition("run on the source: ")[2].partition("\n")[0]
    commands = hint.partition("and run: ")[2].partition("\n")[0]
    typed(replica, commands.replace("GTIDS", str(mariadb.sql(query)[0][0])))
    replica.run("change-master", "--master-use-gtid", "slave_pos")
    replica.run("start", "--until-synced")
    assert replica.query("SELECT id FROM shop__n ORDER BY id") == [(1,), (2,)]


@pytest.mark.long("test_the_hint_of_unknown_gtids_leads_to_gtids_that_repeat_no_transaction types a hint in make test.")
def test_the_hint_of_an_unknown_position_leads_to_a_position_that_loses_no_transaction(
    replica: Replica, mariadb: MariadbServer
) -> None:
    mariadb.sql(SCHEMA)
    replica.run("init")
    replica.change_master(mariadb, "--master-use-gtid", "slave_pos")
    replica.run("change-filter", "--replicate-do-db", "shop")
    replica.run("clone", "--databases", "shop", "--replace", "--yes")
    replica.run("wait", "--state", "synced")
    replica.run("stop")
    replica.run("reset", "--yes")

    hint = refused_hint(replica, "--master-use-gtid", "no")
    assert "from its next transaction, run: rplctl start\n" in hint and "command again, run: rplctl stop\n" in hint
    replica.run("start")
    mariadb.sql("INSERT INTO t VALUES (3)", "shop")
    wait_until(lambda: len(replica.query("SELECT id FROM shop__t")) == 3)
    replica.run("stop")
    replica.run("change-master", "--master-use-gtid", "no")
    mariadb.sql("INSERT INTO t VALUES (4)", "shop")
    replica.run("start", "--until-synced")
    assert replica.query("SELECT id FROM shop__t ORDER BY id") == [(1,), (2,), (3,), (4,)]


@pytest.mark.long("test_the_hint_of_unknown_gtids_leads_to_gtids_that_repeat_no_transaction types a hint in make test.")
@pytest.mark.mysql
def test_the_hint_of_the_other_vendors_gtids_leads_to_a_verified_copy(
    replica: Replica, mariadb: MariadbServer, mysql: MysqlServer
) -> None:
    mariadb.sql(SCHEMA)
    mysql.sql(SCHEMA)
    mysql.sql("INSERT INTO shop.t VALUES (3)")
    replica.run("init")
    replica.change_master(mariadb, "--master-use-gtid", "slave_pos")
    replica.run("change-filter", "--replicate-do-db", "shop")
    replica.run("start", "--until-synced")
    other = ("--master-use-gtid", "no", "--master-auto-position", "1")

    hint = replica.change_master(mysql, *other, expect=2).stderr.partition("hint: ")[2]
    typed(replica, hint.partition("run: ")[2].partition("\n")[0])
    replica.change_master(mysql, *other)
    typed(replica, hint.rpartition("run: ")[2])
    replica.run("wait", "--state", "synced")
    replica.run("verify")
    assert replica.query("SELECT id FROM shop__t ORDER BY id") == [(1,), (2,), (3,)]
