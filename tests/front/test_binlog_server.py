"""Replicas and tools read the binary log from the front: all of it, by GTID, and nothing that is not durable."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pymysql
import pytest

import rplctl.demo
from rplctl.applied_log.files import binary_log_files
from rplctl.applied_log.purge import kept_from_purge
from rplctl.channel import Channel
from rplctl.command.purge_binary_logs import purge_binary_logs
from rplctl.command.user import add_user
from rplctl.config import load_config
from rplctl.durable import sync_count
from rplctl.errors import SourceError
from rplctl.event.gtid import MysqlGtidSet
from rplctl.event.header import EventHeader, build_header
from rplctl.event.scan import scan_events
from rplctl.event.types import EventType
from rplctl.front.dump import sendable
from rplctl.front.dump.sendable import SendableLog
from rplctl.front.server import MysqlRequest, MysqlServer
from rplctl.history import read_history
from rplctl.info import MasterInfo
from rplctl.position import BinlogPosition
from rplctl.source.base import DumpStart, ReplicaIdentity, SourceStream
from rplctl.source.dump import open_stream
from tests.applied_log.applied import apply_rest, events_of, logs_of, receive, vendor_reads
from tests.applier.instance import Instance
from tests.command.test_serve import self_signed
from tests.kit.replica import Replica, assert_same_tables, wait_until
from tests.kit.servers import MariadbServer, MysqlServer as RealMysql
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
    source = ("--master-host", "127.0.0.1", "--master-port", "1", "--master-user", "repl", "--password-stdin")
    Replica(folder.parent).run("change-master", *source, password="rpl")
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
    return copied(of_mariadb, tmp_path)


def copied(datadir: Path, tmp_path: Path) -> Path:
    """A copy, for tests that change it. A front that has just ended may still remove the empty files of SQLite."""
    return shutil.copytree(datadir, tmp_path / "replica", ignore=shutil.ignore_patterns("target.db-*"))


@contextmanager
def served(datadir: Path, flavor: str = "mariadb", port: int = 0, tls: Path | None = None) -> Iterator[MysqlServer]:
    request = MysqlRequest(listen=f"127.0.0.1:{port}", flavor=flavor, tls_cert=tls)
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
    config = replace(server.front.looks.config_of(""), replica_net_timeout=60)
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


@pytest.mark.parametrize("tail", [bytes(5000), b"\xff" * 5000, b"\x01" * 18], ids=["zeros", "ones", "short"])
def test_what_a_power_failure_leaves_after_the_last_record_stops_no_replica(datadir: Path, tail: bytes) -> None:
    """The applier cuts it off when it starts; until then it is not sent."""
    with logs_of(datadir)[-1].open("ab") as file:
        file.write(tail)
    expected = events_of([DEMO])
    with served(datadir) as server, reading(server, by_gtid("")) as source:
        assert received(source, len(expected)) == expected
        assert source.read_batch(60) is not None  # a heartbeat


def test_a_damaged_log_before_the_last_ends_a_dump_with_its_name(datadir: Path) -> None:
    first = logs_of(datadir)[0]
    with first.open("ab") as file:
        file.write(bytes(100))
    with served(datadir) as server:
        error = refusal(server, by_gtid(""))
    assert error.errno == 1236 and first.name in error.message


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


def test_a_mysql_replica_and_tool_read_a_log_with_an_event_of_several_packets(
    mysql: RealMysql, mysql_factory: Callable[..., RealMysql], tmp_path: Path
) -> None:
    mysql.sql("FLUSH BINARY LOGS; CREATE DATABASE chained; CREATE TABLE chained.t (id INT PRIMARY KEY, big LONGBLOB)")
    mysql.sql("INSERT INTO chained.t VALUES (1, 'a'), (2, NULL)")
    mysql.sql("INSERT INTO chained.t VALUES (3, REPEAT('b', 17000000))")
    mysql.sql("UPDATE chained.t SET big = 'c' WHERE id = 2; FLUSH BINARY LOGS")
    log = tmp_path / "binlog.000001"
    shutil.copy(mysql.binlog_files[-2], log)
    datadir = logged(tmp_path / "replica", log)
    certificate = tmp_path / "server.pem"
    certificate.write_bytes(self_signed())
    replica = mysql_factory()
    with served(datadir, "mysql", tls=certificate) as server:
        replica.sql(
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={server.port}, SOURCE_USER='chain', "
            f'SOURCE_PASSWORD="{PASSWORD}", SOURCE_AUTO_POSITION=1, SOURCE_HEARTBEAT_PERIOD=0.1; START REPLICA'
        )
        end = SendableLog(files(datadir)).executed()
        wait_until(lambda: replica.sql("SELECT @@gtid_executed") == [(end,)], 120)
        uuid = replica.sql("SELECT @@server_uuid")[0][0]
        assert ask(server, "chain", "SHOW REPLICAS") == [(replica.server_id, "", replica.server_id, 77, uuid)]
        options = ["-R", "-h127.0.0.1", f"-P{server.port}", "-uchain", f"-p{PASSWORD}", "--to-last-log"]
        done = subprocess.run(
            [*tool_for("mysql"), *options, "--verify-binlog-checksum", "binlog.000001"], capture_output=True, check=True
        )
        assert done.stdout.count(b"Xid = ") == 5
    assert replica.sql("CHECKSUM TABLE chained.t") == mysql.sql("CHECKSUM TABLE chained.t")


def last_log(datadir: Path, number: int) -> Path:
    """The log with that number, as the last one of the instance."""
    logs = logs_of(datadir)
    (datadir / "binlog.index").write_text("".join(f"./{path.name}\n" for path in logs[:number]))
    for path in logs[number:]:
        path.unlink()
    return logs[number - 1]


def test_nothing_is_sent_past_the_last_record_or_before_its_fsync(
    datadir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = last_log(datadir, 3)
    whole = path.read_bytes()
    index = scan_events(whole, 4)
    records = index.offsets[1:][index.type_codes == EventType.IGNORABLE].tolist()
    assert len(records) > 2
    for size in [*records, *(end + 25 for end in records[:-1]), *(end - 1 for end in records[1:])]:
        path.write_bytes(whole[:size])
        assert SendableLog(files(datadir)).look(path.name).end == max(end for end in records if end <= size)
    path.write_bytes(whole[: records[-1] - 1])
    log = SendableLog(files(datadir))
    before = log.look(path.name).end
    path.write_bytes(whole)
    monkeypatch.setattr(sendable, "POLL_S", 0.0)

    def failing(descriptor: int, name: str) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(sendable, "sync", failing)
        for _ in range(2):
            wait_until(lambda: raises(lambda: log.look(path.name)), 60)
    synced = sync_count[path.name]
    wait_until(lambda: log.look(path.name).end > before, 60)
    assert log.look(path.name).end == records[-1] < len(whole)  # a ROTATE follows, whose log is not there yet
    assert sync_count[path.name] == synced + 1
    log.close()


def raises(look: Callable[[], object]) -> bool:
    try:
        look()
    except OSError:
        return True
    return False


def test_a_replica_that_cannot_go_on_from_here_gets_1236(datadir: Path) -> None:
    names = [path.name for path in logs_of(datadir)]
    purge_binary_logs(load_config(datadir, ""), "", to=names[3])
    with served(datadir) as server:
        for start, words in {
            by_gtid(""): "were purged",
            by_gtid("0-1-3"): "were purged",
            by_gtid("0-1-999"): "not in the master's binlog",
            by_gtid("0-2-193"): "not in the master's binlog",
            DumpStart(BinlogPosition(names[-1], 5)): "impossible position",
            DumpStart(BinlogPosition(names[0], 4)): "could not find first log file name",
        }.items():
            refused = refusal(server, start)
            assert (refused.errno, words in refused.message) == (1236, True), refused.message
    with served(datadir, "mysql") as server:
        refused = refusal(server, DumpStart(BinlogPosition("", 4), mysql_gtid_set=MysqlGtidSet()))
        assert refused.errno == 1236 and "--mysql-flavor mariadb" in refused.message


def test_only_the_roles_replication_and_admin_read_the_log(of_mariadb: Path) -> None:
    with served(of_mariadb) as server:
        assert refusal(server, by_gtid(""), "monitor").errno in (1227, 1597)
        for sql in ("SHOW REPLICA STATUS", "SHOW PROCESSLIST", "STOP REPLICA", "SELECT * FROM mysql.slave_master_info"):
            with pytest.raises(pymysql.MySQLError) as refused:
                ask(server, "chain", sql)
            assert refused.value.args[0] == 1227, sql


def test_a_log_that_is_read_is_not_purged(datadir: Path) -> None:
    config, names = load_config(datadir, ""), [path.name for path in logs_of(datadir)]
    with kept_from_purge(files(datadir), names[2]):
        for dry_run in (True, False):
            done = purge_binary_logs(config, "", to=names[5], dry_run=dry_run)
            assert done.removed == tuple(names[:2])
            assert [note.errno for note in done.notes] == [1867]
        add_user(config, "dba", "admin", PASSWORD)
        with served(datadir) as server:
            with pymysql.connect(host="127.0.0.1", port=server.port, user="dba", password=PASSWORD) as connection:
                cursor = connection.cursor()
                cursor.execute(f"PURGE BINARY LOGS TO '{names[5]}'")
                cursor.execute("SHOW WARNINGS")
                assert [row[:2] for row in cursor.fetchall()] == [("Warning", 1867)]
    assert purge_binary_logs(config, "", to=names[5]).removed == tuple(names[2:5])
    locks = {path.name for path in files(datadir).run_folder.glob("*read-*")}
    assert locks.isdisjoint(f"binlog-read-{name}.lock" for name in names[:5])


def test_twenty_replicas_that_read_nothing_hold_little_memory_and_delay_nobody(datadir: Path) -> None:
    path = last_log(datadir, 9)
    record = path.read_bytes()
    index = scan_events(record, 4)
    record = record[index.offsets[np.flatnonzero(index.type_codes == EventType.IGNORABLE)[-1]] :]
    large = 40_000_000
    header = EventHeader(
        timestamp=0, type_code=EventType.ROWS_QUERY, server_id=1, event_length=large, end_log_pos=0, flags=0
    )
    with path.open("r+b") as file:
        for _ in range(5):  # holes: they take no room
            end = file.seek(0, os.SEEK_END)
            file.write(build_header(header))
            file.truncate(end + large)
        file.seek(0, os.SEEK_END)
        file.write(record)
    with served(datadir) as server, ExitStack() as replicas:
        before = memory()
        for number in range(20):
            who = ReplicaIdentity(1000 + number, f"00000000-0000-0000-0000-0000000010{number:02}")
            replicas.enter_context(reading(server, by_gtid(""), replica=who))
        wait_until(lambda: sum(row[4] == "Binlog Dump" for row in dumps(server)) == 20, 60)
        with reading(server, by_gtid("0-1-192"), replica=ReplicaIdentity(5, "")) as source:
            expected = events_of([DEMO])
            begin = max(number for number, event in enumerate(expected) if event[4] == EventType.MARIADB_GTID)
            sizes = [len(event) for event in received(source, len(expected) - begin + 5)]
            assert sizes[-5:] == [large - 8] * 5
        assert memory() - before < 400_000_000  # the one that reads has events of 40 MB


def dumps(server: MysqlServer) -> list[Any]:
    return [("", "", "", "", "Binlog Dump") for each in list(server.front.sessions.values()) if each.dump]


def memory() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_the_only_log_of_several_channels_is_the_one_that_all_statements_mean(datadir: Path) -> None:
    names = [path.name for path in logs_of(datadir)]
    add_user(load_config(datadir, ""), "dba", "admin", PASSWORD)
    with (datadir / "rplctl.toml").open("a") as file:  # the options of the instance set no log_bin any more
        file.write('[channel.""]\nlog_bin = "binlog"\n')
    text = (datadir / "rplctl.toml").read_text().replace('log_bin = "binlog"\n', "", 1)
    (datadir / "rplctl.toml").write_text(text)
    source = ("--master-host", "127.0.0.1", "--master-port", "1", "--master-user", "repl", "--password-stdin")
    Replica(datadir.parent).run("change-master", "--channel", "other", *source, password="rpl")
    with served(datadir, flavor="mysql") as server:
        assert [row[0] for row in ask(server, "dba", "SHOW BINARY LOGS")] == names
        assert ask(server, "dba", "SELECT @@log_bin, @@log_replica_updates")[0] in ((1, 1), ("ON", "ON"))
        ask(server, "dba", f"PURGE BINARY LOGS TO '{names[1]}'")
        assert [row[0] for row in ask(server, "dba", "SHOW BINARY LOGS")] == names[1:]
