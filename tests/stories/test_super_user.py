"""REQ-1 (WL#2775): what a super user may do to the tables of a live channel, and what the applier makes of it."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing

import pytest

from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer

pytestmark = [
    pytest.mark.long(
        "A position edited by hand is rare; tests/repository/test_triggers.py holds what a super user may edit."
    ),
    pytest.mark.slow,
    pytest.mark.timeout(900),
]

SCHEMA = "DROP DATABASE IF EXISTS shop; CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY)"
TABLES = ("--master-info-repository", "table", "--relay-log-info-repository", "table")


def into(replica: Replica, source: MariadbServer, target: MariadbServer, *init: str) -> None:
    """A channel from that source into that server."""
    replica.set_up(source, *replica.into(target), *init)


def edit(replica: Replica, sql: str) -> None:
    with closing(sqlite3.connect(replica.datadir / "target.db", timeout=30)) as connection, connection:
        connection.execute(sql)


def test_a_position_edited_while_stopped_is_where_the_next_start_goes_on(
    replica: Replica, source: MariadbServer
) -> None:
    replica.set_up(source, *TABLES)
    replica.run("start", "--until-synced")
    source.sql("INSERT INTO shop.t VALUES (1)")
    name, position = source.master_status()
    source.sql("INSERT INTO shop.t VALUES (2)")
    edit(replica, f"UPDATE slave_relay_log_info SET Master_log_name='{name}', Master_log_pos={position}")
    replica.run("start", "--until-synced")
    assert replica.query("SELECT id FROM shop__t") == [(2,)], "the operator passed over the first row"


def test_a_position_edited_under_a_running_applier_stops_it_and_is_named(
    replica: Replica, source: MariadbServer
) -> None:
    replica.set_up(source, *TABLES)
    replica.run("start")
    replica.wait_synced(source)
    edit(replica, "UPDATE slave_relay_log_info SET Relay_log_pos = Relay_log_pos + 1")
    source.sql("INSERT INTO shop.t VALUES (1)")
    wait_until(lambda: replica.pid("applier") is None)
    assert "an operator changed it; nothing was applied" in replica.status()["Last_SQL_Error"]
    assert replica.query("SELECT id FROM shop__t") == []
    replica.run("start")
    replica.wait_synced(source)
    assert replica.query("SELECT id FROM shop__t") == [(1,)], "the source position leads on"


def test_a_read_lock_holds_the_applier_and_nothing_is_lost_or_repeated(
    replica: Replica, source: MariadbServer, mariadb_factory: Callable[..., MariadbServer]
) -> None:
    target = mariadb_factory()
    into(replica, source, target, *TABLES)
    replica.run("start")
    replica.wait_synced(source)
    with closing(target.connect()) as super_user, super_user.cursor() as cursor:
        cursor.execute("FLUSH TABLES WITH READ LOCK")
        for number in range(50):
            source.sql(f"INSERT INTO shop.t VALUES ({number})")
        time.sleep(1)
        assert target.rows("shop", "t") == [] and replica.pid("applier") is not None
        cursor.execute("UNLOCK TABLES")
    replica.wait_synced(source)
    assert sorted(target.rows("shop", "t")) == [(number,) for number in range(50)]
    assert replica.status()["Last_SQL_Errno"] == 0


@pytest.mark.parametrize(
    "rep_engine", ["MyISAM", *(pytest.param(name, marks=pytest.mark.torture) for name in ("InnoDB", "MEMORY"))]
)
def test_every_engine_survives_a_killed_applier_and_status_says_what_it_can_do(
    replica: Replica, source: MariadbServer, mariadb_factory: Callable[..., MariadbServer], rep_engine: str
) -> None:
    target = mariadb_factory()
    into(replica, source, target, *TABLES, "--rep-engine", rep_engine)
    replica.run("start")
    for number in range(2):
        for row in range(20):
            source.sql(f"INSERT INTO shop.t VALUES ({number * 20 + row})")
        time.sleep(0.3)
        replica.kill("applier")
        replica.run("start")
    replica.wait_synced(source)
    assert sorted(target.rows("shop", "t")) == [(number,) for number in range(40)]
    expected = "transaction" if rep_engine == "InnoDB" else "marker"
    wait_until(lambda: replica.status()["Commit_Mode"])  # the last one may have begun when all was applied
    status = replica.status()
    assert status["Commit_Mode"] == expected
    assert status["Relay_Log_Info_Repository"] == f"TABLE {'' if rep_engine == 'InnoDB' else 'not '}transactional"
    replica.run("stop")
    target.sql("ALTER TABLE rplctl.slave_relay_log_info ENGINE=Aria" if rep_engine == "InnoDB" else "SELECT 1")
    target.sql("ALTER TABLE rplctl.slave_relay_log_info ENGINE=InnoDB" if rep_engine != "InnoDB" else "SELECT 1")
    source.sql("INSERT INTO shop.t VALUES (40)")
    replica.run("start")
    replica.wait_synced(source)
    wait_until(lambda: replica.status()["Commit_Mode"])
    assert replica.status()["Commit_Mode"] != expected, "asked anew at each start"
    assert len(target.rows("shop", "t")) == 41
