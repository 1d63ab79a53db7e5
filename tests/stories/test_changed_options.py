"""Options of a stopped channel are changed between receiving and applying, on a real source (design D22): nothing is
lost, nothing comes twice, and what was received counts although the source has purged it by then.
"""

from __future__ import annotations

import pytest

from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer

pytestmark = [
    pytest.mark.long(
        "tests/command/channel/test_change_positions.py::"
        "test_no_option_moves_the_position_loses_or_repeats_a_transaction holds it option by option."
    ),
    pytest.mark.slow,
]
SCHEMA = """
    CREATE OR REPLACE DATABASE shop;
    CREATE TABLE shop.audit (id INT, what VARCHAR(20));
    INSERT INTO shop.audit VALUES (1, 'a'), (2, 'b')
"""


@pytest.mark.parametrize("kind", [pytest.param("FILE", marks=pytest.mark.torture), "TABLE"])
def test_options_changed_before_anything_was_applied_lose_and_repeat_nothing(
    replica: Replica, source: MariadbServer, kind: str
) -> None:
    source.sql("FLUSH BINARY LOGS; INSERT INTO shop.audit VALUES (3, 'c')")
    replica.set_up(source, "--master-info-repository", kind, "--relay-log-info-repository", kind)
    replica.run("start", "--receiver")
    wait_until(lambda: replica.status()["Read_Master_Log_Pos"] == source.master_status()[1])
    replica.run("stop")
    source.sql(f"PURGE BINARY LOGS TO '{source.master_status()[0]}'")
    before = replica.status()
    replica.run("change-master", "--master-connect-retry", "10")
    replica.run("change-master", "--master-delay", "0")
    replica.change_master(source)  # host, port, user and password as they were
    after = replica.status()
    for field in ("Relay_Master_Log_File", "Exec_Master_Log_Pos", "Master_Log_File", "Read_Master_Log_Pos"):
        assert after[field] == before[field]
    source.sql("INSERT INTO shop.audit VALUES (4, 'd')")
    replica.run("start", "--until-synced")
    assert replica.query("SELECT id FROM shop__audit") == [(1,), (2,), (3,), (4,)]
