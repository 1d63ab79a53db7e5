"""A source that writes no checksums is followed like any other: folder or server, stopped and killed in mid-log.

The family: both vendors, by position and by GTID, the setting changed between logs (NONE, CRC32, NONE), a start in the
middle of each log, a relay log whose end is torn.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rplctl.event.checksum import verify_events
from rplctl.event.scan import GroupKind, scan_events, scan_groups
from rplctl.event.types import EventType
from rplctl.position import BinlogPosition
from rplctl.relay_log.index import RelayLogIndex
from rplctl.source import DumpStart
from rplctl.source.binlog_folder import FolderStream
from tests.kit.record_no_checksums import BEGINS, FOLDER, PER_LOG, SERVERS, SETTINGS
from tests.kit.replica import Replica, assert_same_tables, wait_until
from tests.kit.servers import MariadbServer, MysqlServer

LONG = pytest.mark.long("MariaDB by position stays; the others repeat it.", keeps=r"^mariadb(-False)?$")

ROWS = [(10 * number + row, f"{setting} {row}") for number, setting in enumerate(SETTINGS) for row in range(PER_LOG)]
QUERY = "SELECT id, word FROM plain__t ORDER BY id"
pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize("vendor", SERVERS)
def test_a_recorded_log_is_read_from_each_of_its_events(vendor: str, tmp_path: Path) -> None:
    for path in sorted((FOLDER / vendor).iterdir()):
        whole = path.read_bytes()
        for at in scan_events(whole, 4).offsets[1:].tolist():
            stream = FolderStream(FOLDER / vendor, tmp_path, DumpStart(BinlogPosition(path.name, at)))
            algorithm = int(stream.identity().has_checksums)
            read = b""
            while (batch := stream.read_batch(0)) is not None:
                assert verify_events(batch.data, batch.offsets, algorithm) == -1, (path.name, at)
                for event in map(batch.event, range(len(batch))):
                    algorithm = event[-5] if event[4] == EventType.FORMAT_DESCRIPTION else algorithm
                read += batch.data.tobytes()
            stream.close()
            assert whole[at:] in read


def receive_and_crash(replica: Replica, end: Callable[[], tuple[str, int]]) -> None:
    """Kill the receiver at the log's end, and cut the relay log inside its last event: as after a crash of the machine.

    MariaDB writes a BINLOG_CHECKPOINT some time after a rotation, so the log's end is asked for each time.
    """
    replica.run("start", "--receiver")

    def is_at_the_end() -> bool:
        status = replica.status()
        assert not status["Last_IO_Errno"], status["Last_IO_Error"]
        return (status["Master_Log_File"], status["Read_Master_Log_Pos"]) == end()

    wait_until(is_at_the_end)
    assert replica.kill("receiver")
    path = replica.datadir / RelayLogIndex(replica.channel).names()[-1]
    path.write_bytes(path.read_bytes()[:-3])


def fixed_end(log_name: str, position: int) -> Callable[[], tuple[str, int]]:
    return lambda: (log_name, position)


def transaction_ends(log: bytes) -> list[int]:
    scan = scan_groups(log, 4, BinlogPosition("binlog.000001", 4), len(log))
    return [int(scan.source_position(int(number)).log_pos) for number in np.flatnonzero(scan.kind != GroupKind.CONTROL)]


@pytest.mark.long("test_a_server_is_followed_from_the_middle_of_each_log stays in make test.")
@LONG
@pytest.mark.slow
@pytest.mark.parametrize("vendor", SERVERS)
def test_a_folder_that_grows_in_mid_log_is_followed(vendor: str, tmp_path: Path, replica: Replica) -> None:
    archive = tmp_path / "archive"
    archive.mkdir()
    replica.run("init", "--log-bin", "applied")
    for number, path in enumerate(sorted((FOLDER / vendor).iterdir())):
        whole, copy = path.read_bytes(), archive / path.name
        ends = transaction_ends(whole)
        copy.write_bytes(whole[: ends[-2]])
        if not number:
            replica.run("change-master", "--master-binlog-dir", str(archive))
        replica.run("start", "--until-synced", "--max-time", "300")
        assert replica.query(QUERY) == ROWS[: PER_LOG * (number + 1) - 1]
        copy.write_bytes(whole[: ends[-1]])
        receive_and_crash(replica, fixed_end(copy.name, ends[-1]))
    replica.run("start", "--until-synced", "--max-time", "300")
    assert replica.query(QUERY) == ROWS


@pytest.fixture(params=["mariadb", "mysql"], scope="module")
def server(request: pytest.FixtureRequest) -> MariadbServer:
    factory = request.getfixturevalue(f"{request.param}_factory")
    made: MariadbServer = factory(*BEGINS, *SERVERS[request.param][1])
    return made


@LONG
@pytest.mark.slow
@pytest.mark.parametrize("by_gtid", [False, True])
def test_a_server_is_followed_from_the_middle_of_each_log(
    server: MariadbServer, by_gtid: bool, replica: Replica
) -> None:
    name = f"plain{by_gtid:d}"
    server.sql(f"SET GLOBAL binlog_checksum=NONE; CREATE DATABASE {name}; CREATE TABLE {name}.t (id INT PRIMARY KEY)")
    auto = ("--master-auto-position", "1") if isinstance(server, MysqlServer) else ("--master-use-gtid", "slave_pos")
    replica.set_up(server, "--log-bin", "applied", change=auto if by_gtid else ())
    for number, setting in enumerate(SETTINGS):
        server.sql(f"SET GLOBAL binlog_checksum={setting}; INSERT INTO {name}.t VALUES ({10 * number})")
        replica.run("start", "--until-synced", "--max-time", "300")
        server.sql(f"INSERT INTO {name}.t VALUES ({10 * number + 1})")
        receive_and_crash(replica, server.master_status)
    replica.run("start", "--until-synced", "--max-time", "300")
    assert_same_tables(server, replica, name)
