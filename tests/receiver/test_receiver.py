"""The receiver against a folder and real servers: every event once, byte for byte, whatever happens to the link."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pymysql
import pytest

from rplctl.channel import hold_lock
from rplctl.clone.cloner import Cloner
from rplctl.durable import private_folder
from rplctl.errors import LockBusy, NotConfigured, RplError, SourceError
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.receiver import receiver as receiver_module
from rplctl.receiver.receiver import Receiver, dump_start
from rplctl.recovery import RecoveryResult
from rplctl.relay_log.purge import purge_applied
from tests.kit.private_server import free_port, release_port
from tests.kit.replica import purge_logs
from tests.kit.servers import MariadbServer, MysqlServer
from tests.receiver.running import RunningReceiver, log_events
from tests.source.binlogs import FIRST_EVENT, event, rotate, statements, write_log
from tests.source.fake_server import FakeServer, frame, frame_error

pytestmark = pytest.mark.slow


def archive(folder: Path, transactions: int = 50) -> Path:
    folder.mkdir()
    first = statements(transactions, start=FIRST_EVENT)
    end = FIRST_EVENT + sum(map(len, first))
    write_log(folder / "bin.000001", [*first, rotate("bin.000002", end + len(rotate("bin.000002", 0)))])
    write_log(folder / "bin.000002", statements(transactions, start=FIRST_EVENT, first=transactions + 1))
    return folder


def end_of(path: Path) -> tuple[str, int]:
    return path.name, path.stat().st_size


@pytest.mark.parametrize("moment", [True, False], ids=["before", "behind"])
def test_a_stop_right_before_or_behind_the_connecting_ends_the_run_in_order(moment: bool, tmp_path: Path) -> None:
    """The signal's exception must not find the moment in which nobody waits for it."""
    running = RunningReceiver(tmp_path / "data", master_binlog_dir=str(archive(tmp_path / "archive")))

    class Signalled(Receiver):
        is_due = False

        def __setattr__(self, name: str, value: Any) -> None:
            if moment:
                super().__setattr__(name, value)
            if name == "_connecting" and value is moment and self.is_due:
                self.is_due = False
                signal.raise_signal(signal.SIGTERM)
            super().__setattr__(name, value)

    receiver = Signalled(running.config, running.channel)
    receiver.is_due = True
    receiver.run()
    assert not receiver.is_due
    assert not running.relayed()
    assert running.status().last_errno == 0


def test_the_copying_thread_has_ended_before_the_lock_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise it writes into a folder that the next process, or an operator, already uses or removes."""
    running = RunningReceiver(tmp_path / "data", master_binlog_dir=str(archive(tmp_path / "archive")))
    late, copies = running.channel.run_folder / "late", threading.Event()

    def copy(cloner: Cloner) -> None:
        copies.set()
        cloner.stop.wait()
        time.sleep(0.3)
        late.touch()

    monkeypatch.setattr(Cloner, "run", copy)
    private_folder(running.channel.clone_plan.parent)
    running.channel.clone_plan.touch()
    with running:
        running.wait(copies.is_set)
    with hold_lock(running.channel, "receiver"):
        assert late.exists()


def test_an_archive_is_received_byte_for_byte(tmp_path: Path) -> None:
    folder = archive(tmp_path / "archive")
    with RunningReceiver(tmp_path / "data", master_binlog_dir=str(folder)) as receiver:
        receiver.wait_for(*end_of(folder / "bin.000002"))
    assert receiver.relayed() == log_events([folder / "bin.000001", folder / "bin.000002"])
    assert receiver.relay_logs() == ["relay-bin.000001"]
    stored = receiver.stored()
    assert (stored.flushed_relay_log_name, stored.master_server_id) == ("relay-bin.000001", 4711)
    assert stored.flushed_relay_log_pos == (tmp_path / "data/relay-bin.000001").stat().st_size
    status = receiver.status()
    assert (status.read_log_name, status.read_log_pos) == end_of(folder / "bin.000002")
    assert status.retrieved_gtid_set.endswith(":1-100") and status.last_errno == 0


def test_a_second_run_begins_a_new_relay_log_where_the_first_ended(tmp_path: Path) -> None:
    folder = archive(tmp_path / "archive")
    receiver = RunningReceiver(tmp_path / "data", master_binlog_dir=str(folder))
    for count in (1, 2):
        with receiver:
            receiver.wait(lambda count=count: len(receiver.relay_logs()) == count)  # type: ignore[misc]
            receiver.wait_for(*end_of(folder / "bin.000002"))
    assert receiver.relay_logs() == ["relay-bin.000001", "relay-bin.000002"]
    assert receiver.relayed() == log_events([folder / "bin.000001", folder / "bin.000002"])


def test_relay_logs_rotate_by_size_and_when_asked_never_inside_a_transaction(tmp_path: Path) -> None:
    folder = archive(tmp_path / "archive", 400)
    last = folder / "bin.000002"
    with RunningReceiver(
        tmp_path / "data", master_binlog_dir=str(folder), config={"max_relay_log_size": 4096}
    ) as receiver:
        receiver.wait(lambda: (receiver.status().read_log_name, receiver.status().read_log_pos) == end_of(last))
        count = len(receiver.relay_logs())
        receiver.flush_logs()
        receiver.wait(lambda: len(receiver.relay_logs()) == count + 1)
    assert receiver.relayed() == log_events([folder / "bin.000001", folder / "bin.000002"])


def test_the_space_limit_holds_the_receiver_until_the_applier_purged(tmp_path: Path) -> None:
    folder = archive(tmp_path / "archive")
    config = {"relay_log_space_limit": 3000}
    with RunningReceiver(tmp_path / "data", master_binlog_dir=str(folder), config=config) as receiver:
        receiver.wait(lambda: "free enough relay log space" in receiver.status().state)
        assert receiver.stored().master_log_name != "" and receiver.relayed() != log_events(
            sorted(folder.glob("bin.*"))
        )
        receiver.wait(lambda: len(receiver.relay_logs()) == 2)  # a new one, so that the first can go
        first = receiver.relayed()
        purge_applied(receiver.channel, RelayLogPosition(receiver.relay_logs()[-1], 4))
        receiver.wait(lambda: len(receiver.relay_logs()) == 2)
        receiver.wait_for(*end_of(folder / "bin.000002"))
        rest = receiver.relayed()
        purge_applied(receiver.channel, RelayLogPosition(receiver.relay_logs()[-1], 4))
        receiver.wait(lambda: receiver.status().state == "Waiting for master to send event")
    assert first + rest == log_events(sorted(folder.glob("bin.*")))


def test_the_space_limit_rests_while_the_applier_waits_for_a_copy(tmp_path: Path) -> None:
    folder = archive(tmp_path / "archive")
    config = {"relay_log_space_limit": 3000}
    with RunningReceiver(tmp_path / "data", master_binlog_dir=str(folder), config=config) as receiver:
        receiver.wait(lambda: "free enough relay log space" in receiver.status().state)
        claimed = receiver.channel.clone_folder / "1-1"
        claimed.mkdir(parents=True)
        (claimed / "claim.json").write_bytes(b"")
        receiver.wait_for(*end_of(folder / "bin.000002"))


def test_the_record_in_a_table_moves_with_the_sources_logs(tmp_path: Path) -> None:
    """It is touched each 10,000 events only: a monitor that reads the table would see no progress for hours."""
    folder = archive(tmp_path / "archive")
    config = {"master_info_repository": "TABLE", "target": f"sqlite:///{tmp_path}/target.db"}
    with RunningReceiver(tmp_path / "data", master_binlog_dir=str(folder), config=config) as receiver:
        receiver.wait(lambda: receiver.stored().master_log_name == "bin.000002")
        assert receiver.stored().master_log_pos <= end_of(folder / "bin.000002")[1]


def test_a_damaged_event_is_1743_and_nothing_of_it_is_kept(tmp_path: Path) -> None:
    folder = archive(tmp_path / "archive")
    damaged = bytearray((folder / "bin.000002").read_bytes())
    damaged[-30] ^= 1
    (folder / "bin.000002").write_bytes(damaged)
    with RunningReceiver(tmp_path / "data", master_binlog_dir=str(folder)) as receiver:
        error = receiver.wait_for_error()
    assert error.errno == 1743 and not error.transient
    assert receiver.status().last_errno == 1743
    assert set(receiver.relayed()) <= set(log_events([folder / "bin.000001"]))


def test_events_of_our_own_server_are_left_out_and_the_position_follows(tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    folder.mkdir()
    theirs = statements(1, start=FIRST_EVENT)
    at = FIRST_EVENT + sum(map(len, theirs))
    ours = event(16, bytes(8), at + 31, server_id=77)
    log = write_log(folder / "bin.000001", [*theirs, ours])
    with RunningReceiver(tmp_path / "data", master_binlog_dir=str(folder)) as receiver:
        receiver.wait_for(*end_of(log))
    assert receiver.relayed() == theirs
    with receiver:
        receiver.wait(lambda: receiver.status().connected)  # recovery knows from the relay log what was left out
    assert (receiver.stored().master_log_name, receiver.stored().master_log_pos) == end_of(log)


def test_what_is_not_configured_is_1200(tmp_path: Path) -> None:
    receiver = RunningReceiver(tmp_path / "data")
    receiver.repository.flush(MasterInfo(), force=True)
    with receiver, pytest.raises(NotConfigured):
        raise receiver.wait_for_error()


def test_one_receiver_for_each_channel(tmp_path: Path) -> None:
    receiver = RunningReceiver(tmp_path / "data", master_binlog_dir=str(archive(tmp_path / "archive")))
    with hold_lock(receiver.channel, "receiver"), pytest.raises(LockBusy):
        Receiver(receiver.config, receiver.channel).run()


def test_retry_count_ends_the_attempts_and_the_error_says_why(tmp_path: Path) -> None:
    port = free_port()
    begin = time.monotonic()
    with RunningReceiver(tmp_path / "data", host="127.0.0.1", port=port, retry_count=2) as receiver:
        error = receiver.wait_for_error()
    release_port(port)
    assert error.errno == 2003 and time.monotonic() - begin >= 1
    assert receiver.status().last_error.startswith(error.message) and not receiver.status().connected


@pytest.mark.parametrize(
    ("name", "position"),
    [
        *((name, 4) for name in ("../../etc/passwd.000001", "bin.000001\nx", "bin", "x" * 600 + ".000001")),
        ("bin.000001", 3),
        ("bin.000001", (1 << 63) - 1),
        ("bin.000001", 1 << 63),
    ],
)
def test_a_place_that_cannot_be_in_a_log_is_refused(tmp_path: Path, name: str, position: int) -> None:
    lying = event(4, position.to_bytes(8, "little") + name.encode(), 0, flags=0x20)
    with (
        FakeServer(frame([lying])) as server,
        RunningReceiver(tmp_path / "data", host="127.0.0.1", port=server.port) as receiver,
    ):
        error = receiver.wait_for_error()
    assert isinstance(error, SourceError) and "invalid binary log name or position" in error.message


def test_a_second_replica_with_our_id_is_reported_not_fought(tmp_path: Path) -> None:
    text = "A slave with the same server_uuid/server_id is already connected"
    with (
        FakeServer(frame_error(4052, text, 1)) as server,
        RunningReceiver(tmp_path / "data", host="127.0.0.1", port=server.port) as receiver,
    ):
        error = receiver.wait_for_error()
    assert text in error.message and "server-id" in error.hint


@pytest.mark.long("tests/command/test_threads.py::test_a_receiver_starts_reports_and_stops stops one in make test.")
def test_the_process_stops_on_sigterm_with_its_position_written(tmp_path: Path) -> None:
    folder = archive(tmp_path / "archive")
    end = BinlogPosition(*end_of(folder / "bin.000002"))
    receiver = RunningReceiver(tmp_path / "data", master_binlog_dir=str(folder))
    process = subprocess.Popen(
        [sys.executable, "-m", "rplctl.receiver", str(tmp_path / "data"), ""],
        stderr=subprocess.PIPE,
        env={**os.environ, "RPLCTL_SERVER_ID": "77"},
    )
    try:
        deadline = time.monotonic() + 180
        while receiver.stored().read_position != end and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        _, notes = process.communicate(timeout=180)
    finally:
        process.kill()
    assert process.returncode == 0, notes
    assert receiver.stored().read_position == end


def load(server: MariadbServer, database: str) -> None:
    """Small and large transactions, a log of each kind of checksum, an event above 16 MB."""
    server.sql(f"CREATE DATABASE {database}; CREATE TABLE {database}.t (a INT AUTO_INCREMENT PRIMARY KEY, b LONGBLOB)")
    insert = f"INSERT INTO {database}.t (b) VALUES"
    server.sql(";".join(f"{insert} (REPEAT('{number}', 500)), ('x')" for number in range(40)))
    server.sql(f"FLUSH BINARY LOGS; {insert} ('after rotate')")
    server.sql(
        f"SET GLOBAL binlog_checksum=NONE; {insert} ('no checksum'); SET GLOBAL binlog_checksum=CRC32; {insert} ('crc')"
    )
    server.sql("SET GLOBAL max_allowed_packet=1073741824")
    server.sql(f"{insert} (REPEAT('y', 20000000))")


def kill_dump(server: MariadbServer) -> None:
    for row in server.sql("SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'"):
        with contextlib.suppress(pymysql.Error):  # it has ended
            server.sql(f"KILL {row[0]}")


def follow_a_troubled_life(server: MariadbServer, receiver: RunningReceiver) -> None:
    """Load, a killed dump, a clean restart, a crash: then the relay logs hold what the binary logs hold."""
    with receiver:
        load(server, "life")
        receiver.catch_up(server)
        kill_dump(server)
        server.sql("INSERT INTO life.t (b) VALUES ('after kill')")
        receiver.catch_up(server)
        server.restart()
        server.sql("INSERT INTO life.t (b) VALUES ('after restart')")
        receiver.catch_up(server)
        server.kill()
        server.start()
        server.sql("INSERT INTO life.t (b) VALUES ('after crash')")
        receiver.catch_up(server)
        receiver.wait(lambda: receiver.status().received_heartbeats > 0)
        assert receiver.status().last_errno == 0
    assert receiver.relayed() == log_events(server.binlog_files)


@pytest.mark.long("tests/receiver/test_network.py cuts the connection after its bytes in make test.")
@pytest.mark.slow
@pytest.mark.parametrize("gtid", [0, 2])
def test_mariadb_is_received_whole_through_kill_restart_and_crash(
    tmp_path: Path, mariadb_factory: Callable[..., MariadbServer], gtid: int
) -> None:
    server = mariadb_factory("--sync-binlog=1")
    receiver = RunningReceiver(tmp_path / "data", host="127.0.0.1", port=server.port, using_gtid=gtid)
    follow_a_troubled_life(server, receiver)


@pytest.mark.long("The cases of MariaDB hold it.")
@pytest.mark.slow
@pytest.mark.parametrize("gtid", [pytest.param(False, marks=pytest.mark.torture), True])
def test_mysql_is_received_whole_through_kill_restart_and_crash(
    tmp_path: Path, mysql_factory: Callable[..., MysqlServer], gtid: bool
) -> None:
    server = mysql_factory("--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--sync-binlog=1")
    receiver = RunningReceiver(
        tmp_path / "data", host="127.0.0.1", port=server.port, enabled_ssl=True, enabled_auto_position=gtid
    )
    follow_a_troubled_life(server, receiver)


@pytest.mark.slow
def test_a_purged_log_and_an_impossible_position_are_final(
    tmp_path: Path, mariadb_factory: Callable[..., MariadbServer]
) -> None:
    server = mariadb_factory()
    first = server.master_status()[0]
    server.sql("FLUSH BINARY LOGS; FLUSH BINARY LOGS")
    last = server.master_status()[0]
    purge_logs(server, last)
    for name, position, text in (
        (first, 4, "Could not find first log file name"),
        (last, 10**6, "impossible position"),
    ):
        with RunningReceiver(
            tmp_path / f"data{position}",
            host="127.0.0.1",
            port=server.port,
            master_log_name=name,
            master_log_pos=position,
        ) as receiver:
            error = receiver.wait_for_error()
        assert error.errno == 1236 and text in error.message


@pytest.mark.long("tests/stories/test_target_outage.py waits for a target in make test.")
@pytest.mark.mariadb
def test_a_target_with_our_record_that_goes_away_is_waited_for(
    tmp_path: Path,
    mariadb: MariadbServer,
    mariadb_factory: Callable[..., MariadbServer],
    caplog: pytest.LogCaptureFixture,
) -> None:
    target = mariadb_factory()
    mariadb.sql("RESET MASTER; CREATE OR REPLACE DATABASE away")
    config = {"master_info_repository": "TABLE", "target": target.url(), "sync_master_info": 1}
    where = {"host": mariadb.host, "port": mariadb.port, "master_log_name": "binlog.000001", "master_log_pos": 4}
    receiver = RunningReceiver(tmp_path / "data", config=config, **where)
    target.kill()
    with receiver:
        receiver.wait(lambda: "attempt 2" in caplog.text)
        target.start()
        receiver.catch_up(mariadb)
        caplog.clear()
        target.kill()
        mariadb.sql("CREATE DATABASE away_2")
        receiver.wait(lambda: "attempt 2" in caplog.text)
        assert receiver.status().last_errno != 0
        mariadb.sql("DROP DATABASE away_2; DROP DATABASE away")
        target.start()
        receiver.catch_up(mariadb)
    assert receiver.error is None
    assert receiver.relayed() == log_events(mariadb.binlog_files)


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals come to the main thread")
@pytest.mark.parametrize("slow", ["recover_relay_log", "dump_start", "replica_identity", "open_source"])
def test_a_signal_is_heeded_while_the_dump_is_being_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: str
) -> None:
    """Before the first event: recovery, which ends its work, then what to ask for, and the source's answer."""
    made = RunningReceiver(tmp_path / "data", master_binlog_dir=str(archive(tmp_path / "archive")))
    really = getattr(receiver_module, slow)

    def slowly(*args: Any, **options: Any) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)
        if slow != "recover_relay_log":
            for _ in range(200):  # what a hundred thousand GTIDs take
                naps.append(slow)
                time.sleep(0.05)
        reached.append(slow)
        return really(*args, **options)

    reached: list[str] = []
    naps: list[str] = []
    monkeypatch.setattr(receiver_module, slow, slowly)
    Receiver(made.config, made.channel).run()
    assert len(naps) < 100, "half of what it takes"
    assert reached == (["recover_relay_log"] if slow == "recover_relay_log" else [])
    assert made.relay_logs() == [] and made.status().state == ""


UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
NEXT = BinlogPosition("binlog.000002", 1170)


def recovered(gtids: str = "") -> RecoveryResult:
    return RecoveryResult(
        next_event=NEXT,
        relay_end=RelayLogPosition("", 0),
        needs_new_relay_log=True,
        format_description=b"",
        truncated_bytes=0,
        removed_relay_logs=(),
        retrieved_gtid_set=gtids,
        is_index_repaired=False,
        notes=(),
    )


def test_without_gtids_the_dump_begins_at_recoverys_next_event() -> None:
    start = dump_start(MasterInfo(), recovered(), RelayLogInfo())
    assert (start.position, start.by_gtid) == (NEXT, False)


def test_with_auto_position_everything_fetched_or_applied_is_told() -> None:
    info = MasterInfo(enabled_auto_position=True)
    start = dump_start(info, recovered(f"{UUID}:4-6"), RelayLogInfo(gtid_executed=f"{UUID}:1-3"))
    assert str(start.mysql_gtid_set) == f"{UUID}:1-6" and start.mariadb_gtid is None
    assert str(dump_start(info, recovered(), RelayLogInfo()).mysql_gtid_set) == ""
    assert dump_start(info, recovered(), RelayLogInfo()).by_gtid  # an empty set asks for everything


@pytest.mark.parametrize("using", [1, 2])
def test_with_mariadb_gtids_the_later_of_fetched_and_applied_counts_per_domain(using: int) -> None:
    info = replace(MasterInfo(), using_gtid=using)
    start = dump_start(info, recovered("0-1-9"), RelayLogInfo(gtid_executed="0-1-5,1-2-8"))
    assert start.mariadb_gtid == "0-1-9,1-2-8" and start.mysql_gtid_set is None
    assert dump_start(info, recovered(), RelayLogInfo()).mariadb_gtid == ""


def test_a_gtid_set_that_is_none_is_mysqls_1772_not_a_start_from_the_beginning() -> None:
    with pytest.raises(RplError) as caught:
        dump_start(MasterInfo(enabled_auto_position=True), recovered(), RelayLogInfo(gtid_executed="rubbish"))
    assert caught.value.errno == 1772
