"""The vendor's tool reads each of our relay logs to its end: wherever the source's next log begins, whatever is left
out.
"""

from __future__ import annotations

import re
import subprocess

import pytest

from rplctl.relay_log.index import RelayLogIndex
from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer

pytestmark = [pytest.mark.slow, pytest.mark.mariadb]
SCHEMA = "DROP DATABASE IF EXISTS tool; CREATE DATABASE tool; CREATE TABLE tool.t (a INT PRIMARY KEY)"
LEFT_OUT = "SET gtid_domain_id = 7; INSERT INTO tool.t VALUES (99); SET gtid_domain_id = 0"


@pytest.mark.parametrize("change", [(), ("--master-use-gtid", "slave_pos", "--ignore-domain-ids", "7")])
def test_mariadb_binlog_reads_past_the_rotations_of_the_source(
    replica: Replica, source: MariadbServer, mariadb_binlog: str, change: tuple[str, ...]
) -> None:
    replica.set_up(source, change=change)
    replica.run("start", "--receiver")
    source.sql(f"INSERT INTO tool.t VALUES (0); {LEFT_OUT}; FLUSH BINARY LOGS; INSERT INTO tool.t VALUES (1)")
    wait_until(lambda: "1" in read_by(mariadb_binlog, replica))
    replica.run("stop")
    replica.run("start", "--receiver")  # a relay log that begins amid a log of the source
    source.sql("INSERT INTO tool.t VALUES (2); FLUSH BINARY LOGS; INSERT INTO tool.t VALUES (3); FLUSH BINARY LOGS")
    wait_until(lambda: "3" in read_by(mariadb_binlog, replica))
    replica.run("flush-relay-logs")  # another one
    source.sql(f"INSERT INTO tool.t VALUES (4); {LEFT_OUT.replace('99', '98')}; FLUSH BINARY LOGS")
    source.sql("INSERT INTO tool.t VALUES (5)")
    wait_until(lambda: "5" in read_by(mariadb_binlog, replica))
    assert [row for row in read_by(mariadb_binlog, replica) if row < "9"] == ["0", "1", "2", "3", "4", "5"]


def read_by(tool: str, replica: Replica) -> list[str]:
    """The rows that the tool prints, and not a word of an error."""
    rows = []
    for name in RelayLogIndex(replica.channel).names():
        command = [tool, "--no-defaults", "--verbose", str(replica.datadir / name)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), name
        rows += re.findall(r"###   @1=(\d+)", done.stdout)
    return rows
