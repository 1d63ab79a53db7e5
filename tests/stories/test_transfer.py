"""A transaction that takes long to arrive: the operator sees that it is on its way, and not that it is here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.kit.proxy import Fate, Proxy
from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer

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
