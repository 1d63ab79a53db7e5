"""The vendors' own dump tools read each relay log to its end, as they read one of a native replica."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Engine

from rplctl.info import RelayLogInfo
from rplctl.recovery import recover_relay_log
from rplctl.repository import open_relay_log_info
from tests.kit.servers import MariadbServer, MysqlServer
from tests.kit.vendor_dump import run_tool
from tests.receiver.running import RunningReceiver

pytestmark = pytest.mark.slow


def assert_the_tool_reads_relay_logs(vendor: str, source: MariadbServer, folder: Path) -> None:
    """Of a receiver that follows the source over three of its logs, once by a connection that ends amid a log."""
    source.sql("CREATE DATABASE tools; CREATE TABLE tools.t (id INT PRIMARY KEY, v VARCHAR(20))")
    running = RunningReceiver(folder, host="127.0.0.1", port=source.port)
    for number in range(2):
        with running:
            source.sql(f"INSERT INTO tools.t VALUES ({10 * number}, 'before the rotation'); FLUSH BINARY LOGS")
            source.sql(f"INSERT INTO tools.t VALUES ({10 * number + 1}, 'behind it')")
            running.catch_up(source)
    text = b""
    for name in running.relay_logs():
        done = run_tool(vendor, running.channel.datadir / name, "-vv", "--verify-binlog-checksum")
        assert (done.returncode, done.stderr) == (0, b""), name
        text += done.stdout
    assert text.count(b"### INSERT INTO `tools`.`t`") == 4


@pytest.mark.mariadb
def test_mariadb_binlog_reads_relay_logs_to_their_end(
    mariadb_factory: Callable[..., MariadbServer], tmp_path: Path
) -> None:
    assert_the_tool_reads_relay_logs("mariadb", mariadb_factory(), tmp_path / "instance")


def said(running: RunningReceiver) -> tuple[str, int]:
    """How far this connection has read."""
    return running.status().read_log_name, running.status().read_log_pos


@pytest.mark.mariadb
def test_a_connection_by_gtid_that_brings_nothing_keeps_its_place_in_the_source_log(
    mariadb_factory: Callable[..., MariadbServer], tmp_path: Path
) -> None:
    """MariaDB says by a list of GTIDs alone how far such a replica is, and the relay log leaves that out."""
    source = mariadb_factory()
    source.sql("CREATE DATABASE tools; CREATE TABLE tools.t (id INT PRIMARY KEY); INSERT INTO tools.t VALUES (1)")
    name, position = end = source.master_status()
    gtids = str(source.sql("SELECT @@gtid_binlog_pos")[0][0])
    applied = RelayLogInfo(master_log_name=name, master_log_pos=position, gtid_executed=gtids)
    running = RunningReceiver(tmp_path / "instance", host="127.0.0.1", port=source.port, using_gtid=2, heartbeat=0.0)
    open_relay_log_info(running.config, running.channel, no_engine).flush(applied, force=True)
    with running:
        running.wait(lambda: said(running) == end)
    found = recover_relay_log(running.channel, running.stored(), applied, thorough=True)
    assert (found.next_event.log_name, found.next_event.log_pos) == end


def no_engine() -> Engine:
    raise AssertionError("records are files here")


@pytest.mark.long
@pytest.mark.mysql
def test_mysqlbinlog_reads_relay_logs_to_their_end(mysql_factory: Callable[..., MysqlServer], tmp_path: Path) -> None:
    """MySQL logs no list of GTIDs amid a file; the MariaDB test holds the rest of the promise."""
    assert_the_tool_reads_relay_logs("mysql", mysql_factory(), tmp_path / "instance")
