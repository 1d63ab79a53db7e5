"""WL#9452, statement by statement: which test holds each, and the tests of the collection itself."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import rplctl.log_status
from rplctl.channel import Channel
from rplctl.command.channel.context import engine_of, one_engine
from rplctl.command.log_status import log_status
from rplctl.command.show_status import show_status
from rplctl.config import OPTIONS, Config
from rplctl.errors import LockBusy, RplError, TargetError
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.locks import FileLock, channel_map, collector_lock, gtid_map
from rplctl.log_status import Collected, LogResource, TargetLog, collect_log_status, executed_by_all
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.receiver.pull import MasterInfoFlusher
from rplctl.relay_log.writer import RelayLogWriter
from rplctl.repository import create_tables, open_master_info, open_relay_log_info
from rplctl.target.engine_log import Figures
from tests.kit.servers import MariadbServer, MysqlServer
from tests.source.binlogs import statements

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parent

WL9452: dict[int, tuple[str, ...]] = {
    1: (
        "target/test_engine_log.py::test_a_server_that_does_not_grant_backups_is_1227_with_mysqls_words",
        "cli/test_log_status.py::test_without_the_privilege_there_is_the_error_and_nothing_else",
        "test_log_status.py::test_01_another_user_of_the_machine_gets_1227_and_nothing",
    ),
    2: (
        "cli/test_log_status.py::test_the_row_has_the_columns_and_keys_of_its_format",
        "test_log_status.py::test_02_mysqls_own_table_has_the_columns_and_keys_of_our_format_mysql8",
    ),
    3: ("test_log_status.py::test_03_master_without_a_binary_log_is_gtid_executed_alone",),
    4: ("test_log_status.py::test_04_channels_name_files_without_folder_and_none_is_an_empty_list",),
    5: ("target/test_engine_log.py::test_every_kind_of_target_says_where_its_log_is",),
    6: ("test_log_status.py::test_06_coordinates_are_those_flushed_not_the_end_of_the_relay_log",),
    7: ("command/test_backup.py::test_a_backup_at_any_moment_goes_on_without_loss_and_without_repetition",),
    8: ("test_log_status.py::test_08_09_the_state_is_entered_and_left_by_the_collection_itself",),
    9: (
        "test_log_status.py::test_08_09_the_state_is_entered_and_left_by_the_collection_itself",
        "test_log_status.py::test_09_a_receiver_cannot_flush_its_position_while_the_state_lasts",
        "command/instance/test_backup_lock.py::test_commands_on_channels_wait_for_the_collection",
    ),
    10: ("test_log_status.py::test_10_locks_are_taken_in_the_worklogs_order_and_given_back_in_reverse",),
    11: (
        "command/instance/test_backup_lock.py::test_the_worklogs_sequence_runs",
        "test_log_status.py::test_11_the_read_lock_of_a_server_holds_a_receivers_flush_but_not_the_collection",
    ),
    12: ("command/test_deadlock.py::test_every_pair_of_commands_comes_to_an_end",),
    13: ("test_log_status.py::test_13_a_resource_is_locked_collected_and_unlocked",),
    14: ("test_log_status.py::test_14_the_first_failure_ends_it_with_its_column_and_frees_every_lock",),
    15: ("test_log_status.py::test_15_it_brings_no_option_and_no_file_but_locks",),
}
AT = BinlogPosition("bin.000001", 500)


def test_every_statement_has_a_test_that_is_there() -> None:
    assert sorted(WL9452) == list(range(1, 16))
    for place in {place for places in WL9452.values() for place in places}:
        path, _, name = place.partition("::")
        tree = ast.parse((TESTS / path).read_text())
        assert name in {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}, place


class FakeLog:
    """A target's log that does what a test says while everything is locked."""

    name = "Fake"

    def __init__(self, meanwhile: Callable[[], None] = lambda: None, fails: str = "") -> None:
        self._meanwhile, self._fails = meanwhile, fails
        self.calls: list[str] = []

    def lock(self) -> None:
        self.calls.append("lock")

    def collect(self) -> Figures:
        self.calls.append("collect")
        self._meanwhile()
        if self._fails:
            raise TargetError(self._fails)
        return {"LSN": 7}

    def copy_to(self, path: Path) -> bool:
        return False

    def unlock(self) -> None:
        self.calls.append("unlock")

    def close(self) -> None: ...


class Instance:
    """A folder with FILE repositories and no process."""

    def __init__(self, datadir: Path, **options: Any) -> None:
        self.config = Config(datadir, **options)

    def configs(self, _: str) -> Config:
        return self.config

    def add(self, name: str, gtids: str = "") -> RelayLogWriter:
        """A channel whose receiver has flushed at 500 and gone on writing."""
        channel = Channel(name, self.config.datadir)
        master = open_master_info(self.config, channel, engine_of(self.config))
        writer = RelayLogWriter(channel, self.config, 77)
        writer.open_new(BinlogPosition("bin.000001", 4))
        MasterInfoFlusher(master, MasterInfo(host="h", channel_name=name)).force(AT, writer)
        info = RelayLogInfo(channel_name=name, gtid_executed=gtids)
        stored = open_relay_log_info(self.config, channel, engine_of(self.config))
        stored.flush(info.at(RelayLogPosition("relay-bin.000001", 4), AT), force=True)
        return writer

    def collect(self, log: FakeLog | None = None, patience_s: float = 5) -> Collected:
        return collect_log_status(self.configs, engine_of, [TargetLog(log)] if log is not None else [], patience_s)

    @property
    def locks_are_free(self) -> bool:
        return not any(self.held().values())

    def held(self) -> dict[str, bool]:
        """Which locks somebody else has now."""
        datadir = self.config.datadir
        data = FileLock(Channel("", datadir).lock_path("data"))
        found = {"log_status": _is_held(collector_lock(datadir)), "data": _is_held(data)}
        for lock in (channel_map(datadir), gtid_map(datadir)):
            with lock.shared(0) as is_free:
                found[lock.name] = not is_free
            lock.close()
        return found


def _is_held(lock: FileLock) -> bool:
    is_free = lock.acquire(patience_s=0)
    lock.close()
    return not is_free


@pytest.fixture
def instance(tmp_path: Path) -> Instance:
    return Instance(tmp_path)


def test_01_another_user_of_the_machine_gets_1227_and_nothing(tmp_path: Path) -> None:
    """BACKUP_ADMIN of an instance is to own its folder (0700)."""
    import os
    import shutil
    import tempfile

    if os.geteuid() != 0:
        pytest.skip("only root can be somebody else")
    folder = Path(tempfile.mkdtemp(prefix="rpl-other-", dir="/tmp"))
    try:
        folder.chmod(0o755)
        datadir = folder / "instance"
        command = [sys.executable, "-m", "rplctl", "--datadir", str(datadir)]
        subprocess.run([*command, "init"], check=True, capture_output=True)
        code = (
            "import contextlib, io, os, sys; from rplctl.cli import run\n"
            "with contextlib.redirect_stdout(io.StringIO()):\n"
            "    assert run(sys.argv[1:]) == 0  # the owner may; and loads what another user cannot\n"
            "os.setuid(65534); sys.exit(run(sys.argv[1:]))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, "--datadir", str(datadir), "log-status"], capture_output=True, text=True
        )
    finally:
        shutil.rmtree(folder)
    text = "Access denied; you need (at least one of) the BACKUP_ADMIN privilege(s) for this operation"
    assert done.stdout == "" and done.stderr.startswith(f"ERROR 1227: {text}\n"), done.stderr


def test_02_mysqls_own_table_has_the_columns_and_keys_of_our_format_mysql8(
    instance: Instance, mysql: MysqlServer
) -> None:
    """Asked of a server without channels whose binary log is on; the channels' keys are those of recorded rows."""
    with mysql.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT * FROM performance_schema.log_status")
        (own,) = cursor.fetchall()
        columns = [column[0] for column in cursor.description]
    ours = log_status(instance.configs, "mysql8").row
    assert columns == list(ours)
    assert json.loads(own[2]) == ours["REPLICATION"] == {"channels": []}
    assert {type(value) for value in json.loads(own[1]).values()} == {str, int}
    assert set(ours["LOCAL"]) <= set(json.loads(own[1]))
    instance.add("").close()
    (channel,) = log_status(instance.configs, "mysql8").row["REPLICATION"]["channels"]
    assert list(channel) == ["channel_name", "relay_log_file", "relay_log_position"]


def test_03_master_without_a_binary_log_is_gtid_executed_alone(instance: Instance) -> None:
    assert instance.collect().master == {"gtid_executed": ""}
    instance.add("a", "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5")
    instance.add("b", "3e11fa47-71ca-11e1-9e33-c80aa9429562:6-9")
    instance.add("c", "0-1-17")
    assert instance.collect().master == {"gtid_executed": "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-9,0-1-17"}


def test_executed_sets_of_nobody_are_empty() -> None:
    assert executed_by_all([]) == executed_by_all([RelayLogInfo()]) == ""


def test_04_channels_name_files_without_folder_and_none_is_an_empty_list(instance: Instance) -> None:
    assert log_status(instance.configs).row["CHANNELS"] == {"channels": []}
    instance.add("").close()
    instance.add("West").close()
    other = Channel("new", instance.config.datadir)
    open_master_info(instance.config, other, engine_of(instance.config)).flush(MasterInfo(host="h"), force=True)
    found = log_status(instance.configs).row["CHANNELS"]["channels"]
    size = (instance.config.datadir / "relay-bin.000001").stat().st_size
    assert found == [
        {"channel_name": "", "relay_log_file": "relay-bin.000001", "relay_log_position": size},
        {"channel_name": "West", "relay_log_file": "relay-bin-west.000001", "relay_log_position": size},
        {"channel_name": "new", "relay_log_file": "", "relay_log_position": 0},
    ]


def test_06_coordinates_are_those_flushed_not_the_end_of_the_relay_log(instance: Instance) -> None:
    """As if the receiver stood still between the write to the relay log and the flush of MasterInfo."""
    writer = instance.add("")
    flushed = writer.end
    writer.append(b"".join(statements(1, start=4)), 2)
    assert writer.end.log_pos > flushed.log_pos
    (log,) = instance.collect().channels
    assert (log.relay_log_file, log.relay_log_position) == (flushed.log_name, flushed.log_pos)
    assert log.master_info is not None and log.master_info.read_position == AT
    master = open_master_info(instance.config, Channel("", instance.config.datadir), engine_of(instance.config))
    MasterInfoFlusher(master, MasterInfo(host="h")).after_events(BinlogPosition("bin.000001", 600), writer, 2)
    (log,) = instance.collect().channels
    assert (log.relay_log_file, log.relay_log_position) == (writer.end.log_name, writer.end.log_pos)
    assert log.master_info is not None and log.master_info.read_position.log_pos == 600


def test_coordinates_do_not_point_behind_a_relay_log_that_recovery_cut(instance: Instance) -> None:
    writer = instance.add("")
    writer.close()
    path = instance.config.datadir / "relay-bin.000001"
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 3)
    assert instance.collect().channels[0].relay_log_position == path.stat().st_size
    path.unlink()
    (instance.config.datadir / "relay-bin.index").write_text("")
    assert (instance.collect().channels[0].relay_log_file, instance.collect().channels[0].relay_logs) == ("", ())


def test_08_09_the_state_is_entered_and_left_by_the_collection_itself(instance: Instance) -> None:
    instance.add("").close()
    seen: list[dict[str, bool]] = []
    found = instance.collect(FakeLog(lambda: seen.append(instance.held())))
    assert seen == [{"log_status": True, "data": True, "channels": True, "gtids": True}]
    assert instance.locks_are_free
    assert found.storage_engines == {"Fake": {"LSN": 7}} and found.held_s > 0


def test_09_a_receiver_cannot_flush_its_position_while_the_state_lasts(instance: Instance) -> None:
    """F-2.5, in a process of its own: it comes to its flush, and through it only when the state is left."""
    instance.add("").close()
    code = (
        "import sys; from pathlib import Path; from rplctl.config import Config; from rplctl.channel import Channel\n"
        "from rplctl.receiver.receiver import Receiver; from dataclasses import replace\n"
        "datadir = Path(sys.argv[1]); r = Receiver(Config(datadir), Channel('', datadir)).master_info\n"
        "print('ready', flush=True); r.flush(replace(r.read(), master_log_pos=600), force=True); print('flushed')"
    )
    processes: list[subprocess.Popen[str]] = []
    repository = open_master_info(instance.config, Channel("", instance.config.datadir), engine_of(instance.config))

    def meanwhile() -> None:
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(instance.config.datadir)], stdout=subprocess.PIPE, text=True
        )
        processes.append(process)
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
        assert repository.read().master_log_pos == 500

    instance.collect(FakeLog(meanwhile))
    out, _ = processes[0].communicate(timeout=180)
    assert out == "flushed\n" and repository.read().master_log_pos == 600


def test_10_locks_are_taken_in_the_worklogs_order_and_given_back_in_reverse(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        instance.add(name).close()
    order: list[str] = []
    acquire, close = FileLock.acquire, FileLock.close

    def note(lock: FileLock) -> str:
        return f"{lock.path.parent.name}/{lock.path.stem}" if lock.path.stem == "data" else lock.path.stem

    def noted_acquire(self: FileLock, **options: Any) -> bool:
        if self.path.suffix == ".lock":
            order.append(f"+{note(self)}")
        return acquire(self, **options)

    def noted_close(self: FileLock) -> None:
        if self.path.suffix == ".lock" and self.descriptor >= 0:
            order.append(f"-{note(self)}")
        close(self)

    monkeypatch.setattr(FileLock, "acquire", noted_acquire)
    monkeypatch.setattr(FileLock, "close", noted_close)
    log = FakeLog(lambda: order.append("collect"))
    instance.collect(log)
    taken = ["log_status", "channels", "a/data", "b/data", "gtids"]
    assert order == [f"+{name}" for name in taken] + ["collect"] + [f"-{name}" for name in reversed(taken)]
    assert log.calls == ["lock", "collect"]  # its snapshot is kept for the caller


def test_11_the_read_lock_of_a_server_holds_a_receivers_flush_but_not_the_collection(
    tmp_path: Path, mariadb_factory: Callable[..., MariadbServer]
) -> None:
    """F-4 with MasterInfo in a TABLE: the receiver waits for the server's lock without its own data lock."""
    server = mariadb_factory()
    options = {"master_info_repository": "TABLE", "relay_log_info_repository": "TABLE"}
    instance = Instance(tmp_path, target=server.url(), **options)
    create_tables(engine_of(instance.config)())
    instance.add("").close()
    channel = Channel("", tmp_path)
    repository = open_master_info(instance.config, channel, engine_of(instance.config))
    repository.guard = FileLock(channel.lock_path("data")).held
    read = repository.read()
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("FLUSH TABLES WITH READ LOCK")
        receiver = threading.Thread(target=lambda: repository.flush(replace(read, master_log_pos=600), force=True))
        receiver.start()
        deadline = time.monotonic() + 180
        while not server.sql("SELECT 1 FROM information_schema.processlist WHERE state LIKE 'Waiting for backup lock'"):
            assert time.monotonic() < deadline
        row = log_status(instance.configs).row
        assert receiver.is_alive() and repository.read().master_log_pos == read.master_log_pos
        cursor.execute("UNLOCK TABLES")
    receiver.join(180)
    assert repository.read().master_log_pos == 600
    assert list(row["STORAGE_ENGINES"]["InnoDB"]) == ["LSN", "LSN_checkpoint"]
    assert row["CHANNELS"]["channels"][0]["relay_log_file"] == "relay-bin.000001"


def test_13_a_resource_is_locked_collected_and_unlocked(instance: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has the three verbs takes part, in its place of the list."""
    calls: list[str] = []

    def lock(patience_s: float) -> bool:
        calls.append("lock")
        return len(calls) > 1  # the first round is given up, and taken again from the start

    extra = LogResource(
        column="MASTER", lock=lock, collect=lambda: calls.append("collect"), unlock=lambda: calls.append("unlock")
    )
    monkeypatch.setattr(rplctl.log_status, "gtid_resource", lambda *_: extra)
    instance.collect()
    assert calls == ["lock", "lock", "collect", "unlock"]


def test_a_lock_that_is_never_free_is_1205_and_nobody_is_kept_out_meanwhile(instance: Instance) -> None:
    instance.add("").close()
    receiver = FileLock(Channel("", instance.config.datadir).lock_path("data"))
    with receiver.held(), pytest.raises(LockBusy) as raised:
        instance.collect(patience_s=0.2)
    receiver.close()
    assert raised.value.errno == 1205 and instance.locks_are_free


@contextmanager
def _damaged(path: Path) -> Iterator[None]:
    whole = path.read_bytes()
    path.write_bytes(b"33\nnonsense\n")
    yield
    path.write_bytes(whole)


def test_14_the_first_failure_ends_it_with_its_column_and_frees_every_lock(instance: Instance) -> None:
    instance.add("").close()
    datadir = instance.config.datadir

    def failure(log: FakeLog | None = None) -> str:
        with pytest.raises(RplError) as raised:
            instance.collect(log)
        assert raised.value.errno == 3722 and instance.locks_are_free
        return raised.value.message

    untouched = FakeLog()
    with _damaged(datadir / "master.info"):
        assert failure(untouched).startswith("Unable to collect information for column 'CHANNELS': ")
    assert "collect" not in untouched.calls
    with _damaged(datadir / "relay-log.info"):
        assert failure(untouched).startswith("Unable to collect information for column 'MASTER': ")
    assert "collect" not in untouched.calls
    words = failure(FakeLog(fails="the disk is gone."))
    assert words == "Unable to collect information for column 'STORAGE_ENGINES': the disk is gone."
    assert instance.collect().channels[0].relay_log_file == "relay-bin.000001"


def test_15_it_brings_no_option_and_no_file_but_locks(instance: Instance) -> None:
    instance.add("").close()
    before = {path for path in instance.config.datadir.rglob("*") if path.is_file()}
    log_status(instance.configs)
    new = {path for path in instance.config.datadir.rglob("*") if path.is_file()} - before
    assert {path.suffix for path in new} <= {".lock", ".gate"} and {path.stat().st_size for path in new} == {0}
    assert not [name for name in OPTIONS if "log_status" in name or "collect" in name]


def test_who_asks_again_and_again_leaves_no_connection_open(tmp_path: Path) -> None:
    """A collector that calls the functions, not the program."""

    def connections() -> int:
        links = [os.readlink(link) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
        return sum(link == str(tmp_path / "target.db") for link in links)

    instance = Instance(tmp_path, master_info_repository="TABLE", relay_log_info_repository="TABLE")
    with one_engine():
        create_tables(engine_of(instance.config)(), "")
        instance.add("north")
    for _ in range(3):
        assert log_status(instance.configs).row["CHANNELS"]["channels"]
        assert show_status(instance.config, "north").Master_Host == "h"
    assert connections() == 0


def test_the_row_is_json(instance: Instance) -> None:
    instance.add("").close()
    row = log_status(instance.configs).row
    assert json.loads(json.dumps(row)) == row
    assert len(row["SERVER_UUID"]) == 36
