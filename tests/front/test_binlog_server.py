"""Replicas and tools read the binary log from the front: all of it, by GTID, and nothing that is not durable."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pymysql
import pytest

import rplctl.demo
from rplctl.applied_log.files import binary_log_files
from rplctl.channel import Channel
from rplctl.command.user import add_user
from rplctl.config import Config, load_config
from rplctl.errors import SourceError
from rplctl.front.dump.sendable import SendableLog
from rplctl.front.server import MysqlRequest, MysqlServer
from rplctl.history import read_history
from rplctl.info import MasterInfo
from rplctl.position import BinlogPosition
from rplctl.source.base import DumpStart, ReplicaIdentity, SourceStream
from rplctl.source.dump import open_stream
from tests.applied_log.applied import apply_rest, events_of, logs_of, receive, vendor_reads
from tests.applier.instance import Instance
from tests.kit.replica import Replica, assert_same_tables, wait_until
from tests.kit.servers import MariadbServer
from tests.kit.vendor_dump import tool_for

pytestmark = pytest.mark.slow

DEMO = Path(rplctl.demo.__file__).parent / "data" / "binlog.000001"
LAST = "0-1-193"  # of the demo's log
PASSWORD = "C4nary's"


def logged(folder: Path, log: Path) -> Path:
    """An instance that has applied the log with log_bin, in many small files."""
    groups = receive(folder, log)
    instance = Instance(folder, groups, log_bin="binlog", max_binlog_size=20_000)
    apply_rest(instance, groups)
    instance.applier.close()
    instance.target.close()
    (folder / "rplctl.toml").write_text('log_bin = "binlog"\nserver_id = 77\nrelay_log_info_repository = "TABLE"\n')
    config = load_config(folder, "")
    add_user(config, "chain", "replication", PASSWORD)
    add_user(config, "old", "replication", PASSWORD, native=True)
    add_user(config, "monitor", "reader", PASSWORD)
    return folder


@pytest.fixture(scope="module")
def of_mariadb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return logged(tmp_path_factory.mktemp("mariadb") / "replica", DEMO)


@pytest.fixture
def datadir(of_mariadb: Path, tmp_path: Path) -> Path:
    """A copy, for tests that change it."""
    return shutil.copytree(of_mariadb, tmp_path / "replica")


@contextmanager
def served(datadir: Path, flavor: str = "mariadb", port: int = 0) -> Iterator[MysqlServer]:
    request = MysqlRequest(listen=f"127.0.0.1:{port}", flavor=flavor)
    with MysqlServer(request, lambda name: load_config(datadir, name)).running() as server:
        yield server


def files(datadir: Path) -> Any:
    found = binary_log_files(load_config(datadir, ""), Channel("", datadir))
    assert found is not None
    return found


@contextmanager
def reading(
    server: MysqlServer, start: DumpStart, user: str = "chain", replica: ReplicaIdentity | None = None
) -> Iterator[SourceStream]:
    """A dump as rplctl's receiver asks for it."""
    info = MasterInfo(
        host="127.0.0.1", port=server.port, user_name=user, heartbeat=0.1, get_public_key=True, using_gtid=2
    )
    config = Config(Path("/nowhere"), replica_net_timeout=60)
    who = replica or ReplicaIdentity(4711, "00000000-0000-0000-0000-00000000002a")
    opened = open_stream(info, PASSWORD, start, who, config)
    try:
        yield opened
    finally:
        opened.close()


def by_gtid(gtid: str) -> DumpStart:
    return DumpStart(BinlogPosition("", 4), mariadb_gtid=gtid)


def received(source: SourceStream, count: int) -> list[bytes]:
    """Transactions' events until there are that many, without what a copy may change (see events_of)."""
    own = {4, 15, 27, 35, 163, 161}
    found: list[bytes] = []
    while len(found) < count:
        batch = source.read_batch(60)
        assert batch is not None
        for first, last in zip(batch.offsets[:-1].tolist(), batch.offsets[1:].tolist(), strict=True):
            event = batch.data[first:last].tobytes()
            if event[4] not in own:
                found.append(event[:13] + event[17:-4])
    return found


def refusal(server: MysqlServer, start: DumpStart, user: str = "chain") -> SourceError:
    with pytest.raises(SourceError) as refused, reading(server, start, user) as source:
        while True:
            source.read_batch(60)
    return refused.value


def test_a_replica_gets_every_event_from_zero_and_from_the_middle(of_mariadb: Path) -> None:
    expected = events_of([DEMO])
    with served(of_mariadb) as server:
        with reading(server, by_gtid("")) as source:
            assert received(source, len(expected)) == expected
        for middle in (1, 7, 57, 100, 192):
            with reading(server, by_gtid(f"0-1-{middle}")) as source:
                rest = received(source, 1)
                missing = [event for event in expected if event[4] == 162]
                begins = next(event for event in missing if event[15:23] == (middle + 1).to_bytes(8, "little"))
                assert rest[0] == begins
                wanted = expected[expected.index(begins) :]
                assert (rest + received(source, len(wanted) - len(rest))) == wanted
    assert any(event.Event == "dump" and "chain@127.0.0.1" in event.Done_By for event in read_history(of_mariadb))


def test_vendor_tool_reads_all_transactions_over_the_network(of_mariadb: Path) -> None:
    here = vendor_reads(tool_for("mariadb"), logs_of(of_mariadb))
    with served(of_mariadb) as server:
        remote = ["-R", "-h127.0.0.1", f"-P{server.port}", "-uold", f"-p{PASSWORD}", "--to-last-log", "binlog.000001"]
        there = vendor_reads([*tool_for("mariadb"), *remote], [])
    assert there.count("Xid = ") == here.count("Xid = ") > 100
    assert f"GTID {LAST}" in there


def test_a_mariadb_replica_equals_the_target_though_front_and_replica_are_killed(
    datadir: Path, mariadb_factory: Callable[..., MariadbServer]
) -> None:
    replica, target = mariadb_factory(), Replica(datadir.parent)
    later = logs_of(datadir)[4:]
    index = datadir / "binlog.index"
    lines = index.read_text().splitlines(keepends=True)
    index.write_text("".join(lines[:4]))  # the applier is not further yet
    for path in later:
        path.rename(path.with_suffix(".later" + path.suffix))
    with served(datadir) as server:
        port = server.port
        replica.sql(
            f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='old', MASTER_PASSWORD="
            f'"{PASSWORD}", MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1, MASTER_HEARTBEAT_PERIOD=0.1; START SLAVE'
        )
        end = SendableLog(files(datadir)).executed()
        wait_until(lambda: replica.sql("SELECT @@gtid_slave_pos") == [(end,)], 120)
        assert ask(server, "chain", "SHOW SLAVE HOSTS")[0][0] == replica.server_id
        wait_until(lambda: int(replica.sql("SHOW STATUS LIKE 'Slave_received_heartbeats'")[0][1]) > 2, 120)
    for path in later:
        path.with_suffix(".later" + path.suffix).rename(path)
    replica.kill()
    index.write_text("".join(lines))
    replica.start()
    with served(datadir, port=port):
        replica.sql("START SLAVE")
        wait_until(lambda: replica.sql("SELECT @@gtid_slave_pos") == [(LAST,)], 120)
    assert_same_tables(replica, target, "shop")


def ask(server: MysqlServer, user: str, sql: str) -> list[Any]:
    with (
        pymysql.connect(host="127.0.0.1", port=server.port, user=user, password=PASSWORD) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(sql)
        return list(cursor.fetchall())
