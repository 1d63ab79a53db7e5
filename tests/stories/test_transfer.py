"""A transaction that takes long to arrive: the operator sees that it is on its way, and not that it is here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.kit.proxy import Fate, Proxy
from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer, MysqlServer

pytestmark = [pytest.mark.slow]
SCHEMA = "DROP DATABASE IF EXISTS slow; CREATE DATABASE slow; CREATE TABLE slow.t (id INT PRIMARY KEY, v LONGTEXT)"
LARGE = ", ".join(f"({number}, REPEAT('x', 500000))" for number in range(1, 9))
TRANSFER = ("Seconds_Behind_Master", "Retrieved_Gtid_Set", "Executed_Gtid_Set")


@contextmanager
def held(source: MariadbServer) -> Iterator[Proxy]:
    """A source whose answers can be held back in the middle."""
    with Proxy(source.port) as proxy:
        proxy.usual = Fate(cut_after=1 << 40, begins=bool)  # counted from the first byte, never cut
        yield proxy


def connect(replica: Replica, source: MariadbServer, proxy: Proxy, *how: str) -> None:
    replica.run("init")
    options = replica.datadir / "rplctl.toml"
    options.write_text(f'replicate_do_db = "slow"\n{options.read_text()}')
    replica.change_master(source, "--master-port", str(proxy.port), "--master-heartbeat-period", "0", *how)
    replica.run("start")


def hold_in_the_middle_of_a_transaction(source: MariadbServer, proxy: Proxy) -> None:
    proxy.hold_at = proxy.answered + 1_000_000
    source.sql(f"INSERT INTO slow.t VALUES {LARGE}")
    wait_until(lambda: proxy.answered >= (proxy.hold_at or 0))


def shown(replica: Replica) -> dict[str, Any]:
    return {name: replica.status()[name] for name in TRANSFER}


def test_a_transaction_in_transfer_is_lag_from_its_first_event_and_its_gtid_is_not_retrieved(
    replica: Replica, source: MariadbServer
) -> None:
    source.sql(SCHEMA)
    with held(source) as proxy:
        connect(replica, source, proxy, "--master-use-gtid", "slave_pos")
        replica.wait_synced(source)
        wait_until(lambda: shown(replica)["Seconds_Behind_Master"] == 0)
        before = shown(replica)
        hold_in_the_middle_of_a_transaction(source, proxy)
        wait_until(lambda: (replica.status()["Seconds_Behind_Master"] or 0) >= 2)
        during = replica.status()
        assert {name: during[name] for name in TRANSFER[1:]} == {name: before[name] for name in TRANSFER[1:]}
        assert during["Read_Master_Log_Pos"] > during["Exec_Master_Log_Pos"]

        proxy.cut_all()  # what came of it is of no use: nothing is known of it
        proxy.away.set()
        wait_until(lambda: replica.status()["Slave_IO_Running"] == "Connecting")
        assert shown(replica) == {**before, "Seconds_Behind_Master": None}
        assert "lag" not in replica.run("check", expect=None).stdout
        proxy.hold_at = 0
        proxy.away.clear()
        replica.wait_synced(source)
        wait_until(lambda: shown(replica)["Seconds_Behind_Master"] == 0)
        after = shown(replica)
        assert after["Retrieved_Gtid_Set"] == after["Executed_Gtid_Set"] != before["Executed_Gtid_Set"]


@pytest.mark.long("The test before it holds the rule; this one sees a native replica of MySQL follow it, too.")
def test_a_gtid_counts_as_retrieved_at_the_end_of_its_transaction_as_in_mysql(
    replica: Replica, mysql_factory: Callable[..., MysqlServer]
) -> None:
    source, native = mysql_factory(), mysql_factory("--server-id=77")
    source.sql(SCHEMA)
    with held(source) as ours, held(source) as theirs:
        connect(replica, source, ours, "--master-auto-position", "1")
        native.follow(source, theirs.port)
        replica.wait_synced(source)
        before = replica.status()["Retrieved_Gtid_Set"]
        wait_until(lambda: native_status(native)["Retrieved_Gtid_Set"] == before)
        theirs.hold_at = theirs.answered + 1_000_000
        hold_in_the_middle_of_a_transaction(source, ours)
        wait_until(lambda: theirs.answered >= theirs.hold_at)
        wait_until(lambda: (replica.status()["Seconds_Behind_Master"] or 0) >= 2)
        wait_until(lambda: (native_status(native)["Seconds_Behind_Source"] or 0) >= 2)
        assert replica.status()["Retrieved_Gtid_Set"] == native_status(native)["Retrieved_Gtid_Set"] == before
        ours.hold_at = theirs.hold_at = 0
        replica.wait_synced(source)
        wait_until(lambda: native_status(native)["Retrieved_Gtid_Set"] != before)
        wait_until(lambda: replica.status()["Retrieved_Gtid_Set"] == native_status(native)["Retrieved_Gtid_Set"])


def native_status(server: MysqlServer) -> dict[str, Any]:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW REPLICA STATUS")
        names = [column[0] for column in cursor.description]
        return dict(zip(names, cursor.fetchone() or (), strict=True))


def test_what_is_executed_is_shown_as_read_and_an_idle_sources_last_event_at_once(
    replica: Replica, source: MariadbServer
) -> None:
    source.sql(SCHEMA)
    with held(source) as proxy:
        connect(replica, source, proxy, "--master-use-gtid", "slave_pos")
        replica.wait_synced(source)
        inserts = 60
        behind = []
        for number in range(100, 100 + inserts):
            source.sql(f"INSERT INTO slow.t VALUES ({number}, '')")
            status = replica.status()
            if (status["Read_Master_Log_Pos"], status["Retrieved_Gtid_Set"]) < (
                status["Exec_Master_Log_Pos"],
                status["Executed_Gtid_Set"],
            ):
                behind.append(status)
        assert behind == []
        replica.wait_synced(source)
